"""A last batch with a wrong base offset, which no checksum covers, hides no other copy in tiered storage, nor its own records."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from kafka_log import LogDirectory, read_table
from kafka_log.segment.model import Lost
from pyspark_kafka_log.losses import DataLossError
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.splits.plan import plan
from tests.support.check_plants import pieces
from tests.support.tiers import local, remote, remote_of_epochs

STARTS = [0, 30, 60]


def make_log(root: Path, epochs: Sequence[int] = (0, 0, 0), batch_bytes: int = 200) -> None:
    """Make three copies with the offsets to 90, and a live segment with those to 100."""
    for number, (first, epoch) in enumerate(zip(STARTS, epochs, strict=True)):
        remote(root, number, first, first + 30, epoch=epoch, batch=batch_bytes)
    local(root, 90, 100, epoch=max(epochs))


def flip_last_base_offset(path: Path, bit: int) -> tuple[int, int]:
    """Flip a bit of the base offset of the last batch, and return the half-open range of its offsets before."""
    *_, last = pieces(path)
    position = path.stat().st_size - len(last)
    data = bytearray(path.read_bytes())
    (first,) = struct.unpack_from(">q", data, position)
    (delta,) = struct.unpack_from(">i", data, position + 23)
    struct.pack_into(">q", data, position, first ^ 1 << bit)
    path.write_bytes(data)
    return first, first + delta + 1


def copy_of(root: Path, first: int) -> Path:
    (path,) = root.rglob(f"{first:020d}-*.log")
    return path


def numbers_of(root: Path, lost: list[Lost]) -> list[int]:
    """Return the number in the value of each row."""
    table = read_table(
        root, ["value"], include="remote", topics="t", on_lost=lambda _, one: lost.append(one)
    )
    return sorted(int(value.split()[0]) for value in table["value"].to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("epochs", [(0, 0, 0), (0, 1, 2)])
@pytest.mark.parametrize("batch_bytes", [200, 10_000])
@pytest.mark.parametrize("first", STARTS)
def test_no_record_is_missed(
    first: int, batch_bytes: int, epochs: tuple[int, int, int], tmp_path: Path
) -> None:
    """Also if the copy has one batch, and if others have a higher leader epoch."""
    for bit in (0, 2, 4, 5, 6, 30, 40):
        root = tmp_path / f"{bit}"
        make_log(root, epochs, batch_bytes)
        low, high = flip_last_base_offset(copy_of(root, first), bit)
        length = high - low
        is_seen = (low ^ 1 << bit) + length > first + 30
        lost: list[Lost] = []
        assert numbers_of(root, lost) == list(range(100)), bit
        if is_seen:
            assert [(one.after_offset, one.before_offset) for one in lost] == [(low - 1, high)]
            found = LogDirectory(root, include="remote").check()["severity"].to_pylist()
            assert "error" in found
            with pytest.raises(DataLossError, match=f"offsets {low} to {high - 1} are lost"):
                plan(parse({"path": str(root), "include": "remote", "subscribe": "t"}))


def test_copies_that_overlap_are_read_once(tmp_path: Path) -> None:
    """A leader copied the log from another offset on than the one before it. The last batch of the first copy hides neither of the others."""
    for bit in (None, 6, 30, 40):
        root = tmp_path / f"{bit}"
        remote(root, 0, 0, 40, batch=60)
        remote(root, 1, 30, 60)
        remote(root, 2, 60, 90)
        local(root, 80, 100)
        if bit is not None:
            flip_last_base_offset(copy_of(root, 0), bit)
        lost: list[Lost] = []
        assert numbers_of(root, lost) == list(range(100)) and not lost, bit


@pytest.mark.parametrize(
    ("batch_bytes", "gaps"), [(200, [(28, 30)]), (60, [])], ids=["across the next copy", "below"]
)
def test_a_batch_in_two_copies_may_come_again_with_wrong_offsets(
    batch_bytes: int, gaps: list[tuple[int, int]], tmp_path: Path
) -> None:
    """If its right offsets lie in part before those of the next copy, or its wrong ones among those of its own copy."""
    remote(tmp_path, 0, 0, 40, batch=batch_bytes)
    remote(tmp_path, 1, 30, 60)
    local(tmp_path, 60, 100)
    flip_last_base_offset(copy_of(tmp_path, 0), 5)
    lost: list[Lost] = []
    numbers = numbers_of(tmp_path, lost)
    assert set(numbers) == set(range(100)) and len(numbers) > 100
    assert [(one.after_offset, one.before_offset) for one in lost] == gaps
    found = LogDirectory(tmp_path, include="remote").check()["severity"].to_pylist()
    assert "error" in found


def test_records_of_a_truncated_log_stay_hidden(tmp_path: Path) -> None:
    remote_of_epochs(tmp_path, 0, 0, [0] * 30)
    remote_of_epochs(tmp_path, 1, 20, [1] * 30)
    local(tmp_path, 50, 60, epoch=1)
    lost: list[Lost] = []
    assert numbers_of(tmp_path, lost) == list(range(60)) and not lost
    table = read_table(tmp_path, ["leader_epoch"], include="remote", topics="t")
    assert table["leader_epoch"].to_pylist() == [0] * 20 + [1] * 40
