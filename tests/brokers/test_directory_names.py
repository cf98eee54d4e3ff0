"""Which directories a broker starts with: what `check` says of their names is right."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.brokers import KraftBroker
from tests.brokers.maven import BrokerError
from tests.log.report.test_check_directories import REFUSES, STARTS

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftBroker]:
    """A stopped one without topics."""
    made = KraftBroker(tmp_path_factory.mktemp("names"), {}, heap_mb=384)
    with made:
        pass
    try:
        yield made
    finally:
        made.kill()


def cleared(directory: Path) -> None:
    for path in directory.iterdir():
        if path.is_dir() and path.name != "__cluster_metadata-0":
            shutil.rmtree(path)


@pytest.mark.parametrize("name", REFUSES)
def test_refused(broker: KraftBroker, name: str) -> None:
    cleared(broker.log_dir)
    (broker.log_dir / name).mkdir()
    with pytest.raises(BrokerError):
        broker.start()
    broker.kill()
    assert f"Found directory {broker.log_dir / name}" in broker.last_log()


def test_taken(broker: KraftBroker) -> None:
    """All of them at once, and files of the other names."""
    cleared(broker.log_dir)
    for name in STARTS:
        (broker.log_dir / name).mkdir()
    for name in REFUSES:
        (broker.log_dir / name).touch()
    broker.start()
    broker.stop()
