"""The files beside the segments, byte by byte: held against what their codecs and NumPy read."""

from __future__ import annotations

import re
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from codecgen.runtime.located_bytes import Limits
from kafka_codecs import PRODUCER_SNAPSHOT, TRANSACTION_INDEX
from kafka_log.cli import main
from kafka_log.inspect.hexdump.other_files import TEXTS, file_kind, hexdump_file
from kafka_log.inspect.hexdump.segment_bytes import NoSuchPlace, Part
from kafka_log.inspect.hexdump.text import format_part
from tests.paths import SAMPLES
from tests.support.hexdumps import ALL, covered

OTHERS = [
    path
    for path in sorted(SAMPLES.glob("kafka-*/**/*"))
    if path.is_file()
    and path.suffix not in (".log", ".json")
    and not path.name.endswith((".checkpoint", "quorum-state", ".kafka_cleanshutdown"))
]
NAMES = ["%020d.index", "%020d.timeindex", "%020d.txnindex", "%020d.snapshot"]
SNAPSHOT = SAMPLES / "kafka-4.x" / "idempotent-0" / f"{20:020d}.snapshot"


def part_of(path: Path, at: int | None = None, most: int = ALL) -> Part:
    return hexdump_file(path, file_kind(path), at, most, Limits())


def words(part: Part) -> dict[str, str]:
    return {p.path: p.value for p in part.streams[0].pieces if p.path}


def ints(path: Path, form: str) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack(form, path.read_bytes()))


def test_every_file_of_brokers() -> None:
    """Every byte has a piece; nothing is wrong with what a broker wrote."""
    assert len(OTHERS) > 100
    for path in OTHERS:
        if path.stat().st_size > 1 << 16:
            continue
        part = part_of(path)
        assert part.damage == (), path
        assert part.streams[0].data == path.read_bytes()
        covered(part.streams[0])
        assert all(line.isprintable() and len(line) <= 100 for line in format_part(part, 100))


@pytest.mark.parametrize("form, names", [(">ii", ["relative_offset", "position"])])
def test_offset_indexes(form: str, names: list[str]) -> None:
    for path in (p for p in OTHERS if p.suffix == ".index"):
        base, said = int(path.stem), words(part_of(path))
        for i, (relative, position) in enumerate(ints(path, form)):
            assert said[f"entries[{i}].{names[0]}"] == f"{relative}, offset {base + relative}"
            assert said[f"entries[{i}].{names[1]}"] == str(position)


def test_time_indexes() -> None:
    for path in (p for p in OTHERS if p.suffix == ".timeindex"):
        base, said = int(path.stem), words(part_of(path))
        for i, (time, relative) in enumerate(ints(path, ">qi")):
            assert said[f"entries[{i}].timestamp"].startswith("-1 " if time == -1 else f"{time}, ")
            assert said[f"entries[{i}].relative_offset"].endswith(f", offset {base + relative}")


def test_producer_snapshots_and_transaction_indexes() -> None:
    for path in (p for p in OTHERS if p.suffix in (".snapshot", ".txnindex")):
        codec = PRODUCER_SNAPSHOT if path.suffix == ".snapshot" else TRANSACTION_INDEX
        said = words(part_of(path))
        for i, entry in enumerate(codec.parse(path.read_bytes()).entries):
            for name, value in entry.items():
                if name[:1] != "_":
                    assert said[f"entries[{i}].{name}"].split(",")[0].split(" ")[0] == str(value)


def test_texts() -> None:
    for path in (p for p in OTHERS if p.name in TEXTS):
        data, part = path.read_bytes(), part_of(path)
        for piece in part.streams[0].pieces:
            if piece.path:
                assert piece.value == '"' + data[piece.start : piece.end].decode() + '"'


def test_entries_from_a_byte_on(tmp_path: Path) -> None:
    path = tmp_path / f"{100:020d}.index"
    path.write_bytes(b"".join(struct.pack(">ii", i, 10 * i) for i in range(50)))
    part = part_of(path, at=81, most=2)
    assert words(part) == {
        "entries[10].relative_offset": "10, offset 110",
        "entries[10].position": "100",
        "entries[11].relative_offset": "11, offset 111",
        "entries[11].position": "110",
        "entries": "38 more",
    }
    assert part.streams[0].origin == 80
    with pytest.raises(NoSuchPlace, match="400 bytes"):
        part_of(path, at=400)


def test_an_index_that_a_crash_left_is_not_read_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.index"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    part = part_of(path, most=3)
    assert not part.damage
    assert words(part)["entries"] == f"{(1 << 40) // 8 - 3} more"


# ---------------------------------------------------------------- damage


@given(st.sampled_from(NAMES), st.binary(max_size=200), st.integers(0, 4))
def test_any_bytes(name: str, data: bytes, most: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / (name % 7)
        path.write_bytes(data)
        part = part_of(path, most=most)
        covered(part.streams[0])
        assert sum(p.end - p.start for p in part.streams[0].pieces) == len(data)
        assert all(line.isprintable() and cell_len(line) <= 60 for line in format_part(part, 60))


@given(st.sampled_from(sorted(TEXTS)), st.binary(max_size=80) | st.text(max_size=40))
@example("cleaner-offset-checkpoint", "0\U0001eef2\U000e0100")  # a mark that takes no room
def test_any_text(name: str, given: bytes | str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        path.write_bytes(given if isinstance(given, bytes) else given.encode())
        part = part_of(path)
        covered(part.streams[0])
        assert all(line.isprintable() and cell_len(line) <= 60 for line in format_part(part, 60))


@given(st.integers(0, 101), st.integers(1, 255))
def test_a_wrong_byte_of_a_snapshot(at: int, mask: int) -> None:
    """The version, the checksum, or what the checksum is of: damage, wherever it is."""
    data = bytearray(SNAPSHOT.read_bytes())
    data[at] ^= mask
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / SNAPSHOT.name
        path.write_bytes(data)
        part = part_of(path)
        assert part.damage
        covered(part.streams[0])


@pytest.mark.parametrize(
    "name, data, said",
    [
        ("%020d.index", bytes(11), "3 bytes at the end are not a complete entry"),
        ("%020d.timeindex", bytes(5), "5 bytes at the end are not a complete entry"),
        ("%020d.index", b"\xff" * 8, "is not valid"),
        ("%020d.txnindex", b"\x00\x01" + bytes(32), "1 is not one of 0"),
        ("leader-epoch-checkpoint%.0s", b"0\n2\n0 0\n", "epoch"),
    ],
)
def test_damage_is_named(
    name: str, data: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / (name % 0)
    path.write_bytes(data)
    assert main(["hexdump", str(path)]) == 1
    assert re.search(rf"^!! .*{said}", capsys.readouterr().out, re.M)


def test_what_goes_with_segments_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hexdump", str(SNAPSHOT), "--offset", "3"]) == 2
    assert main(["hexdump", str(SNAPSHOT), "--byte", "3"]) == 2
    assert main(["hexdump", str(SNAPSHOT.parent)]) == 2
    capsys.readouterr()
    assert main(["hexdump", str(SNAPSHOT), "--records", "1"]) == 0
    assert "1 more, 46 bytes" in capsys.readouterr().out
