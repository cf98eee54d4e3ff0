"""Metadata snapshots: files of batches, named by the first offset after them and its leader epoch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from codecgen.runtime.errors import CodecError, TruncatedError, ValueRefused, Where
from kafka_log.segment.model import Batch
from kafka_log.segment.positioned_reads import listed_directory, unreadable
from kafka_log.segment.reader import SegmentReader, damage

_NAME = re.compile(r"(?P<offset>\d{20})-(?P<epoch>\d{10})\.checkpoint\Z")
_HEADER, _FOOTER = 3, 4
"""Types of the control records that begin and end a snapshot."""


@dataclass(frozen=True, slots=True)
class MetadataSnapshot:
    """A metadata snapshot: the state after all records below ``end_offset``.

    Attributes:
        path: Path of the file.
        end_offset: First offset that is not part of it.
        epoch: Leader epoch of the last record.
    """

    path: Path
    end_offset: int
    epoch: int


def parse_snapshot_path(path: Path) -> MetadataSnapshot | None:
    """Return the metadata snapshot that a file name of the form ``OFFSET-EPOCH.checkpoint``
    describes; None if the name has another form. The file is not read.
    """
    found = _NAME.match(path.name)
    return (
        None if found is None else MetadataSnapshot(path, int(found["offset"]), int(found["epoch"]))
    )


def list_snapshots(directory: Path) -> list[MetadataSnapshot]:
    """Return the metadata snapshots in a directory, the newest (highest offset, then epoch) first;
    ``[]`` if there are none. They are not read. If a broker has renamed the directory to delete it,
    list it by its new name. Raise UnreadableError, an OSError, if it cannot be listed.
    """
    directory = listed_directory(directory)
    try:
        paths = [path for path in directory.iterdir() if path.is_file()]
    except OSError as error:
        raise unreadable(error, None, directory) from error
    return sort_snapshots(snapshot for snapshot in map(parse_snapshot_path, paths) if snapshot)


def sort_snapshots(snapshots: Iterable[MetadataSnapshot]) -> list[MetadataSnapshot]:
    """Return snapshots with the newest (highest offset, then epoch) first."""
    return sorted(snapshots, key=lambda s: (s.end_offset, s.epoch), reverse=True)


def find_snapshot_damage(snapshot: MetadataSnapshot) -> CodecError | None:
    """Return, not raise, a CodecError if a metadata snapshot is damaged or incomplete: a damaged
    batch (also by its checksum), an offset that does not follow, no snapshot header at its start or
    footer at its end, no batch, or an unreadable or missing file. Return None if it is complete.
    Contents of records are not checked.
    """
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
            return TruncatedError("it holds no complete batch", place)
        if reader.end is not None and not reader.end.is_normal:
            place = Where(position=reader.end.iterated_bytes, file=place.file)
            return reader.end.error or TruncatedError("it ends within a batch", place)
        if not _has_control_record(snapshot, first, _HEADER):
            return ValueRefused("it does not begin with the header of a snapshot", place)
        if not _has_control_record(snapshot, last, _FOOTER):
            return TruncatedError("it does not end with the footer of a snapshot", place)
    except CodecError as error:
        return error
    except FileNotFoundError as error:
        return unreadable(error, 0, snapshot.path)
    return None


def _has_control_record(snapshot: MetadataSnapshot, batch: Batch, kind: int) -> bool:
    """Return whether a batch of a snapshot is a control batch with a control record of type
    ``kind``. Return False if its records cannot be decoded, or the file cannot be read. Raise
    FileNotFoundError if the file is gone.
    """
    if not batch.is_control:
        return False
    reader = SegmentReader(snapshot.path, start=batch.position, stop=batch.position + 1)
    controls = [record.control for found in reader for record in found.records]
    return any(control is not None and control.type_id == kind for control in controls)
