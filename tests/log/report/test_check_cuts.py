"""Whole batches that were cut out of a segment are one finding, whatever indexes say of them. What is wrong with an index alone stays its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from kafka_log import LogDirectory, SegmentReader
from kafka_log.disk.index_files import OFFSETS
from tests.paths import SAMPLES
from tests.support.check_plants import FIRST, PLAIN, SECOND, TX, pieces

BROKER = SAMPLES / "kafka-4.x"
CASES = [
    (name, base, first, count)
    for name, base, batches in ((PLAIN, FIRST, 7), (PLAIN, SECOND, 7), (TX, FIRST, 9))
    for first in range(batches - 1)
    for count in (1, 2, 3)
    if first + count < batches
]


@pytest.mark.share(8)
@pytest.mark.parametrize(("name", "base", "first", "count"), CASES)
def test_batches_that_are_cut_out(
    tmp_path: Path, name: str, base: str, first: int, count: int
) -> None:
    directory = tmp_path / name
    shutil.copytree(BROKER / name, directory)
    path = directory / f"{base}.log"
    batches = list(SegmentReader(path))
    data = pieces(path)
    assert len(data) in (7, 9)
    path.write_bytes(b"".join([*data[:first], *data[first + count :]]))
    (row,) = LogDirectory(directory).check().to_pylist()
    assert (row["severity"], row["code"]) == ("error", "offsets_missing")
    assert (row["file"], row["byte"]) == (str(path), batches[first].position)
    offsets = batches[first].base_offset, batches[first + count - 1].last_offset
    assert (row["first_offset"], row["last_offset"]) == offsets


def test_every_other_batch_that_is_cut_out(tmp_path: Path) -> None:
    directory = tmp_path / PLAIN
    shutil.copytree(BROKER / PLAIN, directory)
    path = directory / f"{SECOND}.log"
    batches, data = list(SegmentReader(path)), pieces(path)
    path.write_bytes(b"".join(data[::2]))
    rows = LogDirectory(directory).check().to_pylist()
    assert {(row["severity"], row["code"]) for row in rows} == {("error", "offsets_missing")}
    found = [(row["first_offset"], row["last_offset"]) for row in rows]
    assert found == [(b.base_offset, b.last_offset) for b in batches[1:-1:2]]


@pytest.mark.parametrize("more", [1, 61, 383])
def test_an_index_entry_beside_gaps_of_compaction(tmp_path: Path, more: int) -> None:
    """A cleaner makes the index anew, so that a wrong entry says nothing of a gap before it. 383 bytes are a batch."""
    directory = tmp_path / PLAIN
    shutil.copytree(BROKER / PLAIN, directory)
    path = directory / f"{FIRST}.log"
    data = pieces(path)
    path.write_bytes(b"".join(data[i] for i in (0, 2, 3, 5, 6)))
    batches = list(SegmentReader(path))
    index = np.array([(b.last_offset, b.position) for b in batches[1:]], OFFSETS)
    index.tofile(path.with_suffix(".index"))
    assert {row["severity"] for row in LogDirectory(directory).check().to_pylist()} == {"note"}
    for i in range(len(index)):
        wrong = index.copy()
        wrong["position"][i] += more
        wrong.tofile(path.with_suffix(".index"))
        rows = LogDirectory(directory).check().to_pylist()
        errors = {row["code"] for row in rows if row["severity"] == "error"}
        assert errors and errors <= {"index_position", "index_offset", "index_order"}
