"""The rows of views of the metadata log, from parts of its files."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from codecgen.runtime.located_bytes import Limits
from kafka_log.logs.partitions import Segment
from kafka_log.segment.columnar import Scanner
from kafka_log.segment.model import Policy
from kafka_log.segment.ranges import EVERYTHING
from kafka_log.segment.row_selection import RowSelection
from kafka_log.tables.topic_views import topic_view
from kafka_log.text.json_values import plain_rows


class Part(NamedTuple):
    """A file, the byte at which the first batch of it begins that is to be read, and the one before which the last one does."""

    segment: Segment
    start: int
    stop: int


Offsets = tuple[int, int] | None
"""The first is in, the second is not."""

Rows = Iterator[tuple[int, dict[str, Any]]]
"""Rows with their offsets."""


def rows(name: str, parts: Sequence[Part], offsets: Offsets, salvage: bool) -> Rows:
    """The rows of a view. Raises CodecError for damage and for records that are not known, or (``salvage``) passes over these."""
    columns = [field.name for field in topic_view(name, None).schema]
    # Secrets are hidden in answers: before, two of them have to be told apart.
    view = topic_view(name, [*columns, "record_offset"], show_secrets=True)
    size = sum(part.stop - part.start for part in parts)
    for part in parts:
        records = _scanner(part, view.needed, offsets, salvage)
        for batch in view.batches(
            iter(records),
            part.segment,
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


def _scanner(part: Part, columns: Sequence[str], offsets: Offsets, salvage: bool) -> Scanner:
    return Scanner(
        part.segment.path,
        columns,
        Policy.SALVAGE if salvage else Policy.KAFKA,
        selection=RowSelection(offsets or EVERYTHING, control_records=False),
        on_damage="keep" if salvage else "raise",
        limits=Limits(),
        start=part.start,
        stop=part.stop,
    )
