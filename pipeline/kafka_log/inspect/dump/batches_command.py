"""``kafka-log dump --batches``: a row for each batch, from its header."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from codecgen.runtime.errors import CodecError
from kafka_log.cli.common import make_opener, progress_of, screen_width
from kafka_log.cli.damage import DamageReporter, print_damage, write_damage
from kafka_log.cli.output import binary_stdout
from kafka_log.cli.selection import say_unmatched, selection_of
from kafka_log.inspect.dump.batch_text import batch_line
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.model import Batch, Policy
from kafka_log.segment.reader import SegmentReader

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.read.selection import Selection
    from kafka_log.segment.row_masks import HeaderMasks

ROWS = 1 << 12
"""Batches of the reference codecs that become rows at a time."""


def _shown(path: Path) -> str:
    text = utf8(str(path))
    if text.isprintable():
        return text
    from kafka_log.text.values import escape_unprintable  # takes time to load

    return escape_unprintable(text)


FEW = 50_000
"""Batches whose headers the reference codecs read in the time in which the kernels are loaded."""


class _Sink(Protocol):
    """Writes batches: blocks of them, or lists of those that the reference codecs read. ``put`` returns whether one of them lies after
    the offset range. ``rows`` says how many were written."""

    rows: int

    def open(self, partition: Partition, segment: Segment, wanted: HeaderMasks | None) -> None: ...
    def put(self, part: Any) -> bool: ...
    def close(self) -> None: ...


def dump_batches(options: argparse.Namespace, partitions: Sequence[Partition]) -> int:
    """Run the command and return the exit code."""
    out = binary_stdout()
    is_text = options.format == "text"
    size = sum(segment.size for p in partitions for segment in p.segments)
    open_segment = make_opener(_with_engine(options, partitions, size), list(partitions), False)
    count = 0

    def made() -> str:
        return f"at least {count:,} batches are printed"

    with progress_of("dump", size, shown=not sys.stdout.isatty(), made=made) as advance:
        told = DamageReporter(
            (lambda line: write_damage(out, line)) if is_text else print_damage, advance
        )
        selection = selection_of(options)
        sink = _Lines(out) if is_text and not options.columns else _rows(options, out)
        for partition in partitions:
            if partition.error is not None:
                told.unreadable(partition.error)
            wanted = _wanted(selection.resolve_offsets(partition.segments))
            for segment in partition.segments:
                if wanted is not None and not _may_have(partition, segment, wanted):
                    continue
                reader = open_segment(segment)
                sink.open(partition, segment, wanted)
                is_over = _range_end(segment, wanted, options.policy)
                ended = False
                with suppress(CodecError):  # of a strict reader, which is in its end too
                    for part in _parts(reader, told):
                        is_after = sink.put(part)
                        count += len(part) if isinstance(part, list) else part.entries
                        ended = is_after and is_over(_end_of(part))
                        if ended:
                            break
                told.end(segment, None if ended else reader.end)
        sink.close()
    if not sink.rows:
        say_unmatched(options)
    return told.found


def _with_engine(
    options: argparse.Namespace, partitions: Sequence[Partition], size: int
) -> argparse.Namespace:
    """The options with the engine that is faster for as many batches, if they are as large as the first one."""
    segments = [segment for p in partitions for segment in p.segments]
    if options.engine != "auto" or not segments:
        return options
    largest = max(segments, key=lambda segment: segment.size)
    with suppress(CodecError):
        first = next(iter(SegmentReader(largest.path, records=False, size=largest.size)), None)
        if first is not None and size < FEW * first.size:
            return argparse.Namespace(**{**vars(options), "engine": "construct"})
    return options


def _wanted(chosen: Selection) -> HeaderMasks | None:
    """Return the selection of batches, None for all. Raise ValueError for filters that headers cannot answer."""
    if not chosen.batches().skips:
        return None
    from kafka_log.segment.row_masks import HeaderMasks

    return HeaderMasks(chosen.batches())


def _may_have(partition: Partition, segment: Segment, wanted: HeaderMasks) -> bool:
    from kafka_log.read.selection import within_offsets

    return segment in within_offsets(partition.segments, wanted.selection.offsets)


def _parts(reader: Any, told: DamageReporter) -> Iterator[Any]:
    """Blocks, and lists of the batches that the reference codecs read; those of which there is something to say by themselves."""
    held: list[Batch] = []
    try:
        for part in reader.items() if hasattr(reader, "items") else reader:
            is_told = isinstance(part, Batch) and bool(part.findings or part.problems)
            if held and (is_told or len(held) >= ROWS or not _goes_with(held[-1], part)):
                yield held
                held = []
            if not isinstance(part, Batch):
                yield part
            elif is_told:
                yield [part]
                told.batch(part)
            else:
                held.append(part)
    except CodecError:
        if held:
            yield held  # what came before it
        raise
    if held:
        yield held


def _goes_with(batch: Batch, part: Any) -> bool:
    return isinstance(part, Batch) and (part.count is None) == (batch.count is None)


class _Lines:
    """The words of Kafka's dump tool."""

    def __init__(self, out: BinaryIO) -> None:
        self.out = out
        self.wanted: HeaderMasks | None = None
        self.rows = 0

    def open(self, partition: Partition, segment: Segment, wanted: HeaderMasks | None) -> None:
        self.wanted = wanted
        write_damage(self.out, f"Dumping {_shown(segment.path)}")

    def put(self, part: Any) -> bool:
        if isinstance(part, list):
            found = [_chosen([b], self.wanted) if self.wanted else ((b,), False) for b in part]
            chosen = [batch for batch, (rows, _) in zip(part, found, strict=True) if len(rows)]
            self.rows += len(chosen)
            self.out.write("".join(batch_line(b) + "\n" for b in chosen).encode("utf-8"))
            return any(is_after for _, is_after in found)
        from kafka_log.inspect.dump.batch_rows import batch_lines

        rows, is_after = _chosen(part, self.wanted)
        self.rows += rows.num_rows
        self.out.writelines(batch_lines(rows))
        return is_after

    def close(self) -> None:
        self.out.flush()


def _chosen(part: Any, wanted: HeaderMasks | None) -> tuple[pa.RecordBatch, bool]:
    """Return the selected rows of a part, and whether one of its batches lies after the offset range."""
    from kafka_log.inspect.dump.batch_rows import batch_rows, block_rows

    rows = batch_rows(part) if isinstance(part, list) else block_rows(part)
    return (rows, False) if wanted is None else (wanted.filter(rows), wanted.is_after(rows))


def _range_end(segment: Segment, wanted: HeaderMasks | None, policy: str) -> Callable[[int], bool]:
    """Return what says whether the batches from a position on lie after the offset range, as far as that may end the reading."""
    high = None if wanted is None else wanted.selection.offsets[1]
    if high is None or policy != Policy.KAFKA:
        return lambda position: False
    from kafka_log.segment.scanner import RangeEnd

    return RangeEnd(segment.path, high, size=segment.size).is_at


def _end_of(part: Any) -> int:
    """Return the position after a block, or after the last of several batches."""
    return int(part[-1].position + part[-1].size if isinstance(part, list) else part.end)


def _rows(options: argparse.Namespace, out: BinaryIO) -> _Sink:
    """Return the output that writes columns."""
    from kafka_log.inspect.dump.batch_rows import BatchTable
    from kafka_log.text.output import ROW_WRITERS, JsonRowWriter, RowWriter
    from kafka_log.text.text_rows import TextRowWriter

    names = options.columns.split(",") if options.columns else None
    table = BatchTable(names, sparse=options.format == "jsonl")
    output: RowWriter
    if options.format == "jsonl":
        output = JsonRowWriter(out)
    elif options.format == "text":
        output = TextRowWriter(out, table.schema.names, {}, 0, screen_width())
    else:
        output = ROW_WRITERS[options.format](out, table.schema)

    class Rows:
        """Rows of one table."""

        rows = 0

        def open(self, partition: Partition, segment: Segment, wanted: HeaderMasks | None) -> None:
            self.partition, self.wanted = partition, wanted

        def put(self, part: Any) -> bool:
            rows, is_after = _chosen(part, self.wanted)
            if rows.num_rows:
                self.rows += rows.num_rows
                output.write(table.rows(rows, self.partition))
            return is_after

        def close(self) -> None:
            output.close()

    return Rows()
