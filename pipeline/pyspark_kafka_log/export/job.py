"""Run an export, from planning to commit."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from codecgen.runtime.located_bytes import Limits
from kafka_log.cli.interruption import describe_on_interrupt
from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.log_start import LogStarts
from kafka_log.read.changing_files import is_gone
from kafka_log.read.isolation import PartitionFilters
from kafka_log.read.parquet import Compression
from kafka_log.read.plan import Split
from kafka_log.read.progress import LogEnds as LogEnds
from kafka_log.read.progress import Position
from kafka_log.segment.model import describe_lost
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.ranges import EVERYTHING
from kafka_log.segment.remote_errors import as_os_error
from kafka_log.segment.urls import is_url
from kafka_log.write.staged_output import OutputError, refuse_inside
from pyspark_kafka_log.columns import COLUMNS
from pyspark_kafka_log.export.locations import Location
from pyspark_kafka_log.export.state import DataLossError, Ends, ExportError, State
from pyspark_kafka_log.export.writing import PARTITION_COLUMNS, File, Job, TaskResult, read_columns
from pyspark_kafka_log.options import EARLIEST, Options, default_columns
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.filters import EVERY_ROW, RowRanges, intersect_ranges
from pyspark_kafka_log.splits.logs import Log, find_paths
from pyspark_kafka_log.splits.offset_ranges import list_losses, resolve_offsets
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.splits.query_logs import QueryLogs

BATCH_ROWS = 65_536

PARTS = {"columns": "columns", "filters": "filters", "partition_by": "partitions"}
"""Parts of a definition that must be equal in all exports to a table, in words."""

MAYBE_ADDED = "the rows may have been added; run the export again: it adds those that are missing, and none twice"
"""What an interruption says once the commit has begun."""


@dataclass(frozen=True)
class Exported:
    """The result of an export.

    ``first`` and ``ends`` are the offset ranges read of each partition. ``missed`` describes records that were deleted or truncated before they were
    exported. ``damaged`` counts rows of damaged batches, ``lost`` names the first places that could not be read whole.
    """

    target: str
    rows: int
    files: int
    byte_count: int
    first: Mapping[tuple[str, int], int]
    ends: Mapping[tuple[str, int], int]
    missed: tuple[str, ...] = ()
    damaged: int = 0
    lost_bytes: int = 0
    lost_places: int = 0
    lost: tuple[str, ...] = ()


Runner = Callable[[Sequence[tuple[Split, ...]], Job], Iterable[TaskResult]]
"""Function that writes the files of tasks, and yields the results of :func:`~pyspark_kafka_log.export.writing.write_task`."""


class Target(Protocol):
    """A table to which exports are added, each as a whole or not at all."""

    name: str
    in_files: bool
    """Whether partition columns are in the files too, not only in the names of directories."""

    @property
    def secrets(self) -> Mapping[str, Any]:
        """The options of the store or catalog, whose secrets no message may show."""

    @property
    def directory(self) -> Path | None:
        """The local directory of the table; None in an object store, or if a catalog says where it lies."""

    def lock(self) -> AbstractContextManager[None]:
        """Return a context that keeps other processes from writing, if commits alone do not. Raises :class:`~kafka_log.write.output_lock.OutputLockedError`
        while another one writes.
        """

    def state(self) -> State | None:
        """Return the state of the last export, None for a table that does not exist. Raise :class:`ExportError` for a table that no export has made."""

    def begin(self, job_id: str, schema: pa.Schema, partition_by: Sequence[str]) -> Location:
        """Return the location where tasks of a job write files of ``schema``."""

    def commit(self, job: Job, files: Sequence[File], before: State | None, after: State) -> None:
        """Add files. Raise :class:`ExportError`, and add none, if another export was faster."""

    def clean(self, job_id: str) -> None:
        """Remove files of a job that are not part of the table."""


@contextmanager
def _table_errors(target: Target) -> Iterator[None]:
    """Raise what a table's library, catalog or store raises as an ExportError that names the table
    and shows no secrets. ExportError, errors of outputs and of local files pass.
    """
    try:
        yield
    except (ExportError, OutputError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        said = as_os_error(error, target.name, target.secrets).strerror
        raise ExportError(target.name, said or type(error).__name__) from error


def run_export(
    runner: Runner,
    options: Options,
    target: Target,
    partition_by: Sequence[str],
    *,
    query: RowRanges = EVERY_ROW,
    parallelism: int | None = None,
    fail_on_data_loss: bool = True,
    compression: Compression = "zstd",
) -> Exported:
    """Read new records by tasks of ``runner``, commit their files to ``target``, and return the
    totals. Commit nothing if no files were written; remove files that are not committed. Raise
    ExportError for unsuitable options, or if earlier exports had other columns, filters or
    partition columns; DataLossError if records are gone and ``fail_on_data_loss`` is set;
    OutputError for a table inside of a log that is read, or of a broker's log directory, with which
    no broker would start; Interrupted for Ctrl-C from the first task on, which says whether rows
    were added. Errors of the table's library, catalog or store become ExportError; those
    of planning (such as CodecError for damage), of tasks, and of local files pass.
    """
    columns = default_columns(options)
    _check_options(target, options, columns, partition_by)
    made = _export_definition(options, query, columns, partition_by)
    if target.directory is not None:
        refuse_inside(target.directory, [p for p in find_paths(options) if not is_url(p)])
    with target.lock():
        with _table_errors(target):
            before = target.state()
        if before is not None and before.definition != made:
            wrong = sorted(name for name in made if before.definition.get(name) != made[name])
            raise ExportError(
                target.name,
                f"earlier exports had other {' and '.join(PARTS[name] for name in wrong)}: choose another table, or {_advise(before.definition, wrong)}",
            )
        seen = QueryLogs()
        logs = seen.select(options)
        known = {} if before is None else before.ends
        starts, missed = _start_offsets(logs, known, options)
        asked = replace(options, starting_offsets=starts, fail_on_data_loss=False)  # asked here
        missed += _list_losses(logs, asked, query, seen)
        if missed and fail_on_data_loss:
            raise DataLossError(target.name, missed)
        first = {key: at for key, at in starts.items() if at != EARLIEST}
        tasks = plan(asked, query, parallelism, seen)
        scan = Scan(
            columns=read_columns(columns, options.selection.damage),
            policy=options.selection.policy,
            on_damage=options.selection.damage,
            batch_rows=BATCH_ROWS,
            limits=Limits(decompressed=options.max_decompressed),
            engine=options.engine,
        )
        job_id = uuid.uuid4().hex[:12]
        job = Job(
            job_id,
            Location(),
            columns,
            tuple(partition_by),
            target.in_files,
            scan,
            options,
            compression,
        )
        total = TaskResult()
        if tasks:
            with _table_errors(target):
                place = target.begin(job_id, job.schema, partition_by)
            job = replace(job, place=place)
            outcome = "nothing was added"
            with describe_on_interrupt(lambda: outcome):
                try:
                    for result in runner(tasks, job):
                        total.add(result)
                    if total.files:
                        after = (before or State(0, {}, made)).advance(total.next_offsets)
                        outcome = MAYBE_ADDED
                        with _table_errors(target):
                            target.commit(job, total.files, before, after)
                finally:
                    with _table_errors(target):
                        target.clean(job_id)  # of what is not part of it
    return Exported(
        target.name,
        sum(file.rows for file in total.files),
        len(total.files),
        sum(file.size for file in total.files),
        first,
        {**known, **total.next_offsets},
        tuple(missed),
        total.damaged,
        total.lost_bytes,
        total.lost_places,
        tuple(total.lost),
    )


def _start_offsets(
    logs: Sequence[Log], known: Ends, options: Options
) -> tuple[dict[tuple[str, int], int], list[str]]:
    """Return the first offset to read of each partition, and messages for partitions whose records
    are gone. A partition starts at EARLIEST if it is new, else at its offset in ``known``; but at
    its first offset if that is higher, and at its end if that is lower. A log whose first file name
    has no canonical form is not checked. Raise CodecError for damage unless the mode accepts it,
    UnreadableError if a file exists but cannot be read.
    """
    starts: dict[tuple[str, int], int] = {}
    missed: list[str] = []
    of_logs, ends = LogStarts(), LogEnds(options.selection, options.engine)
    for log in logs:
        at = starts[log.key] = known.get(log.key, EARLIEST)
        if at == EARLIEST or not log.segments[0].has_canonical_name:
            continue
        name = f"{log.topic}-{log.partition}"
        first = max(log.segments[0].base_offset, of_logs.get(log) or 0)
        end = _log_end(ends, log)
        if at < first:
            missed.append(f"{name} begins at offset {first}: {at} to {first - 1} are gone")
            starts[log.key] = first
        elif end is not None and end.offset < at:
            missed.append(
                f"{name} ends before offset {end.offset}, and was exported up to {at - 1}"
            )
            starts[log.key] = end.offset
    return starts, missed


def _list_losses(
    logs: Sequence[Log], options: Options, query: RowRanges, seen: QueryLogs
) -> Iterator[str]:
    """Yield a message for each loss in the offsets that options and filters select
    (:func:`list_losses`), and for damage that leaves open which records are committed. Take
    transactions from ``seen``, and add those that are read. Raise CodecError for damage in
    transactions, or before an ending time of a log with losses, unless the mode accepts it.
    """
    starts, read_broker, of_view = seen.starts, cache(read_broker_files), options.view is not None
    filters = PartitionFilters(
        options.planning, options.engine, of_view=of_view, starts=starts, known=seen.transactions
    )
    for log in logs:
        yield from starmap(describe_lost, filters.find_transaction_losses(log))
        if list_losses(log, EVERYTHING, options, starts, read_broker):
            offsets = intersect_ranges(resolve_offsets(log, options, starts, {}), query.offsets)
            yield from list_losses(log, offsets, options, starts, read_broker)


def _log_end(ends: LogEnds, log: Log) -> Position | None:
    """Return the end of a log as a Position; None if its directory or a listed file is gone, which
    the task of that file reports. Raise CodecError for damage unless the mode accepts it,
    UnreadableError if a file exists but cannot be read.
    """
    try:
        return ends.find_end(log.key, log)
    except (FileNotFoundError, UnreadableError) as error:
        if is_gone(error):
            return None
        raise


def _check_options(
    target: Target, options: Options, columns: Sequence[str], partition_by: Sequence[str]
) -> None:
    """Raise ExportError for options that an export cannot take: a view or report, startingOffsets,
    ignoreCorruptFiles, ignoreMissingFiles, several copies of a partition, an unknown column, an
    unknown or repeated partition column. If the target's files contain the partition columns, also
    raise it if one (``timestamp`` for ``date``) is not among the columns; if they do not, if no
    other columns are left for the files.
    """
    wrong = [name for name in partition_by if name not in PARTITION_COLUMNS]
    if wrong:
        raise ExportError(
            target.name,
            f"unknown partition column {wrong[0]!r}; known: {', '.join(PARTITION_COLUMNS)}",
        )
    twice = [name for name in partition_by if partition_by.count(name) > 1]
    if twice:
        raise ExportError(
            target.name, f"the partition column {twice[0]} is named twice: name each once"
        )
    if options.view is not None or options.report is not None:
        raise ExportError(
            target.name,
            "an export with Spark has no option view, only records: for a view, use kafka-log export without Spark",
        )
    unknown = [name for name in columns if name not in COLUMNS]
    if unknown:
        raise ExportError(
            target.name, f"there is no column {unknown[0]!r}; known: {', '.join(COLUMNS)}"
        )
    if options.starting_offsets is not None:
        raise ExportError(
            target.name, "an export continues where the last one ended: leave out startingOffsets"
        )
    if options.files.ignore_corrupt:
        raise ExportError(
            target.name,
            "an export continues where the last one ended, so it cannot skip the rest of a file: use mode, not ignoreCorruptFiles",
        )
    if options.files.ignore_missing:
        raise ExportError(
            target.name,
            "an export continues where the last one ended, so it cannot skip files that are gone when a task reads them:"
            " leave out ignoreMissingFiles",
        )
    if options.selection.replicas == "keep":
        raise ExportError(
            target.name,
            "an export keeps one next offset for each partition, so it cannot read several copies of one: set replicas to newest",
        )
    if target.in_files:
        for name in partition_by:
            source = "timestamp" if name == "date" else name
            if source not in columns:
                raise ExportError(
                    target.name, f"the partition column {name} needs {source} among the columns"
                )
    elif not set(columns) - set(partition_by):
        raise ExportError(
            target.name,
            "all columns are partition columns, so that none is left for the files: partition by fewer",
        )


def _export_definition(
    options: Options, query: RowRanges, columns: Sequence[str], partition_by: Sequence[str]
) -> dict[str, Any]:
    """Return what must be equal in all exports to a table, as plain JSON values: columns, partition
    columns, and filters that are set. Leave out the handling of damage, which may change.
    """
    rows = options.selection.to_keywords()
    ends: Any = options.ending_offsets
    if isinstance(ends, Mapping):
        ends = {f"{topic}-{number}": end for (topic, number), end in sorted(ends.items())}
    for name in ("policy", "on_damage"):
        rows.pop(name, None)
    filters = rows | {
        "offsets": query.offsets,
        "timestamps": query.timestamps,
        "ending_offsets": ends,
    }
    plain: dict[str, Any] = json.loads(
        json.dumps(
            {
                "columns": list(columns),
                "partition_by": list(partition_by),
                "filters": {k: v for k, v in filters.items() if v not in (None, (None, None))},
            },
            default=str,
        )
    )
    return plain


def _advise(made: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the advice to give the options of the earlier exports."""
    return "give " + ", ".join(f"{name} {json.dumps(made.get(name))}" for name in names)
