"""Reader of the control batches of a segment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_log.segment import framing
from kafka_log.segment.model import Batch, Control, Policy
from kafka_log.segment.positioned_reads import open_segment, read_exactly
from kafka_log.segment.versions import field_of, version_of

MAX_CACHED_BYTES = 256
"""Maximum size of a batch whose control records are kept. Transaction markers have 78 bytes."""

MAX_CACHED = 4096
"""Maximum number of batches whose control records are kept. Markers of one kind differ only in the coordinator epoch."""


class ControlRecord(NamedTuple):
    """The offset of a control record, and its parsed key and value."""

    offset: int
    control: Control


def read_control_batches(
    path: Path, columns: Mapping[str, Any]
) -> Iterator[tuple[int, Sequence[ControlRecord]]]:
    """Yield the row and the control records of each control batch whose records can be decoded. A
    file that a broker renamed since it was listed is read by its new name. Raise OSError if the
    file cannot be read.

    Batches whose records have the same bytes have the same control records, so that the reference
    codec decodes one of each. Records that cannot be read are not kept: their errors name a place.

    Args:
        path: A segment.
        columns: Header columns of its batches, with ``is_control``, ``position``, ``size`` and ``first``.
    """
    rows = np.flatnonzero(columns["is_control"]).tolist()
    if not rows:
        return
    positions, sizes, firsts = (columns[n][rows].tolist() for n in ("position", "size", "first"))
    known: dict[tuple[int | bytes, ...], Sequence[ControlRecord]] = {}
    file_name = os.fspath(path)
    with open_segment(path, is_listed=True) as file:
        for row, position, size, first in zip(rows, positions, sizes, firsts, strict=True):
            data = read_exactly(file, position, size)
            key = _content_key(data, position, file_name) if size <= MAX_CACHED_BYTES else None
            kept = None if key is None else known.get(key)
            if kept is not None:
                yield row, [one._replace(offset=first + one.offset) for one in kept]
                continue
            batch = _decode(data, position, file_name)
            if batch is None:
                continue
            found = [ControlRecord(r.offset, r.control) for r in batch.records if r.control]
            is_whole = not batch.problems and all(one.control.error is None for one in found)
            if key is not None and is_whole and len(known) < MAX_CACHED:
                known[key] = [one._replace(offset=one.offset - first) for one in found]
            yield row, found


def _decode(data: bytes, position: int, file: str) -> Batch | None:
    """Return the batch with its parsed control records; None if its header cannot be parsed."""
    from kafka_log.segment.reference import construct_engine

    try:
        return construct_engine(data, position, file, Policy.KAFKA, Limits(), True)
    except CodecError:
        return None


def _content_key(data: bytes, position: int, file: str) -> tuple[int | bytes, ...] | None:
    """Return what decides which control records a batch has: its version, the fields that say how
    its records are stored, and their bytes. Return None if its header cannot be parsed.
    """
    try:
        magic = framing.frame_of(data, position, file).magic
    except CodecError:
        return None
    end, fields = _storage_fields(magic)
    return magic, *(data[field] for field in fields), data[end:]


@cache
def _storage_fields(magic: int) -> tuple[int, tuple[slice, ...]]:
    """Return the size of the header of a batch with a magic byte, and the places of its fields that
    say how its records are stored.
    """
    version, layout = version_of(magic), framing.layout_of(magic)
    paths = (field_of(version, column) for column in ("codec", "is_control", "record_count"))
    names = sorted({path.partition(".")[0] for path in paths})
    starts = ((layout.offset_of(name), layout.size_of(name)) for name in names)
    return layout.leading_size, tuple(slice(start, start + size) for start, size in starts)
