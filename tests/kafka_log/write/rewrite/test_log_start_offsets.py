"""Where a log starts that is written again: what DeleteRecords had removed does not come back on a broker."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_codecs import OFFSET_CHECKPOINT
from kafka_log import LogDirectory, read_table
from kafka_log.write.staged_output import OutputError
from tests.paths import SAMPLES

FILE = "log-start-offset-checkpoint"
TOPICS = ("trimmed", "codecs")

JOBS: dict[str, Callable[[LogDirectory, Path], Any]] = {
    "salvage": lambda log, out: log.salvage(out),
    "flatten": lambda log, out: log.salvage(out, flatten=True),
    "cut": lambda log, out: log.cut(out, (3, 12)),
    "convert": lambda log, out: log.convert(out, codec="zstd"),
}


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """A broker's directory where the logs of two partitions start inside of their first segments."""
    root = tmp_path / "broker"
    for name in ("trimmed-0", "codecs-0", "codecs-1", "segments.small-0"):
        shutil.copytree(SAMPLES / "kafka-4.x" / name, root / name)
    say(root, trimmed=7, codecs=5)
    return root


def say(root: Path, **starts: int) -> None:
    entries = [{"topic": t, "partition": 0, "offset": o} for t, o in starts.items()]
    entries.append({"topic": "gone", "partition": 3, "offset": 9})
    (root / FILE).write_bytes(OFFSET_CHECKPOINT.build({"entries": entries}))


def said(out: Path) -> dict[tuple[str, int], int]:
    if not (out / FILE).exists():
        return {}
    found = OFFSET_CHECKPOINT.parse((out / FILE).read_bytes())
    return {(e.topic, e.partition): e.offset for e in found.entries or ()}


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS)
def test_the_log_start_offset_is_kept(job: str, broker: Path, tmp_path: Path) -> None:
    JOBS[job](LogDirectory(broker), tmp_path / "out")
    assert said(tmp_path / "out") == {("trimmed", 0): 7, ("codecs", 0): 5}
    codes = set(LogDirectory(tmp_path / "out").check().column("code").to_pylist())
    assert codes <= {"unknown_file"}  # what the job itself has noted
    again = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")}
    JOBS[job](LogDirectory(broker), tmp_path / "out")
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")} == again


@pytest.mark.slow
def test_the_bytes_are_the_brokers(tmp_path: Path) -> None:
    LogDirectory(SAMPLES / "kafka-4.x").salvage(tmp_path / "out")
    assert (tmp_path / "out" / FILE).read_bytes() == (SAMPLES / "kafka-4.x" / FILE).read_bytes()


def test_indexes_say_nothing_of_it(broker: Path, tmp_path: Path) -> None:
    LogDirectory(broker).reindex(tmp_path / "out")
    assert not (tmp_path / "out" / FILE).exists()


def test_partitions_that_come_later_are_added(broker: Path, tmp_path: Path) -> None:
    for topic in TOPICS:
        LogDirectory(broker, topics=topic).salvage(tmp_path / "out")
    assert said(tmp_path / "out") == {("trimmed", 0): 7, ("codecs", 0): 5}
    say(broker, trimmed=8, codecs=5)
    with pytest.raises(OutputError, match="the result of another command"):
        LogDirectory(broker, topics="trimmed").salvage(tmp_path / "out")
    # One that is taken away is made anew, and says what the broker says by now.
    shutil.rmtree(tmp_path / "out" / "trimmed-0")
    LogDirectory(broker, topics="trimmed").salvage(tmp_path / "out")
    assert said(tmp_path / "out") == {("trimmed", 0): 8, ("codecs", 0): 5}
    shutil.rmtree(tmp_path / "out" / "trimmed-0")
    (broker / FILE).unlink()
    LogDirectory(broker, topics="trimmed").salvage(tmp_path / "out")
    assert said(tmp_path / "out") == {("codecs", 0): 5}


@pytest.mark.parametrize(
    ("start", "is_kept"), [(-4, False), (0, False), (1, True), (67, True), (68, False)]
)
def test_only_what_lies_in_the_log_is_kept(
    start: int, is_kept: bool, broker: Path, tmp_path: Path
) -> None:
    """A broker throws a log away that ends before the log start offset."""
    assert read_table(broker / "codecs-0", deleted_records=True).num_rows == 67
    say(broker, codecs=start)
    LogDirectory(broker, topics="codecs").salvage(tmp_path / "out")
    assert said(tmp_path / "out") == ({("codecs", 0): start} if is_kept else {})


def test_a_part_after_it_or_before_it_has_none(broker: Path, tmp_path: Path) -> None:
    say(broker, codecs=10)
    whole = read_table(broker / "codecs-0", ["base_offset"], deleted_records=True)
    bases = sorted(set(whole["base_offset"].to_pylist()))
    log = LogDirectory(broker, topics="codecs", partitions=0)
    later = next(base for base in bases if base >= 10)
    log.cut(tmp_path / "after", (later, None))
    assert not (tmp_path / "after" / FILE).exists()
    log.cut(tmp_path / "before", (0, bases[1]))
    assert not (tmp_path / "before" / FILE).exists()


def test_what_is_taken_in_on_purpose_is_seen(broker: Path, tmp_path: Path) -> None:
    """A segment that was deleted lies before the log start offset: a broker would delete it again."""
    small = broker / "segments.small-0"
    (small / f"{0:020d}.log").rename(small / f"{0:020d}.log.deleted")
    say(broker, **{"segments.small": 42, "trimmed": 7})
    LogDirectory(broker, include=["deleted"]).salvage(tmp_path / "out")
    assert said(tmp_path / "out") == {("trimmed", 0): 7}


def test_a_file_that_is_damaged_says_nothing(broker: Path, tmp_path: Path) -> None:
    (broker / FILE).write_bytes(b"\xff\n")
    LogDirectory(broker).salvage(tmp_path / "out")
    assert said(tmp_path / "out") == {}
