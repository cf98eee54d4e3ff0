"""Fresh log directories of real brokers, each made once in a test session."""

from __future__ import annotations

import pytest

from .make_samples import Made, make
from .scenarios import KAFKA_2_8_SCENARIO, KAFKA_4_SCENARIO


@pytest.fixture(scope="session")
def kafka4_logs(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A stopped Kafka 4 broker's log directory, and what its consumer read before."""
    return make(KAFKA_4_SCENARIO, tmp_path_factory.mktemp("kafka4"))


@pytest.fixture(scope="session")
def kafka28_logs(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The same of a Kafka 2.8 broker: message sets v0 and v1, and batches."""
    return make(KAFKA_2_8_SCENARIO, tmp_path_factory.mktemp("kafka28"))


@pytest.fixture(params=["kafka4_logs", pytest.param("kafka28_logs", marks=pytest.mark.soak)])
def made(request: pytest.FixtureRequest) -> Made:
    """What a broker left. Kafka 2.8 is made to leave it in the soak: it does not change, and samples/ has the same."""
    logs: Made = request.getfixturevalue(request.param)
    return logs
