"""Reader of read plans: the source of all rows of scans, commands, views and Spark tasks."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from kafka_log.logs.removed_segments import check_removal
from kafka_log.read.offset_validation import OffsetValidator
from kafka_log.read.plan import ReadPlan, Split
from kafka_log.segment.model import Batch, End, Lost, Policy
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.reader import damage
from kafka_log.segment.remote_errors import RemoteError
from kafka_log.segment.scanner import BATCH_ROWS, RECORD_ROWS, Flagged, Scanner


@dataclass(frozen=True, slots=True)
class LostRange:
    """A range of bytes of a split that is not read, or a record that is left out. Damage is not an error then."""

    split: Split
    lost: Lost


@dataclass(frozen=True, slots=True)
class SplitEnd:
    """The end of a split. ``end`` is None if the pass did not reach the end of its bytes."""

    split: Split
    end: End | None


Event: TypeAlias = pa.RecordBatch | LostRange | Flagged | SplitEnd


class PlanReader:
    """One pass over the splits of a plan. Iterate to get rows and events in file order.

    A split yields record batches; a Flagged before the rows of each batch with damage or findings; then a LostRange for each
    range of bytes that was skipped; then a SplitEnd.

    Raises:
        CodecError: For damage, unless the plan keeps or drops it, and for files that cannot be read.
        ValueError: By the constructor, if the plan has an option that the scanner does not know.
    """

    def __init__(self, plan: ReadPlan) -> None:
        """Resolve the options of the scanners. Raises ValueError for an unknown option."""
        self.plan = plan
        self._options: dict[str, Any] = {
            "kind": BATCH_ROWS if plan.of_batches else RECORD_ROWS,
            "on_damage": plan.on_damage,
            "limits": plan.limits,
            "engine": plan.engine,
            "mmap": plan.mmap,
            "zero_copy": plan.zero_copy,
        }
        if plan.chunk_bytes is not None:
            self._options["chunk_bytes"] = plan.chunk_bytes
        self._scanner = Scanner("", None, plan.policy, **self._options)
        self._bytes_read = self._batches_skipped = 0

    @property
    def bytes_read(self) -> int:
        """Number of bytes that were read of all files so far."""
        return self._bytes_read + self._scanner.bytes_read

    @property
    def batches_skipped(self) -> int:
        """Number of batches so far that were not decompressed because no selected record can be in them."""
        return self._batches_skipped + self._scanner.batches_skipped

    def __iter__(self) -> Iterator[Event]:
        """Yield the rows and events of all splits in order. Iterating raises what :meth:`read`
        raises.
        """
        for split in self.plan.splits:
            yield from self.read(split)

    def read(self, split: Split) -> Generator[Event, None, None]:
        """Yield the rows and events of one split, lost ranges after the rows, a SplitEnd last.
        Iterating raises CodecError for damage (also a wrong checksum, unless rows are batch
        headers) and an unreadable file, unless the plan keeps or drops damage and is not
        ``strict``. With ``on_error`` ``next_file`` it goes on to the SplitEnd instead; with
        ``lose_rest`` it reports the rest of a corrupt file as lost (a file that is missing or may
        not be read still raises). It raises ValueError for a column that the view lacks.
        """
        plan = self.plan
        columns = list(plan.rows.columns)
        validates = plan.policy is Policy.SALVAGE and not plan.of_batches and "damage" in columns
        needed = (*columns, *OffsetValidator.COLUMNS) if validates else columns
        scanner = self._open(split, list(dict.fromkeys(needed)))
        validator = OffsetValidator(scanner.reader, scanner.engine) if validates else None
        last_flagged: Batch | None = None
        try:
            with closing(scanner.items()) as items:
                for item in items:
                    if isinstance(item, Flagged):
                        last_flagged = item.batch
                        yield item
                        continue
                    if validator is not None and isinstance(item, pa.RecordBatch):
                        item = validator.annotate(item).select(columns)
                    for row in plan.rows.convert(item, split.segment):
                        yield LostRange(split, row) if isinstance(row, Lost) else row
        except CodecError as error:
            if plan.on_error == "lose_rest" and is_corrupt(error):
                yield LostRange(split, _rest_of_file(error, scanner, last_flagged, split))
                yield SplitEnd(split, None)
                return
            if plan.on_error != "next_file":
                raise
        for lost in lost_ranges(scanner):
            yield LostRange(split, lost)
        yield SplitEnd(split, scanner.end)

    def _open(self, split: Split, columns: list[str]) -> Scanner:
        """Return a new scanner of a split for ``columns``, and add what the previous scanner has
        read to the totals. Raise ValueError for columns or options that a scanner does not accept.
        The file is not opened yet.
        """
        segment = split.segment
        self._bytes_read, self._batches_skipped = self.bytes_read, self.batches_skipped
        self._scanner = scanner = Scanner(
            segment.path,
            columns,
            self.plan.policy,
            selection=split.rows,
            start=split.start,
            stop=split.stop,
            tail=segment.tail,
            size=segment.size,
            reaches=split.reaches,
            next_base=split.next_offset,
            is_removed=partial(check_removal, segment) if self.plan.expects_removal else None,
            **self._options,
        )
        if self.plan.max_batch_bytes is not None:
            scanner.max_bytes = self.plan.max_batch_bytes
        return scanner


def is_corrupt(error: CodecError) -> bool:
    """Return whether an error means that a file's bytes are damaged. Return True for any CodecError
    except an UnreadableError, and for an UnreadableError of a file that became shorter or of an I/O
    error of a disk. Return False if the file is missing or may not be read, or its store does not
    answer.
    """
    if not isinstance(error, UnreadableError):
        return True
    return error.errno in (None, errno.EIO) and not isinstance(error.__cause__, RemoteError)


def dropped_range(flagged: Flagged) -> Lost | None:
    """Return the bytes of a flagged batch as a Lost range, with the offsets around it, for a reader
    that drops damaged batches. Return None if the batch has findings, but no damage.
    """
    batch = flagged.batch
    wrong = damage(batch)
    if not wrong:
        return None
    end = batch.position + batch.size
    return Lost(batch.position, end, f"a batch that is left out: {wrong[0]}", *flagged.around)


def lost_ranges(scanner: Scanner) -> Iterator[Lost]:
    """Yield the lost ranges of a finished scanner, then the rest of the file if the pass ended at
    an error that the scanner keeps. Yield nothing if it did not reach its end.
    """
    end = scanner.end
    if end is None:
        return
    yield from end.lost
    if end.error is not None and scanner.keep:
        start = end.iterated_bytes
        yield Lost(start, start + end.trailing_bytes, str(end.error))


def _rest_of_file(
    error: CodecError, scanner: Scanner, last_flagged: Batch | None, split: Split
) -> Lost:
    """Return the bytes of a split from the damage of ``error`` to its end, as a Lost range. It
    begins at the last flagged batch if the error is its damage, else where the pass ended or the
    error says, else at the start of the split. The last offset before it is included, if known.
    """
    begin, end = scanner.reader.options.start, scanner.end
    stop = split.start + split.size
    start = error.where.position
    if last_flagged is not None and any(error is wrong for wrong in damage(last_flagged)):
        start = last_flagged.position
    elif end is not None and end.error is error:
        start = end.iterated_bytes
    start = begin if start is None else min(max(start, begin), stop)
    after = _last_offset(scanner.reader.path, begin, start)
    return Lost(start, stop, f"the rest of a corrupt file: {error}", after)


def _last_offset(path: Path, start: int, end: int) -> int | None:
    """Return the last offset of the batches between two byte positions of a file, by their headers.
    Return None if no batch lies there, the last one does not end at ``end``, or the file cannot be
    read.
    """
    from kafka_log.segment.batch_headers import entries
    from kafka_log.segment.framing import HeaderColumns

    last = None
    with suppress(CodecError):  # damage begins at the end, or the file is gone by now
        for entry in entries(path, start=start):
            if entry.position >= end:
                break
            last = entry
    if last is None or last.position + last.frame.size != end:
        return None
    return int(HeaderColumns(("base_offset", "last_offset"), os.fspath(path)).read(last)[1])
