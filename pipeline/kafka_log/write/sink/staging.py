"""Segments that one task writes for its rows, in a directory that no reader looks into."""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.casts import RowRefused
from kafka_log.logs.partitions import Segment
from kafka_log.segment.framing import HeaderColumns
from kafka_log.segment.offsets_of_files import MAX_RELATIVE
from kafka_log.segment.versions import has_field
from kafka_log.write.encoding import encode, split_batch
from kafka_log.write.indexes import write_indexes
from kafka_log.write.log_writer import BOUNDS, LogWriter, SegmentRoller
from kafka_log.write.sink.log_format import WriteJob
from kafka_log.write.sink.rows import PartitionRows, SinkError, SinkRows
from kafka_log.write.verification import NOT_READ_BACK, compare_written

PREFIX, SUFFIX = ".kafka-log-", ".writing"
"""What the names of the directories of jobs begin and end with. No reader takes such a name for a partition's."""

BATCH_ROWS = 16_384
FLUSH_BYTES = 4 << 20
OLD_FLUSH_BYTES = 1 << 20
HELD_BYTES = 64 << 20
"""Bytes of rows that a task holds, for all partitions."""

OPEN_FILES = 128

_MARK_S = 600
"""Seconds after which a task marks its directory as in use, though it has made no file. See :data:`kafka_log.write.sink.commit_journal.STALE_S`."""


def job_directory(job: WriteJob) -> Path:
    """Return the directory that a job writes to before it is committed."""
    return Path(job.target) / f"{PREFIX}{job.id}{SUFFIX}"


@dataclass(frozen=True, slots=True)
class Staged:
    """The segments of one partition that one task wrote.

    Offsets go from ``first`` to ``end`` (excluded). They are those of the rows if ``given``, else they count from 0. ``bases`` are the base
    offsets in the names of the segments, ``directory`` is relative to that of the job.
    """

    topic: str
    partition: int
    directory: str
    first: int
    end: int
    records: int
    bytes: int
    given: bool
    bases: tuple[int, ...]

    @classmethod
    def many_from_json(cls, text: str) -> list[Self]:
        """Return the staged segments that :func:`to_json` wrote."""
        return [cls(**one | {"bases": tuple(one["bases"])}) for one in json.loads(text)]


def to_json(staged: Iterable[Staged]) -> str:
    """Return staged segments as JSON, for the driver."""
    return json.dumps([asdict(one) for one in staged])


def write_task(job: WriteJob, task: int, batches: Iterable[pa.RecordBatch]) -> list[Staged]:
    """Write the rows of the task number ``task`` into a new directory of the job, verify them, and
    return the staged segments of each partition, by topic and number; ``[]`` without rows. Raise
    SinkError for a column or row that cannot be written; CodecError if what was written does not
    read as these rows; OSError if writing fails. Errors of iterating ``batches`` pass through. After
    an error nothing of the task is left.
    """
    place = job_directory(job)
    attempt = place / f"{task}-{uuid.uuid4().hex}"
    attempt.mkdir(parents=True)
    rows = SinkRows(job, task)
    made = _Partitions(job, attempt)
    marked = time.monotonic()
    try:
        for batch in batches:
            if time.monotonic() - marked > _MARK_S:
                marked = time.monotonic()
                os.utime(attempt)
            for start in range(0, batch.num_rows, BATCH_ROWS):
                for some in split_batch(batch.slice(start, BATCH_ROWS)):
                    for part in rows.of(some):
                        made.add(part)
        return made.finished()
    except BaseException:
        made.close()
        shutil.rmtree(attempt, ignore_errors=True)
        with suppress(OSError):  # other tasks have something there
            place.rmdir()
        raise


class _Partitions:
    """The partitions that a task writes, and the rows in memory."""

    def __init__(self, job: WriteJob, attempt: Path) -> None:
        self._job = job
        self._attempt = attempt
        self._of: dict[tuple[str, int], _Partition] = {}
        self._held = 0

    def add(self, part: PartitionRows) -> None:
        """Buffer rows of a partition. Write its rows if it holds its maximum of bytes (4 MiB, or 1
        MiB of compressed legacy messages), or the rows of all partitions if they hold more than 64
        MiB (HELD_BYTES) together. Raise SinkError for a row that cannot be written; WrittenError if
        what was written does not read as the rows; OSError if writing fails.
        """
        key = part.topic, part.partition
        one = self._of.get(key)
        if one is None:
            one = self._of[key] = _Partition(self._job, self._attempt, *key)
        self._held += one.add(part)
        if one.held >= one.most:
            self._flush(one)
        elif self._held > HELD_BYTES:
            for other in self._of.values():
                self._flush(other)

    def _flush(self, partition: _Partition) -> None:
        """Write the buffered rows of a partition. Then close all open files, which are opened again
        later, if more than OPEN_FILES are open. Raise SinkError for a row that cannot be written;
        WrittenError if what was written does not read as the rows; OSError if writing fails.
        """
        self._held -= partition.held
        partition.flush()
        opened = [other.log for other in self._of.values() if other.log.is_open]
        if len(opened) > OPEN_FILES:
            for log in opened:
                log.release()

    def close(self) -> None:
        """Close all files and ignore errors: nothing of them is used."""
        for one in self._of.values():
            with suppress(OSError):
                one.log.release()

    def finished(self) -> list[Staged]:
        """Return all partitions, complete, ordered by topic and number."""
        found = [one.finished() for one in self._of.values()]
        return sorted(found, key=lambda one: (one.topic, one.partition))


class _Partition:
    """One partition that a task writes: buffered rows and segments."""

    def __init__(self, job: WriteJob, attempt: Path, topic: str, partition: int) -> None:
        self._format = job.format
        self._job_directory = job_directory(job)
        self._topic, self._partition = topic, partition
        self._directory = attempt / f"{topic}-{partition}"
        self._directory.mkdir()
        self.log = LogWriter(self._directory)
        self._out = SegmentRoller(self.log, self._format.segment_bytes)
        self._rows: list[PartitionRows] = []
        self._first: int | None = None
        self._next = 0
        self._records = 0
        self._given = False
        self._is_old = self._format.codec != "none" and not has_field(
            self._format.magic, "record_count"
        )
        self.held = 0
        self.most = OLD_FLUSH_BYTES if self._is_old else FLUSH_BYTES

    def add(self, part: PartitionRows) -> int:
        """Buffer rows without writing any, and return their size in bytes."""
        size: int = part.rows.nbytes
        self._rows.append(part)
        self.held += size
        return size

    def flush(self) -> None:
        """Write the buffered rows to the partition's segments; do nothing without rows. Raise
        SinkError for a row that cannot be written; WrittenError if what was written does not read
        as the rows; OSError if writing fails.
        """
        held, self._rows, self.held = self._rows, [], 0
        if not held:
            return
        table = pa.Table.from_batches([part.rows for part in held]).combine_chunks()
        (rows,) = table.to_batches()
        numbers = np.concatenate([part.numbers for part in held])
        rows = self._with_offsets(rows, numbers)
        offsets = rows.column("offset").to_numpy()
        if not self.log.segments:
            self.log.begin(int(offsets[0]))
        try:
            self._write(rows, offsets)
        except RowRefused as error:
            at = None if error.row is None else int(numbers[error.row])
            raise SinkError(error.reason, at, error.column) from None
        self._records += len(offsets)
        self._next = int(offsets[-1]) + 1

    def _with_offsets(self, rows: pa.RecordBatch, numbers: object) -> pa.RecordBatch:
        """Return rows with a column ``offset``: their own, or new ones that continue the rows
        before. Raise SinkError if own offsets do not ascend, also after the rows before;
        ``numbers`` are the rows' numbers in the task, for the error.
        """
        if "offset" not in rows.schema.names:
            self._first = 0
            offsets = np.arange(self._next, self._next + rows.num_rows)
            return rows.append_column("offset", pa.array(offsets, pa.int64()))
        self._given = True
        offsets = rows.column("offset").to_numpy()
        if self._first is None:
            self._first = self._next = int(offsets[0])
        before = np.append(self._next - 1, offsets[:-1])
        wrong = np.flatnonzero(offsets <= before)
        if len(wrong):
            at = int(wrong[0])
            reason = f"{offsets[at]} is not after {before[at]}: offsets must rise in {self._topic}-{self._partition}"
            raise SinkError(reason, int(numbers[at]), "offset")  # type: ignore[index]
        return rows

    def _write(self, rows: pa.RecordBatch, offsets: object) -> None:
        """Encode rows, at most the configured number of records a batch."""
        step = self._format.batch_records or rows.num_rows
        for start in range(0, rows.num_rows, step):
            self._encode(rows.slice(start, step), start)

    def _encode(self, rows: pa.RecordBatch, start: int) -> None:
        """Encode rows, append them to the segments and verify what was written. Raise RowRefused
        for a row that no batch can hold, with its number counted from ``start``; WrittenError if
        what was written does not read as the rows; OSError if writing fails.
        """
        to = self._format
        offsets = rows.column("offset")
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        if self._is_old and last - first > MAX_RELATIVE:
            half = rows.num_rows // 2
            self._encode(rows.slice(0, half), start)
            self._encode(rows.slice(half), start + half)
            return
        epoch: dict[str, object] = (
            {"leader_epoch": 0} if has_field(to.magic, "leader_epoch") else {}
        )
        pieces = encode(
            rows,
            magic=to.magic,
            codec=to.codec,
            level=to.level,
            batch_bytes=to.batch_bytes,
            **epoch,
        )
        mark = self.log.mark()
        try:
            if self._is_old:  # these do not say where they begin
                self._out.write(b"".join(pieces), first, last)
            else:
                self._out.write_pieces(pieces, HeaderColumns(BOUNDS, os.fspath(self._directory)))
        except RowRefused as error:
            if error.row is not None:
                error.row += start
            raise
        compare_written(rows, self.log.since(mark))

    def finished(self) -> Staged:
        """Write the buffered rows and the indexes, and return the staged segments. Raise SinkError
        for a row that cannot be written; OSError if a file cannot be written, or what was written
        cannot be read again; CodecError if what was written does not read as the rows, or an index
        is wrong.
        """
        self.flush()
        self.log.release()
        paths = self.log.segments
        segments = [
            Segment(path, self._topic, self._partition, base, path.stat().st_size, rolled=True)
            for path, base in paths
        ]
        if write_indexes(segments, self._directory):
            raise OSError(f"{self._directory}: {NOT_READ_BACK}")
        for path in self._directory.glob("*.snapshot"):
            path.unlink()  # what they say depends on the log that these are added to
        return Staged(
            self._topic,
            self._partition,
            os.fspath(self._directory.relative_to(self._job_directory)),
            self._first or 0,
            self._next,
            self._records,
            sum(segment.size for segment in segments),
            self._given,
            tuple(base for _, base in paths),
        )
