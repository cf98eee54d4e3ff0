"""``kafka-log dump``: the records, a row each; or the batches."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from codecgen.runtime.located_bytes import Limits
from kafka_log.cli.common import (
    COULD_NOT_RUN,
    GOOD,
    PROBLEMS,
    add_common,
    add_show_secrets,
    find_partitions,
    make_opener,
    progress_of,
    say_deleted,
    screen_width,
)
from kafka_log.cli.damage import DamageReporter, print_damage
from kafka_log.cli.messages import print_message
from kafka_log.cli.output import binary_stdout
from kafka_log.cli.selection import RECORDS, say_unmatched, selection_of
from kafka_log.inspect.dump.decoding import Decode, Decoder
from kafka_log.inspect.dump.rows import COLUMNS, DumpRows, without_no_time
from kafka_log.logs.tiers import merge_tiered_segments
from kafka_log.read.scanning import scan
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.kernels import KERNEL_MIN_BYTES, use_kernels
from kafka_log.segment.model import Batch, End
from kafka_log.segment.reader import Batches
from kafka_log.text.columns import format_bytes
from kafka_log.text.json_values import convert_bytes, format_json
from kafka_log.text.output import ROW_WRITERS, JsonRowWriter, RowWriter
from kafka_log.text.text_rows import TextRowWriter

if TYPE_CHECKING:
    from kafka_log.logs.partitions import Partition


HELP = "show the records, or the batches"
EXAMPLES = """\
  kafka-log dump /var/lib/kafka/orders-0
  kafka-log dump /var/lib/kafka --topic orders --format jsonl > orders.jsonl
  kafka-log dump /var/lib/kafka/orders-0 --decode key=utf8,value=json --columns offset,key,value
  kafka-log dump 00000000000000000000.log --batches
"""

LINES = 500
"""Lines that are written at a time: each write costs as much as a line."""

WIDTH = 200
"""Default maximum of the characters shown of a key, value or header."""

_WIDEST = 1 << 30


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    add_common(command, "text", ["text", "jsonl", "csv", "parquet", "arrow", "vectors"], RECORDS)
    command.add_argument(
        "--batches",
        action="store_true",
        help="a row for each batch, from its header: nothing is decompressed, checksums are verified",
    )
    command.add_argument(
        "--columns",
        metavar="NAME,...",
        help="these only (default: topic, partition, offset, timestamp, key, value, headers)",
    )
    command.add_argument(
        "--width",
        type=int,
        metavar="BYTES",
        help=f"show so much of a key, value or header in text (default: {WIDTH}, or what fits the screen)",
    )
    command.add_argument(
        "--decode",
        default="auto",
        metavar="HOW",
        help="what keys and values are: utf8, json, int, hex, base64, confluent, or a topic of Kafka's own, whose layouts say it;"
        " for both, or key=HOW,value=HOW. auto: Kafka's own topics by their names; none: bytes (default %(default)s)",
    )
    add_show_secrets(command)
    command.add_argument(
        "--digest", action="store_true", help="vectors only: digests in the place of records"
    )


def run_command(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    try:
        if options.format == "vectors":
            _refuse_filters(options)
            return _vectors(options, find_partitions(options))
        if options.batches:
            from kafka_log.inspect.dump.batches_command import dump_batches

            return dump_batches(options, find_partitions(options))
        from kafka_log.inspect.dump.command import dump_records

        return dump_records(options, find_partitions(options))
    except ValueError as error:
        print_message(error)
        return COULD_NOT_RUN


def _refuse_filters(options: argparse.Namespace) -> None:
    """The objects say all of a file: a part of them would say something else. Raises ValueError."""
    filters = selection_of(options).plain().keys() - {
        "policy",
        "topics",
        "partitions",
        "include",
        "replicas",
    }
    if filters or options.columns or options.batches:
        raise ValueError(
            "--format vectors has all of a file: no other filters than topics and partitions"
        )
    if options.show_secrets:
        raise ValueError("--format vectors has the bytes of records: leave out --show-secrets")


def _vectors(options: argparse.Namespace, partitions: list[Partition]) -> int:
    """The objects of the reference vectors."""
    from kafka_log.inspect.dump import json_objects as json_dump
    from kafka_log.read.internal_topics import own_topic

    worst = GOOD
    out = sys.stdout
    open_segment = make_opener(options, partitions, True)
    for partition in partitions:
        if partition.error is not None:
            out.write(json_dump.error_line(partition.error) + "\n")
            worst = PROBLEMS
        for segment in partition.segments:
            watch = _Watch(open_segment(segment))
            decode = own_topic(segment.topic if options.decode == "auto" else options.decode)
            lines = json_dump.lines(watch, records=not options.digest, decode=decode)
            while some := list(islice(lines, LINES)):
                out.write("\n".join(some) + "\n")
            worst = max(worst, PROBLEMS if watch.found_problems() else GOOD)
    out.flush()
    return worst


class _Watch:
    """A reader that notices problems as they pass."""

    def __init__(self, reader: Batches) -> None:
        self.reader = reader
        self.path = reader.path
        self.listed_size = reader.listed_size
        self.failed = False

    @property
    def end(self) -> End | None:
        return self.reader.end

    def found_problems(self) -> bool:
        """Whether anything was wrong, now that the file has been read."""
        end = self.reader.end
        return self.failed or end is None or not end.is_normal

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.reader:
            self.failed |= bool(batch.problems) or not batch.is_valid
            yield batch


def dump_records(options: argparse.Namespace, partitions: Sequence[Partition]) -> int:
    """A row for each record. Returns the exit code."""
    out = binary_stdout()
    selection, partitions = selection_of(options), merge_tiered_segments(partitions)
    say_deleted(partitions, selection)
    is_text, is_lines = options.format == "text", options.format in ("text", "jsonl")
    decode = Decode.of(options.decode)
    width = screen_width() if options.width is None else None
    most = WIDTH if options.width is None else min(max(options.width, 0), _WIDEST)
    decoder = Decoder(
        decode, lambda data: format_json(convert_bytes(data)), show_secrets=options.show_secrets
    )
    names = options.columns.split(",") if options.columns else list(COLUMNS)
    is_headed = len(partitions) > 1 and width is not None and not options.columns
    if is_text and not options.columns and (len(partitions) == 1 or is_headed):
        names = names[2:]
    if options.include and not options.columns:
        names.append("state")
    if is_text:
        decoder.render = lambda data: format_bytes(data, most)
        decoder.one_line = lambda value: format_json(value, compact=True)
    fixed = None
    if not is_lines:
        topics = {p.topic for p in partitions}
        fixed = [
            n for n in ("key", "value") if n in names and any(decoder.changes(t, n) for t in topics)
        ]
    size = sum(segment.size for p in partitions for segment in p.segments)
    engine = options.engine
    if engine == "auto" and not use_kernels(size, engine, KERNEL_MIN_BYTES):
        engine = "construct"
    text = TextRowWriter(out, names, _pads(partitions), most, width) if is_text else None
    output: RowWriter | None = text or (JsonRowWriter(out) if options.format == "jsonl" else None)
    count = 0

    def made() -> str:
        return f"at least {count:,} records are printed"

    with progress_of("dump", size, shown=not sys.stdout.isatty(), made=made) as advance:
        told = DamageReporter(print_damage if text is None else text.say, advance)
        for partition in partitions:
            if text is not None and is_headed:
                text.heading = f"{utf8(partition.topic)}-{partition.partition}:"
            rows = DumpRows(
                partition.topic,
                names,
                decoder,
                control=selection.control_records,
                told=not is_text and not options.columns,
                sparse=is_lines,
                fixed=fixed,
            )
            reader = scan(
                [partition],
                rows.needed,
                selection=selection.but(topics=None, partitions=None, on_damage="keep"),
                limits=Limits(decompressed=options.max_decompressed, elements=options.max_elements),
                engine=engine,
                watch=told,
            )
            if output is None:
                output = ROW_WRITERS[options.format](out, rows.shape(_none(reader.schema)).schema)
            for batch in reader:
                for part in rows.parts(batch):
                    output.write(part if text is None else without_no_time(part))
                count += batch.num_rows
    if text is not None and text.is_first:
        text.say("no records")
    if not count:
        say_unmatched(options)
    if output is not None:
        output.close()
    for line in decoder.notes():
        print_damage(line)
    return told.found


def _none(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def _pads(partitions: Sequence[Partition]) -> Mapping[str, int]:
    """The least widths of columns whose values are mostly no longer."""
    last = max((s.base_offset for p in partitions for s in p.segments), default=0)
    return {
        "topic": max((len(utf8(p.topic).encode()) for p in partitions), default=0),
        "partition": max((len(str(p.partition)) for p in partitions), default=0),
        "offset": len(str(last)),
        "timestamp": len("2026-11-22T00:00:00.000Z"),
    }
