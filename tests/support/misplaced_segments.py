"""Logs of a broker whose segments have wrong names, overlap, or lie in the wrong order."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from kafka_log import SegmentReader
from tests.paths import SAMPLES
from tests.support.check_plants import PLAIN, TX, copy_segment, pieces, rename_segment


def _exchange(directory: Path, one: int, other: int) -> None:
    rename_segment(directory, one, 10**9)
    rename_segment(directory, other, one)
    rename_segment(directory, 10**9, other)


def _rename_to_front(directory: Path) -> None:
    rename_segment(directory, 0, 1)
    rename_segment(directory, 126, 0)


def _append(directory: Path, source: int, target: int) -> None:
    """Put the first batch of a segment at the end of another one, and leave it where it is too."""
    path = directory / f"{target:020d}.log"
    path.write_bytes(path.read_bytes() + pieces(directory / f"{source:020d}.log")[0])


def _move(directory: Path, source: int, target: int) -> None:
    """Move the last batch of a segment to the start of another one."""
    one, other = (directory / f"{base:020d}.log" for base in (source, target))
    found = pieces(one)
    one.write_bytes(b"".join(found[:-1]))
    other.write_bytes(found[-1] + other.read_bytes())


MISPLACED: dict[str, tuple[str, Callable[[Path], None]]] = {
    "renamed to a higher offset": (PLAIN, lambda d: rename_segment(d, 84, 87)),
    "renamed to a lower offset": (PLAIN, lambda d: rename_segment(d, 42, 30)),
    "of transactions, renamed to a lower offset": (TX, lambda d: rename_segment(d, 44, 20)),
    "renamed to the front": (PLAIN, _rename_to_front),
    "renamed far away": (PLAIN, lambda d: rename_segment(d, 42, 1 << 40)),
    "copied": (PLAIN, lambda d: copy_segment(d, 42, 30, ".log", ".index", ".timeindex")),
    "of transactions, copied": (TX, lambda d: copy_segment(d, 44, 20, ".log")),
    "first two exchanged": (PLAIN, lambda d: _exchange(d, 0, 42)),
    "first and last exchanged": (PLAIN, lambda d: _exchange(d, 0, 126)),
    "of transactions, first renamed behind the second": (TX, lambda d: rename_segment(d, 0, 45)),
    "of transactions, exchanged": (TX, lambda d: _exchange(d, 0, 44)),
    "batch of the next segment at the end": (PLAIN, lambda d: _append(d, 42, 0)),
    "batch of the last segment at the end": (PLAIN, lambda d: _append(d, 126, 0)),
    "batch of the segment before at the start": (PLAIN, lambda d: _move(d, 0, 42)),
    "batch of the first segment at the start": (PLAIN, lambda d: _move(d, 0, 126)),
}
"""A partition of samples/kafka-4.x, and what is done to its directory."""


def misplaced_log(root: Path, name: str, *, indexes: bool = True) -> Path:
    """A copy of a partition below ``root`` with misplaced segments, with its indexes or without."""
    partition, change = MISPLACED[name]
    directory = root / partition
    shutil.copytree(SAMPLES / "kafka-4.x" / partition, directory)
    change(directory)
    for path in directory.glob("*index") if not indexes else ():
        path.unlink()
    return directory


def cuts_of(directory: Path) -> list[int]:
    """Offsets at, before and after the ends of each segment, and the base offsets in the names."""
    found = {0}
    for path in directory.glob("*.log"):
        batches = list(SegmentReader(path))
        ends = (batches[0].base_offset or 0, batches[-1].last_offset, batches[0].last_offset)
        found |= {int(path.stem), *(end + by for end in ends for by in (0, 1))}
    return sorted(found)
