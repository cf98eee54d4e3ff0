"""Records of batches as rows with decoded keys and values, and the search for a text in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from kafka_codecs.columns.records import RECORDS
from kafka_log.inspect.browse.batch_windows import (
    Budget,
    Target,
    is_normal_tail,
    read_window,
    start_of,
)
from kafka_log.inspect.dump import INTERNAL
from kafka_log.inspect.dump.decoding import KeyValueDecoder, KeyValueFormats
from kafka_log.inspect.dump.search import RecordSearch
from kafka_log.logs.partitions import Partition, Segment, pair_with_next_base_offset
from kafka_log.read.internal_topics import internal_topic
from kafka_log.read.output import Output
from kafka_log.read.plan import ReadPlan, Split
from kafka_log.read.reader import LostRange, PlanReader, SplitEnd
from kafka_log.read.schemas.registry import SchemaRegistry
from kafka_log.segment.model import Lost, Policy
from kafka_log.segment.reader import damage
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.scanner import Flagged
from kafka_log.text.json_values import convert_bytes, format_json

COLUMNS = (
    *("topic", "segment", "position", "offset", "timestamp", "sequence", "is_control"),
    *("producer_id", "producer_epoch", "is_transactional"),
    *("key", "value", "headers", "crc_ok", "damage"),
)
"""Columns that pages show."""

SLICE = 4 << 20
"""Bytes that a search reads before it looks at its budget."""


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """Rows of :data:`COLUMNS` with their keys and values as JSON texts (None for null), and a line for each kind of failure."""

    rows: pa.RecordBatch
    keys: Sequence[str | None]
    values: Sequence[str | None]
    failures: Sequence[str]


@dataclass(frozen=True)
class RecordView:
    """How records are shown.

    Attributes:
        decode: Format of keys and values, as of ``--decode``.
        show_secrets: Show secrets in records of internal topics.
        read_schemas: Returns the schemas for formats that need some.
        find_partitions: Returns the partitions of a topic, whose first records show which schemas it uses.
    """

    decode: str = INTERNAL
    show_secrets: bool = False
    read_schemas: Callable[[], SchemaRegistry] = field(default=SchemaRegistry)
    find_partitions: Callable[[str], Sequence[Partition]] = lambda topic: ()
    _schema_parts: dict[str, frozenset[str]] = field(default_factory=dict, init=False)

    @cached_property
    def formats(self) -> KeyValueFormats:
        """Formats of keys and values. Raise ValueError if ``decode`` is none."""
        return KeyValueFormats.parse(self.decode)

    def hides_bytes(self, topic: str) -> bool:
        """Return whether bytes of a topic must not be shown undecoded, because they may hold secrets."""
        named = internal_topic(topic), self.formats.internal_topic(topic)
        return not self.show_secrets and any(one is not None and one.has_secrets for one in named)

    def formats_of(self, topic: str) -> KeyValueFormats:
        """Return the formats for a topic. A topic with secrets is always decoded by its layouts."""
        return KeyValueFormats() if self.hides_bytes(topic) else self.formats

    def make_decoder(self, topic: str) -> KeyValueDecoder:
        """Return a decoder of the rows of a topic. Raise ValueError if ``decode`` is no format."""
        return KeyValueDecoder(
            self.formats_of(topic),
            lambda data: format_json(convert_bytes(data)),
            show_secrets=self.show_secrets,
            read_schemas=self.read_schemas,
            find_partitions=self.find_partitions,
            schema_parts=self._schema_parts,
        )

    def decode_rows(self, rows: pa.RecordBatch) -> DecodedRows:
        """Return rows of one topic and segment with decoded keys and values. What cannot be decoded
        is shown as bytes (hidden if they may be secrets), and counted in ``failures``. Raise
        ValueError if ``decode`` is no format; if it needs schemas, also what ``read_schemas``
        raises, and ModuleNotFoundError if its package is not installed. Without rows nothing is
        decoded or raised.
        """
        if not rows.num_rows:
            return DecodedRows(rows, (), (), ())
        topic = str(rows.column("topic")[0].as_py())
        decoder = self.make_decoder(topic)
        decoded = decoder.decode_columns(
            topic,
            str(rows.column("segment")[0].as_py()),
            rows.column("key"),
            rows.column("value"),
            rows.column("is_control").to_pylist(),
            rows.column("position").to_pylist(),
            rows.column("headers"),
        )
        texts = decoded.texts
        return DecodedRows(rows, texts["key"], texts["value"], decoder.failure_messages())


def read_batch_rows(partition: Partition, segment: Segment, position: int) -> pa.RecordBatch:
    """Return the records of the batch at byte ``position`` as rows of :data:`COLUMNS`, also damaged
    ones as far as they can be read. There are none if no batch can be read there, or the file is
    gone; neither is raised.
    """
    reader = _open_reader(partition, Policy.KAFKA)
    split = Split(segment, position, position + 1, RowSelection())
    batches = [item for item in reader.read(split) if isinstance(item, pa.RecordBatch)]
    table = pa.Table.from_batches(batches, reader.plan.rows.schema).combine_chunks()
    return next(iter(table.to_batches()), _no_rows(table.schema))


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """Return a record batch without rows."""
    return pa.RecordBatch.from_pylist([], schema)


def _open_reader(partition: Partition, policy: Policy) -> PlanReader:
    """Return a reader of rows of :data:`COLUMNS`, which keeps damaged records and goes on after errors."""
    output = Output(RECORDS, [partition], COLUMNS, False)
    return PlanReader(
        ReadPlan((), output, policy, "keep", on_error="next_file", expects_removal=True)
    )


@dataclass
class Found:
    """Result of a search.

    Attributes:
        max_hits: Number of records after which the search stops.
        hits: Rows of :data:`COLUMNS`, each record batch of one segment, with the index of the segment.
        last_offset: Highest offset of the last rows that were searched; None if no record was read.
        resume: Index of the segment and byte where the search goes on; None if it reached the end.
        lost: A line for each range of bytes that could not be searched, and for each damaged batch of which records were read.
    """

    max_hits: int
    hits: list[tuple[int, pa.RecordBatch]] = field(default_factory=list)
    last_offset: int | None = None
    resume: tuple[int, int] | None = None
    lost: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Number of records that were found."""
        return sum(rows.num_rows for _, rows in self.hits)

    def add_rows(self, index: int, rows: pa.RecordBatch, hits: pa.RecordBatch) -> None:
        """Add the ``hits`` among ``rows`` of a segment, up to ``max_hits`` in all, and set
        ``last_offset`` to the highest offset of ``rows``. Once there are that many, set it to that
        of the last hit, and ``resume`` to its batch, where the search goes on. Do not call it when
        ``resume`` is set.
        """
        kept = hits.slice(0, self.max_hits - self.count)
        if kept.num_rows:
            self.hits.append((index, kept))
        is_full = self.count == self.max_hits
        searched = kept if is_full else rows
        self.last_offset = max(searched.column("offset").to_pylist(), default=self.last_offset)
        if is_full:
            self.resume = index, kept.column("position")[-1].as_py()


def search_records(
    partition: Partition,
    text: str,
    view: RecordView,
    *,
    begin: tuple[int, int],
    after: int | None,
    max_hits: int,
    budget: Budget,
) -> Found:
    """Return records in whose key or value, as text or as decoded, ``text`` occurs, in log order,
    until there are ``max_hits`` or the budget is spent (``resume``). Control records are not
    searched. Damage and unreadable files are skipped and listed in ``lost``. Raise ValueError if
    the format of ``view`` is none; if it needs schemas, also what reading these raises.

    Args:
        partition: The partition.
        text: Text to look for; upper and lower case differ.
        view: How records are decoded.
        begin: Index of the first segment, and a byte in its first batch.
        after: Records of the first batch up to this offset are left out; None for none.
        max_hits: Maximum number of records.
        budget: Limit of the work.
    """
    search = RecordSearch(
        re.escape(text),
        ignore_case=False,
        decoder=view.make_decoder(partition.topic),
    )
    reader = _open_reader(partition, Policy.SALVAGE)
    found = Found(max_hits, last_offset=after)
    segments = list(pair_with_next_base_offset(partition.segments))
    for i, (segment, next_base) in list(enumerate(segments))[begin[0] :]:
        position, step, first = 0, SLICE, None
        if i == begin[0] and begin[1]:
            window = read_window(segment, next_base, Target("byte", begin[1]), 1, Budget())
            position = start_of(window.entries[0]) if window.entries else segment.size
        if i == begin[0] and after is not None:
            first, step = after + 1, 1  # the filter is for the first batch alone
        while position < segment.size:
            if budget.is_spent:
                found.resume = i, position
            if found.resume is not None:
                return found
            rows = RowSelection((first, None), control_records=False)
            split = Split(segment, position, position + step, rows, next_base)
            end = None
            for item in reader.read(split):
                if isinstance(item, SplitEnd):
                    end = item.end
                elif isinstance(item, pa.RecordBatch) and found.resume is None:
                    found.add_rows(i, item, search.filter(item))
                elif isinstance(item, Flagged) and found.resume is None and damage(item.batch):
                    at, reason = item.batch.position, damage(item.batch)[0]
                    found.lost.append(f"{segment.path}: the batch at byte {at}: {reason}")
                elif isinstance(item, LostRange):
                    _add_lost(found, segment, next_base, item.lost)
            if end is None or end.iterated_bytes <= position:
                break
            budget.spend(end.iterated_bytes - position)
            position, first, step = end.iterated_bytes, None, SLICE
    return found


def _add_lost(found: Found, segment: Segment, next_base: int | None, lost: Lost) -> None:
    """Add a line about a lost range, unless it is a normal end, or comes after where the search goes on."""
    is_later = found.resume is not None and lost.start >= found.resume[1]
    if not is_later and not is_normal_tail(segment, next_base, lost, segment.size):
        found.lost.append(f"{segment.path}: {lost.describe_bytes()}{lost.reason}")
