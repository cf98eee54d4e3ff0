"""Windows of batches: some batches of a segment from an offset, a time or a byte on, found by the index, in bounded work."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from codecgen.runtime.errors import CodecError
from kafka_log.inspect.check.segment_scan import find_tail_kind, is_active
from kafka_log.inspect.report.missing_ends import (
    LostRange,
    find_missing_end,
    find_missing_offsets,
)
from kafka_log.logs.broker_files import log_directory_of, read_broker_files
from kafka_log.logs.incomplete_tails import is_tail_error
from kafka_log.logs.index_files import (
    OFFSET_ENTRY_DTYPE,
    TIME_ENTRY_DTYPE,
    find_position_by_index,
    read_index_entries,
)
from kafka_log.logs.partitions import Segment
from kafka_log.logs.removed_segments import read_options
from kafka_log.segment.batch_headers import headers
from kafka_log.segment.model import Batch, Lost, Policy
from kafka_log.segment.passes import SegmentPass
from kafka_log.segment.reader import SegmentReader

CONTEXT = 1 << 18
"""Bytes before a wanted byte where reading begins: the batches there tell which offsets damage has lost."""

Entry = Batch | LostRange
"""A valid batch, or a range of bytes that is none."""


class Budget:
    """Limit of the work for one request: bytes, and seconds since it was made."""

    def __init__(
        self,
        max_bytes: int = 64 << 20,
        seconds: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._left = max_bytes
        self._clock = clock
        self._deadline = clock() + seconds

    def spend(self, n: int) -> None:
        """Count bytes that were read."""
        self._left -= n

    @property
    def is_spent(self) -> bool:
        """Whether the request has to end."""
        return self._left <= 0 or self._clock() >= self._deadline


@dataclass(frozen=True, slots=True)
class Target:
    """Where a window begins: at the first batch with an offset, a time (milliseconds since 1970) or a byte, or a later one;
    with ``before`` it ends before the byte ``value``, and with ``end`` at the end of the segment.

    ``resume`` is a byte where a batch begins, from which an earlier request had to go on; 0 for none.
    """

    kind: Literal["offset", "time", "byte", "before", "end"]
    value: int = 0
    resume: int = 0


@dataclass(frozen=True, slots=True)
class BatchWindow:
    """Batches of a segment, and ranges of bytes that are no valid batch, by position.

    Attributes:
        entries: The batches and ranges.
        following: First byte of the next entry; None if the window reaches the end of the segment.
        resume: Byte at which the work was over before the target was reached; None if it was reached.
        note: Why bytes at the end of the segment are normal; None if there are none.
        missing: What the segment lacks after its last byte; None if nothing proves it, or the window ends before.
    """

    entries: Sequence[Entry] = ()
    following: int | None = None
    resume: int | None = None
    note: str | None = None
    missing: LostRange | None = None


def start_of(entry: Entry) -> int:
    """Return the first byte of a batch or range."""
    return entry.position if isinstance(entry, Batch) else entry.start


def end_of(entry: Entry) -> int:
    """Return the byte after a batch or range."""
    return entry.position + entry.size if isinstance(entry, Batch) else entry.end


def find_start_before(segment: Segment, byte: int) -> int:
    """Return the position of a batch from which to read up to ``byte``: that of the last entry of
    the offset index which lies CONTEXT bytes or more before it. Return 0 if ``byte`` is not above
    CONTEXT, or the index has no such entry or does not lead to a batch.
    """
    if byte <= CONTEXT:
        return 0
    index = read_index_entries(segment.path.with_suffix(".index"), OFFSET_ENTRY_DTYPE)
    i = int(np.searchsorted(index["position"].astype(np.int64), byte - CONTEXT, "right")) - 1
    if i < 0:
        return 0
    offset = segment.base_offset + int(index["relative_offset"][i])
    found = find_position_by_index(segment, offset, None, "construct")
    return found if found <= byte else 0


def read_window(
    segment: Segment, next_base: int | None, target: Target, count: int, budget: Budget
) -> BatchWindow:
    """Return at most ``count`` entries (batches and damaged ranges) of a segment: from ``target``
    on, or the last ones up to it if it is ``before`` or ``end``. Before the first one from an
    offset or time on come all damaged ranges right before it, even if they are more. Checksums are
    verified, no record is read. The window has no entries if the segment ends before the target, or
    the budget does (``resume``). An unreadable file is one damaged range. Raise OSError only if a
    damaged end cannot be read again.

    Args:
        segment: The segment.
        next_base: Base offset of the next segment; None if there is none.
        target: Where the window begins or ends.
        count: Maximum number of entries.
        budget: Limit of the work.
    """
    backward = target.kind in ("before", "end")
    stop = target.value if target.kind == "before" else None
    reader = SegmentReader(
        segment.path,
        policy=Policy.SALVAGE,
        start=max(_find_start(segment, target), target.resume),
        records=False,
        salvage_records=False,
        next_base=next_base,
        **read_options(segment),
    )
    if reader.options.start >= segment.size:
        is_cut = segment.is_empty and target.kind != "time"
        missing = _find_missing_end(segment, next_base, None) if is_cut else None
        return BatchWindow(missing=_choose_missing(missing, target))
    chosen: deque[Entry] = deque(maxlen=count if backward else None)
    lost: list[Entry] = []
    is_reached = backward
    following = resume = last = None
    with reader.opened() as run:
        for entry in () if run is None else _iter_entries(run, segment, next_base):
            budget.spend(end_of(entry) - start_of(entry))
            last = entry
            if stop is not None and start_of(entry) >= stop:
                following = start_of(entry)
                break
            if not backward and len(chosen) >= count:
                following = start_of(entry)
                break
            is_reached = is_reached or _is_wanted(entry, target)
            if is_reached:
                chosen += [*lost, entry]
                lost = []
            elif (
                target.kind != "byte"
            ):  # damage right before the target is shown, because it may have held it
                lost = [] if isinstance(entry, Batch) else [*lost, entry]
            if budget.is_spent:
                if backward or not is_reached:
                    resume = end_of(entry)
                    chosen.clear()
                else:
                    following = end_of(entry)
                break
    end = reader.end
    if run is None and end is not None:
        chosen += [_convert_lost(lost) for lost in end.lost]
    at_end = following is None and resume is None
    note = end.note if at_end and end is not None else None
    missing = None
    if at_end and last is not None and (chosen or target.kind == "offset"):
        missing = _choose_missing(_find_missing_end(segment, next_base, last), target)
    return BatchWindow(tuple(chosen), following, resume, note, missing)


def _choose_missing(missing: LostRange | None, target: Target) -> LostRange | None:
    """Return what a segment lacks at its end, None if it cannot hold the target offset."""
    if missing is None or target.kind != "offset" or missing.last_offset is None:
        return missing
    return missing if target.value <= missing.last_offset else None


def _find_missing_end(
    segment: Segment, next_base: int | None, last: Entry | None
) -> LostRange | None:
    """Return what a segment lacks after its last byte, by :func:`find_missing_end` and, for the active
    segment, by the checkpoints of the broker. ``last`` is its last entry; None if it is empty. Return
    None if nothing proves that bytes are missing, and if the file changed since it was listed, as one
    that a broker writes to. Raise OSError if the file cannot be read.
    """
    start, first = segment.size, segment.base_offset
    if isinstance(last, Batch):
        first = last.last_offset + 1
    elif last is not None:
        start, first = last.start, first if last.first_offset is None else last.first_offset
    limit, reason = next_base, ""
    if is_active(segment, next_base):
        broker = read_broker_files(log_directory_of(segment.path.parent))
        reached = broker.reached_offset((segment.topic, segment.partition))
        if segment.state != "live" or (
            reached <= first and not is_tail_error(segment.topic, broker)
        ):
            return None
        limit = reached if reached > first else None
        reason = f"by the checkpoints, the log reached offset {reached}"
    missing = find_missing_end(segment, start, segment.size, first, limit)
    if segment.path.stat().st_size != segment.size:
        return None
    if missing is None and limit is not None and reason:
        return LostRange(segment.size, segment.size, "missing", first, limit - 1, reason)
    return missing


def _convert_lost(lost: Lost, kind: str = "lost") -> LostRange:
    """Return a lost range with the offsets that are missing there."""
    missing = find_missing_offsets(lost.after_offset, lost.before_offset)
    return LostRange(lost.start, lost.end, kind, *missing, lost.reason)


def is_normal_tail(segment: Segment, next_base: int | None, lost: Lost, size: int) -> bool:
    """Return whether a lost range is what a crash, or a broker that is writing, leaves at the end of
    an active segment of ``size`` bytes. No incomplete end is after a clean shutdown. Raise OSError if
    the file cannot be read.
    """
    if lost.end < size or not is_active(segment, next_base):
        return False
    broker = read_broker_files(log_directory_of(segment.path.parent))
    is_error = is_tail_error(segment.topic, broker)
    return not is_error and find_tail_kind(segment, lost, True) is not None


def _find_start(segment: Segment, target: Target) -> int:
    """Return the position of a batch at or before the target, by the indexes of the segment; 0 if
    they do not lead to one.
    """
    match target.kind:
        case "offset":
            byte = find_position_by_index(segment, target.value, None, "construct")
        case "time":
            byte = find_position_by_index(segment, None, target.value, "construct")
        case "byte":
            byte = target.value
        case "before":
            byte = target.value - CONTEXT
        case "end":
            byte = segment.size - CONTEXT
    return find_start_before(segment, byte)


def _iter_entries(run: SegmentPass, segment: Segment, next_base: int | None) -> Iterator[Entry]:
    """Yield the batches of a pass and the ranges that it skips, by position. An incomplete end that
    a crash leaves in the active segment has the kind ``tail``, other ranges ``lost``. Raise OSError
    if a range at the end cannot be read again.
    """
    seen = 0

    def take_lost() -> Iterator[Entry]:
        nonlocal seen
        for lost in run.lost[seen:]:
            is_tail = is_normal_tail(segment, next_base, lost, run.size)
            yield _convert_lost(lost.up_to(next_base), "tail" if is_tail else "lost")
        seen = len(run.lost)

    for batch in run.batches():
        yield from take_lost()
        yield batch
    yield from take_lost()


def _is_wanted(entry: Entry, target: Target) -> bool:
    """Return whether an entry lies at or after a target of the kind ``offset``, ``time`` or
    ``byte``: its last offset, largest timestamp or last byte reaches it. A lost range without a
    known last offset does not by offset, and none does by time.
    """
    if target.kind == "byte":
        return end_of(entry) > target.value
    if isinstance(entry, LostRange):
        last = entry.last_offset
        return target.kind == "offset" and last is not None and last >= target.value
    if target.kind == "offset":
        return entry.last_offset >= target.value
    return entry.max_timestamp >= target.value


def choose_segment(segments: Sequence[Segment], target: Target) -> int:
    """Return the index of the segment where a search for a target begins. By offset it is the last
    one whose base offset is not above it, else 0. By time it is the first one that is not shown to
    end before it, by its time index and the headers from the batch of its last entry on, else the
    last one. For other targets it is 0. ``segments`` must not be empty.
    """
    if target.kind == "offset":
        begun = (i for i, s in enumerate(segments) if s.base_offset <= target.value)
        return max(begun, default=0)
    if target.kind == "time":
        for i, segment in enumerate(segments):
            times = read_index_times(segment)
            if times is None or times[1] >= target.value or _may_reach(segment, target.value):
                return i
        return len(segments) - 1
    return 0


def _may_reach(segment: Segment, timestamp: int) -> bool:
    """Return whether a segment whose time index ends before ``timestamp`` may have it all the same:
    batches after the last entry have it, the batch of this entry contradicts it, or headers cannot
    be read.
    """
    position = find_position_by_index(segment, None, timestamp)
    if position == 0:
        return True
    try:
        found = next(headers(segment.path, ("max_timestamp",), start=position), None)
    except CodecError:
        return True
    return found is None or found[0] >= timestamp


def read_index_times(segment: Segment) -> tuple[int, int] | None:
    """Return the timestamps in the first and the last entry of the time index of a segment, in
    milliseconds since 1970; None if it has none or cannot be used. Nothing is verified.
    """
    index = read_index_entries(segment.path.with_suffix(".timeindex"), TIME_ENTRY_DTYPE)
    if not len(index):
        return None
    return int(index["timestamp"][0]), int(index["timestamp"][-1])


def find_window(
    segments: Iterable[tuple[int, Segment, int | None]], target: Target, count: int, budget: Budget
) -> tuple[int, BatchWindow]:
    """Return the first window of ``segments`` that has entries or a missing end, or had to stop
    (``resume``), and the index of its segment; the last one, empty, if none has. ``segments`` yields index, segment and
    next base offset, at least once. The budget is for all together. Raise OSError only if a damaged
    end cannot be read again.
    """
    found = -1, BatchWindow()
    for i, segment, next_base in segments:
        if found[0] >= 0 and budget.is_spent:
            return i, BatchWindow(resume=0)
        found = i, read_window(segment, next_base, target, count, budget)
        if found[1].entries or found[1].missing or found[1].resume is not None:
            return found
        target = replace(target, resume=0)
    return found
