"""Plan a query: choose segments, cut them, and pack splits into tasks."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import pairwise, starmap
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from kafka_log import Segment
from kafka_log.logs.broker_files import list_proof_files, log_directory_of, read_broker_files
from kafka_log.logs.incomplete_tails import ReadBroker
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.offset_ranges import within_offsets
from kafka_log.read.isolation import Known, PartitionFilters
from kafka_log.read.plan import Split
from kafka_log.read.selection import filter_for_segment
from kafka_log.segment.model import Policy, describe_lost
from kafka_log.segment.ranges import EVERYTHING, Range
from kafka_log.segment.urls import is_url
from pyspark_kafka_log.options import Options
from pyspark_kafka_log.splits.cuts import find_selected_runs, intersect_runs, split_segment
from pyspark_kafka_log.splits.filters import EVERY_ROW, RowRanges, intersect_ranges
from pyspark_kafka_log.splits.logs import Log
from pyspark_kafka_log.splits.offset_ranges import list_losses, raise_or_warn, resolve_offsets
from pyspark_kafka_log.splits.query_logs import QueryLogs

MIN_TASK_BYTES = 4 << 20
"""Minimum bytes of a task, if there are enough: starting a task costs as much as reading some of them."""

OPEN_COST_BYTES = 256 << 10
"""What opening a file costs, in bytes that are read in that time."""

Tasks = list[tuple[Split, ...]]


class Plan(NamedTuple):
    """The tasks of a query, and the transactions that planning has found."""

    tasks: Tasks
    transactions: Known


MAX_PLANS = 16
MAX_CACHED_SPLITS = 200_000
"""Splits of all plans that are kept, some 100 bytes each."""


def plan_key(logs: Sequence[Log], asked: object) -> str:
    """Return a SHA-256 digest of the logs' files (paths, sizes, states, modification times) and of
    ``asked``, the parameters of the plan. Equal digests stand for equal plans. A time that cannot
    be read counts as -1.

    Transactions may also come from files beside these. Writing such a file changes the time of the directory, which is part of the digest.
    """
    files = [
        (
            str(log.directory),
            _modified_ns(log.directory),
            [(s.path.name, s.size, s.state, s.offsets, _modified_ns(s.path)) for s in log.segments],
        )
        for log in logs
    ]
    return hashlib.sha256(repr((files, asked)).encode()).hexdigest()


def _list_proof_files(log: Log) -> list[str]:
    """Return the names of the broker's files that may prove a loss at the end of a log on a disk;
    ``[]`` for a log in a store, and if the log directory may not be searched.
    """
    if is_url(log.directory):
        return []
    try:
        return list_proof_files(log_directory_of(log.directory))
    except OSError:
        return []


def _modified_ns(path: Path) -> int:
    """Return the modification time of a path in nanoseconds since 1970; -1 if it cannot be read."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return -1


class PlanCache:
    """A thread-safe cache of the most recent plans."""

    def __init__(self, kept: int = MAX_PLANS, splits: int = MAX_CACHED_SPLITS) -> None:
        """Limit the cache to ``kept`` plans with ``splits`` splits in total."""
        self._kept = kept
        self._most = splits
        self._plans: OrderedDict[str, Plan] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str, make: Callable[[], Plan]) -> Plan:
        """Return the cached plan of a key; otherwise call ``make``, cache its plan, and return it.
        ``make`` runs without the lock, so that two threads may make a plan; the later one is kept.
        Drop the plans not used for longest while the cache exceeds its limits; a plan that exceeds
        them alone empties it. Raise what ``make`` raises.
        """
        with self._lock:
            found = self._plans.get(key)
            if found is not None:
                self._plans.move_to_end(key)
                return found
        made = make()
        with self._lock:
            self._plans[key] = made
            self._plans.move_to_end(key)
            while len(self._plans) > self._kept or self._splits() > self._most:
                self._plans.popitem(last=False)
        return made

    def clear(self) -> None:
        """Remove all plans."""
        with self._lock:
            self._plans.clear()

    def _splits(self) -> int:
        return sum(len(task) for plan in self._plans.values() for task in plan.tasks)


PLAN_CACHE = PlanCache()
"""Plans of this process: the next action on the same DataFrame needs the same plan."""


class Sized(Protocol):
    """Something to read, with a size in bytes."""

    @property
    def size(self) -> int:
        """Return the size in bytes."""


S = TypeVar("S", bound=Sized)


def plan(
    options: Options,
    query: RowRanges = EVERY_ROW,
    parallelism: int | None = None,
    seen: QueryLogs | None = None,
) -> Tasks:
    """Return the splits of each task, in the order of topics, partitions and offsets. Use a cached
    plan if files and parameters are unchanged. Add what is found to ``seen``. Raise OptionError,
    DirectoryError or OSError if the selected logs cannot be found or listed; OptionError if no
    record has the starting time, or with ``failOnDataLoss`` if a log lacks a named offset, and
    DataLossError if records are lost that no task misses; CodecError for damage in transactions, or
    before the record of a time, unless the mode or ``ignoreCorruptFiles`` accepts it.

    A file is read up to its present size, so that a task that runs again reads the same rows. Plans are cached as long as sizes and times
    of the files stay the same.

    Args:
        options: The options of the query.
        query: The offsets, timestamps, topics and partitions that its filters leave.
        parallelism: About how many tasks to make, if none becomes too small; by default one for each processor. No task has more than
            ``splitBytes`` unless a single batch has.
        seen: What other scans of the same query have found. This scan reads the same logs, and adds what it finds.
    """
    seen = seen or QueryLogs()
    logs = seen.select(options)
    # The columns of a view may have the names of those by which partitions are chosen.
    wanted = [log for log in logs if options.view is not None or query.may_contain(*log.key)]
    beside = [(seen.starts.get(log), _list_proof_files(log)) for log in wanted]
    asked = options, query, parallelism, beside
    planned = PLAN_CACHE.get(
        plan_key(wanted, asked), lambda: _make_plan(wanted, options, query, parallelism, seen)
    )
    seen.transactions.update(planned.transactions)
    return list(planned.tasks)


def _make_plan(
    logs: Sequence[Log],
    options: Options,
    query: RowRanges,
    parallelism: int | None,
    seen: QueryLogs,
) -> Plan:
    """Return a new plan for logs: their segments cut into splits, several small splits to a task;
    with maxRecordsPerPartition each split is a task. The plan has the transactions of ``seen`` and
    those that were found; ``seen`` keeps its own. Raise OptionError if no record has the starting
    time, or with ``failOnDataLoss`` if a log lacks a named offset, and DataLossError if
    records are lost that no task misses; CodecError for damage in transactions, or before the record of a time,
    unless the mode or ``ignoreCorruptFiles`` accepts it.
    """
    total = sum(segment.size for log in logs for segment in log.segments)
    enough = target_task_bytes(total, options, parallelism)

    known, read_broker = dict(seen.transactions), cache(read_broker_files)

    def splits_of(log: Log) -> list[Split]:
        return list(_log_splits(log, options, query, enough, seen.starts, known, read_broker))

    in_stores = any(not isinstance(part.path, Path) for log in logs for part in log.segments)
    splits = [
        part for parts in map_concurrently(splits_of, logs, waits=in_stores) for part in parts
    ]
    if options.max_records is not None:
        return Plan([(part,) for part in splits], known)
    return Plan(list(pack(splits, enough)), known)


def target_task_bytes(total: int, options: Options, parallelism: int | None) -> int:
    """Return the maximum number of bytes that one task should read if all tasks together read
    ``total`` bytes: a share for each of ``parallelism`` (default: one for each processor), at least
    MIN_TASK_BYTES, at most splitBytes, and less if minPartitions asks for more tasks.
    """
    enough = min(
        options.split_bytes,
        max(MIN_TASK_BYTES, total // (parallelism or os.cpu_count() or 1)),
    )
    if options.min_partitions is not None:
        enough = min(enough, max(1, total // options.min_partitions))
    return enough


def pack(splits: Iterable[S], enough: int) -> Iterator[tuple[S, ...]]:
    """Yield tuples of consecutive splits, in order. The bytes of a tuple, plus OPEN_COST_BYTES for
    each split after the first, are at most ``enough``. A larger split is alone in its tuple.
    """
    held: list[S] = []
    size = 0
    for part in splits:
        cost = part.size + OPEN_COST_BYTES
        if held and size + cost > enough + OPEN_COST_BYTES:
            yield tuple(held)
            held, size = [], 0
        held.append(part)
        size += cost
    if held:
        yield tuple(held)


def _log_splits(
    log: Log,
    options: Options,
    query: RowRanges,
    split_bytes: int,
    starts: LogStarts,
    known: Known,
    read_broker: ReadBroker,
) -> Iterator[Split]:
    """Yield the splits of one log that may contain rows of options and query, in order, with the
    row selection of each. With ignoreCorruptFiles each segment is one split. Raise OptionError if
    no record has the starting time, unless the strategy is ``latest``. With ``failOnDataLoss``
    raise OptionError if the log lacks a named offset or the start is after the end, and
    DataLossError if records are lost that no task misses, or damaged offsets leave open which are
    committed; without it only warn of the latter two. Raise
    CodecError for damage in transactions, or before the record of a time, unless the mode or
    ``ignoreCorruptFiles`` accepts it.
    """
    first, end = resolve_offsets(log, options, starts, known)
    of_options = intersect_ranges((first, end), EVERYTHING)
    wanted = options.planning
    if options.view is None and options.ends_corrupt_files:
        # Damage that a filter hides would end the file for another query: rows may not come and go with filters.
        wanted = wanted.but(offsets=intersect_ranges(of_options, (None, query.offsets[1])))
    elif options.view is None:
        wanted = wanted.but(
            offsets=intersect_ranges(of_options, query.offsets), timestamps=query.timestamps
        )
    else:
        wanted = wanted.but(offsets=of_options)  # columns of a view have these names too
    of_view = options.view is not None
    filters = PartitionFilters(wanted, options.engine, of_view=of_view, starts=starts, known=known)
    losses = list_losses(log, wanted.offsets, options, starts, read_broker)
    losses += starmap(describe_lost, filters.find_transaction_losses(log))
    raise_or_warn(losses, options)
    following = dict(pairwise(log.segments))
    # Headers of a store would be asked for one by one. Damage that lies outside of the range stays unseen, as in a scan.
    wants_rows = options.view is None and options.max_records is None
    narrows = wants_rows and wanted.raises and wanted.policy is Policy.KAFKA
    segments = filters.segments(log)
    if options.view is None:
        segments = within_offsets(segments, query.offsets, query.only_offsets)
    for segment in segments:
        next_offset = next_base_offset(segment, following)
        # Tasks carry only the transactions that have records in their segment.
        here = filter_for_segment(
            filters.filter_for(log, segment.state), segment, following.get(segment)
        )
        if not within_offsets([segment], here.offsets):
            continue  # it lies behind the last stable offset
        if options.ends_corrupt_files:
            # The rest of a file is no task's of its own.
            yield Split(segment, 0, segment.size, here, next_offset)
            continue
        is_remote = not isinstance(segment.path, Path)
        runs = None
        # A batch that seems to lie behind the last stable offset is read: its offset may be damaged.
        span = (here.offsets[0], wanted.offsets[1]) if here.verifies_order else here.offsets
        is_part = query.only_offsets or not _is_within(segment, next_offset, span)
        if narrows and not is_remote and is_part:
            runs = find_selected_runs(segment, span, query.only_offsets)
        # Where damage is no error, a broker's reader gives nothing of a file after it: cuts are made up to there only.
        for part in split_segment(
            segment,
            split_bytes,
            here.offsets if is_remote else EVERYTHING,
            by_index=options.selection.raises,
            records=options.max_records,
        ):
            for one in (part,) if runs is None else intersect_runs(part, runs):
                yield replace(one, rows=here, next_offset=next_offset)


def _is_within(segment: Segment, next_offset: int | None, offsets: Range) -> bool:
    """Return whether all offsets of a segment lie in a range, by its name and that of the next one: then no header leaves out a batch."""
    low, high = offsets
    begins = low is None or (segment.has_canonical_name and segment.base_offset >= low)
    return begins and (high is None or (next_offset is not None and next_offset <= high))


def next_base_offset(segment: Segment, following: Mapping[Segment, Segment]) -> int | None:
    """Return the base offset of the segment after ``segment``; None if there is none, or its name does not give an offset."""
    after = following.get(segment)
    return after.base_offset if after is not None and after.has_canonical_name else None


THREADS = 8
"""Maximum number of threads, and so of requests at the same time."""

MIN_WAIT_S = 0.02
"""Seconds of waiting that are not worth threads."""

A = TypeVar("A")
B = TypeVar("B")
Clock = Callable[[], tuple[float, float]]
"""Seconds that have gone by, and seconds that this thread has worked."""


def read_clock() -> tuple[float, float]:
    """Return wall-clock seconds, and CPU seconds of this thread."""
    return time.perf_counter(), time.thread_time()


def map_concurrently(
    work: Callable[[A], B], items: Sequence[A], *, waits: bool = False, clock: Clock = read_clock
) -> list[B]:
    """Return the results of ``work`` for each item, in the order of ``items``. Use up to 8 threads
    from the first item if ``waits``, otherwise once calls have waited for disks or networks longer
    than they computed. Raise what ``work`` raises for the first item in order that fails, after the
    calls that run have ended; calls that have not begun are dropped.

    Python runs one thread at a time: on cached files eight threads take twice the time of one.
    """
    done: list[B] = []
    begun, busy = clock()
    while not waits and len(done) < len(items):
        done.append(work(items[len(done)]))
        wall, cpu = clock()
        waited = (wall - begun) - (cpu - busy)
        waits = waited > max(MIN_WAIT_S, cpu - busy)
    left = items[len(done) :]
    if len(left) < 2:
        return done + list(map(work, left))
    with ThreadPoolExecutor(min(THREADS, len(left))) as threads:
        return done + list(threads.map(work, left))
