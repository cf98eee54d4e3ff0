"""Rows of reports of :class:`kafka_log.LogDirectory`, in types that Spark has."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.located_bytes import Limits
from kafka_codecs.columns.batches import BATCHES
from kafka_log import Partition
from kafka_log.read.output import Output
from kafka_log.read.scanning import OnLost
from kafka_log.read.selection import Selection
from kafka_log.segment.kernels import Engine
from kafka_log.segment.model import Lost
from kafka_log.segment.ranges import EVERYTHING, Range
from kafka_log.segment.times import MS_MAX
from pyspark_kafka_log.columns import UNSIGNED_64

BATCH_COLUMNS = (
    "topic",
    "partition",
    *(column.name for column in BATCHES.columns),
    "segment",
    "state",
)


@dataclass(frozen=True)
class ReportRequest:
    """The partitions and offsets of a report, and how to read them.

    ``related`` are other partitions with facts about these, such as the states of transactions. ``directories`` are log directories whose
    own files are checked; ``selects`` selects these findings by topic and partition (None: all). ``on_lost`` is called for each lost range, ``warn`` with a line for each damage.
    """

    partitions: tuple[Partition, ...]
    selection: Selection
    on_lost: OnLost
    warn: Callable[[str], None]
    offsets: Range = EVERYTHING
    related: tuple[Partition, ...] = ()
    directories: tuple[Path, ...] = ()
    selects: Callable[[tuple[str, int]], bool] | None = None
    engine: Engine = "auto"
    deep: bool = False
    limits: Limits = field(default_factory=Limits)

    @property
    def on_damage(self) -> Callable[[str], None]:
        """The function to call for damage: it raises, or warns."""
        from kafka_log.inspect.partition_headers import raise_damage

        return raise_damage if self.selection.raises else self.warn


Tables = Callable[[ReportRequest, tuple[str, ...]], pa.RecordBatchReader]
"""Function that returns the rows of a report, with all columns or at least the requested ones."""


def _batches(asked: ReportRequest, columns: tuple[str, ...]) -> pa.RecordBatchReader:
    """Return a stream with one row for each record batch of the request's partitions and offsets,
    with the given columns, from headers alone: no checksum is verified. Reading the stream raises
    CodecError for damage and unreadable files unless the mode accepts them; then the lost ranges go
    to ``asked.on_lost``. Offsets that no segment has do not, because planning has reported them.
    """
    from kafka_log.read.scanning import scan_batches

    def on_lost(path: Path, lost: Lost) -> None:
        """Report a lost range of a file or directory, but no offsets between segments."""
        if lost.start < lost.end or lost.after_offset is None:
            asked.on_lost(path, lost)

    wanted = Selection(
        offsets=asked.offsets,
        policy=asked.selection.policy,
        on_damage=asked.selection.on_damage,
    )
    return scan_batches(
        asked.partitions,
        columns,
        selection=wanted,
        limits=asked.limits,
        engine=asked.engine,
        on_lost=on_lost,
    )


def _stat(asked: ReportRequest, _: tuple[str, ...]) -> pa.RecordBatchReader:
    """Compute statistics of the request's offsets, one row for each of its partitions and, if its
    segments have several states, for each state, and return them as a stream of all columns. They
    come from headers and checksums, with ``asked.deep`` from every record. Damage and unreadable
    files are described in the rows, and raise no error.
    """
    from kafka_log.inspect.statistics.options import Asked as AskedOfStat
    from kafka_log.inspect.statistics.table import stat_table

    of = AskedOfStat.from_keywords(
        _now_ms(),
        deep=asked.deep,
        offsets=asked.offsets,
        policy=asked.selection.policy,
        engine=asked.engine,
    )
    return stat_table(asked.partitions, asked=of).to_reader()


def _segments(asked: ReportRequest, _: tuple[str, ...]) -> pa.RecordBatchReader:
    """Return a stream with one row for each segment file of the request's partitions, with all
    columns, from its name, its listed size and the time of its last write. The request's offsets
    are ignored. A file that is gone has a row too, with null as its time. Raise OSError if the
    system cannot tell another file's time.
    """
    from kafka_log.inspect.listing import segment_table

    return segment_table(asked.partitions).to_reader()


def _transactions(asked: ReportRequest, _: tuple[str, ...]) -> pa.RecordBatchReader:
    """Compute the transactions of the request's partitions that overlap its offsets, one row each,
    and return them as a stream of all columns. Read the coordinators' states from the partitions of
    ``asked.related``. Raise CodecError for damage and unreadable files, or warn of them if the mode
    accepts damage; raise UnreadableError in any mode if the file of a transaction marker cannot be
    read.
    """
    from kafka_log.inspect.transactions.coordinator_states import CoordinatorsOfClusters
    from kafka_log.inspect.transactions.hanging import MAX_TIMEOUT_MS, Clock
    from kafka_log.inspect.transactions.table import transaction_table

    return transaction_table(
        asked.partitions,
        CoordinatorsOfClusters(asked.related, asked.on_damage),
        Clock(_now_ms(), False, MAX_TIMEOUT_MS),
        asked.on_damage,
        wanted=Selection(offsets=asked.offsets),
    ).to_reader()


def _producers(asked: ReportRequest, _: tuple[str, ...]) -> pa.RecordBatchReader:
    """Compute one row for each partition of the request, producer id and epoch, and return them as
    a stream of all columns. They come from the batch headers in the request's offsets, whose
    checksums are not verified. Producers that only a producer snapshot has are left out if the
    offsets are limited. Raise CodecError for damage and unreadable files, or warn of them if the
    mode accepts damage.
    """
    from kafka_log.inspect.producers.table import producer_table

    wanted = Selection(offsets=asked.offsets)
    return producer_table(asked.partitions, asked.on_damage, wanted).to_reader()


def _keys(asked: ReportRequest, _: tuple[str, ...]) -> pa.RecordBatchReader:
    """Compute key statistics of the request's offsets, one row for each of its partitions, and
    return them as a stream of all columns. Damage and unreadable files are described in the rows,
    and raise no error.
    """
    from kafka_log.inspect.keys.table import key_table

    wanted = Selection(
        offsets=asked.offsets,
        isolation=asked.selection.isolation,
        deleted_records=asked.selection.deleted_records,
    )
    return key_table(asked.partitions, wanted).to_reader()


def _findings(asked: ReportRequest, _: tuple[str, ...]) -> pa.RecordBatchReader:
    """Return a row for each finding of ``check`` about the request's partitions and directories, as
    a stream. Findings about batches outside of its offsets are left out. Damage and unreadable
    files are findings; raise OSError only if a log directory may not be searched.
    """
    from kafka_log.inspect.check.table import check_table

    return check_table(
        asked.partitions,
        asked.directories,
        selects=asked.selects,
        deep=asked.deep,
        wanted=Selection(offsets=asked.offsets),
        engine=asked.engine,
    ).to_reader()


def _now_ms() -> int:
    """Return the present time in milliseconds since 1970."""
    return int(time.time() * 1000)


# ---------------------------------------------------------------- what there is


_TABLES: Mapping[str, Tables] = {
    "batches": _batches,
    "stat": _stat,
    "segments": _segments,
    "log_transactions": _transactions,
    "producers": _producers,
    "keys": _keys,
    "findings": _findings,
}


def _arrow_schema(report: str) -> pa.Schema:
    """Return the schema of a report, with all columns, before the conversion to Spark's types. Any
    name that is not another report's is taken as ``findings``.
    """
    if report == "batches":
        return Output(BATCHES, [], BATCH_COLUMNS, False).schema
    if report == "stat":
        from kafka_log.inspect.statistics.columns import stat_schema

        return stat_schema()
    if report == "segments":
        from kafka_log.inspect.listing import SEGMENTS

        return SEGMENTS
    if report == "log_transactions":
        from kafka_log.inspect.transactions.table import TRANSACTIONS

        return TRANSACTIONS
    if report == "producers":
        from kafka_log.inspect.producers.table import PRODUCERS

        return PRODUCERS
    if report == "keys":
        from kafka_log.inspect.keys.table import KEYS

        return KEYS
    from kafka_log.inspect.check.finding import FINDINGS

    return FINDINGS


def report_schema(report: str) -> pa.Schema:
    """Return the schema of a report in types that Spark has, all nullable."""
    return pa.schema([pa.field(f.name, _spark_type(f.type)) for f in _arrow_schema(report)])


def read_report(
    report: str, asked: ReportRequest, columns: tuple[str, ...], most: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a report with ``columns`` in that order, in batches of at most ``most``
    rows. Timestamps that do not fit in microseconds become null. In batches, log_transactions and
    producers raise CodecError for damage and unreadable files unless the mode accepts it;
    log_transactions in any mode if a marker's file cannot be read. Others describe damage in rows;
    segments raises OSError if the system cannot tell a file's time.
    """
    every = report_schema(report)
    schema = pa.schema([every.field(name) for name in columns])
    for batch in _TABLES[report](asked, columns):
        for start in range(0, batch.num_rows, most):
            part = batch.slice(start, most)
            arrays = [_cast_array(part.column(f.name), f.type) for f in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


_PLAIN = {
    **dict.fromkeys((pa.int8(), pa.int16(), pa.uint8(), pa.uint16()), pa.int32()),
    pa.uint32(): pa.int64(),
    UNSIGNED_64[0]: UNSIGNED_64[1],
}


def _spark_type(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type that Spark uses for a column of a report: timestamps in microseconds
    and UTC, the value type of dictionaries, int32 for integers of 8 and 16 bits, int64 for unsigned
    32 bits, a decimal for unsigned 64 bits. Return other types unchanged.
    """
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC")
    if pa.types.is_dictionary(kind):
        return _spark_type(kind.value_type)
    return _PLAIN.get(kind, kind)


def _cast_array(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array cast to another type; the array itself if it has that type. Timestamps in
    milliseconds that do not fit in microseconds become null.
    """
    if pa.types.is_timestamp(kind) and values.type.unit == "ms":
        numbers = values.cast(pa.int64())
        fits = pc.and_(pc.greater_equal(numbers, -MS_MAX), pc.less_equal(numbers, MS_MAX))
        values = pc.if_else(fits, values, pa.scalar(None, values.type))
    return values if values.type == kind else values.cast(kind)
