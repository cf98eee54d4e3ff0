"""Of two batches that contradict each other, the one with the wrong base offset is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log import LogDirectory, read_table
from kafka_log.segment.placement import find_placed, find_unambiguous
from tests.support.batches import batch
from tests.support.check_plants import pieces
from tests.support.segment_files import put
from tests.support.tiers import local, remote


@given(st.data())
def test_one_wrong_base_offset_is_found(data: st.DataObject) -> None:
    """In a log without missing offsets: a flipped bit or zeros, wherever others show that it is wrong. Without a next segment, the last
    two batches may both be wrong."""
    sizes = np.array(data.draw(st.lists(st.integers(1, 70), min_size=1, max_size=9)), np.int64)
    base = data.draw(st.sampled_from([0, 1, 126, 5000]))
    first = base + np.cumsum(sizes) - sizes
    last = first + sizes - 1
    i = data.draw(st.integers(0, len(sizes) - 1))
    end = data.draw(st.sampled_from([None] * (i < len(sizes) - 2) + [int(last[-1]) + 1]))
    wrong = data.draw(st.sampled_from([0, *(int(first[i]) ^ 1 << bit for bit in range(20))]))
    last[i] += wrong - first[i]
    first[i] = wrong
    excluded = np.array([bool(a < base) for a in first]) | (False if end is None else last >= end)
    for find in (find_placed, find_unambiguous):
        left_out = np.flatnonzero(~find(first, last, excluded, (base, end))).tolist()
        assert left_out in ([], [i])
        is_seen = i + 1 < len(first) and last[i] >= first[i + 1]
        is_seen |= i > 0 and first[i] <= last[i - 1]
        assert left_out == [i] * bool(is_seen or excluded[i])


def test_two_that_may_both_be_wrong() -> None:
    """Offsets are missing on both sides: nothing says which of the two is right."""
    first, last = (np.array(column) for column in ([0, 50, 45, 90], [9, 59, 54, 99]))
    none = np.zeros(4, np.bool_)
    assert find_placed(first, last, none).tolist() == [True, False, True, True]
    assert find_unambiguous(first, last, none).tolist() == [True, False, False, True]


def set_base_offset(path: Path, batch_number: int, offset: int) -> int:
    """Change the base offset of a batch in a file, and return its position."""
    batches = pieces(path)
    position = sum(map(len, batches[:batch_number]))
    data = bytearray(path.read_bytes())
    data[position : position + 8] = offset.to_bytes(8, "big")
    path.write_bytes(data)
    return position


@pytest.mark.parametrize("base", [0, 126])
def test_a_wrong_base_offset_in_a_tiered_copy_is_that_of_its_batch(
    base: int, tmp_path: Path
) -> None:
    remote(tmp_path, 0, base, base + 40)
    local(tmp_path, base + 40, base + 50)
    (copy,) = tmp_path.rglob(f"{base:020d}-*.log")
    assert len(pieces(copy)) > 2
    position = set_base_offset(copy, 1, 0)
    found = LogDirectory(tmp_path, include="remote").check().to_pylist()
    errors = [(row["code"], row["byte"]) for row in found if row["file"] == str(copy)]
    code = "batch_in_wrong_segment" if base else "offsets_not_rising"
    assert errors == [(code, position)]


@pytest.mark.parametrize(("number", "offset"), [(1, 0), (1, 12), (2, 19), (2, 21), (0, 4)])
def test_each_command_blames_the_batch(number: int, offset: int, tmp_path: Path) -> None:
    log = put(tmp_path / "t-0", (0, b"".join(batch(n * 10, records=10) for n in range(5))))
    path = log / f"{0:020d}.log"
    position = set_base_offset(path, number, offset)
    errors = LogDirectory(log).check().to_pylist()
    assert [row["byte"] for row in errors if row["severity"] == "error"] == [position]
    rows = read_table(log, ["offset", "damage"], "salvage").to_pylist()
    damaged = [row["offset"] for row in rows if row["damage"]]
    assert damaged == [*range(offset, offset + 10)]
    LogDirectory(log).salvage(tmp_path / "out")
    others = [o for o in range(50) if o // 10 != number]
    assert read_table(tmp_path / "out", ["offset"])["offset"].to_pylist() == others
