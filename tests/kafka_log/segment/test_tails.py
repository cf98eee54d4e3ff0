"""What lies after the last whole batch: normal in the segment that a broker writes to, damage in all others."""

from __future__ import annotations

import json
from io import FileIO
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_log import SegmentReader, discover, read_table, scan, scan_batches
from kafka_log.cli import main
from kafka_log.logs.transactions import read_transactions
from kafka_log.segment import positioned_reads
from kafka_log.segment.resynchronization import WORK_PER_BYTE
from tests.shares import examples
from tests.support.batches import batch, message
from tests.support.record_batches import record_batches

PARTS = [batch(0), message(5), batch(10, "gzip"), message(16), batch(20, "lz4", size=400)]
OFFSETS = [[0, 1, 2], [5], [10, 11, 12], [16], [20, 21, 22]]
WHOLE = b"".join(PARTS)
ENDS = [0, *accumulate(map(len, PARTS))]
ENGINES = ["construct", "arrow"]
LENIENT = ["kafka", "salvage"]


def expected(cut: int) -> list[int]:
    """The offsets of the batches that lie before a place."""
    return [o for end, part in zip(ENDS[1:], OFFSETS, strict=True) if end <= cut for o in part]


def prefixes(cut: int, policy: str) -> list[list[int]]:
    """What may come of the batch that is cut off there: under ``salvage`` its first records."""
    torn = [o for end, o in zip(ENDS, OFFSETS, strict=False) if end <= cut][-1]
    return [
        torn[:n] for n in range(len(torn) + 1 if policy == "salvage" and cut < len(WHOLE) else 1)
    ]


def offsets(path: Path, policy: str, engine: Any = "auto", **options: Any) -> list[int]:
    found: list[int] = read_table(path, ["offset"], policy, engine=engine, **options)[0].to_pylist()
    return found


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(list(arguments))
    return code, capsys.readouterr().out


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "t-0"
    path.mkdir()
    return path


@pytest.fixture
def alone(directory: Path) -> Path:
    for file in directory.iterdir():
        file.unlink()
    return directory / f"{0:020d}.log"


def until_error(path: Path, engine: Any, **options: Any) -> tuple[list[int], CodecError]:
    """What a scan gives before its error."""
    found: list[int] = []
    with pytest.raises(CodecError) as raised:
        for part in scan(path, ["offset"], engine=engine, **options):
            found += part.column(0).to_pylist()
    return found, raised.value


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", LENIENT)
@given(st.integers(0, len(WHOLE)), st.integers(0, 5000))
@example(len(WHOLE), 3 << 20)
@examples(60)
def test_an_active_segment_may_end_anywhere(
    directory: Path, engine: Any, policy: str, cut: int, zeros: int
) -> None:
    """Cut after any byte, and made longer in advance, or not. A cut by a few bytes inside of what is longer looks like damage:
    where zeros are, values might have been."""
    path = directory / f"{0:020d}.log"
    path.write_bytes(WHOLE[:cut] + bytes(zeros))
    missing = min(end - cut for end in ENDS if end >= cut)
    if missing and zeros and missing < 8:
        return
    if zeros and cut in range(len(WHOLE)) and not WHOLE[cut : cut + missing].strip(b"\0"):
        return  # it is whole
    for where in (directory, path):
        before, found = expected(cut), offsets(where, policy, engine)
        assert found[: len(before)] == before
        assert found[len(before) :] in prefixes(cut, policy)
        rows = [
            offset
            for part in record_batches(
                discover(where)[0].segments,
                ["offset"],
                policy,
                engine=engine,
                on_damage="drop" if policy == "salvage" else "raise",
            )
            for offset in part.column(0).to_pylist()
        ]
        assert rows == expected(cut)


@pytest.mark.share(4)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("zeros", [1, 17, 18, 4096])
def test_zeros_are_noted_and_nothing_is_lost(
    alone: Path, engine: str, zeros: int, capsys: pytest.CaptureFixture[str]
) -> None:
    alone.write_bytes(WHOLE + bytes(zeros))
    for policy in LENIENT:
        options = ["--policy", policy, "--engine", engine]
        code, text = printed(capsys, "dump", str(alone.parent), *options)
        assert code == 0 and "!!" not in text
        assert f"-- {count_noun(zeros, 'byte at the end is', 'bytes at the end are')} zeros" in text
        code, text = printed(capsys, "dump", str(alone), "--format", "vectors", *options)
        end = json.loads(text.splitlines()[-1])
        assert code == 0 and end["stop"] == "zeros" and end["trailingBytes"] == zeros
        assert "lost" not in end and "exception" not in end
        for deep in ([], ["--deep"]):
            code, text = printed(capsys, "stat", str(alone), "--format", "jsonl", *options, *deep)
            row = json.loads(text)
            assert code == 0 and row["problems"] == 0 and row["lost_bytes"] == 0
            assert row["batches"] == len(PARTS) and row["trailing_bytes"] == zeros


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("zeros", [0, 4096])
def test_a_torn_batch_is_noted_and_salvage_lists_it(
    alone: Path, engine: str, zeros: int, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = ENDS[2] + 43
    alone.write_bytes(WHOLE[:cut] + bytes(zeros))
    options = ["--format", "jsonl", "--engine", engine]
    code, text = printed(capsys, "stat", str(alone), *options)
    row = json.loads(text)
    assert (code, row["problems"], row["batches"]) == (0, 0, 2)
    code, text = printed(capsys, "dump", str(alone), "--engine", engine)
    assert code == 0 and f"-- {43 + zeros} bytes at the end are of a batch that was not" in text
    code, text = printed(capsys, "stat", str(alone), "--policy", "salvage", *options)
    row = json.loads(text)
    assert (code, row["lost_bytes"], row["trailing_bytes"]) == (1, 43, zeros)
    assert row["first_problem"].startswith(f"{alone}: bytes {ENDS[2]} to {cut} are lost")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "tail",
    [bytes(17), bytes(18), bytes(9000), PARTS[0][:-1], PARTS[0][:5], PARTS[4][:60] + bytes(99)],
)
def test_the_same_in_a_rolled_segment_is_damage(alone: Path, engine: Any, tail: bytes) -> None:
    alone.write_bytes(WHOLE + tail)
    alone.with_name(f"{30:020d}.log").write_bytes(batch(30) + bytes(4096))
    found, error = until_error(alone.parent, engine)
    assert found == expected(len(WHOLE))
    assert error.where.file == str(alone)
    assert error.where.position is not None and 0 <= error.where.position - len(WHOLE) <= 17
    assert offsets(alone.parent, "salvage", engine) == [*expected(len(WHOLE)), 30, 31, 32]
    rolled, active = discover(alone.parent)[0].segments
    reader = SegmentReader(rolled.path, policy="salvage", tail=rolled.tail)
    assert [len(b.records) for b in reader] == [3, 1, 3, 1, 3]
    assert reader.end is not None
    assert [(x.start, x.end) for x in reader.end.lost] == [(len(WHOLE), len(WHOLE) + len(tail))]
    parts = record_batches([rolled, active], ["offset"], engine=engine)
    with pytest.raises(CodecError):
        list(parts)
    with pytest.raises(CodecError, match=rolled.path.name):
        read_transactions([rolled, active])


@pytest.mark.parametrize("engine", ENGINES)
def test_half_a_batch_with_whole_ones_after_it_is_damage(alone: Path, engine: str) -> None:
    """A length that is too large hides what follows: that is not what a broker leaves."""
    hurt = bytearray(WHOLE)
    hurt[ENDS[2] + 8] = 0x70
    alone.write_bytes(hurt)
    found, error = until_error(alone, engine)
    assert found == expected(ENDS[2])
    assert error.where.position == ENDS[2]
    assert f"one begins at byte {ENDS[3]}" in str(error)
    with pytest.raises(CodecError, match=f"one begins at byte {ENDS[3]}"):
        read_transactions(discover(alone)[0].segments)
    assert offsets(alone, "salvage", engine) == expected(len(WHOLE))
    assert offsets(alone, "salvage", engine, on_damage="drop") == [0, 1, 2, 5, 16, 20, 21, 22]
    told = read_table(alone, ["offset", "crc_ok", "damage"], "salvage", engine=engine)  # type: ignore[arg-type]
    hit = [row for row in told.to_pylist() if row["damage"]]
    assert [(row["offset"], row["crc_ok"]) for row in hit] == [(10, True), (11, True), (12, True)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("after", [b"\1", batch(30), bytes(50) + b"x", bytes(2 << 20) + batch(30)])
def test_zeros_that_something_follows_are_damage(alone: Path, engine: str, after: bytes) -> None:
    alone.write_bytes(WHOLE + bytes(30) + after)
    found, error = until_error(alone, engine)
    assert found == expected(len(WHOLE))
    assert error.where.position == len(WHOLE) + 8


@pytest.mark.parametrize("engine", ENGINES)
def test_a_changed_bit_in_the_last_batch_is_damage(alone: Path, engine: str) -> None:
    for part in (PARTS[0], PARTS[1], PARTS[2]):
        for zeros in (0, 4096):
            hurt = bytearray(part)
            hurt[-9] ^= 1
            alone.write_bytes(bytes(hurt) + bytes(zeros))
            assert until_error(alone, engine)[0] == []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("tail", [bytes(4096), PARTS[0][:-1], PARTS[0][:40] + bytes(4096)])
def test_strict_refuses_what_was_not_written(alone: Path, engine: str, tail: bytes) -> None:
    alone.write_bytes(WHOLE + tail)
    found, error = until_error(alone, engine, policy="strict")
    assert found == expected(len(WHOLE))
    assert error.where.file == str(alone)


@pytest.mark.parametrize("tail", [bytes(4096), PARTS[0][:-1]])
@pytest.mark.parametrize("policy", LENIENT)
def test_headers_and_transactions_end_there_too(alone: Path, tail: bytes, policy: str) -> None:
    alone.write_bytes(WHOLE + tail)
    assert scan_batches(alone.parent, policy=policy).read_all().num_rows == len(PARTS)
    assert read_transactions(discover(alone)[0].segments).aborted == ()
    assert offsets(alone, policy, isolation="read_committed") == expected(len(WHOLE))


@pytest.mark.slow
@pytest.mark.parametrize("count", [400, pytest.param(2000, marks=pytest.mark.slow)])
def test_many_damaged_batches_are_not_looked_at_for_long(
    alone: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a batch is the last one is asked of each that is damaged: the answer takes few bytes."""
    hurt = bytearray(batch(0, size=300))
    hurt[70] ^= 1
    alone.write_bytes(bytes(hurt) * count)
    read = [0]
    plain = positioned_reads.pread

    def counting(file: FileIO, view: memoryview, position: int) -> int:
        n = plain(file, view, position)
        read[0] += n
        return n

    monkeypatch.setattr(positioned_reads, "pread", counting)
    for policy in LENIENT:
        read[0] = 0
        reader = SegmentReader(alone, policy=policy, tail="active")
        assert sum(1 for _ in reader) == (count if policy == "kafka" else 0)
        most = 5 if policy == "kafka" else 5 + WORK_PER_BYTE
        assert read[0] < most * len(hurt) * count + (4 << 20)


def test_which_segments_are_rolled(alone: Path) -> None:
    first, last, odd = (alone.with_name(f"{n}.log") for n in (f"{0:020d}", f"{9:020d}", "odd"))
    for path in (first, last, odd):
        path.write_bytes(b"")

    def rolled(paths: Any) -> dict[str, bool]:
        return {
            s.path.name: s.rolled
            for p in discover(paths, unreadable_raises=False)
            for s in p.segments
        }

    assert rolled(alone.parent) == {first.name: True, last.name: False}
    assert rolled(first) == {first.name: False}
    assert rolled([last, first, odd]) == {first.name: True, last.name: False, odd.name: False}
    assert rolled([alone.parent, first]) == {first.name: True, last.name: False}


def test_a_segment_by_itself_is_as_the_reference_has_it(alone: Path) -> None:
    """Where nobody says what may follow, the result is that of Apache Kafka's reader."""
    alone.write_bytes(WHOLE + bytes(4096))
    reader = SegmentReader(alone)
    assert len(list(reader)) == len(PARTS)
    assert reader.end is not None and reader.end.stop == "error" and not reader.end.is_normal


@pytest.mark.parametrize("zeros", [0, 8, 100])
def test_a_damaged_batch_keeps_the_zero_that_it_ends_in(directory: Path, zeros: int) -> None:
    """Records without headers end in a zero: it belongs to the batch, and what follows does not."""
    data = bytearray(PARTS[0])
    assert data[-1] == 0
    data[61] = 1  # the length of the first record is negative
    path = directory / f"{0:020}.log"
    path.write_bytes(bytes(data) + bytes(zeros))
    reader = SegmentReader(path, policy="salvage", tail="active")
    list(reader)
    assert reader.end is not None
    (lost,) = reader.end.lost
    assert (lost.start, lost.end, reader.end.trailing_bytes) == (0, len(data), zeros)
