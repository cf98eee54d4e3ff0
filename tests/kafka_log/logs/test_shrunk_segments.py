"""A segment that another one follows loses bytes between discovery and reading: what is missing is never passed over in silence."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory, Lost, Partition, discover, log_directory, scan, scan_batches
from kafka_log.cli import common, main
from kafka_log.inspect.dump import records_command
from kafka_log.logs import discovery
from kafka_log.read import scanning
from kafka_log.read.schemas import sources
from kafka_log.segment.positioned_reads import UnreadableError
from tests.support.batches import batch
from tests.support.commands import LOG_COMMANDS, command_line

BATCHES = 3
"""Of three records each, in each segment."""

SHRUNK = {"at a batch boundary": 2, "to one batch": 1, "to nothing": 0}
"""Batches that stay."""


NO_OP = b"\x01\x14\x00\x00"
"""Value of a NoOpRecord in the topic ``__cluster_metadata``."""


def make(directory: Path, value: bytes | None = None) -> list[int]:
    """Make a partition of three segments. Return the ends of the batches of the second one. ``value`` replaces each value."""
    directory.mkdir(parents=True, exist_ok=True)
    for base in (0, 9, 18):
        data = [batch(base + 3 * n, value=value) for n in range(BATCHES)]
        (directory / f"{base:020d}.log").write_bytes(b"".join(data))
    sizes = [len(batch(9 + 3 * n)) for n in range(BATCHES)]
    return [sum(sizes[:n]) for n in range(BATCHES + 1)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    make(tmp_path / "logs" / "t-0")
    return tmp_path / "logs"


def shrink(log: Path, batches: int, base: int = 9, topic: str = "t") -> tuple[Path, int, int]:
    """Truncate a segment. Return its path, and its sizes before and after."""
    path = log / f"{topic}-0" / f"{base:020d}.log"
    size = path.stat().st_size
    os.truncate(path, size // BATCHES * batches)
    return path, size, path.stat().st_size


def offsets_of(found: list[Partition], **options: Any) -> list[int]:
    offsets: list[int] = scan(found, ["offset"], **options).read_all()["offset"].to_pylist()
    return offsets


@pytest.mark.parametrize("engine", ["construct", "arrow"])
@pytest.mark.parametrize("case", SHRUNK)
def test_rows_that_are_gone(log: Path, case: str, engine: str) -> None:
    found = discover(log)
    path, was, now = shrink(log, SHRUNK[case])
    said = f"it had {was} bytes when it was found, and has {now} now"
    reads: list[Any] = [scan, scan_batches]
    for read in reads:
        for policy in ("strict", "kafka"):
            with pytest.raises(UnreadableError, match=said) as caught:
                read(found, None, policy, engine=engine).read_all()
            assert (caught.value.where.file, caught.value.where.position) == (str(path), now)
        lost: dict[Path, Lost] = {}
        options = {"engine": engine, "on_damage": "drop", "on_lost": lost.__setitem__}
        read(found, None, "salvage", **options).read_all()
        assert [(where, of.start, of.end) for where, of in lost.items()] == [(path, now, was)]
    kept = [n for n in range(27) if not 9 + 3 * SHRUNK[case] <= n < 18]
    assert offsets_of(found, policy="salvage", on_damage="drop", engine=engine) == kept
    # Nothing of the missing bytes is wanted.
    assert offsets_of(found, offsets=(18, None), engine=engine) == list(range(18, 27))
    assert offsets_of(discover(log), engine=engine) == kept


def test_a_segment_that_is_written_to_may_be_truncated(log: Path) -> None:
    """A follower does so when the leader changes."""
    found = discover(log)
    shrink(log, 1, base=18)
    assert offsets_of(found) == list(range(21))


def test_a_shorter_file_with_the_same_end_is_whole(log: Path) -> None:
    """A cleaner has removed what has newer values."""
    found = discover(log)
    path = log / "t-0" / f"{9:020d}.log"
    data = path.read_bytes()
    path.write_bytes(data[len(data) // BATCHES :])
    assert offsets_of(found) == [n for n in range(27) if not 9 <= n < 12]


def answers(log: LogDirectory) -> dict[str, Callable[[list[str]], Any]]:
    """What each method says of damage."""
    return {
        "stat": lambda said: said.extend(filter(None, log.stat()["first_problem"].to_pylist())),
        "stat, deep": lambda said: said.extend(
            filter(None, log.stat(deep=True)["first_problem"].to_pylist())
        ),
        "largest": lambda said: log.largest(3, on_problem=said.append),
        "largest, deep": lambda said: log.largest(3, deep=True, on_problem=said.append),
        "txn": lambda said: log.txn(on_damage=said.append),
        "producers": lambda said: log.producers(on_damage=said.append),
        "keys": lambda said: said.extend(filter(None, log.keys()["problem"].to_pylist())),
        "records_of_key": lambda said: log.records_of_key(b"k0", on_problem=said.append),
        "check": lambda said: said.extend(log.check()["meaning"].to_pylist()),
    }


@pytest.mark.slow
@pytest.mark.parametrize("case", SHRUNK)
@pytest.mark.parametrize("name", answers(LogDirectory(".")))
def test_methods_say_it(log: Path, name: str, case: str) -> None:
    logs = LogDirectory(log)
    assert len(logs.all_partitions) == 1
    shrink(log, SHRUNK[case])
    said: list[str] = []
    answers(logs)[name](said)
    assert [line for line in said if "bytes when it was found" in line], said


@pytest.mark.parametrize("case", SHRUNK)
def test_check_tells_it_once(log: Path, case: str) -> None:
    logs = LogDirectory(log)
    assert len(logs.all_partitions) == 1
    path, _, size = shrink(log, SHRUNK[case])
    (row,) = [row for row in logs.check().to_pylist() if row["severity"] != "note"]
    assert (row["severity"], row["code"]) == ("error", "segment_shrunk")
    assert (row["file"], row["byte"]) == (str(path), size)
    assert (row["first_offset"], row["last_offset"]) == (9 + 3 * SHRUNK[case], 17)


def test_check_says_nothing_of_a_shorter_file_that_a_cleaner_wrote(log: Path) -> None:
    logs = LogDirectory(log)
    assert len(logs.all_partitions) == 1
    path = log / "t-0" / f"{9:020d}.log"
    data = path.read_bytes()
    path.rename(path.with_name(path.name + ".deleted"))
    path.write_bytes(data[: len(data) // BATCHES])
    assert "segment_shrunk" not in logs.check()["code"].to_pylist()


PASSED_OVER = {
    "overview": "reads both ends of each log",
    "ls": "reads no records",
    "hexdump": "reads one file, which it finds itself",
    "coordinator": "counts partitions",
}
"""Commands that do not read the middle of a log."""
OWN_TOPICS = {
    "groups": "__consumer_offsets",
    "metadata": "__cluster_metadata",
    "schemas": "_schemas",
}
OPTIONS = ("dump --batches", "dump --format vectors", "keys --key k0")


@pytest.mark.share(3)
@pytest.mark.parametrize("verb", [*(c for c in LOG_COMMANDS if c not in PASSED_OVER), *OPTIONS])
def test_verbs_say_it(
    log: Path,
    tmp_path: Path,
    verb: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if verb == "sql":
        pytest.importorskip("duckdb")
    sizes: list[int] = []
    topic = OWN_TOPICS.get(verb, "t")
    make(log / f"{topic}-0", NO_OP if topic == "__cluster_metadata" else None)
    out = tmp_path / "out"

    survey = discovery.survey

    def found(*args: Any, **options: Any) -> Any:
        there = survey(*args, **options)
        if not sizes:
            sizes.extend(shrink(log, 1, topic=topic)[1:])
        return there

    for module in (common, discovery, log_directory, records_command, scanning, sources):
        monkeypatch.setattr(module, "survey", found)
    assert main(command_line(verb, log, out)) == 1
    shown = capsys.readouterr()
    page = out.read_text("utf-8") if out.is_file() else ""
    said = f"it had {sizes[0]} bytes when it was found, and has {sizes[1]} now"
    assert said in shown.out + shown.err + page
