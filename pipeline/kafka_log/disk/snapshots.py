"""Snapshots of the metadata log: files of batches, named after the first offset that they do not hold, and its epoch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_log.segment.batch_headers import headers
from kafka_log.segment.reader import SegmentReader

_NAME = re.compile(r"(?P<offset>\d{20})-(?P<epoch>\d{10})\.checkpoint\Z")
_FOOTER = 4
"""The control record that ends a snapshot."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot: all that the records before ``end_offset`` say."""

    path: Path
    end_offset: int
    epoch: int


def snapshot_of(path: Path) -> Snapshot | None:
    """The snapshot that a file is by its name, None for other files."""
    found = _NAME.match(path.name)
    return None if found is None else Snapshot(path, int(found["offset"]), int(found["epoch"]))


def snapshots(directory: Path) -> list[Snapshot]:
    """The snapshots of a directory, the newest first. Raises OSError."""
    found = (snapshot_of(path) for path in directory.iterdir() if path.is_file())
    there = [snapshot for snapshot in found if snapshot is not None]
    return sorted(there, key=lambda s: (s.end_offset, s.epoch), reverse=True)


def is_whole(snapshot: Snapshot) -> bool:
    """Whether a snapshot ends as one that was written to its end. Raises OSError."""
    last: tuple[int, int, bool] | None = None
    try:
        for position, size, is_control in headers(
            snapshot.path, ("position", "size", "is_control")
        ):
            last = (position, size, is_control)
        if last is None:
            return False
        position, size, is_control = last
        if not is_control or position + size != snapshot.path.stat().st_size:
            return False
        for batch in SegmentReader(snapshot.path, start=position):
            return any(
                r.control is not None and r.control.type_id == _FOOTER for r in batch.records
            )
    except CodecError:
        pass
    return False
