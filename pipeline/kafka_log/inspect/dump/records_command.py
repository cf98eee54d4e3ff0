"""``kafka-log dump`` without ``--batches``: print one row per record, also those that are appended."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.located_bytes import Limits
from codecgen.runtime.nouns import count_noun
from kafka_codecs.columns.records import RECORDS
from kafka_log.cli.common import (
    GOOD,
    PROBLEMS,
    list_partitions,
    may_get_partitions,
    progress_of,
    screen_width,
    warn_of_deleted_records,
)
from kafka_log.cli.damage import DamageReporter, print_damage
from kafka_log.cli.interruption import StopOnSignal
from kafka_log.cli.messages import print_message
from kafka_log.cli.output import binary_stdout
from kafka_log.cli.selection import selection_of, warn_of_no_match
from kafka_log.inspect.dump import WIDTH
from kafka_log.inspect.dump.decoding import KeyValueDecoder, KeyValueFormats
from kafka_log.inspect.dump.rows import (
    DEFAULT_COLUMNS,
    PROBLEM_COLUMNS,
    DumpRows,
    null_missing_timestamps,
    split_at_problems,
)
from kafka_log.inspect.dump.search import RecordSearch
from kafka_log.logs.discovery import survey
from kafka_log.logs.offset_ranges import widest_offsets
from kafka_log.logs.replicas import read_end_offset
from kafka_log.logs.tiers import merge_tiered_segments
from kafka_log.read.following import PartitionFollower
from kafka_log.read.output import Output, record_columns
from kafka_log.read.scanning import scan
from kafka_log.read.schemas import PARTS
from kafka_log.read.schemas.registry import SchemaRegistry
from kafka_log.read.schemas.sources import read_registry
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.kernels import KERNEL_MIN_BYTES, use_kernels
from kafka_log.segment.ranges import EVERYTHING, MAX_OFFSET
from kafka_log.segment.urls import is_url
from kafka_log.text.columns import format_bytes
from kafka_log.text.json_values import convert_bytes, format_json
from kafka_log.text.output import ROW_WRITERS, JsonRowWriter, RowWriter
from kafka_log.text.text_rows import TextRowWriter

if TYPE_CHECKING:
    from kafka_log.logs.partitions import Partition
    from kafka_log.read.selection import Selection

_GROWTH = 8
"""Factor by which the range of ``--last`` grows if it has too few records."""

_MAX_WIDTH = 1 << 30
"""Upper limit of ``--width``."""

_POLL_S, _MAX_POLL_S, _POLL_FACTOR = 0.2, 10.0, 4
"""Seconds between two looks of ``--follow``: at least and at most, and as a multiple of the time that a look takes."""


def dump_records(options: argparse.Namespace, partitions: Sequence[Partition]) -> int:
    """Print one row per selected record in ``--format``, with damage between the rows of text or
    else on stderr, and failures to decode on stderr. With ``--follow`` go on with appended records,
    until Ctrl-C, SIGTERM or ``-n``. Return 1 if a consumer would reject a batch, bytes are lost, a
    control record, or a key or value with a schema, cannot be decoded, or a file or directory cannot
    be read; else 0, also after other failures to decode. Raise ValueError for
    an unknown column or decoding format, an invalid ``--grep`` or ``--where``, one that cannot be
    computed for a row, invalid ``--schemas``, and options that exclude each other; ImportError if
    DuckDB (``--where``), ``--engine arrow`` or the package of a schema format is not installed;
    DirectoryError if ``--schemas`` is missing; with ``--follow`` DirectoryError or NotFoundError if
    all partitions are gone.
    """
    selection, partitions = selection_of(options), merge_tiered_segments(partitions)
    _reject_combinations(options, selection)
    warn_of_deleted_records(partitions, selection)
    printer = _RecordPrinter(options, partitions, selection)
    size = sum(segment.size for p in partitions for segment in p.segments)
    engine = options.engine
    if engine == "auto" and not use_kernels(size, engine, KERNEL_MIN_BYTES):
        engine = "construct"
    limits = Limits(decompressed=options.max_decompressed, elements=options.max_elements)
    if options.follow:
        reporter = DamageReporter(printer.print_line, lambda size: None)
        with StopOnSignal() as stop:
            _follow(options, partitions, selection, printer, reporter, stop, limits)
        return printer.close(reporter.found)

    def describe_progress() -> str:
        """Describe what was printed before an interruption."""
        return f"at least {count_noun(printer.count, 'record is', 'records are', spec=',')} printed"

    with progress_of(
        "dump", size, shown=not sys.stdout.isatty(), describe_done=describe_progress
    ) as advance:
        reporter = DamageReporter(printer.print_line, advance)
        for partition in partitions:
            needed = printer.begin(partition)

            def read(
                selected: Selection,
                watch: DamageReporter,
                partition: Partition = partition,
                needed: Sequence[str] = needed,
            ) -> pa.RecordBatchReader:
                """Read the rows of the partition that a selection and the filters have."""
                rows = scan(
                    [partition],
                    needed,
                    selection=selected.but(topics=None, partitions=None, on_damage="keep"),
                    limits=limits,
                    engine=engine,
                    watch=watch,
                )
                return printer.filter_reader(rows)

            if options.last is None:
                reader = read(selection, reporter)
            else:
                reader = _read_last(options.last, partition, selection, read, reporter)
            printer.write_header(reader.schema)
            for batch in reader:
                printer.write(batch)
                if printer.is_full:
                    break
            if printer.is_full:
                break
    return printer.close(reporter.found)


class RowFilter(Protocol):
    """Filter of rows of a scan of one partition."""

    @property
    def columns(self) -> Sequence[str]:
        """Return the columns that the filter needs."""

    def filter(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the selected rows, with all columns."""


class _RecordPrinter:
    """Printer of rows of scans in ``--format``, up to ``-n`` of them. ``count`` is the number of rows that were printed.

    Args:
        options: Arguments of the command.
        partitions: Partitions that are known from the start, for headings and widths of columns.
        selection: Selected records.
    """

    def __init__(
        self, options: argparse.Namespace, partitions: Sequence[Partition], selection: Selection
    ) -> None:
        """Prepare columns, decoders and output. Raises ValueError for an unknown decoding format."""
        self.count = 0
        self._options = options
        self._selection = selection
        self._out = binary_stdout()
        self._is_lines = options.format in ("text", "jsonl")
        is_text = options.format == "text"
        decode = KeyValueFormats.parse(options.decode)
        if not decode.needs_schemas and (options.schemas, options.schema_version) != (None, None):
            raise ValueError(
                "--schemas and --schema-version are for values of a schema registry: add --decode auto, or leave them out"
            )
        self.partitions = partitions
        width = screen_width() if options.width is None else None
        max_width = WIDTH if options.width is None else min(max(options.width, 0), _MAX_WIDTH)
        self._decoder = decoder = KeyValueDecoder(
            decode,
            lambda data: format_json(convert_bytes(data)),
            show_secrets=options.show_secrets,
            read_schemas=cache(partial(_read_schemas, options)),
            find_partitions=lambda topic: [p for p in self.partitions if p.topic == topic],
            schema_version=options.schema_version,
        )
        has_default = options.columns is None
        names = list(DEFAULT_COLUMNS) if has_default else options.columns.split(",")
        is_single = len(partitions) == 1 and not (
            options.follow and may_get_partitions(options.paths)
        )
        self._is_headed = not is_single and width is not None and has_default
        if is_text and has_default and (is_single or self._is_headed):
            names = names[2:]
        if options.include and has_default:
            names.append("state")
        self._names = names
        decoder.parts = [name for name in PARTS if name in names]
        if is_text:
            decoder.render_bytes = lambda data: format_bytes(data, max_width)
            decoder.format_value = lambda value: format_json(value, compact=True)
        self._text_columns = self._problem_columns = None
        if not self._is_lines:
            topics = {p.topic for p in partitions}
            self._text_columns = [
                n for n in decoder.parts if any(decoder.is_decoded(t, n) for t in topics)
            ]
            self._problem_columns = [
                n for n in decoder.parts if any(n in decoder.find_schema_parts(t) for t in topics)
            ]
        self._text = None
        if is_text:
            self._text = TextRowWriter(self._out, names, _min_widths(partitions), max_width, width)
        self._output: RowWriter | None = self._text
        if options.format == "jsonl":
            self._output = JsonRowWriter(self._out)
        self._filters: list[RowFilter] = []
        if options.grep is not None:
            search = RecordSearch(options.grep, ignore_case=options.ignore_case, decoder=decoder)
            self._filters.append(search)
        if options.where is not None:
            from kafka_log.read.sql.condition import RowCondition  # needs DuckDB

            every = Output(RECORDS, partitions, record_columns(), False).schema
            self._filters.append(RowCondition(options.where, every))
        self._rows: DumpRows | None = None
        self._heading: str | None = None

    @property
    def is_full(self) -> bool:
        """Whether the ``-n`` rows are printed."""
        limit: int | None = self._options.rows
        return self.count == limit

    def print_line(self, line: str) -> None:
        """Print a line about damage: between the rows of text, else to stderr."""
        if self._text is None:
            print_damage(line)
        else:
            self._text.write_line(line)

    def begin(self, partition: Partition) -> Sequence[str]:
        """Prepare for the rows of a partition, and return the names of the columns of a scan that
        the output and the filters need, each once, and ``offset`` for ``--last``. Text on a
        terminal gets a heading before these rows if there are, or may come, several partitions,
        unless ``--columns`` or ``--width`` is given.
        """
        is_text = self._text is not None
        if self._text is not None and self._is_headed:
            heading = f"{utf8(partition.topic)}-{partition.partition}:"
            self._text.heading = None if heading == self._heading else heading
        self._rows = DumpRows(
            partition.topic,
            self._names,
            self._decoder,
            control=self._selection.control_records,
            with_damage=not is_text and self._options.columns is None,
            sparse=self._is_lines,
            text_columns=self._text_columns,
            problem_columns=self._problem_columns,
        )
        of_last = () if self._options.last is None else ("offset",)
        return tuple(dict.fromkeys((*self._rows.needed, *self.filter_columns, *of_last)))

    @property
    def filter_columns(self) -> Sequence[str]:
        """Columns of a scan that the filters need."""
        return [name for each in self._filters for name in each.columns]

    def filter(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a scan of one partition that all filters select; ``batch`` itself
        without filters. Raise ConditionError (a ValueError) if DuckDB cannot compute the condition
        of ``--where`` for a row. If ``--grep`` needs schemas that cannot be used, raise a
        ValueError, DirectoryError, OSError or ModuleNotFoundError.
        """
        for each in self._filters:
            batch = each.filter(batch)
        return batch

    def filter_reader(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return the rows of a scan of one partition that all filters select, as a stream; ``rows`` itself without filters."""
        if not self._filters:
            return rows
        return pa.RecordBatchReader.from_batches(rows.schema, map(self.filter, rows))

    def write_header(self, schema: pa.Schema) -> None:
        """Write what comes before the first row in a format that needs the columns of all rows, given the
        schema of a scan. Do nothing for other formats, and at later calls.
        """
        if self._output is None:
            assert self._rows is not None
            self._output = ROW_WRITERS[self._options.format](
                self._out, self._rows.build_rows(_empty_batch(schema)).schema
            )

    def write(self, batch: pa.RecordBatch) -> None:
        """Print rows of a scan of the partition of :meth:`begin`, until ``-n`` rows are printed in
        all. If ``--decode`` needs schemas that cannot be used, raise a ValueError, DirectoryError,
        OSError or ModuleNotFoundError.
        """
        assert self._rows is not None and self._output is not None
        limit = self._options.rows
        left = batch if limit is None else batch.slice(0, limit - self.count)
        if self._text is not None and left.num_rows and self._text.heading is not None:
            self._heading = self._text.heading
        for part in self._rows.split_rows(left):
            if self._text is None:
                self._output.write(part)
            else:
                self._write_text(self._text, part, left)
        self.count += left.num_rows

    def _write_text(
        self, text: TextRowWriter, rows: pa.RecordBatch, scanned: pa.RecordBatch
    ) -> None:
        """Print rows as text, and a line after rows that were not decoded with schemas. ``scanned``
        are the same rows as a scan has them.
        """
        if not any(name in rows.schema.names for name in PROBLEM_COLUMNS.values()):
            text.write(null_missing_timestamps(rows))
            return
        for part, line in split_at_problems(rows, scanned.column("offset")):
            text.write(null_missing_timestamps(part))
            if line is not None:
                text.write_line(line)

    def close(self, found: int) -> int:
        """End the output, and print how many keys and values could not be decoded to stderr. Return
        the exit code: ``found``, that of the reading, or 1 if a control record, or a key or value
        with a schema, could not be decoded.
        If no row was printed, text gets the line ``no records``, and stderr says that the filters
        match nothing, unless ``found`` is 1: then matching records may be in what was not read.
        """
        if self._text is not None and self._text.is_first:
            self._text.write_line("no records")
        if not self.count and found == GOOD:
            given = {"--grep": self._options.grep, "--where": self._options.where}
            warn_of_no_match(
                self._options, *(flag for flag, text in given.items() if text is not None)
            )
        if self._output is not None:
            self._output.close()
        for line in self._decoder.failure_messages():
            print_damage(line)
        decoder = self._decoder
        return PROBLEMS if decoder.undecoded or decoder.has_invalid_control_records else found


def _reject_combinations(options: argparse.Namespace, selection: Selection) -> None:
    """Raise ValueError for options that exclude each other. These are ``--last`` with
    ``--offsets``, ``--ignore-case`` without ``--grep``, ``--last 0`` without ``--follow``, and
    ``--follow`` with a format other than ``text`` and ``jsonl``, URLs, ``--include``, ``--isolation
    read_committed`` or an end of ``--offsets``.
    """
    if options.last is not None and selection.offsets != EVERYTHING:
        raise ValueError("--last counts from the end of the log: leave out --offsets")
    if options.ignore_case and options.grep is None:
        raise ValueError("--ignore-case is for --grep: add --grep PATTERN")
    if not options.follow:
        if options.last == 0:
            raise ValueError("--last 0 selects nothing: it needs --follow")
        return
    if options.format not in ("text", "jsonl"):
        raise ValueError(
            f"--follow prints text or JSON lines, not {options.format}: add --format jsonl"
        )
    if any(map(is_url, options.paths)):
        raise ValueError("--follow watches local files: it does not read URLs")
    if selection.include:
        raise ValueError("--follow reads live segments only: leave out --include")
    if selection.isolation == "read_committed":
        raise ValueError(
            "--follow prints records before it is known whether their transaction commits: leave out --isolation read_committed"
        )
    if selection.offsets[1] is not None:
        raise ValueError("--follow has no last offset: write --offsets A: without an end")


# ---------------------------------------------------------------- following


def _follow(
    options: argparse.Namespace,
    partitions: Sequence[Partition],
    selection: Selection,
    printer: _RecordPrinter,
    reporter: DamageReporter,
    stop: StopOnSignal,
    limits: Limits,
) -> None:
    """Print the selected records of partitions (with ``--last`` only their last ones), then those
    that are appended and all of new partitions. End after ``-n`` records or a signal; one during a
    wait raises Interrupted, which ``stop`` catches. Damage, and partitions that cannot be read, go
    to ``reporter``, the latter once. Raise DirectoryError or NotFoundError if all partitions are
    gone, DirectoryError if one comes to lie in two directories, ConditionError if ``--where``
    cannot be computed for a row; a ValueError, DirectoryError, OSError or ModuleNotFoundError if
    ``--decode`` needs schemas that cannot be used.
    """
    followers: dict[Path | tuple[str, int], PartitionFollower] = {}
    unreadable: set[Path] = set()
    is_first = True
    while True:
        started = time.monotonic()
        for partition in partitions:
            needed = printer.begin(partition)
            # A partition may move to another directory, unless each copy is read.
            log = partition.directory if options.replicas == "keep" else partition.key
            follower = followers.get(log)
            if follower is None:
                selected = selection
                if options.last is not None and is_first:
                    selected = _select_last(options.last, partition, selection, printer, limits)
                follower = followers[log] = PartitionFollower(
                    partition,
                    needed,
                    selected,
                    reporter,
                    print_message,
                    limits=limits,
                    engine=options.engine,
                    offsets_are_start=selected is not selection,
                )
            if partition.error is not None and partition.directory not in unreadable:
                unreadable.add(partition.directory)
                reporter.unreadable(partition.error)
            for batch in map(printer.filter, follower.read_new(partition)):
                printer.write(batch)
                if printer.is_full or stop.is_stopped:
                    return
        taken = time.monotonic() - started
        stop.wait(min(max(_POLL_S, _POLL_FACTOR * taken), _MAX_POLL_S))
        is_first = False
        partitions = printer.partitions = list_partitions(options)


def _select_last(
    count: int,
    partition: Partition,
    selection: Selection,
    printer: _RecordPrinter,
    limits: Limits,
) -> Selection:
    """Return the selection from the ``count``-th last record of a partition on that it and the
    filters select. It begins at the first such record if there are fewer, and at the end of the log
    if ``count`` is 0; if there is none, return ``selection`` itself. Damage is not reported. Raise
    ValueError if ``count`` is 0 and the last offset is the largest possible one; ConditionError if ``--where`` cannot be computed for a row; a ValueError, DirectoryError,
    OSError or ModuleNotFoundError if ``--grep`` needs schemas that cannot be used.
    """
    if count == 0:
        end = read_end_offset(partition.segments)
        if end > MAX_OFFSET:
            raise ValueError(
                f"--last 0: the last offset of {partition.directory} is {MAX_OFFSET}, the largest that Kafka has, so that no offset follows it:"
                " kafka-log check tells whether the batch is damaged; give --last 1 or more"
            )
        return selection.but(offsets=(end, None))

    def read(selected: Selection, watch: DamageReporter) -> pa.RecordBatchReader:
        """Read the offsets of the records that a selection and the filters have."""
        rows = scan(
            [partition],
            list(dict.fromkeys(("offset", *printer.filter_columns))),
            selection=selected.but(topics=None, partitions=None, on_damage="keep"),
            limits=limits,
            watch=watch,
        )
        return printer.filter_reader(rows)

    ignored = DamageReporter(lambda line: None, lambda size: None)  # the follower reports it
    last = _read_last(count, partition, selection, read, ignored).read_all()
    if not last.num_rows:
        return selection
    return selection.but(offsets=(pc.min(last.column("offset")).as_py(), None))


def _read_schemas(options: argparse.Namespace) -> SchemaRegistry:
    """Return the schemas of ``--schemas`` or of the paths, and print problems of their source. Raise
    ValueError if the source is invalid, DirectoryError if it has no schemas, OSError if it cannot be
    read.
    """
    there = survey(options.paths, (), unreadable_raises=False).partitions
    registry = read_registry(there, options.schemas)
    for problem in registry.problems:
        print_damage(problem)
    return registry


def _read_last(
    count: int,
    partition: Partition,
    selection: Selection,
    read: Callable[[Selection, DamageReporter], pa.RecordBatchReader],
    reporter: DamageReporter,
) -> pa.RecordBatchReader:
    """Return a reader of the ``count`` rows of a partition with the highest offsets that
    ``selection`` has, in log order, or of all if it has fewer. Read the last ``count`` offsets, and
    8 times as many until there are enough rows. ``read`` returns rows with the column ``offset``;
    its errors are raised. Damage in the offsets of the last reading, and no other, is reported to
    ``reporter`` before this function returns.
    """
    span = count
    while True:
        selected = selection.but(offsets=(-span, None)).resolve_offsets(partition.segments)
        lines: list[str] = []
        seen = DamageReporter(lines.append, lambda size: None)
        reader = read(selected, seen)
        kept = reader.schema.empty_table()
        pending: list[pa.RecordBatch] = []
        total = 0
        for batch in reader:
            if batch.num_rows:
                pending.append(batch)
                total += batch.num_rows
            if total >= count:
                kept, pending, total = _keep_last(count, kept, pending), [], 0
        kept = _keep_last(count, kept, pending)
        begin = selected.offsets[0] or 0
        if kept.num_rows >= count or all(
            begin <= widest_offsets(segment, None)[0] for segment in partition.segments
        ):
            break
        span = min(span * _GROWTH, MAX_OFFSET + 1)
    for line in lines:
        reporter.print_line(line)
    reporter.found = max(reporter.found, seen.found)
    reporter.advance(sum(segment.size for segment in partition.segments))
    return kept.to_reader()


def _keep_last(count: int, kept: pa.Table, pending: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return the ``count`` rows with the highest offsets of ``kept`` and ``pending``, in their
    order; all if there are fewer. If segments are misplaced, these need not be the last rows. As in
    a scan, no record batch of the table has rows of two segments.
    """
    rows = pa.concat_tables([kept, pa.Table.from_batches(pending, kept.schema)])
    if rows.num_rows <= count:
        return rows
    order = np.argsort(rows.column("offset").to_numpy(), kind="stable")
    is_kept = np.zeros(rows.num_rows, np.bool_)
    is_kept[order[-count:]] = True
    parts, start = [], 0
    for batch in rows.to_batches():
        parts.append(batch.filter(pa.array(is_kept[start : start + batch.num_rows])))
        start += batch.num_rows
    return pa.Table.from_batches([part for part in parts if part.num_rows], rows.schema)


def _empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a record batch with no rows."""
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def _min_widths(partitions: Sequence[Partition]) -> Mapping[str, int]:
    """Return minimum widths of the columns topic, partition, offset and timestamp that fit most
    values, so that the first rows align with later ones.
    """
    last = max((s.base_offset for p in partitions for s in p.segments), default=0)
    return {
        "topic": max((len(utf8(p.topic).encode()) for p in partitions), default=0),
        "partition": max((len(str(p.partition)) for p in partitions), default=0),
        "offset": len(str(last)),
        "timestamp": len("2026-11-22T00:00:00.000Z"),
    }
