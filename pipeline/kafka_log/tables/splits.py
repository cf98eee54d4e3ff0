"""Records as Arrow: a stream of ``pyarrow.RecordBatch`` from segments, in bounded memory.

:func:`record_batches` is the way in. All bytes are decoded below :func:`read_split`, split by split: a faster
codec takes the place of that one function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from codecgen.runtime.located_bytes import Limits
from kafka_log.disk.directory import Segment
from kafka_log.segment.kernels import ENGINES, use_kernels
from kafka_log.segment.model import Policy
from kafka_log.segment.reader import SegmentReader
from kafka_log.tables.columns import (
    COLUMNS,
    DEFAULT_COLUMNS,
    METADATA_COLUMNS,
    TIMESTAMP,
    Row,
    Unit,
    fits,
    schema,
)
from kafka_log.tables.row_filter import RowFilter, in_batches

if TYPE_CHECKING:
    from kafka_log.tables.topic_views import TopicView

__all__ = [
    "COLUMNS",
    "DEFAULT_COLUMNS",
    "METADATA_COLUMNS",
    "OnDamage",
    "Scan",
    "Split",
    "read_split",
    "record_batches",
    "schema",
]

MAX_BYTES = 1 << 30
"""A column holds less than twice this many bytes, so that 32-bit offsets always do."""


class OnDamage(StrEnum):
    """What to do about bytes that are not what they should be."""

    RAISE = "raise"
    """The first damage is raised, with file, byte and field."""
    DROP = "drop"
    """A damaged batch gives no rows, nor does a record that has no place in the columns."""
    KEEP = "keep"
    """What can be read stays; the column ``problem`` says what was wrong, also where nothing could be read."""


@dataclass(frozen=True, slots=True)
class Split:
    """What one pass reads: bytes of a segment from the first byte of a batch (``start``) to ``stop`` (None: the end),
    and of these the records with offsets from ``first_offset`` up to, but not with, ``end_offset``.

    ``aborted`` are transactions to leave out: producer id, first offset, last offset.
    """

    segment: Segment
    start: int = 0
    stop: int | None = None
    first_offset: int | None = None
    end_offset: int | None = None
    aborted: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Scan:
    """How splits are read, and what of them. See :func:`record_batches`."""

    columns: tuple[str, ...] = DEFAULT_COLUMNS
    policy: Policy = Policy.KAFKA
    on_damage: OnDamage = OnDamage.RAISE
    control_records: bool = False
    batch_rows: int = 16_384
    batch_bytes: int = 64 << 20
    limits: Limits = field(default_factory=Limits)
    engine: str = "auto"
    timestamp_unit: Unit = "us"
    view: str | None = None

    def __post_init__(self) -> None:
        if self.batch_rows < 1:
            raise ValueError(f"batch_rows is {self.batch_rows}: it must be at least 1")
        if not 1 <= self.batch_bytes <= MAX_BYTES:
            raise ValueError(f"batch_bytes is {self.batch_bytes}: it must be in 1..{MAX_BYTES}")
        if self.engine not in ENGINES:
            raise ValueError(f"no engine is called {self.engine!r}; known: {', '.join(ENGINES)}")
        if self.policy is Policy.STRICT and self.on_damage is not OnDamage.RAISE:
            raise ValueError(
                "the policy strict stops at the first problem: on_damage must be raise"
            )
        if self.policy is Policy.SALVAGE and self.on_damage is OnDamage.RAISE:
            raise ValueError("the policy salvage goes on after damage: on_damage must not be raise")
        _ = self.schema  # an unknown column is an error here, not where the first row is

    def overflows(self, timestamp: int) -> bool:
        """Whether a timestamp in milliseconds has no place in the column."""
        return TIMESTAMP in self.columns and not fits(timestamp, self.timestamp_unit)

    @cached_property
    def schema(self) -> pa.Schema:
        """What :func:`read_split` gives."""
        if self.view is not None:
            return self.topic_view.plain_schema(self.timestamp_unit)
        return schema(self.columns, timestamp_unit=self.timestamp_unit)

    @cached_property
    def topic_view(self) -> TopicView:
        """The view of one of Kafka's own topics that is read in the place of records."""
        from kafka_log.tables.topic_views import topic_view  # codecs of all that it has

        assert self.view is not None
        return topic_view(self.view, self.columns)


def record_batches(
    segments: Iterable[Segment | Split],
    columns: Iterable[str] = DEFAULT_COLUMNS,
    policy: Policy | str = Policy.KAFKA,
    batch_rows: int = 16_384,
    *,
    on_damage: OnDamage | str = OnDamage.RAISE,
    control_records: bool = False,
    batch_bytes: int = 64 << 20,
    limits: Limits | None = None,
    engine: str = "auto",
    timestamp_unit: Unit = "us",
) -> Iterator[pa.RecordBatch]:
    """The records of segments, in their order, as Arrow.

    A batch that comes out has at most ``batch_rows`` rows, and about ``batch_bytes`` bytes at most unless a single record has
    more. Memory holds one of these and one batch of the log. Control records (transaction markers and the like) are left
    out unless ``control_records``. ``engine`` is ``construct`` (the reference codecs), ``arrow`` (the kernels, for all
    that they can give), or ``auto``: the kernels where that is faster. Without numba readers by NumPy take their place.

    Raises :class:`CodecError` for damage, with file, byte and field, when ``on_damage`` is ``raise``.
    """
    scan = Scan(
        columns=tuple(columns),
        policy=Policy(policy),
        on_damage=OnDamage(on_damage),
        control_records=control_records,
        batch_rows=batch_rows,
        batch_bytes=batch_bytes,
        limits=limits or Limits(),
        engine=engine,
        timestamp_unit=timestamp_unit,
    )
    for item in segments:
        yield from read_split(item if isinstance(item, Split) else Split(item), scan)


def takes(part: Split, scan: Scan) -> bool:
    """Whether the kernels are to read a split. The rows are the same."""
    size = (part.segment.size if part.stop is None else part.stop) - part.start
    return use_kernels(size, scan.engine)


def read_split(part: Split, scan: Scan) -> Iterator[pa.RecordBatch]:
    """The rows of one split. What decodes bytes is below here alone."""
    if scan.view is not None:
        return _of_view(part, scan)
    if takes(part, scan):
        from kafka_log.tables import columnar_splits  # numpy is needed from here on

        return columnar_splits.read(part, scan, _by_reference)
    return _by_reference(part, scan)


def _of_view(part: Split, scan: Scan) -> Iterator[pa.RecordBatch]:
    """The rows of a view, from the keys and values of a split."""
    view = scan.topic_view
    records = read_split(part, replace(scan, view=None, columns=view.needed))
    return view.batches(
        records,
        part.segment,
        scan.schema,
        strict=scan.policy is Policy.STRICT,
        keep=scan.on_damage is not OnDamage.RAISE,
        limits=scan.limits,
        size=(part.segment.size if part.stop is None else part.stop) - part.start,
        engine=scan.engine,
    )


def _by_reference(part: Split, scan: Scan) -> Iterator[pa.RecordBatch]:
    """The rows of one split, by the Construct codecs."""
    return in_batches(_rows(part, scan), part, scan)


def _rows(part: Split, scan: Scan) -> Iterator[Row]:
    reader = SegmentReader(
        part.segment.path,
        policy=scan.policy,
        limits=scan.limits,
        start=part.start,
        stop=part.stop,
        tail=part.segment.tail,
        size=part.segment.size,
    )
    row_filter = RowFilter(part, scan)
    with row_filter.reading(reader):
        for batch in reader:
            yield from row_filter.rows(batch)
            if row_filter.done:
                return
    yield from row_filter.end(reader.end)
