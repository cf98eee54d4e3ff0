"""The rows of views of the metadata log, from parts of its files."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from codecgen.runtime.errors import ValueRefused, Where
from codecgen.runtime.located_bytes import Limits
from kafka_codecs import METADATA_BODY
from kafka_log.disk.directory import Segment
from kafka_log.report.plain_rows import plain_rows
from kafka_log.segment.columnar import Scanner
from kafka_log.segment.ranges import EVERYTHING
from kafka_log.segment.row_selection import RowSelection
from kafka_log.tables.topic_views import topic_view

Part = tuple[Segment, int]
"""A file, and the byte before which the last batch of it begins that is to be read."""

Offsets = tuple[int, int] | None
"""The first is in, the second is not."""

Rows = Iterator[tuple[int, dict[str, Any]]]
"""Rows with their offsets."""

_SHIFTS = (0, 7, 14, 21, 28)
_KNOWN: Mapping[int, Mapping[int, Any]] = {
    int(k): versions for k, versions in METADATA_BODY.items()
}


def rows(name: str, parts: Sequence[Part], offsets: Offsets, salvage: bool) -> Rows:
    """The rows of a view. Raises CodecError for damage, or (``salvage``) passes over batches and records that cannot be read."""
    columns = [field.name for field in topic_view(name, None).schema]
    view = topic_view(name, [*columns, "record_offset"])
    size = sum(stop for _, stop in parts)
    for segment, stop in parts:
        records = _scanner(segment, view.needed, offsets, stop, salvage)
        for batch in view.batches(
            iter(records),
            segment,
            view.schema,
            strict=False,
            keep=salvage,
            limits=records.limits,
            size=size,
            engine="auto",
        ):
            for row in plain_rows(pa.Table.from_batches([batch])):
                yield row.pop("record_offset"), row


def merged(streams: Mapping[str, Rows]) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The rows of several views, by offset."""

    def named(view: str, found: Rows) -> Iterator[tuple[int, str, dict[str, Any]]]:
        for offset, row in found:
            yield offset, view, row

    return heapq.merge(*(named(*stream) for stream in streams.items()), key=lambda event: event[0])


def refuse_unknown(parts: Sequence[Part], offsets: Offsets) -> None:
    """Refuse records of types and versions that are not known, which views pass over: what they say would be missing. Raises
    ValueRefused, and CodecError for damage."""
    for segment, stop in parts:
        for batch in _scanner(segment, ("offset", "value"), offsets, stop, False):
            found = (batch.column(name).to_pylist() for name in ("offset", "value"))
            for offset, value in zip(*found, strict=True):
                reason = unknown(value)
                if reason is not None:
                    where = Where(path="value", file=os.fspath(segment.path))
                    raise ValueRefused(f"the record at offset {offset}: {reason}", where)


def unknown(value: bytes | None) -> str | None:
    """Why a record cannot be known, None where its type and version are. What is no frame is left to its codec."""
    if value is None:
        return "it has no value"
    numbers = []
    at = 0
    for _ in ("frame version", "type", "version"):
        number = 0
        for shift in _SHIFTS:
            if at >= len(value):
                return None
            byte = value[at]
            at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        numbers.append(number)
    _, kind, version = numbers
    versions = _KNOWN.get(kind)
    if versions is None:
        return f"no record has the type {kind}, as far as is known"
    if version not in versions:
        return f"version {version} of the type {kind} is not known"
    return None


def _scanner(
    segment: Segment, columns: Sequence[str], offsets: Offsets, stop: int, salvage: bool
) -> Scanner:
    return Scanner(
        segment.path,
        columns,
        selection=RowSelection(offsets or EVERYTHING, control_records=False),
        on_damage="keep" if salvage else "raise",
        limits=Limits(),
        stop=stop,
    )
