"""Rows of ``kafka-log dump``: where they come from, where they go, and what is said between them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits
from kafka_log.cli.common import GOOD, PROBLEMS, progress_of, screen_width
from kafka_log.cli.selection import selection_of
from kafka_log.disk.directory import Partition, Segment, utf8
from kafka_log.report import damage_lines
from kafka_log.report.batch_rows import SCHEMA, batch_lines, batch_rows
from kafka_log.report.decoding import Decode, Decoder
from kafka_log.report.dump_rows import COLUMNS, TOLD, DumpRows, is_told, without_no_time
from kafka_log.report.lines import shown
from kafka_log.report.row_output import OF_SCHEMA, JsonRows, Output, TextRows
from kafka_log.report.table_output import json_bytes, json_text
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.kernels import KERNEL_MIN_BYTES, KERNEL_MIN_BYTES_OF_HEADERS, use_kernels
from kafka_log.segment.model import Batch, End
from kafka_log.segment.reader import damage
from kafka_log.segment.row_masks import HeaderMasks
from kafka_log.tables.columns import check_columns
from kafka_log.tables.scanning import scan
from kafka_log.tables.selection import within_offsets

WIDTH = 200
_WIDEST = 1 << 30


class _Told:
    """What is wrong, in its place: between the rows of a text, else on stderr. ``found`` is the exit code."""

    def __init__(self, say: Callable[[str], None], advance: Callable[[int], None]) -> None:
        self.say = say
        self.advance = advance
        self.found = GOOD

    def unreadable(self, error: CodecError) -> None:
        self.found = PROBLEMS
        self.say(damage_lines.error_line(error))

    def batch(self, batch: Batch) -> None:
        if damage(batch) or not batch.is_valid:
            self.found = PROBLEMS
        for line in damage_lines.batch_lines(batch):
            self.say(line)

    def end(self, segment: Segment, end: End | None) -> None:
        self.advance(segment.size)
        if end is None:
            return
        if not end.is_normal:
            self.found = PROBLEMS
        for line in damage_lines.end_lines(end, segment.path):
            self.say(line)


def _on_stderr(line: str) -> None:
    print(f"kafka-log: {line.strip()}", file=sys.stderr)


def dump_records(options: argparse.Namespace, partitions: Sequence[Partition]) -> int:
    """A row for each record. Returns the exit code."""
    out: BinaryIO = sys.stdout.buffer
    selection = selection_of(options)
    is_text, is_lines = options.output == "text", options.output in ("text", "jsonl")
    decode = Decode.of(options.decode)
    width = screen_width() if options.width is None else None
    most = WIDTH if options.width is None else min(max(options.width, 0), _WIDEST)
    decoder = Decoder(decode, lambda data: json_text(json_bytes(data)))
    names = options.columns.split(",") if options.columns else list(COLUMNS)
    if is_text and not options.columns and len(partitions) == 1:
        names = names[2:]
    if options.include and not options.columns:
        names.append("state")
    if is_text:
        decoder.render = lambda data: shown(data, most)
        decoder.one_line = lambda value: json_text(value, compact=True)
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
    text = TextRows(out, names, _pads(partitions), most, width) if is_text else None
    output: Output | None = text or (JsonRows(out) if options.output == "jsonl" else None)
    sys.stdout.flush()
    with progress_of("dump", size, shown=not sys.stdout.isatty()) as advance:
        told = _Told(_on_stderr if text is None else text.say, advance)
        for partition in partitions:
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
                output = OF_SCHEMA[options.output](out, rows.shape(_none(reader.schema)).schema)
            for batch in reader:
                made = rows.shape(batch)
                output.write(made if text is None else without_no_time(made))
    if output is not None:
        output.close()
    for line in decoder.notes():
        _on_stderr(line)
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


def dump_batches(options: argparse.Namespace, partitions: Sequence[Partition]) -> int:
    """A row for each batch. Returns the exit code."""
    out: BinaryIO = sys.stdout.buffer
    is_text = options.output == "text" and not options.columns
    names = [*_PLACES, *SCHEMA.names]
    if options.columns:
        names = options.columns.split(",")
        check_columns(names, (*_PLACES, *SCHEMA.names))
    sparse = options.output == "jsonl" and not options.columns
    wanted = HeaderMasks(selection_of(options).batches())
    size = sum(segment.size for p in partitions for segment in p.segments)
    engine = options.engine
    if engine == "auto" and not use_kernels(size, engine, KERNEL_MIN_BYTES_OF_HEADERS):
        engine = "construct"
    limits = Limits(decompressed=options.max_decompressed, elements=options.max_elements)
    fields = {f.name: f for f in (*_PLACES.values(), *SCHEMA)}
    output = None if is_text else _output(options, pa.schema([fields[n] for n in names]), out)
    sys.stdout.flush()
    with progress_of("dump", size, shown=not sys.stdout.isatty()) as advance:
        told = _Told(_on_stderr if output is not None else lambda line: _say(out, line), advance)
        for partition in partitions:
            if partition.error is not None:
                told.unreadable(partition.error)
            for segment in within_offsets(partition.segments, wanted.selection.offsets):
                reader = BlockReader(
                    segment.path,
                    policy=options.policy,
                    limits=limits,
                    engine=engine,
                    records=False,
                    tail=segment.tail,
                    size=segment.size,
                )
                if output is None:
                    _say(out, f"Dumping {utf8(str(segment.path))}")
                more = True
                with suppress(CodecError):  # of a strict reader, which is in its end too
                    for found in batch_rows(reader, told.batch):
                        rows, more = wanted.of(found, reader.policy)
                        if output is None:
                            out.writelines(batch_lines(rows))
                        else:
                            output.write(_placed(rows, partition, names, sparse=sparse))
                        if not more:
                            break
                told.end(segment, reader.end if more else None)
    out.flush()
    if output is not None:
        output.close()
    return told.found


_PLACES = {
    name: pa.field(name, kind, False)
    for name, kind in (("topic", pa.dictionary(pa.int32(), pa.string())), ("partition", pa.int32()))
}


def _placed(
    rows: pa.RecordBatch, partition: Partition, names: Sequence[str], *, sparse: bool
) -> pa.RecordBatch:
    """Rows of batches with the columns that say where they lie."""
    places = {"topic": utf8(partition.topic), "partition": partition.partition}
    if sparse and not is_told(rows):
        names = [name for name in names if name not in TOLD]
    arrays = [
        pa.array([places[n]] * rows.num_rows, _PLACES[n].type) if n in places else rows.column(n)
        for n in names
    ]
    fields = [_PLACES.get(n) or rows.schema.field(n) for n in names]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _output(options: argparse.Namespace, schema: pa.Schema, out: BinaryIO) -> Output:
    if options.output == "jsonl":
        return JsonRows(out)
    if options.output == "text":
        return TextRows(out, schema.names, {}, WIDTH, screen_width())
    return OF_SCHEMA[options.output](out, schema)


def _say(out: BinaryIO, line: str) -> None:
    out.write(line.encode("utf-8", "backslashreplace") + b"\n")
