"""A stream over logs: what there is now, what a micro-batch takes of it, and what is gone."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.partitions import DirectoryError, Segment
from kafka_log.logs.tiers import drop_tiered_segments
from kafka_log.read.changing_files import is_gone, steady
from kafka_log.read.offsets_by_time import offset_at
from kafka_log.read.plan import Split
from kafka_log.read.progress import Ends, Key, Position
from kafka_log.segment.positioned_reads import UnreadableError
from pyspark_kafka_log.logs import Log, chosen, find_logs, matching, names
from pyspark_kafka_log.options import EARLIEST, LATEST, OptionError
from pyspark_kafka_log.stream.admission import Limits, Pace, behind, cut
from pyspark_kafka_log.stream.offsets import (
    Positions,
    from_json,
    initial_offsets,
    name,
    to_json,
)
from pyspark_kafka_log.stream.options import StreamOptions
from pyspark_kafka_log.stream.passed import Passed
from pyspark_kafka_log.stream.planning import plan_between

TRIES = 5
"""How often directories are listed when something in them was deleted meanwhile."""

T = TypeVar("T")

NAMED = 10
"""Losses that a message names; the others are counted."""


class DataLossError(Exception):
    """Records that a stream has not read are gone, or those that it has read are others by now."""

    def __init__(self, losses: Iterable[str]) -> None:
        self.losses = tuple(losses)
        super().__init__(self.losses)

    def __str__(self) -> str:
        more = len(self.losses) - NAMED
        listed = "; ".join(self.losses[:NAMED]) + (f"; and {more} more" if more > 0 else "")
        return (
            f"kafka-log: data is lost: {listed}. With failOnDataLoss set to false the stream warns of it and goes on"
            " with what is there"
        )


class LogStream:
    """One query's view of its logs. Offsets come and go as their JSON has them; a checkpoint of them is all that a restart needs."""

    def __init__(self, options: StreamOptions, parallelism: int | None = None) -> None:
        self._options = options
        self._reading = options.reading
        self._parallelism = parallelism
        self._ends = Ends(options.reading.selection, options.reading.engine)
        self._pace = Pace(options.limits)
        self._last: dict[Key, Position] = {}
        self._target: dict[Key, Position] | None = None
        self._told: set[str] = set()
        self._starts = LogStarts()
        self._tiers: dict[Segment, int] = {}
        self._copies_first = False
        self._passed = Passed()

    def initial(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins. Raises :class:`OptionError`."""
        return self._listed_anew(self._initial)

    def _initial(self) -> dict[str, Any]:
        self._starts = LogStarts()
        logs = {log.key: log for log in chosen(self._found(), self._reading)}
        wanted = self._options.starting
        for option, given in (
            ("startingOffsetsByTimestamp", self._options.starting_times),
            ("startingOffsets", wanted),
        ):
            if isinstance(given, Mapping) and given.keys() != logs.keys():
                listed = ", ".join(name(key) for key in sorted(given.keys() ^ logs.keys())[:20])
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
                offset = self._by_time(log, times if isinstance(times, int) else times[key])
            out[key] = self._position(log, offset)
        return to_json(out)

    @property
    def limits(self) -> Limits:
        """What the options say of the size of micro-batches."""
        return self._options.limits

    def latest(self, start: Any, *, limited: bool) -> dict[str, Any]:
        """Where the next micro-batch ends that begins at ``start``: at the end of all that there is, or as ``limited`` by the options.
        It is ``start`` itself where there is nothing to read yet. Where ``start`` is None nobody knows it: then it is the end of all.

        Raises :class:`DataLossError`, and CodecError for damage that is met.
        """
        return self._listed_anew(lambda: self._latest(start, limited=limited))

    def _latest(self, start: Any, *, limited: bool) -> dict[str, Any]:
        if start is None:
            self._last = self._ended(self._logs({}), {})[0]
            return to_json(self._last)
        positions = from_json(start)
        logs = self._logs(positions)
        now, losses = self._ended(logs, positions)
        begins = {key: positions.get(key) or self._first(logs, key) for key in now}
        for key, position in begins.items():
            if key not in positions and position.offset > 0:
                losses.append(
                    f"partition {name(key)} is new and its first offset is {position.offset}: those before it are gone"
                )
        self._lose(losses)
        self._last = dict(now)
        offsets = {key: position.offset for key, position in now.items()}
        from_offsets = {key: position.offset for key, position in begins.items()}
        if limited:
            here = int(time.monotonic() * 1000)
            if self._target is None and self._pace.waits(here, from_offsets, offsets):
                return dict(start)
            if self._options.limits.most is not None:
                now = self._within(cut(self._options.limits.most, from_offsets, offsets), now, logs)
        if {k: p.offset for k, p in now.items()} == {k: p.offset for k, p in positions.items()}:
            return dict(start)
        return to_json(now)

    def prepare(self) -> dict[str, Any]:
        """Let a query with the trigger AvailableNow end at the end of what is there now. Return that end."""
        self._target = self._listed_anew(lambda: self._ended(self._logs({}), {})[0])
        return to_json(self._target)

    def end_at(self, target: Any) -> None:
        """Let a query end where :meth:`prepare` said in a process that has died."""
        self._target = from_json(target)

    def report(self) -> dict[str, Any] | None:
        """Where the logs ended when they were looked at last."""
        return to_json(self._last) if self._last else None

    def behind(self, consumed: Any) -> dict[str, str]:
        """How far the stream is behind what was seen last. ``consumed`` is None before the first micro-batch."""
        if consumed is None or not self._last:
            return {}
        there = {key: position.offset for key, position in from_json(consumed).items()}
        return behind(there, {key: position.offset for key, position in self._last.items()})

    def tasks(self, start: Any, end: Any) -> list[tuple[Split, ...]]:
        """Return the splits of each task of a micro-batch. Raise :class:`DataLossError` if not all of it is there any more.

        If ``end`` says where the query began, that is the start.
        """
        start = initial_offsets(end) or start
        return self._listed_anew(lambda: self._tasks(start, end))

    def _tasks(self, start: Any, end: Any) -> list[tuple[Split, ...]]:
        before, after = from_json(start), from_json(end)
        logs = self._logs(after)
        losses = [self._gone(key, before[key]) for key in sorted(before.keys() - after.keys())]
        ranges = {}
        for key, position in sorted(after.items()):
            first = before[key].offset if key in before else None
            if first is not None and first >= position.offset:
                continue  # nothing, or where a log was truncated: that was told when it was seen
            log = logs.get(key)
            if log is None:
                losses.append(
                    f"partition {name(key)} is gone: offsets {first or 0} to {position.offset - 1}"
                )
                continue
            begins = self._log_start(log)
            if begins > (first or 0):
                what = "the log" if first is not None else "the new partition"
                losses.append(
                    f"partition {name(key)}: {what} begins at offset {begins}, offsets {first or 0} to"
                    f" {min(begins, position.offset) - 1} are gone"
                )
            first = max(begins, first or 0)
            there = self._ends.of(key, log)
            parted = None if there is None else self._ends.diverged(key, log, position, there)
            if there is None or parted is not None:
                losses.append(_truncated(key, position, parted, there))
            ranges[key] = first, position.offset if parted is None else parted
            self._passed.read(key, log, first)
        self._lose(losses)
        return plan_between(logs, ranges, self._reading, self._parallelism)

    # ------------------------------------------------------------ what there is

    def _listed_anew(self, asked: Callable[[], T]) -> T:
        """An answer about the files that there are. Some that were listed may be gone when they are read, into a tier or for ever: what is
        there then is listed again, and of what is in two places that is read which stays."""
        self._copies_first = False
        for _ in range(TRIES - 1):
            try:
                return asked()
            except (UnreadableError, FileNotFoundError) as error:
                if not is_gone(error):
                    raise
            self._copies_first = True
        return asked()

    def _found(self) -> list[Log]:
        found = find_logs(self._reading)
        return drop_tiered_segments(found) if self._copies_first else found

    def _logs(self, known: Positions) -> dict[Key, Log]:
        """What there is by now of the topics that are read. Raises :class:`OptionError` and DirectoryError for paths that are not there,
        unless partitions are ``known`` there: these are gone then."""
        self._starts = LogStarts()
        for _ in range(TRIES):
            try:
                found = self._found()
            except (OptionError, DirectoryError):
                if not known:
                    raise
                found = []
            except FileNotFoundError:
                continue  # of a directory that was deleted while it was looked at
            return {log.key: log for log in matching(found, self._reading, self._tiers)}
        raise DirectoryError(Path(self._reading.paths[0]), "directories in it come and go")

    def _ended(
        self, logs: Mapping[Key, Log], start: Positions
    ) -> tuple[dict[Key, Position], list[str]]:
        """Where logs can be read to now, and what is lost of them since ``start``. A partition that is gone stays where it was: it may come
        again."""
        now: dict[Key, Position] = {}
        losses: list[str] = []
        for key in sorted(start.keys() | logs.keys()):
            log, begins = logs.get(key), start.get(key)
            if begins is not None:
                now[key] = begins
                if log is None:
                    losses.append(self._gone(key, begins))
            end = None if log is None else self._ends.of(key, log)
            if log is None or end is None:
                continue
            if begins is not None:
                parted = self._ends.diverged(key, log, begins, end)
                if parted is not None:
                    losses.append(_truncated(key, begins, parted, end))
                    now[key] = self._ends.at(key, log, parted)
                    continue
                if (first := self._log_start(log)) > begins.offset:
                    losses.append(_deleted(key, begins, first))
                losses += [_late(key, one) for one in self._passed.late(key, log, begins.offset)]
            if self._target is None or key in self._target:
                end = self._ends.readable(key, log, end)
                target = end if self._target is None else self._target[key]
                end = min(end, target, key=lambda p: p.offset)
                if begins is None or end.offset > begins.offset:
                    now[key] = end
        return now, losses

    def _first(self, logs: Mapping[Key, Log], key: Key) -> Position:
        return Position(self._log_start(logs[key]))

    def _within(
        self, ends: Mapping[Key, int], now: Positions, logs: Mapping[Key, Log]
    ) -> dict[Key, Position]:
        return {
            key: now[key] if offset == now[key].offset else self._ends.at(key, logs[key], offset)
            for key, offset in ends.items()
        }

    def _log_start(self, log: Log) -> int:
        """The first offset that is there: that of the first file, or later, where records were deleted."""
        lowest = log.segments[0]
        first = lowest.base_offset if lowest.has_canonical_name or lowest.state == "remote" else 0
        deleted = not self._reading.selection.deleted_records
        return max(first, (self._starts.get(log) or 0) if deleted else 0)

    def _position(self, log: Log, offset: int) -> Position:
        end = self._ends.of(log.key, log)
        if offset == LATEST:
            return Position(0) if end is None else self._ends.readable(log.key, log, end)
        return self._ends.at(log.key, log, self._log_start(log) if offset == EARLIEST else offset)

    def _by_time(self, log: Log, timestamp: int) -> int:
        first = self._log_start(log)
        reading = self._reading
        found = steady(
            log.segments[-1].path,
            lambda: offset_at(log, timestamp, reading.selection, reading.engine, first),
        )
        if found is None and not self._options.latest_if_none:
            raise OptionError(
                "startingTimestamp",
                f"partition {name(log.key)} has no record with the timestamp {timestamp} or a later one; with"
                " startingOffsetsByTimestampStrategy set to latest such partitions begin at their end",
            )
        return LATEST if found is None else found

    def _gone(self, key: Key, read: Position) -> str:
        what = f"partition {name(key)}, which was read up to offset {read.offset},"
        if names(self._reading, key):
            return f"{what} is in no path any more"
        return f"{what} is named by no option any more: begin with the options of before, or with a new checkpoint"

    def _lose(self, losses: list[str]) -> None:
        if losses and self._options.fails:
            raise DataLossError(losses)
        for loss in losses:
            if loss not in self._told:
                self._told.add(loss)
                warnings.warn(f"kafka-log: data is lost: {loss}", stacklevel=3)


def _deleted(key: Key, read: Position, first: int) -> str:
    return f"partition {name(key)}: the log begins at offset {first}, offsets {read.offset} to {first - 1} are gone"


def _late(key: Key, what: str) -> str:
    return (
        f"partition {name(key)} was read beyond the segment, and after that {what}: what is new there"
        " was not read by this stream, and a batch query reads it"
    )


def _truncated(key: Key, read: Position, parted: int | None, end: Position | None) -> str:
    if end is None or parted is None:
        return f"partition {name(key)} is gone: it was read up to offset {read.offset}"
    return (
        f"partition {name(key)} was read up to offset {read.offset} (leader epoch {read.leader_epoch}), and its log was truncated:"
        f" from offset {parted} on it is another one, and it ends at {end.offset} (leader epoch {end.leader_epoch})"
    )
