"""Damage byte by byte: all that can be read is shown, every byte is there, and the damage is named."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kafka_log import SegmentReader
from kafka_log.cli import main
from kafka_log.inspect.hexdump.segment_bytes import hexdump_batches
from kafka_log.inspect.hexdump.text import format_part
from tests.paths import SAMPLES, VECTORS
from tests.support.hexdumps import ALL, covered

PLACES = ["codecs-0", "codecs-3", "v0-1", "v1-3", "mixed-1", "compacted-0"]
WHOLE = [next((SAMPLES / "kafka-2.8" / name).glob("*.log")).read_bytes() for name in PLACES]
MALFORMED = sorted((VECTORS / "malformed").glob("*.log"))


def check(path: Path) -> list[bool]:
    """Every byte of a file is shown once, in its place. Whether each part is damaged."""
    parts = list(hexdump_batches(path, count=ALL, records=2))
    if not path.stat().st_size:
        assert [part.notes for part in parts] == [("the file is empty",)]
        return []
    at = 0
    for part in parts:
        outer = part.streams[0]
        assert outer.origin == at
        for stream in part.streams:
            covered(stream)
        at += outer.pieces[-1].end
        for line in format_part(part, 80):
            assert cell_len(line) <= 80
            assert line.isprintable()
    assert at == path.stat().st_size
    return [bool(part.damage) for part in parts]


@pytest.mark.slow
@given(
    st.sampled_from(range(len(WHOLE))),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 255)), max_size=4),
    st.none() | st.integers(0, 1 << 20),
)
def test_any_damage(which: int, flips: list[tuple[int, int]], cut: int | None) -> None:
    """Damage is seen where a reader of the whole file sees some."""
    broken = bytearray(WHOLE[which][:9000])
    for at, mask in flips:
        broken[at % len(broken)] ^= mask
    if cut is not None:
        del broken[cut % len(broken) :]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"{0:020d}.log"
        path.write_bytes(broken)
        damaged = any(check(path))
        reader = SegmentReader(path)
        found = list(reader)
        assert reader.end is not None
        bad = any(not batch.is_valid or batch.problems for batch in found)
        inner = any(record.crc_error for batch in found for record in batch.records)
        assert damaged == (bad or inner or reader.end.stop != "eof")


@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"{0:020d}.log"
        path.write_bytes(data)
        assert check(path) in ([], [True]) or len(data) > 100


@pytest.mark.slow
@pytest.mark.parametrize("path", MALFORMED, ids=lambda path: path.stem)
def test_reference_files(path: Path) -> None:
    check(path)


@pytest.mark.parametrize("cut", [101, 119, 150, 200, 1999, 5000])
def test_a_torn_tail_is_read_up_to_its_end(cut: int, tmp_path: Path) -> None:
    """The fields of the header, and the records that are whole."""
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(WHOLE[0][:cut])
    *_, whole = hexdump_batches(_written(tmp_path, WHOLE[0]), at=103, records=ALL)
    *_, torn = hexdump_batches(path, count=2, records=ALL)
    assert torn.damage
    if cut > 103 + 17:
        known = {(p.start, p.end, p.path, p.value) for p in whole.streams[0].pieces}
        ours = [p for p in torn.streams[0].pieces if p.path]
        assert {(p.start, p.end, p.path, p.value) for p in ours} <= known
        assert cut - 103 - max(p.end for p in ours) < 100  # a field that is cut off


def _written(directory: Path, data: bytes) -> Path:
    path = directory / f"{1:020d}.log"
    path.write_bytes(data)
    return path


@pytest.mark.slow
def test_the_byte_that_an_error_names(capsys: pytest.CaptureFixture[str]) -> None:
    """What another command says of damage, hexdump shows at that byte."""
    named = 0
    for path in MALFORMED:
        main(["dump", str(path), "--policy", "kafka"])
        for at in set(re.findall(r"!!? .*?\bbyte (\d+) of (?!the de)", capsys.readouterr().out)):
            named += 1
            code = main(["hexdump", str(path), "--byte", at])
            out, err = capsys.readouterr()
            assert out, (path.name, at, err)
            first, size = re.search(r"at byte (\d+), (\d+) bytes", out).groups()
            assert int(first) <= int(at) < int(first) + int(size)
            assert code in (0, 1)
            assert ("\n!! " in out) == (code == 1)
    assert named > len(MALFORMED) // 2


def test_a_record_that_cannot_be_read_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    path = VECTORS / "malformed" / "v2-none-record-headers-count-too-large.log"
    assert main(["hexdump", str(path), "--byte", "100", "--records", "0"]) == 1
    out = capsys.readouterr().out
    assert 'records[0].value            "value"' in out
    assert "not read\n!! count is 5, but 4 bytes are left" in out


def test_damage_elsewhere_is_not_shown(tmp_path: Path) -> None:
    broken = bytearray(WHOLE[0])
    broken[200] ^= 1
    path = _written(tmp_path, bytes(broken))
    assert main(["hexdump", str(path)]) == 0
    assert main(["hexdump", str(path), "--batches", "2"]) == 1
    assert main(["hexdump", str(path), "--byte", "200"]) == 1
    assert main(["hexdump", str(path), "--offset", "5"]) == 1


def test_a_file_that_becomes_shorter(tmp_path: Path) -> None:
    """A broker may truncate a segment while it is read: what is gone is said to be."""
    path = _written(tmp_path, WHOLE[0])
    parts = hexdump_batches(path, count=3)
    assert not next(parts).damage
    path.write_bytes(WHOLE[0][:900])
    second, *_ = parts
    assert "not a complete batch" in second.damage[0]
    assert second.streams[0].pieces[-1].end == 900 - 103
