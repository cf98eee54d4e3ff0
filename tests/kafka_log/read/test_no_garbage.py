"""What a scan has held is free when it is over: cycles of references would keep buffers until Python looks for them, which in a process
that has loaded much it hardly ever does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import kafka_log
from kafka_log import LogDirectory, SegmentReader
from kafka_log.segment.model import Policy
from tests.paths import SAMPLES
from tests.support.garbage import damaged_partition, garbage

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


@pytest.mark.slow
@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_over_is_free(way: str, log: str) -> None:
    assert garbage(lambda: WAYS[way](BROKER / log)) == []


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return damaged_partition(tmp_path_factory.mktemp("damaged"))


SALVAGE: dict[str, Callable[[Path], object]] = {
    "rows": lambda path: list(kafka_log.scan(path, policy="salvage")),
    "rows by the reference codecs": lambda path: list(
        kafka_log.scan(path, engine="construct", policy="salvage")
    ),
    "batches": lambda path: list(kafka_log.scan_batches(path, policy="salvage")),
    "codecs": lambda path: [
        list(SegmentReader(file, policy="salvage")) for file in sorted(path.rglob("*.log"))
    ],
    "codecs, as Kafka": lambda path: [
        list(SegmentReader(file)) for file in sorted(path.rglob("*.log"))
    ],
    "findings": WAYS["findings"],
    "sums": WAYS["sums"],
}


@pytest.mark.parametrize("way", SALVAGE)
def test_what_was_damaged_is_free(way: str, damaged: Path) -> None:
    assert garbage(lambda: SALVAGE[way](damaged)) == []


@pytest.mark.parametrize("policy", ["kafka", "salvage"])
def test_errors_that_are_kept_hold_no_functions(damaged: Path, policy: Policy) -> None:
    """Nor the bytes that these had: a list of damaged batches is as small as one of good ones."""
    files = list(damaged.glob("*.log"))
    assert files
    for file in files:
        reader = SegmentReader(file, policy=policy)
        kept = [problem.error for batch in reader for problem in batch.problems]
        assert len(kept) > 1 and reader.end is not None
        kept += [] if reader.end.error is None else [reader.end.error]
        assert [(e.__traceback__, e.__context__) for e in kept] == [(None, None)] * len(kept)


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
