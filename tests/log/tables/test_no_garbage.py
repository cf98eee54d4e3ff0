"""What a scan has held is free when it is over: cycles of references would keep buffers until Python looks for them, which in a process
that has loaded much it hardly ever does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import kafka_log
from kafka_log import LogDirectory, SegmentReader
from tests.paths import SAMPLES
from tests.support.garbage import garbage

BROKER = SAMPLES / "kafka-4.x"

WAYS: dict[str, Callable[[Path], object]] = {
    "rows": lambda path: list(kafka_log.scan(path)),
    "rows by the reference codecs": lambda path: list(kafka_log.scan(path, engine="construct")),
    "rows of a range": lambda path: list(kafka_log.scan(path, ["value"], offsets=(3, 9))),
    "committed rows": lambda path: list(kafka_log.scan(path, isolation="read_committed")),
    "rows and damage": lambda path: list(
        kafka_log.scan(path, ["key", "crc_ok", "damage"], policy="salvage")
    ),
    "batches": lambda path: list(kafka_log.scan_batches(path)),
    "a table": kafka_log.read_table,
    "codecs": lambda path: [list(SegmentReader(file)) for file in sorted(path.rglob("*.log"))],
    "findings": lambda path: LogDirectory(path).check(deep=True),
    "sums": lambda path: LogDirectory(path).stat(deep=True),
    "keys": lambda path: LogDirectory(path).keys(),
    "transactions": lambda path: LogDirectory(path).txn(),
}


LOGS = ("transactions-0", "codecs-2")


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_over_is_free(way: str, log: str) -> None:
    """Errors are not: what raises them holds them."""
    assert garbage(lambda: WAYS[way](BROKER / log)) == []


@pytest.mark.parametrize("ending", ["closed", "dropped"])
def test_a_scan_that_ends_early(ending: str) -> None:
    def work() -> None:
        reader = kafka_log.scan(BROKER, policy="salvage")
        next(reader)
        if ending == "closed":
            reader.close()

    assert garbage(work) == []


def test_the_test_sees_cycles() -> None:
    def work() -> None:
        reader = SegmentReader(next(BROKER.rglob("*.log")))
        reader.end = reader  # type: ignore[assignment]

    assert "kafka_log.segment.reader.SegmentReader" in garbage(work)
