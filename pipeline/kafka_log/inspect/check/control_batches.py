"""The control batches of a segment: transaction markers, and records that no broker writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka_codecs import ControlRecordType
from kafka_log.inspect.control_batches import ControlRecord, read_control_batches
from kafka_log.segment.control import UNKNOWN
from kafka_log.segment.header_arrays import Headers
from kafka_log.segment.model import Control

MAX_BATCHES = 100
"""Maximum of control records of one segment that no broker writes."""

_MARKERS = {int(kind): kind for kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT)}


@dataclass(frozen=True, slots=True)
class ControlBatches:
    """The records of the control batches of a segment, by the index of the batch in the headers.

    Attributes:
        markers: Type of each transaction marker.
        unusual: Records that no broker of a known version writes, the first one of a batch, of at most :data:`MAX_BATCHES` batches.
    """

    markers: Mapping[int, ControlRecordType]
    unusual: Mapping[int, ControlRecord]


def scan_control_batches(path: Path, headers: Headers) -> ControlBatches:
    """Return the first transaction marker of each control batch in ``headers``, which are those of
    the segment at ``path``. Return also the first record of each that no broker writes, of at most
    MAX_BATCHES batches. Leave out batches whose records cannot be decoded. Raise OSError if the
    file cannot be read.
    """
    markers: dict[int, ControlRecordType] = {}
    unusual: dict[int, ControlRecord] = {}
    columns = {name: getattr(headers, name) for name in ("is_control", "position", "size", "first")}
    for row, records in read_control_batches(path, columns):
        is_of_producer = bool(headers.producer_id[row] >= 0)
        for record in records:
            kind = _find_marker(record.control)
            if kind is not None:
                markers.setdefault(row, kind)
            if len(unusual) < MAX_BATCHES and _is_unusual(record.control, is_of_producer):
                unusual.setdefault(row, record)
    return ControlBatches(markers, unusual)


def _find_marker(control: Control) -> ControlRecordType | None:
    """Return ABORT or COMMIT for a transaction marker, None for other control records."""
    return None if control.type_id is None else _MARKERS.get(control.type_id)


def _is_unusual(control: Control, is_of_producer: bool) -> bool:
    """Return whether no broker of a known version writes a control record: its key or value cannot
    be read, its type is unknown, or it is of a producer and no marker.
    """
    if control.error is not None or control.type == UNKNOWN:
        return True
    return is_of_producer and _find_marker(control) is None
