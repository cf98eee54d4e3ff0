"""``kafka-log dump`` without ``--batches``: print one row per record."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from codecgen.runtime.located_bytes import Limits
from kafka_log.cli.common import (
    progress_of,
    say_deleted,
    screen_width,
)
from kafka_log.cli.damage import DamageReporter, print_damage
from kafka_log.cli.output import binary_stdout
from kafka_log.cli.selection import say_unmatched, selection_of
from kafka_log.inspect.dump import WIDTH
from kafka_log.inspect.dump.decoding import KeyValueDecoder, KeyValueFormats
from kafka_log.inspect.dump.rows import DEFAULT_COLUMNS, DumpRows, null_missing_timestamps
from kafka_log.logs.discovery import survey
from kafka_log.logs.tiers import merge_tiered_segments
from kafka_log.read.scanning import scan
from kafka_log.read.schemas.registry import SchemaRegistry
from kafka_log.read.schemas.sources import read_registry
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.kernels import KERNEL_MIN_BYTES, use_kernels
from kafka_log.segment.ranges import EVERYTHING
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


def dump_records(options: argparse.Namespace, partitions: Sequence[Partition]) -> int:
    """Print one row per selected record in ``--format``, with damage between the rows of text or
    else on stderr, and failures to decode on stderr. Return 1 if a consumer would reject a batch,
    bytes are lost, or a file or directory cannot be read; else 0, also after failures to decode.
    Raise ValueError for an unknown column or decoding format, and for ``--last`` with
    ``--offsets``.
    """
    out = binary_stdout()
    selection, partitions = selection_of(options), merge_tiered_segments(partitions)
    if options.last is not None and selection.offsets != EVERYTHING:
        raise ValueError("--last counts from the end of the log: leave out --offsets")
    say_deleted(partitions, selection)
    is_text, is_lines = options.format == "text", options.format in ("text", "jsonl")
    decode = KeyValueFormats.parse(options.decode)
    width = screen_width() if options.width is None else None
    max_width = WIDTH if options.width is None else min(max(options.width, 0), _MAX_WIDTH)
    decoder = KeyValueDecoder(
        decode,
        lambda data: format_json(convert_bytes(data)),
        show_secrets=options.show_secrets,
        read_schemas=partial(_read_schemas, options),
    )
    names = options.columns.split(",") if options.columns else list(DEFAULT_COLUMNS)
    is_headed = len(partitions) > 1 and width is not None and not options.columns
    if is_text and not options.columns and (len(partitions) == 1 or is_headed):
        names = names[2:]
    if options.include and not options.columns:
        names.append("state")
    if is_text:
        decoder.render_bytes = lambda data: format_bytes(data, max_width)
        decoder.format_value = lambda value: format_json(value, compact=True)
    text_columns = None
    if not is_lines:
        topics = {p.topic for p in partitions}
        text_columns = [
            n
            for n in ("key", "value")
            if n in names and any(decoder.is_decoded(t, n) for t in topics)
        ]
    size = sum(segment.size for p in partitions for segment in p.segments)
    engine = options.engine
    if engine == "auto" and not use_kernels(size, engine, KERNEL_MIN_BYTES):
        engine = "construct"
    text = TextRowWriter(out, names, _min_widths(partitions), max_width, width) if is_text else None
    output: RowWriter | None = text or (JsonRowWriter(out) if options.format == "jsonl" else None)
    count = 0

    def describe_progress() -> str:
        """Describe what was printed before an interruption."""
        return f"at least {count:,} records are printed"

    with progress_of(
        "dump", size, shown=not sys.stdout.isatty(), describe_done=describe_progress
    ) as advance:
        reporter = DamageReporter(print_damage if text is None else text.say, advance)
        for partition in partitions:
            if text is not None and is_headed:
                text.heading = f"{utf8(partition.topic)}-{partition.partition}:"
            rows = DumpRows(
                partition.topic,
                names,
                decoder,
                control=selection.control_records,
                with_damage=not is_text and not options.columns,
                sparse=is_lines,
                text_columns=text_columns,
            )

            def read(
                selected: Selection,
                watch: DamageReporter,
                partition: Partition = partition,
                rows: DumpRows = rows,
            ) -> pa.RecordBatchReader:
                """Read the rows of the partition that a selection has."""
                return scan(
                    [partition],
                    rows.needed,
                    selection=selected.but(topics=None, partitions=None, on_damage="keep"),
                    limits=Limits(
                        decompressed=options.max_decompressed, elements=options.max_elements
                    ),
                    engine=engine,
                    watch=watch,
                )

            if options.last is None:
                reader = read(selection, reporter)
            else:
                reader = _read_last(options.last, partition, selection, read, reporter)
            if output is None:
                output = ROW_WRITERS[options.format](
                    out, rows.build_rows(_empty_batch(reader.schema)).schema
                )
            for batch in reader:
                left = batch if options.rows is None else batch.slice(0, options.rows - count)
                for part in rows.split_rows(left):
                    output.write(part if text is None else null_missing_timestamps(part))
                count += left.num_rows
                if count == options.rows:
                    break
            if count == options.rows:
                break
    if text is not None and text.is_first:
        text.say("no records")
    if not count:
        say_unmatched(options)
    if output is not None:
        output.close()
    for line in decoder.failure_messages():
        print_damage(line)
    return reporter.found


def _read_schemas(options: argparse.Namespace) -> SchemaRegistry:
    """Return the schemas of ``--schemas`` or of the paths, and print problems of their source. Raise
    ValueError if the source is invalid; OSError if it cannot be read.
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
    """Return a reader of the last ``count`` rows of a partition that ``selection`` has, or of all if
    it has fewer. Read the last ``count`` offsets, and 8 times as many until there are enough rows.
    Only damage in the offsets of the last reading is reported, before this function returns.
    """
    first = min((segment.base_offset for segment in partition.segments), default=0)
    span = count
    while True:
        selected = selection.but(offsets=(-span, None)).resolve_offsets(partition.segments)
        lines: list[str] = []
        seen = DamageReporter(lines.append, lambda size: None)
        kept: deque[pa.RecordBatch] = deque()
        total = 0
        reader = read(selected, seen)
        for batch in reader:
            kept.append(batch)
            total += batch.num_rows
            while total - kept[0].num_rows >= count:
                total -= kept.popleft().num_rows
        begin = selected.offsets[0] or 0
        if total >= count or begin <= first:
            break
        span *= _GROWTH
    for line in lines:
        reporter.say(line)
    reporter.found = max(reporter.found, seen.found)
    reporter.advance(sum(segment.size for segment in partition.segments))
    if kept and total > count:
        kept[0] = kept[0].slice(total - count)
    return pa.RecordBatchReader.from_batches(reader.schema, kept)


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
