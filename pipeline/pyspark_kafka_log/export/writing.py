"""Write the files of one task: its rows as Parquet, a file for each combination of partition values."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from itertools import groupby
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.read.parquet import ROW_GROUP, Compression, GroupedWriter
from kafka_log.read.plan import Split
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.kernels import use_kernels
from kafka_log.segment.model import OnDamage
from pyspark_kafka_log.export.locations import Location
from pyspark_kafka_log.losses import Losses
from pyspark_kafka_log.moved_files import make_locator
from pyspark_kafka_log.options import Options
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.task_reader import read_splits

PARTITION_COLUMNS = ("topic", "partition", "date")
"""By which files may be parted. ``date`` is that of the timestamp, in UTC."""

REQUIRED_COLUMNS = ("topic", "partition", "offset", "timestamp")
"""Columns that are read in any case: the state of an export, and its partitions, come from them."""

MAX_BUFFERED_BYTES = 128 << 20
"""What a task holds of rows that are not written yet, about."""

MAX_OPEN_FILES = 64
"""Files that a task has open at once, at most."""

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What a directory is called whose rows have no value: the name that Hive, Spark and Arrow give it."""

STATISTICS = ("partition", "offset", "timestamp")
"""Columns whose minimum and maximum a task reports."""

Values = tuple[str | None, ...]
"""A value, as text, for each partition column."""


def read_columns(columns: Sequence[str], on_damage: OnDamage) -> tuple[str, ...]:
    """Return the columns to read for an export of ``columns``."""
    told = ("problem",) if on_damage == "keep" else ()
    return tuple(dict.fromkeys([*columns, *REQUIRED_COLUMNS, *told]))


@dataclass(frozen=True)
class Job:
    """How the tasks of an export read and write. With ``in_files`` the files contain partition columns, not only the names of directories."""

    id: str
    place: Location
    columns: tuple[str, ...]
    partition_by: tuple[str, ...]
    in_files: bool
    scan: Scan
    options: Options
    compression: Compression = "zstd"

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the files."""
        return pa.schema([self.scan.schema.field(name) for name in self.file_columns])

    @property
    def file_columns(self) -> tuple[str, ...]:
        """The columns of the files."""
        return tuple(n for n in self.columns if self.in_files or n not in self.partition_by)


@dataclass(frozen=True)
class File:
    """A complete file. ``path`` is relative to the location of the job; ``least`` and ``greatest`` are of :data:`STATISTICS`, times in microseconds."""

    path: str
    rows: int
    size: int
    values: Values
    least: Mapping[str, int] = field(default_factory=dict)
    greatest: Mapping[str, int] = field(default_factory=dict)


@dataclass
class TaskResult:
    """The files and counters of one or more tasks. ``ends`` holds topic, partition and next offset."""

    files: list[File] = field(default_factory=list)
    ends: list[tuple[str, int, int]] = field(default_factory=list)
    damaged: int = 0
    lost_bytes: int = 0
    lost_places: int = 0
    lost: list[str] = field(default_factory=list)

    def add(self, other: TaskResult) -> None:
        """Add the result of another task."""
        for name in ("files", "ends", "damaged", "lost_bytes", "lost_places", "lost"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def next_offsets(self) -> dict[tuple[str, int], int]:
        """The offset after the highest exported one, by topic and partition, over all tasks.
        Partitions without rows are missing.
        """
        out: dict[tuple[str, int], int] = {}
        for topic, partition, end in self.ends:
            out[topic, partition] = max(out.get((topic, partition), 0), end)
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> TaskResult:
        """Return the result of :meth:`to_dict` after JSON."""
        files = [File(**one | {"values": tuple(one["values"])}) for one in plain["files"]]
        ends = [(topic, partition, end) for topic, partition, end in plain["ends"]]
        return cls(**dict(plain) | {"files": files, "ends": ends})


def write_task(number: int, splits: tuple[Split, ...], job: Job) -> TaskResult:
    """Write the rows of splits into new files of the job, warn of lost ranges, and return files,
    next offsets (of partitions with rows) and losses. Rows that stand for lost records are written
    only with the column ``problem``. If that fails, remove the files, and raise the error:
    CodecError for damage and unreadable files unless the mode accepts it; OSError if a file cannot
    be written or removed.
    """
    losses = Losses()
    # The same task may run twice at once, or again after it was lost.
    files = TaskFiles(job, f"{number:05}-{uuid.uuid4().hex[:8]}")
    kernels = use_kernels(sum(split.size for split in splits), job.scan.engine)
    scan = replace(job.scan, engine="arrow" if kernels else "construct")
    ends: dict[tuple[str, int], int] = {}
    damaged = 0
    try:
        for (topic, partition), of_one in groupby(splits, key=_log_key):
            for batch in read_splits(of_one, scan, losses.add, located=make_locator(job.options)):
                if "problem" in scan.columns:
                    is_record = batch.column("offset").is_valid()
                    told = pc.and_(is_record, batch.column("problem").is_valid())
                    damaged += pc.sum(told).as_py() or 0
                    if "problem" not in job.columns:
                        batch = batch.filter(is_record)  # the others say where there is none
                if not batch.num_rows:
                    continue
                last = pc.max(batch.column("offset")).as_py()
                if last is not None:
                    ends[topic, partition] = max(ends.get((topic, partition), 0), last + 1)
                known = {"topic": topic, "partition": str(partition)}
                for day, rows in (
                    split_by_day(batch) if "date" in job.partition_by else [(None, batch)]
                ):
                    values = ((known | {"date": day})[name] for name in job.partition_by)
                    files.write(tuple(values), rows)
        files.close()
    except BaseException:
        files.remove()
        raise
    losses.warn()
    return TaskResult(
        files.whole,
        [(topic, partition, end) for (topic, partition), end in ends.items()],
        damaged,
        losses.byte_count,
        losses.places,
        losses.first,
    )


def _log_key(split: Split) -> tuple[str, int]:
    """Return the topic and partition of a split."""
    return utf8(split.segment.topic), split.segment.partition


def split_by_day(batch: pa.RecordBatch) -> Iterator[tuple[str | None, pa.RecordBatch]]:
    """Yield an ISO date and the rows of that day in UTC, days ascending, rows in their order. The
    date is None for each day that Python's date does not have: before year 1 first, after 9999
    last. Null timestamps count as the first day after 9999-12-31. Yield nothing for an empty batch.
    """
    if not batch.num_rows:
        return
    times = batch.column("timestamp")
    numbers = times.cast(pa.int64()).fill_null(_NO_DAY * _DAY_US).to_numpy()
    days = numbers // _DAY_US
    if (days == days[0]).all():
        yield _iso_date(int(days[0])), batch
        return
    order = np.argsort(days, kind="stable")
    ordered = days[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
        yield _iso_date(int(ordered[start])), batch.take(pa.array(order[start:end]))


_DAY_US = 24 * 3600 * 1_000_000
_DAY_0 = date(1970, 1, 1).toordinal()
_NO_DAY = date.max.toordinal() - _DAY_0 + 1


def _iso_date(number: int) -> str | None:
    """Return the ISO date of a number of days since 1970, None for years that Python's date does not have."""
    ordinal = number + _DAY_0
    within = date.min.toordinal() <= ordinal <= date.max.toordinal()
    return date.fromordinal(ordinal).isoformat() if within else None


class TaskFiles:
    """The files of one task. Rows are buffered until there are enough for a row group."""

    def __init__(self, job: Job, name: str) -> None:
        """Prepare files of a job whose names contain ``name``; none is created yet."""
        self.job = job
        self.name = name
        self.whole: list[File] = []
        self._open: dict[Values, _File] = {}
        self._count = 0
        self._held = 0

    def write(self, values: Values, rows: pa.RecordBatch) -> None:
        """Add rows to the open file of these partition values, or to a new one. If MAX_OPEN_FILES
        are open, complete the one that got rows longest ago first. Rows are buffered, and written
        as a row group when the file has ROW_GROUP of them; above MAX_BUFFERED_BYTES in all files,
        those of the file with the most bytes are. Raise OSError if writing fails.
        """
        file = self._open.pop(values, None)
        if file is None:
            if len(self._open) >= MAX_OPEN_FILES:
                self._close(next(iter(self._open)))  # the one that had no rows for longest
            file = _File(self.job, values, f"part-{self.job.id}-{self.name}-{self._count}.parquet")
            self._count += 1
        self._open[values] = file
        self._held += file.rows.hold(rows.select(list(self.job.file_columns)))
        if file.rows.rows_held >= ROW_GROUP:
            self._held -= file.rows.flush()
        while self._held > MAX_BUFFERED_BYTES:
            self._held -= max(
                (one.rows for one in self._open.values()), key=lambda rows: rows.bytes_held
            ).flush()

    def close(self) -> None:
        """Complete all files."""
        for values in list(self._open):
            self._close(values)

    def _close(self, values: Values) -> None:
        """Complete the open file of these partition values, and append it to ``whole``. Raise
        KeyError if none is open.
        """
        file = self._open[values]
        self._held -= file.rows.bytes_held
        self.whole.append(file.close())
        del self._open[values]

    def remove(self) -> None:
        """Remove all files of the task, unfinished and complete ones. Raise OSError if one cannot
        be removed.
        """
        for file in self._open.values():
            file.discard()
        for whole in self.whole:
            self.job.place.remove(whole.path)


class _File:
    """An unfinished Parquet file."""

    def __init__(self, job: Job, values: Values, name: str) -> None:
        """Create the file with this name in the directory of its partition values."""
        self.job = job
        self.values = values
        self.path = "/".join([*hive_directories(job.partition_by, values), name])
        self._file = job.place.create(self.path)
        self.rows = GroupedWriter(self._file, job.schema, job.compression)

    def close(self) -> File:
        """Write the buffered rows, complete the file, and return it as a File with its path, rows,
        size in bytes and statistics.
        """
        found = self.rows.close()
        size = self.job.place.finish(self._file)
        least, greatest = _statistics(found)
        return File(self.path, found.num_rows, size, self.values, least, greatest)

    def discard(self) -> None:
        """Remove the file."""
        self.rows.abandon()
        self.job.place.discard(self._file, self.path)


def _statistics(found: Any) -> tuple[dict[str, int], dict[str, int]]:
    """Return the minimum and the maximum values of partition, offset and timestamp (in
    microseconds) from a Parquet file's metadata, by column name. Leave out a column that is
    missing, or has no statistics in some row group; all if there are no row groups.
    """
    numbers = {found.schema.column(i).path: i for i in range(found.num_columns)}
    least: dict[str, int] = {}
    greatest: dict[str, int] = {}
    for name in STATISTICS:
        if name not in numbers:
            continue
        groups = [
            found.row_group(i).column(numbers[name]).statistics for i in range(found.num_row_groups)
        ]
        if groups and all(group is not None and group.has_min_max for group in groups):
            # As they are stored: a time may be one that Python's datetime does not know.
            least[name] = min(int(group.min_raw) for group in groups)
            greatest[name] = max(int(group.max_raw) for group in groups)
    return least, greatest


def hive_directories(partition_by: tuple[str, ...], values: Values) -> list[str]:
    """Return the names of nested directories for partition values, outermost first: ``name=value``
    for each partition column, percent-encoded, as Hive names them; Hive's default partition name in
    place of None.
    """
    return [
        f"{name}={NO_VALUE if value is None else quote(value, safe='-_.')}"
        for name, value in zip(partition_by, values, strict=True)
    ]
