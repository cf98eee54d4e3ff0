"""From options to tasks: which segments, which bytes of them, which offsets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TypeVar

from kafka_log import Segment
from kafka_log.logs.log_start import LogStarts
from kafka_log.read.isolation import Known, PartitionRows
from kafka_log.read.plan import Split
from kafka_log.read.selection import of_segment, within_offsets
from kafka_log.segment.model import Policy
from kafka_log.segment.ranges import EVERYTHING, Range
from pyspark_kafka_log.bounds import offsets_of
from pyspark_kafka_log.cuts import selected_runs, split, within_runs
from pyspark_kafka_log.filters import EVERY_ROW, Pushed, narrowed
from pyspark_kafka_log.logs import Log, chosen
from pyspark_kafka_log.options import Options
from pyspark_kafka_log.plans import Planned, Plans, Tasks, key_of
from pyspark_kafka_log.query_logs import QueryLogs
from pyspark_kafka_log.waits import each

LEAST_TASK_BYTES = 4 << 20
"""A task has at least so many bytes to read, if there are as many: starting one costs as much as reading some of them."""

OPEN_COST_BYTES = 256 << 10
"""What opening a file costs, in bytes that are read in that time."""

PLANS = Plans()
"""What this process has planned: the next action on a DataFrame asks for the same."""


class Sized(Protocol):
    """A part of what is read. ``size`` is in bytes."""

    @property
    def size(self) -> int: ...


S = TypeVar("S", bound=Sized)


def plan(
    options: Options,
    query: Pushed = EVERY_ROW,
    parallelism: int | None = None,
    seen: QueryLogs | None = None,
) -> Tasks:
    """The splits of each task, in the order of topics, partitions and offsets.

    ``query`` says which rows are wanted of those that the options choose. There are about ``parallelism`` tasks or more (by default one for each
    processor), as long as none is too small, and none has more than ``splitBytes`` unless a single batch has.

    All that is read is settled here: a file is read up to the size that it has now, so that tasks that run again, and later, read the same. ``seen`` is what
    other scans of the same query have found, which is read in this one too; what this one finds is added.
    A plan is kept, and given again as long as the files have the same sizes and times.
    """
    seen = seen or QueryLogs()
    logs = chosen(seen.find(options), options)
    # The columns of a view may have the names of those by which partitions are chosen.
    wanted = [log for log in logs if options.view is not None or query.takes(*log.key)]
    asked = options, query, parallelism, [seen.starts.get(log) for log in wanted]
    planned = PLANS.get(
        key_of(wanted, asked), lambda: _planned(wanted, options, query, parallelism, seen)
    )
    seen.transactions.update(planned.transactions)
    return list(planned.tasks)


def _planned(
    logs: Sequence[Log],
    options: Options,
    query: Pushed,
    parallelism: int | None,
    seen: QueryLogs,
) -> Planned:
    total = sum(segment.size for log in logs for segment in log.segments)
    enough = task_bytes(total, options, parallelism)

    known = dict(seen.transactions)

    def of(log: Log) -> list[Split]:
        return list(_splits(log, options, query, enough, seen.starts, known))

    in_stores = any(not isinstance(part.path, Path) for log in logs for part in log.segments)
    splits = [part for parts in each(of, logs, waits=in_stores) for part in parts]
    if options.max_records is not None:
        return Planned([(part,) for part in splits], known)
    return Planned(list(packed(splits, enough)), known)


def task_bytes(total: int, options: Options, parallelism: int | None) -> int:
    """How many bytes a task reads, about, of so many."""
    enough = min(
        options.split_bytes,
        max(LEAST_TASK_BYTES, total // (parallelism or os.cpu_count() or 1)),
    )
    if options.min_partitions is not None:
        enough = min(enough, max(1, total // options.min_partitions))
    return enough


def packed(splits: Iterable[S], enough: int) -> Iterator[tuple[S, ...]]:
    """Splits put together, as long as a task has no more than enough."""
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


def _splits(
    log: Log, options: Options, query: Pushed, split_bytes: int, starts: LogStarts, known: Known
) -> Iterator[Split]:
    first, end = offsets_of(log, options, starts)
    of_options = narrowed((first, end), EVERYTHING)
    wanted = options.planning
    if options.view is None and options.ends_corrupt_files:
        # Damage that a filter hides would end the file for another query: rows may not come and go with filters.
        wanted = wanted.but(offsets=narrowed(of_options, (None, query.offsets[1])))
    elif options.view is None:
        wanted = wanted.but(
            offsets=narrowed(of_options, query.offsets), timestamps=query.timestamps
        )
    else:
        wanted = wanted.but(offsets=of_options)  # columns of a view have these names too
    of_view = options.view is not None
    of_log = PartitionRows(wanted, options.engine, of_view=of_view, starts=starts, known=known)
    following = dict(pairwise(log.segments))
    # Headers of a store would be asked for one by one. Damage that lies outside of the range stays unseen, as in a scan.
    wants_rows = options.view is None and options.max_records is None
    narrows = wants_rows and wanted.raises and wanted.policy is Policy.KAFKA
    segments = of_log.segments(log)
    if options.view is None:
        segments = within_offsets(segments, query.offsets, query.only_offsets)
    for segment in segments:
        next_offset = next_offset_of(segment, following)
        # Tasks carry only the transactions that have records in their segment.
        here = of_segment(of_log.of(log, segment.state), segment, following.get(segment))
        if not within_offsets([segment], here.offsets):
            continue  # it lies behind the last stable offset
        if options.ends_corrupt_files:
            # The rest of a file is no task's of its own.
            yield Split(segment, 0, segment.size, here, next_offset)
            continue
        is_remote = not isinstance(segment.path, Path)
        runs = None
        is_part = query.only_offsets or not _is_within(segment, next_offset, here.offsets)
        if narrows and not is_remote and is_part:
            runs = selected_runs(segment, here.offsets, query.only_offsets)
        # Where damage is no error, a broker's reader gives nothing of a file after it: cuts are made up to there only.
        for part in split(
            segment,
            split_bytes,
            here.offsets if is_remote else EVERYTHING,
            by_index=options.selection.raises,
            records=options.max_records,
        ):
            for one in (part,) if runs is None else within_runs(part, runs):
                yield replace(one, rows=here, next_offset=next_offset)


def _is_within(segment: Segment, next_offset: int | None, offsets: Range) -> bool:
    """Return whether all offsets of a segment lie in a range, by its name and that of the next one: then no header leaves out a batch."""
    low, high = offsets
    begins = low is None or (segment.has_canonical_name and segment.base_offset >= low)
    return begins and (high is None or (next_offset is not None and next_offset <= high))


def next_offset_of(segment: Segment, following: Mapping[Segment, Segment]) -> int | None:
    """The first offset of the segment that follows one, where its name says it."""
    after = following.get(segment)
    return after.base_offset if after is not None and after.has_canonical_name else None
