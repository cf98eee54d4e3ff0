"""``kafka-log dump --batches``: print one row per batch, from its header."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_log.cli.common import GOOD, make_opener, progress_of, screen_width
from kafka_log.cli.damage import DamageReporter, print_damage, write_damage
from kafka_log.cli.messages import print_message
from kafka_log.cli.output import binary_stdout
from kafka_log.cli.selection import selection_of, warn_of_no_match
from kafka_log.inspect.dump.batch_text import batch_line
from kafka_log.inspect.statistics.hidden_records import list_before_log_start
from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.incomplete_tails import find_end_losses
from kafka_log.logs.offset_ranges import within_offsets
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.model import Batch, Policy
from kafka_log.segment.printable import escape_unprintable
from kafka_log.segment.ranges import EVERYTHING
from kafka_log.segment.reader import SegmentReader

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.read.selection import Selection
    from kafka_log.segment.row_masks import HeaderMasks

MAX_BUFFERED = 1 << 12
"""Batches of the reference codecs that are written at a time."""


def _printable_path(path: Path) -> str:
    """Return a path as text, with unprintable characters escaped."""
    return escape_unprintable(utf8(str(path)))


FEW_BATCHES = 50_000
"""Number of batch headers that the reference codecs read while the kernels would be loaded."""


class _BatchWriter(Protocol):
    """Writer of blocks from the kernels, and of lists of batches from the reference codecs.

    ``write`` returns whether a batch lies after the offset range. ``rows`` is the number of written batches.
    """

    rows: int

    def start_segment(
        self, partition: Partition, segment: Segment, masks: HeaderMasks | None
    ) -> None: ...
    def write(self, part: Any) -> bool: ...
    def close(self) -> None: ...


def dump_batches(options: argparse.Namespace, partitions: Sequence[Partition]) -> int:
    """Print one row per selected batch, with damage between the rows of text or else on stderr.
    Return 1 if damage was found or a file or directory cannot be read, else 0. Raise ValueError for
    an unknown column or a filter that needs records, EngineError if ``--engine arrow`` is not
    installed.
    """
    out = binary_stdout()
    is_text = options.format == "text"
    size = sum(segment.size for p in partitions for segment in p.segments)
    open_segment = make_opener(_with_engine(options, partitions, size), list(partitions), False)
    count = 0
    read_broker = cache(read_broker_files)

    def describe_progress() -> str:
        """Describe what was printed before an interruption."""
        return f"at least {count_noun(count, 'batch is', 'batches are', spec=',')} printed"

    with progress_of(
        "dump", size, shown=not sys.stdout.isatty(), describe_done=describe_progress
    ) as advance:
        reporter = DamageReporter(
            (lambda line: write_damage(out, line)) if is_text else print_damage, advance
        )
        selection = selection_of(options)
        _warn_of_deleted_batches(partitions, selection)
        writer = (
            _TextBatchWriter(out)
            if is_text and options.columns is None
            else _open_row_writer(options, out)
        )
        for partition in partitions:
            if partition.error is not None:
                reporter.unreadable(partition.error)
            masks = _batch_filter(selection.resolve_offsets(partition.segments))
            offsets = EVERYTHING if masks is None else masks.selection.offsets
            for segment in within_offsets(partition.segments, offsets):
                reader = open_segment(segment)
                writer.start_segment(partition, segment, masks)
                is_over = _range_end(segment, masks, options.policy)
                ended = False
                with suppress(CodecError):  # of a strict reader, which is in its end too
                    for part in _read_parts(reader, reporter):
                        is_after = writer.write(part)
                        count += len(part) if isinstance(part, list) else part.entries
                        ended = is_after and is_over(_end_position(part))
                        if ended:
                            break
                reporter.end(segment, None if ended else reader.end)
            if options.policy == Policy.KAFKA.value:
                for path, lost in find_end_losses(partition, read_broker, offsets):
                    reporter.missing(path, lost)
        writer.close()
    if not writer.rows and reporter.found == GOOD:
        warn_of_no_match(options)
    return reporter.found


def _warn_of_deleted_batches(partitions: Sequence[Partition], selection: Selection) -> None:
    """Print one line to stderr about partitions that may have selected batches below the log start
    offset, which are printed as Kafka's tool prints them. Print nothing if there are none, or
    ``--deleted-records`` asks for them. Raise OSError if the directory of a checkpoint may not be
    searched.
    """
    if not selection.deleted_records and (places := list_before_log_start(partitions, selection)):
        print_message(
            f"batches below the log start offset are printed too: {places}; their records are deleted, and dump without --batches skips them"
        )


def _with_engine(
    options: argparse.Namespace, partitions: Sequence[Partition], size: int
) -> argparse.Namespace:
    """Return a copy of the options with the reference engine if ``--engine`` is ``auto`` and the
    ``size`` bytes seem to be fewer than FEW_BATCHES batches. The size of the first batch of the
    largest segment decides that. Else, or if that batch cannot be read, return ``options`` itself.
    """
    segments = [segment for p in partitions for segment in p.segments]
    if options.engine != "auto" or not segments:
        return options
    largest = max(segments, key=lambda segment: segment.size)
    with suppress(CodecError):
        first = next(iter(SegmentReader(largest.path, records=False, size=largest.size)), None)
        if first is not None and size < FEW_BATCHES * first.size:
            return argparse.Namespace(**{**vars(options), "engine": "construct"})
    return options


def _batch_filter(chosen: Selection) -> HeaderMasks | None:
    """Return the row filter for batch headers; None if every batch is selected. Raise ValueError for a filter that needs records."""
    if not chosen.batches().skips:
        return None
    from kafka_log.segment.row_masks import HeaderMasks

    return HeaderMasks(chosen.batches())


def _read_parts(reader: Any, reporter: DamageReporter) -> Iterator[Any]:
    """Yield blocks of the kernels and lists of batches of the reference codecs. A batch with
    problems is a list alone; after the caller has taken it, its problems go to ``reporter``. Raise
    CodecError after the batches before the error.
    """
    buffered: list[Batch] = []
    try:
        for part in reader.items() if hasattr(reader, "items") else reader:
            has_problems = isinstance(part, Batch) and bool(part.findings or part.problems)
            if buffered and (
                has_problems
                or len(buffered) >= MAX_BUFFERED
                or not _has_same_layout(buffered[-1], part)
            ):
                yield buffered
                buffered = []
            if not isinstance(part, Batch):
                yield part
            elif has_problems:
                yield [part]
                reporter.batch(part)
            else:
                buffered.append(part)
    except CodecError:
        if buffered:
            yield buffered  # what came before it
        raise
    if buffered:
        yield buffered


def _has_same_layout(batch: Batch, part: Any) -> bool:
    """Return whether ``part`` is a batch that may be in one list with ``batch``: both v2, or both legacy."""
    return isinstance(part, Batch) and (part.count is None) == (batch.count is None)


class _TextBatchWriter:
    """Writer of lines in the words of Kafka's dump tool."""

    def __init__(self, out: BinaryIO) -> None:
        self.out = out
        self.masks: HeaderMasks | None = None
        self.rows = 0

    def start_segment(
        self, partition: Partition, segment: Segment, masks: HeaderMasks | None
    ) -> None:
        """Write the heading of a segment, ``Dumping`` and its path. ``masks`` select the batches
        that the next calls of :meth:`write` write; None selects all. ``partition`` is not used.
        """
        self.masks = masks
        write_damage(self.out, f"Dumping {_printable_path(segment.path)}")

    def write(self, part: Any) -> bool:
        """Write the selected ones of a block or list of batches as lines. Return whether any of its
        batches lies after the offset range; False without a filter.
        """
        if isinstance(part, list):
            found = [_select_rows([b], self.masks) if self.masks else ((b,), False) for b in part]
            chosen = [batch for batch, (rows, _) in zip(part, found, strict=True) if len(rows)]
            self.rows += len(chosen)
            self.out.write("".join(batch_line(b) + "\n" for b in chosen).encode("utf-8"))
            return any(is_after for _, is_after in found)
        from kafka_log.inspect.dump.batch_rows import batch_lines

        rows, is_after = _select_rows(part, self.masks)
        self.rows += rows.num_rows
        self.out.writelines(batch_lines(rows))
        return is_after

    def close(self) -> None:
        self.out.flush()


def _select_rows(part: Any, masks: HeaderMasks | None) -> tuple[pa.RecordBatch, bool]:
    """Return the selected rows of a block or list of batches, and whether one of its batches,
    selected or not, lies after the offset range. Without ``masks`` return all rows and False.
    """
    from kafka_log.inspect.dump.batch_rows import batch_rows, block_rows

    rows = batch_rows(part) if isinstance(part, list) else block_rows(part)
    if masks is None:
        return rows, False
    return masks.filter(rows), bool(masks.is_after(rows).any())


def _range_end(segment: Segment, masks: HeaderMasks | None, policy: str) -> Callable[[int], bool]:
    """Return a predicate on byte positions: whether all batches from there on lie after the offset
    range, so that reading may end. It is always False without an end of the range, and for policies
    other than ``kafka``.
    """
    high = None if masks is None else masks.selection.offsets[1]
    if high is None or policy != Policy.KAFKA:
        return lambda position: False
    from kafka_log.segment.scanner import RangeEnd

    return RangeEnd(segment.path, high, size=segment.size).is_at


def _end_position(part: Any) -> int:
    """Return the position after a block, or after the last of several batches."""
    return int(part[-1].position + part[-1].size if isinstance(part, list) else part.end)


def _open_row_writer(options: argparse.Namespace, out: BinaryIO) -> _BatchWriter:
    """Return the writer of batches as rows, for ``--format`` and the columns of ``--columns``
    (default: all). JSON lines without ``--columns`` leave out the damage columns of undamaged rows.
    Raise ValueError for an unknown column.
    """
    from kafka_log.inspect.dump.batch_rows import BatchTable
    from kafka_log.text.output import ROW_WRITERS, JsonRowWriter, RowWriter
    from kafka_log.text.text_rows import TextRowWriter

    names = None if options.columns is None else options.columns.split(",")
    table = BatchTable(names, sparse=options.format == "jsonl")
    output: RowWriter
    if options.format == "jsonl":
        output = JsonRowWriter(out)
    elif options.format == "text":
        output = TextRowWriter(out, table.schema.names, {}, 0, screen_width())
    else:
        output = ROW_WRITERS[options.format](out, table.schema)

    class RowBatchWriter:
        """Writer of rows of one table."""

        rows = 0

        def start_segment(
            self, partition: Partition, segment: Segment, masks: HeaderMasks | None
        ) -> None:
            """Set the partition and the selection of the batches that follow."""
            self.partition, self.masks = partition, masks

        def write(self, part: Any) -> bool:
            """Write the selected ones of a block or list of batches as rows of the partition that was
            set. Return whether any of its batches lies after the offset range; False without a filter.
            """
            rows, is_after = _select_rows(part, self.masks)
            if rows.num_rows:
                self.rows += rows.num_rows
                output.write(table.select_columns(rows, self.partition))
            return is_after

        def close(self) -> None:
            output.close()

    return RowBatchWriter()
