"""Find what a stream can read and what it has lost, and plan the tasks of its micro-batches."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise, starmap
from pathlib import Path
from typing import Any, TypeVar

from codecgen.runtime.nouns import count_noun
from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.incomplete_tails import ReadBroker, find_end_losses
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.partitions import DirectoryError, Segment
from kafka_log.logs.tiers import (
    Ends,
    drop_tiered_segments,
    find_lost_offsets,
    find_tier_gaps,
)
from kafka_log.read.batch_places import needed_segments, split_positions
from kafka_log.read.changing_files import is_gone, read_steadily
from kafka_log.read.isolation import PartitionFilters
from kafka_log.read.offsets_by_time import offset_at
from kafka_log.read.plan import Split
from kafka_log.read.progress import Key, LogEnds, Position
from kafka_log.read.selection import filter_for_segment
from kafka_log.segment.model import describe_lost
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.ranges import EVERYTHING
from pyspark_kafka_log.losses import DataLossError
from pyspark_kafka_log.options import EARLIEST, LATEST, OptionError, Options
from pyspark_kafka_log.splits.cuts import split_segment
from pyspark_kafka_log.splits.logs import Log, filter_logs, find_logs, is_selected, select_logs
from pyspark_kafka_log.splits.offset_ranges import warn_of_lost
from pyspark_kafka_log.splits.plan import next_base_offset, pack, target_task_bytes
from pyspark_kafka_log.stream.admission import Limits, Pace, lag_metrics, share_offsets
from pyspark_kafka_log.stream.offsets import (
    Positions,
    from_json,
    initial_offsets,
    partition_name,
    to_json,
)
from pyspark_kafka_log.stream.options import StreamOptions

TRIES = 5
"""Maximum number of listings of a directory if files in it are deleted meanwhile."""

T = TypeVar("T")


class LogStream:
    """The logs of one streaming query. Offsets are JSON; a restart needs nothing but those in its checkpoint."""

    def __init__(self, options: StreamOptions, parallelism: int | None = None) -> None:
        """Prepare polls with the options of a stream; nothing is read yet. ``parallelism`` is the number of tasks that run at once."""
        self._options = options
        self._reading = options.reading
        self._parallelism = parallelism
        self._ends = LogEnds(options.reading.selection, options.reading.engine)
        self._pace = Pace(options.limits)
        self._last: dict[Key, Position] = {}
        self._target: dict[Key, Position] | None = None
        self._warned: set[str] = set()
        self._starts = LogStarts()
        self._tiers: Ends = {}
        self._copies_first = False
        self._passed = PassedSegments()

    def initial(self) -> dict[str, Any]:
        """Return the offsets at which a query without a checkpoint begins, as a JSON object: by
        starting time, else starting offsets, else the end of the logs. Raise :class:`OptionError`
        if options do not fit the partitions, a path matches nothing, or no record has the starting
        time and the strategy is ``error``. Raise DirectoryError for a path without logs; CodecError
        for damage unless the mode accepts it.
        """
        return self._retry_listing(self._initial)

    def _initial(self) -> dict[str, Any]:
        """Return the offsets at which a new query begins, as a JSON object, from one listing: by
        starting time, else starting offsets, else the end. Raise OptionError if the options name
        other partitions than there are, or no record has the time and the strategy does not allow
        it; DirectoryError for a path without logs; CodecError for damage unless the mode accepts
        it.
        """
        self._starts = LogStarts()
        logs = {log.key: log for log in select_logs(self._find_logs(), self._reading)}
        wanted = self._options.starting
        for option, given in (
            ("startingOffsetsByTimestamp", self._options.starting_times),
            ("startingOffsets", wanted),
        ):
            if isinstance(given, Mapping) and given.keys() != logs.keys():
                listed = ", ".join(
                    partition_name(key) for key in sorted(given.keys() ^ logs.keys())[:20]
                )
                raise OptionError(
                    option,
                    "each partition that is read must have a number, and no other;"
                    f" these are in one of the two only: {listed}",
                )
        out = {}
        for key, log in logs.items():
            offset = wanted[key] if isinstance(wanted, Mapping) else wanted
            times = self._options.starting_times
            if times is not None:
                offset = self._offset_at_time(log, times if isinstance(times, int) else times[key])
            out[key] = self._position(log, offset)
        return to_json(out)

    @property
    def limits(self) -> Limits:
        """The size limits of micro-batches."""
        return self._options.limits

    def latest(self, start: Any, *, limited: bool) -> dict[str, Any]:
        """Return the end of the micro-batch that begins at ``start``: the end of the logs or that
        of :meth:`prepare`, less if ``limited``; ``start`` if nothing is due; a lower offset for a
        log that was truncated. None for ``start`` asks for that end, not limited. Raise
        DataLossError if records are gone or replaced and ``failOnDataLoss`` is set, else warn;
        CodecError for damage unless accepted; OptionError or DirectoryError for paths without logs
        or with a partition twice; ValueError if ``start`` is other JSON than offsets.
        """
        return self._retry_listing(lambda: self._latest(start, limited=limited))

    def _latest(self, start: Any, *, limited: bool) -> dict[str, Any]:
        """Return the end of the micro-batch after ``start``, from one listing: ``start`` itself if
        there is nothing to read, or too little; the end of the logs if ``start`` is None; a lower
        offset than in ``start`` for a log that was truncated. Raise DataLossError if records are
        gone or replaced and ``failOnDataLoss`` is set, else warn; CodecError for damage unless the
        mode accepts it; ValueError if ``start`` is other JSON than offsets; OptionError or
        DirectoryError for paths without logs or with a partition twice; FileNotFoundError or
        UnreadableError if a listed file is gone.
        """
        if start is None:
            self._last = self._find_ends(self._matching_logs({}), {})[0]
            return to_json(self._last)
        positions = from_json(start)
        logs = self._matching_logs(positions)
        now, losses = self._find_ends(logs, positions)
        begins = {key: positions.get(key) or self._start_position(logs, key) for key in now}
        for key, position in begins.items():
            if key not in positions and position.offset > 0:
                losses.append(
                    f"partition {partition_name(key)} is new and its first offset is {position.offset}: those before it are gone"
                )
        self._report_losses(losses)
        self._last = dict(now)
        offsets = {key: position.offset for key, position in now.items()}
        from_offsets = {key: position.offset for key, position in begins.items()}
        if limited:
            here = int(time.monotonic() * 1000)
            if self._target is None and self._pace.should_wait(here, from_offsets, offsets):
                return dict(start)
            if self._options.limits.most is not None:
                now = self._limit_positions(
                    share_offsets(self._options.limits.most, from_offsets, offsets), now, logs
                )
        # A log that was truncated may have another leader epoch at the same offset.
        return dict(start) if now == positions else to_json(now)

    def prepare(self) -> dict[str, Any]:
        """Fix the current end of the logs as the end of a query with the trigger AvailableNow, and
        return that end. Raise CodecError for damage unless the mode accepts it; OptionError or
        DirectoryError for paths without logs or with a partition twice.
        """
        self._target = self._retry_listing(lambda: self._find_ends(self._matching_logs({}), {})[0])
        return to_json(self._target)

    def end_at(self, target: Any) -> None:
        """Fix ``target``, which :meth:`prepare` returned in another process, as the end of the query."""
        self._target = from_json(target)

    def report(self) -> dict[str, Any] | None:
        """Return the ends of the logs at the last poll, None before the first poll."""
        return to_json(self._last) if self._last else None

    def lag_metrics(self, consumed: Any) -> dict[str, str]:
        """Return the minimum, maximum and average number of offsets by which ``consumed`` is behind
        the ends that the last poll found, as text under the names of Spark's Kafka source. Only
        partitions in both count, one that is consumed beyond its end with 0. Return ``{}`` if no
        partition counts, ``consumed`` is None, or no poll has found partitions. Raise ValueError if
        ``consumed`` is other JSON than offsets.
        """
        if consumed is None or not self._last:
            return {}
        there = {key: position.offset for key, position in from_json(consumed).items()}
        return lag_metrics(there, {key: position.offset for key, position in self._last.items()})

    def tasks(self, start: Any, end: Any) -> list[tuple[Split, ...]]:
        """Return the splits of each task of the micro-batch from ``start`` to ``end`` (excluded);
        ``[]`` if it has no offsets. If ``end`` contains the offsets at which the query began, these
        replace ``start``. Raise DataLossError if records of the micro-batch are gone and
        ``failOnDataLoss`` is set, else warn; CodecError for damage unless the mode accepts it;
        ValueError for other JSON than offsets; OptionError if two directories hold a partition;
        DirectoryError if copies of one state different topic ids, or directories keep disappearing.
        """
        initial = initial_offsets(end)
        begins = start if initial is None else initial
        return self._retry_listing(lambda: self._tasks(begins, end))

    def _tasks(self, start: Any, end: Any) -> list[tuple[Split, ...]]:
        """Return the splits of each task of a micro-batch, from one listing; none for a partition
        without new offsets. For later polls, record the sizes of the closed segments of every other
        partition. Raise DataLossError if records of the micro-batch are gone and ``failOnDataLoss``
        is set, else warn and read those that remain. Raise CodecError for damage unless the mode
        accepts it; ValueError for other JSON than offsets; OptionError if two directories hold a
        partition; DirectoryError if directories keep disappearing or copies state different topic
        ids; FileNotFoundError or UnreadableError if a listed file is gone.
        """
        before, after = from_json(start), from_json(end)
        logs = self._matching_logs(after)
        if any(any(find_tier_gaps(log)) for log in logs.values()):
            logs = self._matching_logs(after)  # a segment may have moved between two listings
        losses = [
            self._describe_gone(key, before[key]) for key in sorted(before.keys() - after.keys())
        ]
        ranges = {}
        for key, position in sorted(after.items()):
            first = before[key].offset if key in before else None
            if first is not None and first >= position.offset:
                continue  # nothing, or where a log was truncated: that was told when it was seen
            log = logs.get(key)
            if log is None:
                losses.append(
                    f"partition {partition_name(key)} is gone: offsets {first or 0} to {position.offset - 1}"
                )
                continue
            begins = self._log_start(log)
            if begins > (first or 0):
                what = "the log" if first is not None else "the new partition"
                losses.append(
                    f"partition {partition_name(key)}: {what} begins at offset {begins}, offsets {first or 0} to"
                    f" {min(begins, position.offset) - 1} are gone"
                )
            first = max(begins, first or 0)
            there = self._ends.find_end(key, log)
            parted = (
                None if there is None else self._ends.find_divergence(key, log, position, there)
            )
            if there is None or parted is not None:
                losses.append(_describe_truncated(key, position, parted, there))
            ranges[key] = first, position.offset if parted is None else parted
            if not self._reading.files.are_filtered:
                found = find_lost_offsets(log, ranges[key], self._starts)
                losses += starmap(describe_lost, found)
            self._passed.record(key, log, first)
        self._report_losses(losses)
        undecided: list[str] = []
        tasks = plan_micro_batch(logs, ranges, self._reading, self._parallelism, undecided.append)
        self._report_losses(undecided)
        return tasks

    # ------------------------------------------------------------ what there is

    def _retry_listing(self, asked: Callable[[], T]) -> T:
        """Return the answer of ``asked``; call it again with a new listing if a listed file is
        gone, at most TRIES times in all. Raise what the last call raises, and any other error at
        once.

        If a segment is in two places after that, only the copy that stays is read.
        """
        self._copies_first = False
        for _ in range(TRIES - 1):
            try:
                return asked()
            except (UnreadableError, FileNotFoundError) as error:
                if not is_gone(error):
                    raise
            self._copies_first = True
        return asked()

    def _find_logs(self) -> list[Log]:
        """Return all logs below the paths."""
        found = find_logs(self._reading)
        return drop_tiered_segments(found) if self._copies_first else found

    def _matching_logs(self, known: Positions) -> dict[Key, Log]:
        """Return the selected logs by topic and partition. If no path has logs, return ``{}`` if
        ``known`` has partitions, and raise OptionError or DirectoryError if it is empty. Raise
        OptionError if two directories hold the same partition; DirectoryError if directories keep
        disappearing while they are listed.
        """
        self._starts = LogStarts()
        for _ in range(TRIES):
            try:
                found = self._find_logs()
            except (OptionError, DirectoryError):
                if not known:
                    raise
                found = []
            except FileNotFoundError:
                continue  # of a directory that was deleted while it was looked at
            return {log.key: log for log in filter_logs(found, self._reading, self._tiers)}
        raise DirectoryError(
            Path(self._reading.paths[0]),
            "directories in it were deleted during each attempt to list it: start the query again",
        )

    def _find_ends(
        self, logs: Mapping[Key, Log], start: Positions
    ) -> tuple[dict[Key, Position], list[str]]:
        """Return the positions up to which partitions, new ones too, can be read now, and messages
        for records lost or added late since ``start``. A missing partition stays at its position,
        since it may come back; a truncated one goes back to where it was cut. If the query's end is
        fixed, none advances beyond it; partitions that it lacks stay, and new ones are left out.
        Raise CodecError for damage unless the mode accepts it; FileNotFoundError or UnreadableError
        if a listed file is gone.
        """
        now: dict[Key, Position] = {}
        losses: list[str] = []
        read_broker = cache(read_broker_files)
        for key in sorted(start.keys() | logs.keys()):
            log, begins = logs.get(key), start.get(key)
            if begins is not None:
                now[key] = begins
                if log is None:
                    losses.append(self._describe_gone(key, begins))
            end = None if log is None else self._ends.find_end(key, log)
            if log is None or end is None:
                continue
            losses += self._list_end_losses(log, begins, read_broker)
            if begins is not None:
                parted = self._ends.find_divergence(key, log, begins, end)
                if parted is not None:
                    losses.append(_describe_truncated(key, begins, parted, end))
                    now[key] = self._ends.position_at(key, log, parted)
                    continue
                if (first := self._log_start(log)) > begins.offset:
                    losses.append(_describe_deleted(key, begins, first))
                losses += [
                    _describe_late(key, one)
                    for one in self._passed.find_late(key, log, begins.offset)
                ]
            if self._target is None or key in self._target:
                end = self._ends.find_readable_end(key, log, end)
                target = end if self._target is None else self._target[key]
                end = min(end, target, key=lambda p: p.offset)
                if begins is None or end.offset > begins.offset:
                    now[key] = end
        return now, losses

    def _list_end_losses(
        self, log: Log, begins: Position | None, read_broker: ReadBroker
    ) -> list[str]:
        """Return a message if a log that was read up to ``begins`` (None: not at all) ends with an
        incomplete batch that a broker had written. Return ``[]`` if it does not, and if the batch
        lies after the fixed end of the query. :meth:`LogEnds.find_end` must have been called.

        No task meets the batch: micro-batches end before it under every policy.
        """
        if not self._ends.has_tail(log.key):
            return []
        end = None
        if self._target is not None:
            if log.key not in self._target:
                return []
            end = self._target[log.key].offset + 1  # a batch at the end itself was not read
        offsets = None if begins is None else begins.offset, end
        return list(starmap(describe_lost, find_end_losses(log, read_broker, offsets)))

    def _start_position(self, logs: Mapping[Key, Log], key: Key) -> Position:
        """Return the position at the log start of a partition."""
        return Position(self._log_start(logs[key]))

    def _limit_positions(
        self, ends: Mapping[Key, int], now: Positions, logs: Mapping[Key, Log]
    ) -> dict[Key, Position]:
        """Return the positions at the offsets ``ends``: that of ``now``, which has all of these
        partitions, if it has the same offset; else a new one with the leader epoch of the last
        batch before it, or -1 if there is none, or it is damaged or cannot be read.
        """
        return {
            key: now[key]
            if offset == now[key].offset
            else self._ends.position_at(key, logs[key], offset)
            for key, offset in ends.items()
        }

    def _log_start(self, log: Log) -> int:
        """Return the first available offset of a log: the base offset of its first file if the
        file's name states it or it is a remote copy, else 0; the log start offset if that is higher
        and deleted records are not included.
        """
        lowest = log.segments[0]
        first = lowest.base_offset if lowest.has_canonical_name or lowest.state == "remote" else 0
        deleted = not self._reading.selection.deleted_records
        return max(first, (self._starts.get(log) or 0) if deleted else 0)

    def _position(self, log: Log, offset: int) -> Position:
        """Return the position (offset and leader epoch) of an offset in a log. EARLIEST stands for
        its start, LATEST for its readable end, or offset 0 if its directory is gone. Raise
        CodecError for damage unless the mode accepts it.
        """
        end = self._ends.find_end(log.key, log)
        if offset == LATEST:
            return Position(0) if end is None else self._ends.find_readable_end(log.key, log, end)
        return self._ends.position_at(
            log.key, log, self._log_start(log) if offset == EARLIEST else offset
        )

    def _offset_at_time(self, log: Log, timestamp: int) -> int:
        """Return the offset of the first record, from the log start on, whose timestamp is at or
        after ``timestamp``, in milliseconds since 1970; control records and aborted transactions
        count too. If there is none, return LATEST if the strategy is ``latest``, and raise
        OptionError otherwise. Raise CodecError for damage before the record unless the mode accepts
        it; then warn of lost ranges in the segments before.
        """
        first = self._log_start(log)
        reading = self._reading
        found = read_steadily(
            log.segments[-1].path,
            lambda: offset_at(
                log, timestamp, reading.selection, reading.engine, first, warn_of_lost
            ),
        )
        if found is None and not self._options.latest_if_none:
            raise OptionError(
                "startingTimestamp",
                f"partition {partition_name(log.key)} has no record with the timestamp {timestamp} or a later one; with"
                " startingOffsetsByTimestampStrategy set to latest such partitions begin at their end",
            )
        return LATEST if found is None else found

    def _describe_gone(self, key: Key, read: Position) -> str:
        """Return a message for a partition that was read up to ``read`` and is missing: that no
        path has it any more, or that the options no longer select it.
        """
        what = f"partition {partition_name(key)}, which was read up to offset {read.offset},"
        if is_selected(self._reading, key):
            return f"{what} is no longer in any path"
        return f"{what} is no longer selected by any option: use the earlier options, or a new checkpoint"

    def _report_losses(self, losses: list[str]) -> None:
        """Raise DataLossError with all messages if there are any and ``failOnDataLoss`` is set.
        Otherwise emit a warning for each message that this stream has not warned of before.
        """
        if losses and self._options.fails:
            raise DataLossError(losses)
        for loss in losses:
            if loss not in self._warned:
                self._warned.add(loss)
                warnings.warn(
                    f"kafka-log: data is lost: {loss}; the stream continues", stacklevel=3
                )


def _describe_deleted(key: Key, read: Position, first: int) -> str:
    """Return a message for a log that begins after the offset that was read last."""
    return f"partition {partition_name(key)}: the log begins at offset {first}, offsets {read.offset} to {first - 1} are gone"


def _describe_late(key: Key, what: str) -> str:
    """Return a message for a segment that was added or grew after the stream had read beyond it.
    ``what`` is a clause that names the segment and says which of both, such as ``/data/t-0/7.log
    came``; ``key`` is its partition.
    """
    return (
        f"partition {partition_name(key)} was read beyond the segment, and after that {what}: this stream did not"
        " read what is new there; a batch query reads it"
    )


def _describe_truncated(key: Key, read: Position, parted: int | None, end: Position | None) -> str:
    """Return a message for a log that was read up to ``read``: that it was truncated at the offset
    ``parted`` and written again up to ``end``, or that it is gone if either is None.
    """
    if end is None or parted is None:
        return f"partition {partition_name(key)} is gone: it was read up to offset {read.offset}"
    return (
        f"partition {partition_name(key)} was read up to offset {read.offset} (leader epoch {read.leader_epoch}), and its log was truncated:"
        f" the log is a different one from offset {parted} on, and ends at {end.offset} (leader epoch {end.leader_epoch})"
    )


Ranges = Mapping[Key, tuple[int, int]]
"""First offset (included) and end (excluded) by partition."""


def plan_micro_batch(
    logs: Mapping[Key, Log],
    ranges: Ranges,
    options: Options,
    parallelism: int | None,
    on_loss: Callable[[str], None],
) -> list[tuple[Split, ...]]:
    """Return the splits of each task for half-open offset ranges of ``logs``, in the order of
    topics, partitions and offsets; ``[]`` if all are empty. ``parallelism`` is the number of tasks
    that run at once (None: one for each processor), and limits the bytes of a task with splitBytes
    and minPartitions. Equal ranges give equal rows, however late. Call ``on_loss`` with a message
    for each log with read_committed whose last stable offset is before the end of its range. Raise
    CodecError for damage in transactions unless the mode accepts it.
    """
    parts = [
        part
        for key, (start, end) in sorted(ranges.items())
        if start < end
        for part in _log_splits(logs[key], start, end, options, on_loss)
    ]
    enough = target_task_bytes(sum(part.size for part in parts), options, parallelism)
    return list(pack((one for part in parts for one in _cut_split(part, enough, options)), enough))


def _log_splits(
    log: Log, start: int, end: int, options: Options, on_loss: Callable[[str], None]
) -> Iterator[Split]:
    """Yield the splits of each segment that has bytes to read for the offsets ``start`` (included)
    to ``end`` (excluded), with their row selections. Call ``on_loss`` with a message if a
    transaction before ``end`` is open: its records and those after it are not selected. Raise
    CodecError for damage in transactions unless the mode accepts it.

    Only splits of batches that ``start`` or ``end`` may lie in select rows by offset. Elsewhere the bytes decide, so that consecutive micro-batches
    together have every row once, also one with an impossible offset.
    """
    # Where the log starts, the range says.
    wanted = options.selection.but(offsets=(start, end), deleted_records=True)
    near = replace(
        log,
        segments=needed_segments(
            log.segments, start, end, transactions=wanted.isolation == "read_committed"
        ),
    )
    filters = PartitionFilters(wanted, options.engine)
    rows = read_steadily(log.segments[-1].path, lambda: filters.filter_for(near))
    for path, lost in filters.find_transaction_losses(near):
        on_loss(f"partition {partition_name(log.key)}: {describe_lost(path, lost)}")
    every_row = replace(rows, offsets=EVERYTHING)
    if rows.offsets != (start, end):
        every_row = rows
        on_loss(
            f"partition {partition_name(log.key)}: a transaction is open from offset {rows.offsets[1]} on, in a micro-batch that ends at {end}:"
            " its marker is damaged or gone, or the query had another isolationLevel; records from there on are left out"
        )
    read = needed_segments(near.segments, start, end, transactions=False)
    following = dict(pairwise(near.segments))
    for i, segment in enumerate(read):
        next_offset = next_base_offset(segment, following)
        in_range = filter_for_segment(rows, segment, following.get(segment))
        if segment.problem is not None:
            # It has no bytes. Whoever reads the split reports the problem.
            yield Split(segment, 0, segment.size, in_range, next_offset)
            continue
        begin, inner = split_positions(segment, start, wanted) if i == 0 else (0, 0)
        inner_end, stop = segment.size, segment.size
        if i == len(read) - 1:
            inner_end, stop = split_positions(segment, end, wanted)
        inner = min(inner, stop)
        every = filter_for_segment(every_row, segment, following.get(segment))
        for first, last, selected in (
            (begin, inner, in_range),
            (inner, inner_end, every),
            (max(inner, inner_end), stop, in_range),
        ):
            if first < last:
                yield Split(segment, first, last, selected, next_offset)


def _cut_split(part: Split, enough: int, options: Options) -> Iterator[Split]:
    """Yield the parts of a split, in order, cut where batches begin, of at most about ``enough``
    bytes each; the split itself if it is not larger. A single batch may be larger. Damage and an
    unreadable file are no error: what follows an invalid header is one part.
    """
    if part.size <= enough:
        yield part
        return
    assert part.stop is not None
    for one in split_segment(part.segment, enough, by_index=options.selection.raises):
        assert one.stop is not None
        start, stop = max(one.start, part.start), min(one.stop, part.stop)
        if start < stop:
            yield replace(part, start=start, stop=stop)


class PassedSegments:
    """Sizes of the closed segments (all but the last) that a stream has read, by their base offsets
    and those of the next segments.

    Brokers do not change these. A copy of a log, say into a store, may deliver them late.
    """

    def __init__(self) -> None:
        """Start without any segment."""
        self._read: dict[Key, dict[tuple[int, int], int]] = {}

    def record(self, key: Key, log: Log, first: int) -> None:
        """Record the present sizes of a log's closed segments: of the live ones with a canonical
        name, all but the last. No file is read. A segment that ends at or before the offset
        ``first`` keeps the size recorded earlier, if any; segments that are gone are forgotten.
        """
        known = self._read.get(key, {})
        self._read[key] = {
            (base, following): segment.size
            if following > first
            else known.get((base, following), segment.size)
            for segment, base, following in _closed_segments(log)
        }

    def find_late(self, key: Key, log: Log, offset: int) -> list[str]:
        """Return descriptions of closed segments that end at or before ``offset``, and grew or came
        between others after ``record`` noted the log, by their listed sizes; no file is read. Of
        several that came into one gap only the last is described; those before the first recorded
        segment are not. Return ``[]`` if the log was never recorded, or had no closed segments.

        If the recorded segment of these offsets is smaller now, or gone, nothing came between: a replica rolled its segments at other offsets.
        """
        known = self._read.get(key)
        if not known:
            return []
        closed = _closed_segments(log)
        sizes = {base: segment.size for segment, base, _ in closed}
        gaps = {end: base for (base, end), size in known.items() if sizes.get(base, -1) >= size}
        found = []
        for segment, base, following in closed:
            if following > offset:
                break
            before = known.get((base, following))
            if before is None and base > gaps.get(following, base):
                found.append(f"{segment.path} came")
            elif before is not None and segment.size > before:
                found.append(
                    f"{segment.path} grew from {before} to {count_noun(segment.size, 'byte')}"
                )
        return found


def _closed_segments(log: Log) -> list[tuple[Segment, int, int]]:
    """Return the live segments that another one follows, each with its base offset and that of the next."""
    live = [one for one in log.segments if one.state == "live" and one.has_canonical_name]
    return [(one, one.base_offset, following.base_offset) for one, following in pairwise(live)]
