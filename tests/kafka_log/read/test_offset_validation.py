"""Offsets that cannot be in their segment: no checksum covers the first offset of a batch."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kafka_log
from kafka_log.read.plan import Split
from kafka_log.segment import resynchronization
from kafka_log.segment.entry_search import MAX_LOOKUPS
from kafka_log.segment.kernels import Engine
from kafka_log.segment.model import Policy
from kafka_log.segment.offsets_of_files import MAX_RELATIVE, offsets_of
from kafka_log.segment.scanner import Scanner, header_scanner
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.task_reader import read_splits
from tests.paths import SAMPLES
from tests.shares import draw_seeds

SAMPLE = SAMPLES / "kafka-2.8" / "segments.small-0"
FIRST = f"{0:020d}.log"
COLUMNS = ["offset", "key", "value", "crc_ok", "damage"]


@pytest.mark.parametrize(
    ("name", "base"),
    [
        (FIRST, 0),
        ("00000000000000000042.log", 42),
        ("/x/00000000000000000042.log.deleted", 42),
        ("00000000000000000042-Zm9vYmFyYmF6cXV4MTIzNA.log", 42),
        ("00000000000000000042-0000000003.checkpoint", None),
        ("00000000000000000042.index", None),
        ("42.log", None),
        ("copy.log", None),
    ],
)
def test_names(name: str, base: int | None) -> None:
    assert offsets_of(name) == (None if base is None else range(base, base + MAX_RELATIVE + 1))


def starts(data: bytes) -> list[int]:
    """Where the batches lie."""
    out, position = [], 0
    while position < len(data):
        out.append(position)
        position += struct.unpack_from(">i", data, position + 8)[0] + 12
    return out


def salvaged(path: Path, engine: Engine) -> list[dict[str, Any]]:
    table = kafka_log.scan(path, COLUMNS, policy="salvage", engine=engine).read_all()
    return list(table.to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["arrow", "construct"])
def test_rows_say_it_and_the_others_stay(tmp_path: Path, engine: Engine) -> None:
    """Whatever lies beside the batch: also damage right before it and after it."""
    log = tmp_path / "segments.small-0"
    whole = (SAMPLE / FIRST).read_bytes()
    at = starts(whole)
    for seed in draw_seeds(60):
        r = random.Random(seed)
        shutil.rmtree(log, ignore_errors=True)
        shutil.copytree(SAMPLE, log)
        bad = r.randrange(len(at))
        data = bytearray(whole)
        data[at[bad] + r.randrange(4)] ^= r.randrange(1, 128)
        claimed = struct.unpack_from(">q", data, at[bad])[0]
        beside = [i for i in (bad - 1, bad + 1) if 0 <= i < len(at) and r.random() < 0.5]
        for i in beside:
            data[at[i] + 70] ^= 1
        (log / FIRST).write_bytes(data)
        found = {(row["offset"], row["key"]): row for row in salvaged(tmp_path, engine)}
        good = kafka_log.scan(SAMPLE, COLUMNS).read_all().to_pylist()
        for row in good:
            i = next((n for n in range(len(at)) if 6 * n <= row["offset"] < 6 * n + 6), len(at))
            if i in beside:
                continue
            offset = row["offset"] + (claimed - 6 * bad if i == bad else 0)
            got = found[offset, row["key"]]
            assert (got["value"], got["crc_ok"]) == (row["value"], True)
            if i != bad:
                assert got["damage"] is None
            else:
                assert got["damage"] == (
                    f"offset {offset} cannot be in a segment that begins at 0: it has room for {MAX_RELATIVE + 1} offsets"
                )


def test_what_is_lost_beside_it_has_bounds_that_can_be(tmp_path: Path) -> None:
    log = tmp_path / "in" / "segments.small-0"
    shutil.copytree(SAMPLE, log)
    data = bytearray((log / FIRST).read_bytes())
    at = starts(bytes(data))
    data[at[5] + 100] ^= 1
    data[at[6]] ^= 0x2D
    del data[at[5] + 200 : at[5] + 300]
    (log / FIRST).write_bytes(data)
    directory = kafka_log.LogDirectory(tmp_path / "in")
    findings = directory.check().to_pylist()
    (unread,) = (row for row in findings if row["code"] == "unreadable_bytes")
    assert (unread["first_offset"], unread["last_offset"], unread["records"]) == (30, 41, 12)
    (far,) = (row for row in findings if row["code"] == "offset_too_far")
    assert far["records"] == 6
    said = directory.salvage(tmp_path / "out").to_pylist()
    lost = [row for row in said if row["what"] == "lost" and row["byte"] == at[5]]
    assert [(row["first_offset"], row["last_offset"]) for row in lost] == [(33, 41)]


def test_a_file_with_the_name_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After damage no offset can be: not all of the file is looked through for one, time and again."""
    path = tmp_path / "t-0" / f"{1 << 40:020d}.log"
    path.parent.mkdir()
    batches = (kafka_log.encode(pa.table({"offset": [2 * i, 2 * i + 1]})) for i in range(200))
    data = bytearray(b"".join(part for batch in batches for part in batch))
    for at in starts(bytes(data))[::10]:
        data[at + 65] ^= 1
    path.write_bytes(data)
    searched: list[int] = []
    find_entry = resynchronization.find_entry

    def noted(read: Any, start: int, *rest: Any) -> Any:
        searched.append(start)
        return find_entry(read, start, *rest)

    monkeypatch.setattr(resynchronization, "find_entry", noted)
    rows = salvaged(tmp_path, "arrow")
    assert sum(row["crc_ok"] for row in rows) == 360
    assert all("cannot be in a segment" in row["damage"] for row in rows)
    assert len(searched) <= 20 * 2 * (MAX_LOOKUPS + 1)


@pytest.mark.parametrize("engine", ["arrow", "construct"])
@pytest.mark.parametrize("scans", [Scanner, header_scanner])
def test_what_is_lost_comes_after_the_last_offset_that_can_be(
    tmp_path: Path, engine: Engine, scans: type[Scanner]
) -> None:
    """However many batches with such offsets are read at a time before it."""
    path = tmp_path / FIRST
    data = bytearray((SAMPLE / FIRST).read_bytes())
    at = starts(bytes(data))
    for i in (3, 4, 5):
        data[at[i]] ^= 1
    path.write_bytes(data[: at[6] + 30])
    scanner = scans(path, None, "salvage", engine=engine)
    assert sum(rows.num_rows for rows in scanner) == (36 if scans is Scanner else 6)
    assert scanner.end is not None
    (lost,) = scanner.end.lost
    assert (lost.start, lost.after_offset) == (at[6], 17)


def dealt(engine: Engine, path: Path, **options: Any) -> list[dict[str, Any]]:
    scan = kafka_log.scan(path, COLUMNS, policy="salvage", engine=engine, **options)
    return list(scan.read_all().to_pylist())


def by_either_engine(path: Path) -> list[dict[str, Any]]:
    found, other = (dealt(engine, path) for engine in ("arrow", "construct"))
    assert found == other
    return found


Change = Callable[[bytearray, list[int]], None]


def flipped(byte: int, bits: int) -> Change:
    """Of the first offset of batch 5, which is 30."""

    def change(data: bytearray, at: list[int]) -> None:
        data[at[5] + byte] ^= bits

    return change


def beside(kind: str) -> Change:
    """Damage in the batch after that one, in that before it, or in itself."""

    def change(data: bytearray, at: list[int]) -> None:
        if kind == "checksum after":
            data[at[6] + 100] ^= 1
        elif kind == "length after":
            data[at[6] + 9] ^= 1
        elif kind:
            i = {"bytes of it": 5, "bytes before": 4, "bytes after": 6}[kind]
            del data[at[i] + 200 : at[i] + 300]

    return change


def changed(directory: Path, *changes: Change, joined: bool) -> Path:
    """The sample with changes in its first segment, of which there is only one if ``joined``."""
    log = directory / "segments.small-0"
    log.mkdir(parents=True)
    parts = [path.read_bytes() for path in sorted(SAMPLE.glob("*.log"))]
    data = bytearray(b"".join(parts) if joined else parts[0])
    at = starts(bytes(data))
    for change in changes:
        change(data, at)
    if not joined:
        for path in SAMPLE.glob("*.log"):
            shutil.copy(path, log)
    (log / FIRST).write_bytes(data)
    return directory


LOST = ("unreadable_bytes", "batch_checksum", "torn_tail")
HIGH = {"first byte": flipped(0, 0x2D), "middle byte": flipped(5, 1), "last byte": flipped(7, 0x40)}


@pytest.mark.slow
@pytest.mark.share(6)
@pytest.mark.parametrize("joined", [False, True], ids=["rolled", "active"])
@pytest.mark.parametrize(
    "kind", ["", *["checksum after", "length after", "bytes after", "bytes before", "bytes of it"]]
)
@pytest.mark.parametrize("high", HIGH)
def test_a_batch_whose_offset_is_too_high(
    tmp_path: Path, high: str, kind: str, joined: bool
) -> None:
    """Whatever is damaged beside it: the others are there, without damage, and what is lost has the bounds of those that can be."""
    directory = changed(tmp_path / "in", HIGH[high], beside(kind), joined=joined)
    found = by_either_engine(directory)
    whole = kafka_log.scan(SAMPLE, COLUMNS).read_all().to_pylist()
    hurt = {
        "checksum after": 6,
        "length after": 6,
        "bytes after": 6,
        "bytes before": 4,
        "": 5,
        "bytes of it": 5,
    }[kind]
    good = [row for row in whole if row["offset"] // 6 not in (5, hurt)]
    assert [row for row in found if row["damage"] is None] == good
    odd = [
        row for row in found if row["offset"] not in range(144) or row["offset"] in range(94, 100)
    ]
    odd = [row for row in odd if row["damage"] is not None]
    assert len(odd) == (3 if kind == "bytes of it" else 6)
    for row in odd:
        assert (
            "does not fit the batches beside it" in row["damage"] or "cannot be in" in row["damage"]
        )
        assert row["crc_ok"] is (None if kind == "bytes of it" else True)
    findings = kafka_log.LogDirectory(directory).check().to_pylist()
    at_risk = [row for row in findings if row["code"] in LOST]
    assert len(at_risk) == (kind != "")
    low, high_ = {4: (24, 35), 5: (30, 35), 6: (30, 41)}[hurt]
    for row in at_risk:
        assert low <= row["first_offset"] <= row["last_offset"] <= high_
        assert row["records"] == row["last_offset"] - row["first_offset"] + 1
    said = kafka_log.LogDirectory(directory).salvage(tmp_path / "out").to_pylist()
    assert not [row for row in said if row["what"] == "twice"]
    gone = [row for row in said if row["what"] == "lost"]
    assert gone
    for row in gone:
        assert row["first_offset"] <= row["last_offset"]
        assert (
            row["records"] is not None or low <= row["first_offset"] <= row["last_offset"] <= high_
        )
    kept = kafka_log.scan(tmp_path / "out", COLUMNS).read_all().to_pylist()
    assert [row["offset"] for row in good] == [row["offset"] for row in kept if row in good]


@pytest.mark.parametrize("bits", [0x01, 0x02, 0x1E])
def test_of_two_that_contradict_each_other_one_has_room_for_its_offsets(
    tmp_path: Path, bits: int
) -> None:
    """30 as 31 reaches into the next batch, as 28 into the one before; as 0 it contradicts five."""
    found = by_either_engine(changed(tmp_path, flipped(7, bits), joined=False))
    assert len(found) == 144
    told = [i for i, row in enumerate(found) if row["damage"] is not None]
    assert told == [*range(30, 36)]
    wrong = found[30]
    first = 30 ^ bits
    assert wrong["damage"] == (
        f"offset {first} does not fit the batches beside it: the one before ends with 29, the one after begins with 36"
    )


def test_the_name_of_the_next_segment(tmp_path: Path) -> None:
    found = by_either_engine(changed(tmp_path, flipped(7, 0x40), joined=False))
    (first, *_) = [row for row in found if row["damage"] is not None]
    assert (
        first["damage"]
        == "offset 94 cannot be in a segment that begins at 0: the next one begins at 42"
    )


@pytest.mark.parametrize(
    "selection", [{"offsets": (90, 100)}, {"keys": [b"never"]}, {"offsets": (30, 31)}]
)
def test_what_is_told_does_not_hang_on_what_is_asked_for(tmp_path: Path, selection: Any) -> None:
    directory = changed(tmp_path, flipped(7, 0x40), joined=True)
    every = {(row["offset"], row["value"]): row for row in by_either_engine(directory)}
    for engine in ("arrow", "construct"):
        for row in dealt(engine, directory, **selection):
            assert row == every[row["offset"], row["value"]]


def test_small_chunks_tell_the_same(tmp_path: Path) -> None:
    directory = changed(tmp_path, flipped(7, 0x40), joined=True)
    assert dealt("arrow", directory, chunk_bytes=400) == by_either_engine(directory)


def test_spark_has_it_as_its_problem(tmp_path: Path) -> None:
    """Also of a part of the file, which says less of what lies beside it."""
    directory = changed(tmp_path, flipped(7, 0x40), joined=True)
    (partition,) = kafka_log.discover(directory)
    (segment,) = partition.segments
    expected = [(row["offset"], row["damage"]) for row in by_either_engine(directory)]
    at = starts((directory / "segments.small-0" / FIRST).read_bytes())
    scan = Scan(("offset", "problem"), Policy.SALVAGE, "keep")
    for cuts in ([0, None], [0, at[5], None], [0, at[6], None], [0, at[3], at[9], None]):
        parts = [Split(segment, begin, end) for begin, end in pairwise(cuts)]
        for engine in ("arrow", "construct"):
            rows = pa.Table.from_batches(read_splits(parts, replace(scan, engine=engine)))
            found = [(row["offset"], row["problem"]) for row in rows.to_pylist()]
            if cuts[1] not in (at[5], at[6]):
                assert found == expected
            assert [row[1] is None for row in found] == [row[1] is None for row in expected]


def test_messages_of_the_older_formats(tmp_path: Path) -> None:
    log = tmp_path / "t-0"
    log.mkdir()
    rows = [pa.table({"offset": [3 * i, 3 * i + 1, 3 * i + 2]}) for i in range(6)]
    parts = [b"".join(kafka_log.encode(t, magic=1, codec="gzip")) for t in rows]
    parts[2] = (8 + (1 << 20)).to_bytes(8, "big") + parts[2][8:]
    (log / FIRST).write_bytes(b"".join(parts))
    told = [row["offset"] for row in by_either_engine(tmp_path) if row["damage"] is not None]
    assert told == [6 + (1 << 20), 7 + (1 << 20), 8 + (1 << 20)]


@pytest.mark.slow
@pytest.mark.parametrize("directory", sorted(path.name for path in SAMPLES.glob("kafka-*")))
def test_nothing_is_said_of_logs_of_brokers(directory: str) -> None:
    for engine in ("arrow", "construct"):
        rows = kafka_log.scan(
            SAMPLES / directory, ["damage"], policy="salvage", engine=engine, control_records=True
        ).read_all()
        assert rows.num_rows
        assert rows.column("damage").null_count == rows.num_rows


def test_a_copy_elsewhere_is_there_twice(tmp_path: Path) -> None:
    """Other than a batch that says the offsets of another one."""
    whole = (SAMPLE / FIRST).read_bytes()
    at = starts(whole)
    for i, (claims, what) in enumerate([(12, "twice"), (18, "lost")]):
        log = tmp_path / str(i) / "t-0"
        log.mkdir(parents=True)
        copy = claims.to_bytes(8, "big") + whole[at[2] + 8 : at[3]]
        (log / FIRST).write_bytes(whole[: at[5]] + copy + whole[at[5] :])
        said = kafka_log.LogDirectory(log).salvage(tmp_path / f"out{i}").to_pylist()
        (row,) = (row for row in said if row["what"] != "kept")
        assert (row["what"], row["first_offset"], row["records"]) == (what, claims, 6)
