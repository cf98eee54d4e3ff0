"""Rows of a task: its splits are read by :class:`~kafka_log.read.reader.PlanReader`, and converted to the columns and types of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from kafka_log.read.changing_files import is_gone
from kafka_log.read.plan import ReadPlan, RowFormat, Split
from kafka_log.segment.kernels import Engine, use_kernels
from kafka_log.segment.model import Lost, Policy
from kafka_log.segment.positioned_reads import UnreadableError
from pyspark_kafka_log.scan import Scan

MAX_LOOKUPS = 3
"""Maximum number of lookups of a file that is gone."""

ENOUGH = 4
"""Record batches of at least ``batch_rows / ENOUGH`` rows are not joined with others: the copy would cost more than it saves."""

OnLost = Callable[[Path, Lost], None]
"""Called with the path of a file and a lost range of it."""

OnRead = Callable[[int, int], None]
"""Called at the end of a split, also after an error, with the number of bytes read and of batches skipped."""

Located = Callable[[Split], Split | None]
"""Returns a split with the current path of its file, or None if the split is to be left out."""


class TaskReader:
    """Reader of splits for a task. It reports lost ranges and the amount that was read."""

    def __init__(
        self,
        scan: Scan,
        splits: Sequence[Split],
        on_lost: OnLost | None = None,
        on_read: OnRead | None = None,
    ) -> None:
        """Prepare a read plan.

        Args:
            scan: How splits are read.
            splits: All splits of the task. The sum of their bytes decides whether kernels read.
            on_lost: Called for each lost range and each dropped batch, with the lost offsets of the split.
            on_read: Called for each split with the bytes read and the batches skipped.
        """
        self.scan = scan
        self._plan = ReadPlan(
            (),
            self._row_format(sum(split.size for split in splits)),
            scan.policy,
            scan.on_damage,
            "lose_rest" if scan.ends_corrupt_files else "raise",
            limits=scan.limits,
            engine=choose_engine(splits, scan),
            max_batch_bytes=scan.batch_bytes,
        )
        self._on_lost = on_lost
        self._on_read = on_read

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split, and report lost ranges and dropped records to the callback.
        Raise CodecError for damage and an unreadable file unless damage is kept or dropped. With
        ``ends_corrupt_files``, report the rest of a damaged file as lost instead, also at an I/O
        error of the disk; a file that is missing or may not be read still raises. Report bytes read
        and batches skipped at the end, also after an error.
        """
        from kafka_log.read.reader import (
            LostRange,
            PlanReader,
            dropped_range,
        )  # numpy is needed from here on
        from kafka_log.segment.scanner import Flagged

        reader = PlanReader(self._plan)
        try:
            for event in reader.read(split):
                if isinstance(event, pa.RecordBatch):
                    yield event
                elif isinstance(event, LostRange):
                    self._report(split, event.lost)
                elif isinstance(event, Flagged) and self.scan.on_damage == "drop":
                    self._report(split, dropped_range(event))
        finally:
            if self._on_read is not None:
                self._on_read(reader.bytes_read, reader.batches_skipped)

    def read_located(self, split: Split, located: Located) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split from the path that ``located`` finds for its file; nothing if
        that returns None. If damage is kept or dropped, report what is damaged or gone as lost, and
        raise nothing. Otherwise raise UnreadableError if the file cannot be read, is gone after
        MAX_LOOKUPS lookups, or goes after the first rows. Raise CodecError for damage, which
        ``ends_corrupt_files`` reports as lost instead.
        """
        for left in reversed(range(MAX_LOOKUPS)):
            begun = False
            try:
                if (found := located(split)) is not None:
                    for batch in self.read(found):
                        begun = True
                        yield batch
                return
            except UnreadableError as error:
                if begun or not left or not is_gone(error):
                    raise

    def _report(self, split: Split, lost: Lost | None) -> None:
        """Call ``on_lost`` with the part of a lost range that lies in the offsets of a split."""
        if self._on_lost is not None and lost is not None:
            self._on_lost(split.segment.path, within_split(lost, split))

    def _row_format(self, size: int) -> RowFormat:
        """Return the converter of decoded rows: SparkRows for records, ViewRows if the scan reads a
        view. Under the engine ``auto``, ``size``, the bytes of segments to read, decides whether
        kernels decode a view: only if they are installed and save time.
        """
        scan = self.scan
        if scan.view is None:
            from pyspark_kafka_log.rows import SparkRows  # numpy is needed from here on

            return SparkRows(scan)
        from kafka_log.read.topic_views import ViewRows

        return ViewRows(
            scan.topic_view,
            scan.schema,
            is_strict=scan.policy is Policy.STRICT,
            keeps_damage=scan.on_damage != "raise",
            limits=scan.limits,
            engine=scan.engine,
            size=size,
        )


def choose_engine(splits: Iterable[Split], scan: Scan) -> Engine:
    """Return the engine that reads all of the splits: the one of ``scan``, or under ``auto`` the faster one for their bytes."""
    size = sum(split.size for split in splits)
    return "arrow" if use_kernels(size, scan.engine) else "construct"


def read_splits(
    splits: Iterable[Split],
    scan: Scan,
    on_lost: OnLost | None = None,
    on_read: OnRead | None = None,
    located: Located | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of splits in order, each from where ``located`` finds its file; skip it if
    that returns None. Join small batches, also across splits, until they have ``batch_rows /
    ENOUGH`` rows, within ``batch_rows`` and ``batch_bytes``. Report losses to ``on_lost`` and
    amounts read to ``on_read``. Raise CodecError for damage and unreadable files unless damage is
    kept or dropped; with ``ends_corrupt_files``, only for a file that is missing or may not be
    read.

    Args:
        splits: Read in this order. Their bytes together decide whether kernels read.
        scan: How they are read.
        on_lost: Called for each lost range and each dropped batch, if damage is no error.
        on_read: Called for each split with what was read of it.
        located: Returns where the file of a split is when its turn comes. None: where the split says.
    """
    from pyspark_kafka_log.rows import rows_bytes  # numpy is needed from here on

    splits = tuple(splits)
    reader = TaskReader(scan, splits, on_lost, on_read)
    small: list[pa.RecordBatch] = []
    rows = size = 0
    for split in splits:
        batches = reader.read(split) if located is None else reader.read_located(split, located)
        for batch in batches:
            more = rows_bytes(batch)
            if small and (
                rows + batch.num_rows > scan.batch_rows or size + more > scan.batch_bytes
            ):
                yield _join(small)
                small, rows, size = [], 0, 0
            small.append(batch)
            rows += batch.num_rows
            size += more
            if rows >= scan.batch_rows // ENOUGH:
                yield _join(small)
                small, rows, size = [], 0, 0
    if small:
        yield _join(small)


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of at least one record batch as one. A single one is not copied."""
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def read_split(
    split: Split, scan: Scan, on_lost: OnLost | None = None, on_read: OnRead | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one split as they are read. Report losses to ``on_lost`` and amounts read
    to ``on_read``. Raise CodecError for damage and an unreadable file unless damage is kept or
    dropped; with ``ends_corrupt_files``, only if the file is missing or may not be read.
    """
    return TaskReader(scan, (split,), on_lost, on_read).read(split)


def within_split(lost: Lost, split: Split) -> Lost:
    """Return a lost range limited to the selected offsets of its split; ``read`` becomes 0 if that
    changes an offset. If the range begins at byte 0, an unknown offset before it is one less than
    the base offset of the segment. If it reaches the end of the segment, an unknown offset after it
    is the base offset of the next segment, if there is one. An offset becomes None if these base
    offsets contradict it. Offsets in ``around`` replace those of the range. Offsets that do not
    ascend, and a single one, bound nothing, and stay.
    """
    after, before = lost.around or (lost.after_offset, lost.before_offset)
    segment = split.segment
    if after is None and lost.start == split.start == 0 and segment.has_canonical_name:
        after = segment.base_offset - 1
    if before is None and lost.end >= segment.size:
        before = split.next_offset
    # No checksum covers the offset of a batch: one that the names of segments contradict is none.
    if after is not None and segment.has_canonical_name and after < segment.base_offset - 1:
        after = None
    following = split.next_offset
    if before is not None and following is not None and before > following:
        before = None
    whole = after, before
    if after is not None and before is not None and after < before:
        low, high = split.rows.offsets
        after = after if low is None else min(max(after, low - 1), before - 1)
        before = before if high is None else max(min(before, high), after + 1)
    read = lost.read if (after, before) == whole else 0  # no one knows which of them are selected
    return replace(lost, after_offset=after, before_offset=before, around=None, read=read)
