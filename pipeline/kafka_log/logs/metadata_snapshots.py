"""Snapshots of the metadata log: files of batches, named after the first offset that they do not hold, and its epoch."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from codecgen.runtime.errors import CodecError, TruncatedError, ValueRefused, Where
from kafka_log.segment.model import Batch
from kafka_log.segment.reader import SegmentReader, damage

_NAME = re.compile(r"(?P<offset>\d{20})-(?P<epoch>\d{10})\.checkpoint\Z")
_HEADER, _FOOTER = 3, 4
"""The control records that begin and end a snapshot."""


@dataclass(frozen=True, slots=True)
class MetadataSnapshot:
    """A snapshot: all that the records before ``end_offset`` say."""

    path: Path
    end_offset: int
    epoch: int


def parse_snapshot_path(path: Path) -> MetadataSnapshot | None:
    """The snapshot that a file is by its name, None for other files."""
    found = _NAME.match(path.name)
    return (
        None if found is None else MetadataSnapshot(path, int(found["offset"]), int(found["epoch"]))
    )


def list_snapshots(directory: Path) -> list[MetadataSnapshot]:
    """The snapshots of a directory, the newest first. Raises OSError."""
    found = (parse_snapshot_path(path) for path in directory.iterdir() if path.is_file())
    there = [snapshot for snapshot in found if snapshot is not None]
    return sorted(there, key=lambda s: (s.end_offset, s.epoch), reverse=True)


def find_snapshot_damage(snapshot: MetadataSnapshot) -> CodecError | None:
    """Why a snapshot is not whole: a batch that is damaged or does not follow on the one before, or a header or a footer that is not
    there. None for one that was written to its end. What its records say is not read."""
    place = Where(position=0, file=os.fspath(snapshot.path))
    first = last = None
    expected = 0
    reader = SegmentReader(snapshot.path, records=False)
    try:
        for batch in reader:
            for error in damage(batch):
                return error
            place = Where(position=batch.position, file=place.file)
            if batch.base_offset != expected:
                reason = (
                    f"offset {batch.base_offset} of the snapshot follows where {expected} should"
                )
                return ValueRefused(reason, place)
            first, last, expected = first or batch, batch, batch.last_offset + 1
        if first is None or last is None:
            return TruncatedError("it holds no whole batch", place)
        if reader.end is not None and not reader.end.is_normal:
            place = Where(position=reader.end.iterated_bytes, file=place.file)
            return reader.end.error or TruncatedError("it ends within a batch", place)
        if not _has(snapshot, first, _HEADER):
            return ValueRefused("it does not begin with the header of a snapshot", place)
        if not _has(snapshot, last, _FOOTER):
            return TruncatedError("it does not end with the footer of a snapshot", place)
    except CodecError as error:
        return error
    return None


def _has(snapshot: MetadataSnapshot, batch: Batch, kind: int) -> bool:
    """Whether a batch has a control record of a kind."""
    if not batch.is_control:
        return False
    reader = SegmentReader(snapshot.path, start=batch.position, stop=batch.position + 1)
    controls = [record.control for found in reader for record in found.records]
    return any(control is not None and control.type_id == kind for control in controls)
