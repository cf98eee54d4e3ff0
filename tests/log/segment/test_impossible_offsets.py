"""Offsets that cannot be in their segment: no checksum covers the first offset of a batch."""

from __future__ import annotations

import random
import shutil
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kafka_log
from kafka_log.segment import resynchronisation
from kafka_log.segment.columnar import BatchScanner, Scanner
from kafka_log.segment.kernels import Engine
from kafka_log.segment.offsets_of_files import MAX_RELATIVE, offsets_of
from kafka_log.segment.passes import LOOKS
from tests.paths import SAMPLES

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


@pytest.mark.parametrize("engine", ["arrow", "construct"])
def test_rows_say_it_and_the_others_stay(tmp_path: Path, engine: Engine) -> None:
    """Whatever lies beside the batch: also damage right before it and after it."""
    log = tmp_path / "segments.small-0"
    whole = (SAMPLE / FIRST).read_bytes()
    at = starts(whole)
    for seed in range(60):
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
    next_entry = resynchronisation.next_entry

    def noted(read: Any, start: int, *rest: Any) -> Any:
        searched.append(start)
        return next_entry(read, start, *rest)

    monkeypatch.setattr(resynchronisation, "next_entry", noted)
    rows = salvaged(tmp_path, "arrow")
    assert sum(row["crc_ok"] for row in rows) == 360
    assert all("cannot be in a segment" in row["damage"] for row in rows)
    assert len(searched) <= 20 * 2 * (LOOKS + 1)


@pytest.mark.parametrize("engine", ["arrow", "construct"])
@pytest.mark.parametrize("scans", [Scanner, BatchScanner])
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
