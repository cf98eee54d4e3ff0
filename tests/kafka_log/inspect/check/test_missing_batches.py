"""Whole batches that were cut out of a segment, or off its end, are one finding, whatever indexes say of them. What is wrong with an index alone stays its own."""

from __future__ import annotations

import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kafka_log import LogDirectory, SegmentReader
from kafka_log.inspect.check.missing_batches import find_cuts
from kafka_log.logs.index_files import OFFSET_ENTRY_DTYPE
from kafka_log.segment.header_arrays import Headers
from tests.paths import SAMPLES
from tests.support.check_plants import FIRST, PLAIN, SECOND, TX, pieces
from tests.support.cpu_time import limit_cpu_time

BROKER = SAMPLES / "kafka-4.x"
CASES = [
    (name, base, first, count)
    for name, base, batches in ((PLAIN, FIRST, 7), (PLAIN, SECOND, 7), (TX, FIRST, 9))
    for first in range(batches)
    for count in (1, 2, 3)
    if first + count < batches or (first + count == batches and name == PLAIN)
] + [(PLAIN, base, 0, 7) for base in (FIRST, SECOND)]


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
    index = np.array([(b.last_offset, b.position) for b in batches[1:]], OFFSET_ENTRY_DTYPE)
    index.tofile(path.with_suffix(".index"))
    assert {row["severity"] for row in LogDirectory(directory).check().to_pylist()} == {"note"}
    for i in range(len(index)):
        wrong = index.copy()
        wrong["position"][i] += more
        wrong.tofile(path.with_suffix(".index"))
        rows = LogDirectory(directory).check().to_pylist()
        errors = {row["code"] for row in rows if row["severity"] == "error"}
        assert errors and errors <= {"index_position", "index_offset", "index_order"}


@pytest.mark.parametrize("more", [1, 8, 60])
def test_less_than_a_batch_is_not_cut_out(tmp_path: Path, more: int) -> None:
    """The last entry is wrong, behind the only gap that compaction has left."""
    path = _without(tmp_path / PLAIN, 5)
    index = _write_index(path)
    index["position"][-1] += more
    index.tofile(path.with_suffix(".index"))
    rows = LogDirectory(path.parent).check().to_pylist()
    assert [row["code"] for row in rows if row["severity"] == "error"] == ["index_position"]


def test_a_cut_in_one_of_two_gaps_without_an_entry_between(tmp_path: Path) -> None:
    """No entry says which of the two compaction has left."""
    path = _without(tmp_path / PLAIN, 3)
    index = _write_index(path)
    index[2:].tofile(path.with_suffix(".index"))
    path.write_bytes(b"".join(piece for i, piece in enumerate(pieces(path)) if i != 1))
    rows = LogDirectory(path.parent).check().to_pylist()
    assert "offsets_missing" not in {row["code"] for row in rows if row["severity"] == "error"}
    assert {row["code"] for row in rows if row["severity"] == "note"} == {"offsets_missing"}


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [0, 5])
def test_large_segments_are_judged_at_once(gaps: int) -> None:
    count = 300_000
    size = np.random.default_rng(1).integers(100, 600, count)
    first = np.arange(count) * 3
    kept = np.full(count, True)
    if gaps:
        kept[2::gaps] = False
    first, size = first[kept], size[kept]
    position = np.cumsum(size) - size
    entries = np.flatnonzero(np.diff(position // 4096, prepend=0))
    left = np.full(len(first), True)
    left[1000:1040] = False
    of_header = {
        "first": first[left],
        "last": first[left] + 2,
        "position": np.cumsum(size[left]) - size[left],
    }
    names = [field.name for field in fields(Headers)]
    headers = Headers(**dict.fromkeys(names, size[left]) | of_header)
    with limit_cpu_time(1):
        cuts = find_cuts(headers, 0, int(size.sum()), None, first[entries] + 2, position[entries])
    (cut,) = cuts
    assert (cut.first, cut.last) == (first[999] + 3, first[1040] - 1)


def _without(directory: Path, batch: int) -> Path:
    """Return a segment of the partition that compaction has taken a batch from."""
    shutil.copytree(BROKER / PLAIN, directory)
    path = directory / f"{FIRST}.log"
    path.write_bytes(b"".join(piece for i, piece in enumerate(pieces(path)) if i != batch))
    return path


def _write_index(path: Path) -> Any:
    """Write the offset index that a cleaner makes. Return its entries."""
    batches = list(SegmentReader(path))
    index = np.array([(b.last_offset, b.position) for b in batches[1:]], OFFSET_ENTRY_DTYPE)
    index.tofile(path.with_suffix(".index"))
    assert {row["severity"] for row in LogDirectory(path.parent).check().to_pylist()} == {"note"}
    return index
