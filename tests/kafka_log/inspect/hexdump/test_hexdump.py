"""Bytes beside their fields: held against `codecgen parse`, which works from the YAML, and against the bytes themselves."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from codecgen.cli.common import sound
from codecgen.plan import make_plan
from codecgen.targets.live_codecs import load_codecs
from codecgen.values import dump, named_codec, reading
from codecgen.values.reading import Input
from kafka_log import SegmentReader
from kafka_log.cli import main
from kafka_log.inspect.hexdump.command import _find_segment
from kafka_log.inspect.hexdump.segment_bytes import NoSuchPlace, Part, hexdump_batches
from kafka_log.inspect.hexdump.text import format_part
from tests.paths import SAMPLES, SCHEMAS
from tests.support.hexdumps import ALL, covered
from tests.support.misplaced_segments import MISPLACED, misplaced_log

SEGMENTS = sorted(SAMPLES.glob("kafka-*/*/*.log"))
SEGMENT = SAMPLES / "kafka-2.8" / "codecs-3" / f"{0:020d}.log"
PLAIN = SAMPLES / "kafka-2.8" / "codecs-0" / f"{0:020d}.log"


def found(path: Path, **options: Any) -> list[Part]:
    return list(hexdump_batches(path, **options))


def all_of(path: Path, **options: Any) -> list[Part]:
    return found(path, count=ALL, records=ALL, **options)


@cache
def from_yaml() -> tuple[Any, Any]:
    model = sound(SCHEMAS)
    assert model is not None
    plan = make_plan(model)
    codecs, _ = load_codecs(plan)
    assert codecs is not None
    return plan, named_codec.find_codec(plan, codecs, "log_entry", None)


def by_codecgen(path: Path, start: int, end: int) -> list[tuple[bytes, list[Any]]]:
    """The streams of an entry, and (first byte, byte after the last, field, value) of each piece."""
    plan, what = from_yaml()
    given = Input(str(path), path.read_bytes())
    one = reading.read_one(what, given, start, end, strict=False)
    out = []
    for stream, first, last in dump.list_streams(plan, one, given, end):
        pieces = [(p.start - first, p.end - first, p.path, p.value) for p in stream.pieces]
        out.append((bytes(stream.data[first:last]), pieces))
    return out


def same_words(theirs: str, ours: str) -> bool:
    """Times and relative numbers say more here, and no unit."""
    if theirs.endswith(" ms (none)"):
        theirs = theirs.replace(" ms", "")
    return theirs == ours or ours.startswith(f"{theirs.removesuffix(' ms')}, ")


@pytest.mark.slow
@pytest.mark.share(16, ci=3)
@pytest.mark.parametrize("path", SEGMENTS, ids=lambda p: f"{p.parent.name}-{p.stem[-3:]}")
def test_segments_of_brokers(path: Path) -> None:
    """What is shown is what `codecgen parse` shows, and what the file holds."""
    parts = all_of(path)
    assert b"".join(part.streams[0].data for part in parts) == path.read_bytes()
    assert not any(part.damage for part in parts)
    for part in parts[:4] + parts[-1:]:
        outer = part.streams[0]
        theirs = by_codecgen(path, outer.origin, outer.origin + len(outer.data))
        assert [data for data, _ in theirs] == [stream.data for stream in part.streams]
        for stream, (_, pieces) in zip(part.streams, theirs, strict=True):
            covered(stream)
            assert [(p.start, p.end, p.path) for p in stream.pieces] == [p[:3] for p in pieces]
            for ours, (*_, words) in zip(stream.pieces, pieces, strict=True):
                assert same_words(words, ours.value), (words, ours)


def test_offsets_and_times_of_records() -> None:
    """They are worked out of the differences that stand in the bytes."""
    parts = all_of(SEGMENT)
    for part, batch in zip(parts, SegmentReader(SEGMENT), strict=True):
        words = {p.path: p.value for stream in part.streams for p in stream.pieces}
        for i, record in enumerate(batch.records):
            assert words[f"records[{i}].offset_delta"].endswith(f", offset {record.offset}")


@pytest.mark.parametrize("number", [0, 1, 3])
def test_as_many_records_as_are_wanted(number: int) -> None:
    for part in found(SEGMENT, count=ALL, records=number):
        outer, inner = part.streams
        for stream in (outer, inner):
            covered(stream)
        paths = {p.path.partition(".")[0] for p in inner.pieces if not p.omitted}
        total = next(int(p.value) for p in outer.pieces if p.path == "record_count")
        assert paths == {f"records[{i}]" for i in range(min(number, total))}
        left = [p.value for p in inner.pieces if p.omitted]
        assert left == ([f"{total - number} more"] if total > number else [])


@pytest.mark.slow
def test_any_byte_leads_to_its_batch() -> None:
    data = SEGMENT.read_bytes()
    starts = [batch.position for batch in SegmentReader(SEGMENT)]
    for at in range(0, len(data), 97):
        (part,) = found(SEGMENT, at=at, records=0)
        assert part.streams[0].origin == max(start for start in starts if start <= at)
    (part,) = found(SEGMENT, at=len(data))  # errors name the byte after the last, too
    assert part.streams[0].origin == starts[-1]
    for at in (-1, len(data) + 1):
        with pytest.raises(NoSuchPlace, match=str(len(data))):
            found(SEGMENT, at=at)


@pytest.mark.slow
@pytest.mark.parametrize("topic", ["compacted-0", "v1-0", "v1-1", "codecs-3", "mixed-1"])
def test_any_offset_leads_to_its_batch(topic: str) -> None:
    """Held against the offsets of the records; those that compaction took are in a batch, or in none."""
    paths = sorted((SAMPLES / "kafka-2.8" / topic).glob("*.log"))
    assert paths
    for path in paths:
        there = {}
        last = -1
        for batch in SegmentReader(path):
            there |= {record.offset: batch.position for record in batch.records}
            last = batch.last_offset
        for offset in range(min(there, default=0), last + 1):
            if offset in there:
                (part,) = found(path, offset=offset, records=0)
                assert part.streams[0].origin == there[offset]
        with pytest.raises(NoSuchPlace, match=f"holds offset {last + 1}"):
            found(path, offset=last + 1)


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize(
    "topic", ["compacted-0", "v1-0", "v0-2", "v1-1", "codecs-0", "codecs-3", "mixed-1"]
)
def test_the_record_with_an_offset_is_shown(topic: str) -> None:
    """It is the first one of its batch that is; of one that is gone it is the next one, and a note says so."""
    paths = sorted((SAMPLES / "kafka-2.8" / topic).glob("*.log"))
    assert paths
    for path in paths:
        for batch in SegmentReader(path):
            offsets = [record.offset for record in batch.records]
            for offset in range(
                offsets[0] if offsets else batch.last_offset, batch.last_offset + 1
            ):
                (part,) = found(path, offset=offset, records=2)
                for stream in part.streams:
                    covered(stream)
                pieces = part.streams[-1].pieces
                numbered = [re.match(r"\w+\[(\d+)\]", piece.path) for piece in pieces]
                shown = sorted({int(match[1]) for match in numbered if match})
                begin = sum(one < offset for one in offsets)
                if batch.magic == 2 or batch.compression != "none":
                    assert shown == [i for i in (begin, begin + 1) if i < len(offsets)]
                    before = [p.value for p in pieces if p.value.endswith(" before")]
                    assert before == ([f"{begin} before"] if begin else [])
                gone = [note for note in part.notes if f"with offset {offset};" in note]
                assert len(gone) == (offset not in offsets)
    two = found(PLAIN, offset=31, count=2, records=1)
    assert two[1].streams[0].pieces[-1].path.startswith("records")
    assert not any(piece.value.endswith(" before") for piece in two[1].streams[-1].pieces)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_longer_than_the_screen(width: int) -> None:
    for path in SEGMENTS[::7]:
        for part in found(path, count=5):
            for line in format_part(part, width):
                assert cell_len(line) <= width
                assert line.isprintable()


def test_lines_hold_the_bytes() -> None:
    """The hexadecimal digits of the lines are the bytes of the file, but for what a line says to be left out."""
    (part,) = found(PLAIN, at=103, records=ALL)
    outer = part.streams[0]
    digits = bytearray()
    for line in list(format_part(part))[1:]:
        more = re.match(r" *(\d+)  \.\. (\d+) bytes? more", line)
        if more is not None:
            digits += outer.data[len(digits) :][: int(more[2])]
            continue
        at, shown = re.match(r" *(\d+)  ((?:[0-9a-f]{2} ?){1,8})(?:  |$)", line).groups()
        assert int(at) == outer.origin + len(digits)
        digits += bytes.fromhex(shown)
    assert bytes(digits) == outer.data


# ---------------------------------------------------------------- the command


def test_good_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hexdump", str(SEGMENT), "--byte", "0x75", "--batches", "2"]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^record_batch at byte (\d+)", out, re.M) == ["117", "2749"]


def test_names_that_say_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = shutil.copy(SEGMENT, tmp_path / "mystery")
    assert main(["hexdump", str(copy)]) == 2
    assert "--as" in capsys.readouterr().err
    assert main(["hexdump", str(copy), "--as", ".log"]) == 0
    there = capsys.readouterr().out
    assert main(["hexdump", str(SEGMENT)]) == 0
    assert capsys.readouterr().out == there


@pytest.mark.parametrize("suffix", [".deleted", ".swap", ".cleaned"])
def test_what_a_broker_marked(suffix: str, tmp_path: Path) -> None:
    assert main(["hexdump", str(shutil.copy(SEGMENT, tmp_path / (SEGMENT.name + suffix)))]) == 0


def test_nothing_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / SEGMENT.name
    assert main(["hexdump", str(path)]) == 2
    assert f"{path}: there is no such file" in capsys.readouterr().err
    path.touch()
    assert main(["hexdump", str(path)]) == 0
    assert main(["hexdump", str(path), "--byte", "0"]) == 2
    assert main(["hexdump", str(path), "--offset", "0"]) == 2


@pytest.mark.parametrize("offset", [0, 41, 42, 130, 143])
def test_the_directory_of_a_partition_leads_to_the_segment(
    offset: int, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = SAMPLES / "kafka-4.x" / "segments.small-0"
    names = sorted(int(path.stem) for path in directory.glob("*.log"))
    file = directory / f"{max(name for name in names if name <= offset):020d}.log"
    assert main(["hexdump", str(directory), "--offset", str(offset)]) == 0
    shown = capsys.readouterr().out
    assert main(["hexdump", str(file), "--offset", str(offset)]) == 0
    assert capsys.readouterr().out == shown != ""


@pytest.mark.parametrize(
    ("path", "more", "says"),
    [
        ("segments.small-0", [], "or add --offset to find the segment of a partition directory"),
        (".", ["--offset", "3"], "name the directory of one partition, or a file"),
        ("trimmed-0", ["--offset", "-5"], "has no segment that begins at or before offset -5"),
        ("segments.small-0", ["--offset", "9999"], "9999"),
    ],
)
def test_directories_that_lead_nowhere(
    path: str, more: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hexdump", str(SAMPLES / "kafka-4.x" / path), *more]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.share(5)
@pytest.mark.parametrize("name", MISPLACED)
def test_an_offset_in_a_misplaced_segment(name: str, tmp_path: Path) -> None:
    """Headers say where an offset is, whatever the names of segments say."""
    directory = misplaced_log(tmp_path, name)
    places: dict[int, set[tuple[Path, int]]] = {}
    for path in directory.glob("*.log"):
        for batch in SegmentReader(path):
            for record in batch.records:
                places.setdefault(record.offset, set()).add((path, batch.position))
    for offset, expected in list(places.items())[::7]:
        path = _find_segment(directory, offset)
        (part,) = found(path, offset=offset, records=0)
        assert (path, part.streams[0].origin) in expected


def test_an_empty_segment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "z.log"
    path.touch()
    assert main(["hexdump", str(path)]) == 0
    assert capsys.readouterr().out == "z.log, 0 bytes\n! the file is empty\n"
    assert main(["hexdump", str(path), "--format", "jsonl"]) == 0
    assert capsys.readouterr() == ("", "kafka-log: the file is empty\n")
