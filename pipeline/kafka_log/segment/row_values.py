"""The columns of the views, from batches and records: each is the attribute of its name, or one of ``more``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any

from kafka_codecs.columns.batches import BATCHES
from kafka_codecs.columns.records import RECORDS
from kafka_log.segment.model import Batch, Record

Value = Callable[[Batch, Any], Any]
Values = Mapping[str, Value]

_BATCHES = tuple(column.name for column in BATCHES.columns)
_RECORDS = tuple(column.name for column in RECORDS.columns)

OF_BATCH = tuple(f.name for f in fields(Batch) if f.name in _BATCHES)
"""The columns of the view batches that :class:`Batch` has fields for, in the order of these."""
OF_RECORD = tuple(name for name in Record._fields if name in _RECORDS)
"""The columns of the view records that :class:`Record` has fields for, in the order of these: they come first."""
MORE_OF_BATCH = tuple(name for name in _BATCHES if name not in OF_BATCH)
"""The other columns of the view batches."""
MORE_OF_RECORD = tuple(name for name in _RECORDS if name not in OF_RECORD + OF_BATCH)
"""The columns of the view records that neither has a field for."""


def _of_record(name: str) -> Value:
    if name in MORE_OF_RECORD:
        at = MORE_OF_RECORD.index(name)
        return lambda batch, record: record.more[at]
    get = attrgetter(name)
    if name in OF_RECORD:
        return lambda batch, record: get(record)
    return lambda batch, record: get(batch)


def _of_batch(name: str) -> Value:
    if name in MORE_OF_BATCH:
        at = MORE_OF_BATCH.index(name)
        return lambda batch, record: batch.more[at]
    get = attrgetter(name)
    return lambda batch, record: get(batch)


OF_RECORDS: Values = {name: _of_record(name) for name in _RECORDS}
"""The columns of the view records, from a record and its batch."""

_BOUNDS = tuple(MORE_OF_BATCH.index(name) for name in ("offset_bound", "timestamp_bound"))


def bounds_of(batch: Batch) -> tuple[int | None, int | None]:
    """Return the offset and the timestamp that no record of a batch exceeds, as its header says; None for what it does not say."""
    last, latest = (batch.more[at] for at in _BOUNDS)
    return last, latest


OF_BATCHES: Values = {
    **{name: _of_batch(name) for name in _BATCHES},
    "base_offset": lambda batch, _: batch.base_offset if batch.says_base_offset else None,
}
"""The columns of the view batches, from a batch: as its header has them."""
