"""Records as Arrow in the columns of Spark, split by split: what a data source of Spark reads, and anybody else may.

All bytes are decoded by :class:`kafka_log.segment.columnar.Scanner`, as everywhere; its rows become those of :mod:`.spark_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_log.logs.partitions import Segment
from kafka_log.read.changing_files import is_gone
from kafka_log.read.columns import (
    COLUMNS,
    DEFAULT_COLUMNS,
    METADATA_COLUMNS,
    Unit,
    schema,
)
from kafka_log.read.losses import (
    OnLost,
    OnRead,
    RestOfFile,
    is_corrupt,
    tell_dropped,
    tell_lost,
    within_split,
)
from kafka_log.read.selection import RowFilters, Selection, changed
from kafka_log.segment.kernels import ENGINES, Engine, use_kernels
from kafka_log.segment.model import Lost, OnDamage, Policy
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.row_selection import RowSelection

if TYPE_CHECKING:
    from kafka_log.read.topic_views import TopicView
    from kafka_log.segment.columnar import Scanner

__all__ = [
    "COLUMNS",
    "DEFAULT_COLUMNS",
    "METADATA_COLUMNS",
    "Scan",
    "Split",
    "read_split",
    "read_splits",
    "record_batches",
    "schema",
]

LOOKS = 3
"""How often a file that is gone is looked for."""

ENOUGH = 4
"""Batches with this part of the rows that one may have are not joined with more: the copy would cost more than it saves."""

MAX_BYTES = 1 << 30
"""A column holds less than twice this many bytes, so that 32-bit offsets always do."""


@dataclass(frozen=True, slots=True)
class Split:
    """What one pass reads: bytes of a segment from the first byte of a batch (``start``) to ``stop`` (None: the end),
    and of these the ``rows`` that are wanted."""

    segment: Segment
    start: int = 0
    stop: int | None = None
    rows: RowSelection = field(default_factory=lambda: RowSelection(control_records=False))
    next_offset: int | None = None
    """The first offset of the next segment; None where nobody says it."""

    @property
    def size(self) -> int:
        """Bytes to read, at most."""
        return (self.segment.size if self.stop is None else self.stop) - self.start

    @property
    def reaches(self) -> int | None:
        """The offset that its file comes as far as: where it does not, and is shorter than it was, rows are missing. None where nobody has
        settled which bytes are read."""
        ends = self.rows.offsets[1], self.segment.offsets[1], self.next_offset
        known = (end for end in ends if end is not None)
        return None if self.stop is None else min(known, default=MAX_OFFSET + 1)


Located = Callable[[Split], Split | None]
"""Says where a split lies by now; None: it is left out."""


@dataclass(frozen=True)
class Scan:
    """How splits are read. See :func:`record_batches`."""

    columns: tuple[str, ...] = DEFAULT_COLUMNS
    policy: Policy = Policy.KAFKA
    on_damage: OnDamage = "raise"
    batch_rows: int = 16_384
    batch_bytes: int = 64 << 20
    limits: Limits = field(default_factory=Limits)
    engine: Engine = "auto"
    timestamp_unit: Unit = "us"
    view: str | None = None
    show_secrets: bool = False
    ends_corrupt_files: bool = False
    """Whether damage that would be raised ends its file: the rows before it stay, and the rest is lost."""

    def __post_init__(self) -> None:
        if self.batch_rows < 1:
            raise ValueError(f"batch_rows is {self.batch_rows}: it must be at least 1")
        if not 1 <= self.batch_bytes <= MAX_BYTES:
            raise ValueError(f"batch_bytes is {self.batch_bytes}: it must be in 1..{MAX_BYTES}")
        if self.engine not in ENGINES:
            raise ValueError(f"no engine is called {self.engine!r}; known: {', '.join(ENGINES)}")
        if self.policy is Policy.STRICT and self.on_damage != "raise":
            raise ValueError(
                "the policy strict stops at the first problem: on_damage must be raise"
            )
        if self.policy is Policy.SALVAGE and self.on_damage == "raise":
            raise ValueError("the policy salvage goes on after damage: on_damage must not be raise")
        _ = self.schema  # an unknown column is an error here, not where the first row is

    @cached_property
    def schema(self) -> pa.Schema:
        """What :func:`read_split` gives."""
        if self.view is not None:
            return self.topic_view.plain_schema(self.timestamp_unit)
        return schema(self.columns, timestamp_unit=self.timestamp_unit)

    @cached_property
    def topic_view(self) -> TopicView:
        """The view of one of Kafka's own topics that is read in the place of records."""
        from kafka_log.read.topic_views import topic_view  # codecs of all that it has

        assert self.view is not None
        return topic_view(self.view, self.columns, show_secrets=self.show_secrets)


def record_batches(
    segments: Iterable[Segment | Split],
    columns: Iterable[str] = DEFAULT_COLUMNS,
    policy: Policy | str | None = None,
    batch_rows: int = 16_384,
    *,
    selection: Selection | None = None,
    batch_bytes: int = 64 << 20,
    limits: Limits | None = None,
    engine: Engine = "auto",
    timestamp_unit: Unit = "us",
    **filters: Unpack[RowFilters],
) -> Iterator[pa.RecordBatch]:
    """The records of segments, in their order, as Arrow.

    A batch that comes out has at most ``batch_rows`` rows, and about ``batch_bytes`` bytes at most unless a single record has
    more. The ``selection``, or its keywords, are as of :func:`kafka_log.scan`, but for ``isolation``, for which whole partitions are needed;
    a :class:`Split` says itself which rows are wanted of it. ``engine`` is ``construct`` (the reference codecs), ``arrow`` (the kernels,
    for all that they can give), or ``auto``: the kernels where that is faster. Without numba readers by NumPy take their place.

    Raises :class:`CodecError` for damage, with file, byte and field, when ``on_damage`` is ``raise``.
    """
    wanted = changed(selection, policy, filters)
    if wanted.isolation == "read_committed":
        raise ValueError("isolation is of whole partitions: segments alone do not say it")
    scan = Scan(
        columns=tuple(columns),
        policy=wanted.policy,
        on_damage=wanted.damage,
        batch_rows=batch_rows,
        batch_bytes=batch_bytes,
        limits=limits or Limits(),
        engine=engine,
        timestamp_unit=timestamp_unit,
    )
    rows = wanted.rows()
    for item in segments:
        yield from read_split(item if isinstance(item, Split) else Split(item, rows=rows), scan)


def read_splits(
    parts: Iterable[Split],
    scan: Scan,
    on_lost: OnLost | None = None,
    on_read: OnRead | None = None,
    located: Located | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of several splits. Whether kernels read is settled by all of their bytes, and what small files give comes together: batches
    of a quarter of ``batch_rows`` rows or more, as far as there are so many. ``on_lost`` is called with a path and a Lost for each run of bytes that is
    passed over, and each batch that is dropped, where damage is no error; ``on_read`` for each file with what was read of it. ``located`` says where a split
    lies when its turn comes, as files may move meanwhile; None: it is left out."""
    from kafka_log.read.batch_sizes import held_bytes  # numpy is needed from here on

    parts = tuple(parts)
    kernels = use_kernels(sum(part.size for part in parts), scan.engine)
    settled = replace(scan, engine="arrow" if kernels else "construct")
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for part in parts:
        for batch in _read_where_it_lies(part, settled, on_lost, on_read, located):
            more = held_bytes(batch)
            if held and (rows + batch.num_rows > scan.batch_rows or size + more > scan.batch_bytes):
                yield _joined(held)
                held, rows, size = [], 0, 0
            held.append(batch)
            rows += batch.num_rows
            size += more
            if rows >= scan.batch_rows // ENOUGH:
                yield _joined(held)
                held, rows, size = [], 0, 0
    if held:
        yield _joined(held)


def _read_where_it_lies(
    part: Split,
    scan: Scan,
    on_lost: OnLost | None,
    on_read: OnRead | None,
    located: Located | None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a split, whose file may move once more between the look and the reading."""
    if located is None:
        yield from read_split(part, scan, on_lost, on_read)
        return
    for left in reversed(range(LOOKS)):
        begun = False
        try:
            if (found := located(part)) is not None:
                for batch in read_split(found, scan, on_lost, on_read):
                    begun = True
                    yield batch
            return
        except UnreadableError as error:
            if begun or not left or not is_gone(error):
                raise


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def read_split(
    part: Split, scan: Scan, on_lost: OnLost | None = None, on_read: OnRead | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of one split. ``on_lost`` and ``on_read`` are as of :func:`read_splits`."""

    def lose(path: Path, lost: Lost) -> None:
        if on_lost is not None:
            on_lost(path, within_split(lost, part))

    if scan.view is not None:
        view = scan.topic_view
        scanner = _scanner(part, scan, view.needed)
        batches = view.batches(
            iter(scanner),
            part.segment,
            scan.schema,
            strict=scan.policy is Policy.STRICT,
            keep=scan.on_damage != "raise",
            limits=scan.limits,
            size=part.size,
            engine=scan.engine,
        )
    else:
        from kafka_log.read.spark_rows import SparkRows  # numpy is needed from here on

        rows = SparkRows(part.segment, scan)
        scanner = _scanner(part, scan, rows.needed)
        batches = rows.of(scanner, lose)
    if on_lost is not None and scan.on_damage == "drop":
        tell_dropped(scanner, lose)
    rest = RestOfFile(scanner) if scan.ends_corrupt_files else None
    try:
        yield from batches
    except CodecError as error:
        if rest is None or not is_corrupt(error):
            raise
        lose(part.segment.path, rest.lost(error, part.start + part.size))
        return
    finally:
        if on_read is not None:
            on_read(scanner.bytes_read, scanner.batches_skipped)
    tell_lost(scanner, lose)


def _scanner(part: Split, scan: Scan, columns: tuple[str, ...]) -> Scanner:
    from kafka_log.segment.columnar import Scanner

    scanner = Scanner(
        part.segment.path,
        columns,
        scan.policy,
        selection=part.rows,
        on_damage=scan.on_damage,
        limits=scan.limits,
        engine="arrow" if use_kernels(part.size, scan.engine) else "construct",
        start=part.start,
        stop=part.stop,
        tail=part.segment.tail,
        size=part.segment.size,
        reaches=part.reaches,
        next_base=part.next_offset,
    )
    scanner.max_bytes = scan.batch_bytes
    return scanner
