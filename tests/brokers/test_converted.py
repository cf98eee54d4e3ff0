"""A broker of today takes in what convert wrote, also of logs that it would not write itself, and consumers read every record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka_log import LogDirectory
from tests.paths import SAMPLES

from .expected import consume
from .load import load_into_broker

pytestmark = pytest.mark.broker

SKIPPED = ("__", "trimmed", "empty")
"""Topics of Kafka's own, of which the broker has others; a log start that its checkpoint alone knows; nothing to read."""


@pytest.mark.share(ci=2)
@pytest.mark.parametrize(("codec", "recover"), [("zstd", False), ("none", True)])
def test_a_broker_takes_in_what_is_converted(codec: str, recover: bool, tmp_path: Path) -> None:
    sources: dict[str, Path] = {}
    expected: dict[str, object] = {}
    for sample in ("kafka-2.8", "kafka-4.x"):
        out = tmp_path / sample
        LogDirectory(SAMPLES / sample).convert(out, codec=codec)
        said = json.loads((SAMPLES / "expected.json").read_bytes())[sample]["partitions"]
        for name in said:
            if not name.startswith(SKIPPED):
                sources[f"{sample}.{name}"] = out / name
                expected[f"{sample}.{name}"] = {
                    isolation: said[name][isolation]
                    for isolation in ("read_uncommitted", "read_committed")
                }
    with load_into_broker(tmp_path / "broker", sources, recover=recover) as broker:
        found = consume(broker)
        log = broker.log_text()
    for name, theirs in expected.items():
        assert found[name] == theirs, name
    assert "Rebuilding" not in log or recover
