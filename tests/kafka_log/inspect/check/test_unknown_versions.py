"""Batches of a version that the schemas do not have: a newer Kafka may have written them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import LOG_ENTRY
from kafka_log import LogDirectory
from kafka_log.segment.versions import VERSIONS
from tests.shares import examples
from tests.support.batches import batch

NEWEST = VERSIONS[-1]
SIZE = len(batch(0))


def find_unknown(directory: Path) -> list[dict[str, Any]]:
    rows = LogDirectory(directory).check().to_pylist()
    return [row for row in rows if row["code"] == "batch_magic"]


def write(directory: Path, *changes: tuple[int, bytes]) -> bytes:
    """Write four batches, of which some bytes are replaced, and return them as they were."""
    whole = b"".join(map(batch, (0, 3, 6, 9)))
    data = bytearray(whole)
    for at, text in changes:
        data[at : at + len(text)] = text
    directory.mkdir(exist_ok=True)
    (directory / f"{0:020}.log").write_bytes(data)
    return whole


@given(magic=st.integers(NEWEST + 1, 127))
@examples(20)
def test_a_valid_checksum_leaves_two_explanations(
    magic: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("logs")
    place = SIZE + LOG_ENTRY.offset
    whole = write(root / "t-0", (place, bytes([magic])))
    (row,) = find_unknown(root / "t-0")
    assert row["byte"] == SIZE
    assert f"version {magic} " in row["meaning"] and "newer Kafka" in row["meaning"]
    assert "newer release" in row["remedy"] and "set byte" not in row["remedy"]
    assert f"byte {place}, in magic" in row["meaning"]  # what it names is right
    LogDirectory(root / "t-0").salvage(root / "out", repair=True)
    assert (root / "out" / "t-0" / f"{0:020}.log").read_bytes() == whole


def test_without_a_checksum_that_fits_nothing_is_called_damaged(tmp_path: Path) -> None:
    crc = LOG_ENTRY.cases[NEWEST].offset_of("crc")
    newer = [(k * SIZE + LOG_ENTRY.offset, bytes([NEWEST + 1])) for k in (1, 2)]
    write(tmp_path / "t-0", *newer, *((k * SIZE + crc, b"abcd") for k in (1, 2)))
    (row,) = find_unknown(tmp_path / "t-0")
    assert (row["byte"], row["first_offset"], row["last_offset"]) == (SIZE, 3, 8)
    assert "newer Kafka" in row["meaning"] and "repair" not in row["meaning"]
    codes = {one["code"] for one in LogDirectory(tmp_path / "t-0").check().to_pylist()}
    assert not codes & {"unreadable_bytes", "batch_checksum"}


def test_lengths_that_lead_nowhere_are_damage(tmp_path: Path) -> None:
    length = LOG_ENTRY.cases[NEWEST].offset_of("batch_length")
    newer = SIZE + LOG_ENTRY.offset, bytes([NEWEST + 1])
    write(tmp_path / "t-0", newer, (SIZE + length, (SIZE + 5).to_bytes(4, "big")))
    assert find_unknown(tmp_path / "t-0") == []
