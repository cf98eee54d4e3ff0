"""Functions that take the columns of the views from Batch and Record: each column is the attribute of its name, or an item of ``more``."""

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
"""The columns of the view batches with a field of :class:`Batch`, in the order of the fields."""
OF_RECORD = tuple(name for name in Record._fields if name in _RECORDS)
"""The columns of the view records with a field of :class:`Record`, in the order of the fields, which come first."""
MORE_OF_BATCH = tuple(name for name in _BATCHES if name not in OF_BATCH)
"""The other columns of the view batches."""
MORE_OF_RECORD = tuple(name for name in _RECORDS if name not in OF_RECORD + OF_BATCH)
"""The columns of the view records without a field of :class:`Record` or :class:`Batch`."""


def _of_record(name: str) -> Value:
    """Return a function (batch, record) that returns the value of a column of the view ``records``:
    from the record if that has it, else from the batch.
    """
    if name in MORE_OF_RECORD:
        at = MORE_OF_RECORD.index(name)
        return lambda batch, record: record.more[at]
    get = attrgetter(name)
    if name in OF_RECORD:
        return lambda batch, record: get(record)
    return lambda batch, record: get(batch)


def _of_batch(name: str) -> Value:
    """Return a function (batch, record) that returns the value of a column of the view ``batches``
    from the batch, and ignores the record.
    """
    if name in MORE_OF_BATCH:
        at = MORE_OF_BATCH.index(name)
        return lambda batch, record: batch.more[at]
    get = attrgetter(name)
    return lambda batch, record: get(batch)


OF_RECORDS: Values = {name: _of_record(name) for name in _RECORDS}
"""Functions for the columns of the view records."""

_BOUNDS = tuple(MORE_OF_BATCH.index(name) for name in ("offset_bound", "timestamp_bound"))


def bounds_of(batch: Batch) -> tuple[int | None, int | None]:
    """Return the offset and the timestamp that no record of a batch exceeds, each None if the header does not bound it."""
    last, latest = (batch.more[at] for at in _BOUNDS)
    return last, latest


OF_BATCHES: Values = {
    **{name: _of_batch(name) for name in _BATCHES},
    "base_offset": lambda batch, _: batch.base_offset if batch.has_base_offset else None,
}
"""Functions for the columns of the view batches. The base offset is None if the header does not state it."""
