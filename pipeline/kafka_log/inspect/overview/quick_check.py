"""Quick check: batch headers at both ends of each log, in bounded time."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice, starmap

from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from kafka_log.logs.broker_files import read_broker_files
from kafka_log.logs.incomplete_tails import find_end_losses
from kafka_log.logs.index_files import OFFSET_ENTRY_DTYPE, read_index_entries
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.logs.removed_segments import explain_removal
from kafka_log.segment.batch_headers import entries, headers
from kafka_log.segment.framing import HeaderColumns
from kafka_log.segment.model import describe_lost
from kafka_log.segment.positioned_reads import UnreadableError

SECONDS = 3.0
"""Time for the first log, and for all others together, after which no further one is opened."""
MAX_HEADERS = 20_000
"""Maximum number of batch headers that are read to find the end of a segment. From its last index entry on there are few."""
_OF_FIRST = ("first_timestamp", "max_timestamp")


@dataclass(frozen=True, slots=True)
class QuickCheck:
    """Result of a quick check.

    Attributes:
        checked: Number of partitions whose first and last batch headers were read.
        skipped: Number of partitions that were not read, because the time was over or the end of a segment was too far away.
        problems: A line for each problem, in the order of the partitions.
        first_ms: Lowest timestamp in the first and last batch headers, in milliseconds since 1970; None if none has one.
        last_ms: Highest timestamp, likewise.
    """

    checked: int
    skipped: int
    problems: tuple[str, ...]
    first_ms: int | None
    last_ms: int | None


class _TooFarError(Exception):
    """The end of a segment is not found within MAX_HEADERS batch headers, or in time."""


def check_ends(
    partitions: Sequence[Partition],
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> QuickCheck:
    """Read the first batch header of each partition, and those from the last index entry on, until
    ``seconds`` (None: SECONDS) are over after the first partition. The largest partitions come
    first. No checksum is verified. Damage, unreadable files and partitions that cannot be listed
    are problems, and do not raise. Partitions for which there is no time, or whose end is more than
    MAX_HEADERS batches away, or whose first segment retention has deleted, count as skipped. A
    partition that cannot be listed counts as neither checked nor skipped.
    """
    limit = SECONDS if seconds is None else seconds
    deadline = clock() + limit

    def is_over() -> bool:
        """Return whether no further log is opened."""
        return clock() >= deadline

    problems: dict[int, list[str]] = {}
    times: list[int] = []
    read_broker = cache(read_broker_files)
    checked = skipped = 0
    order = sorted(range(len(partitions)), key=lambda i: -partitions[i].size)
    for number, i in enumerate(order):
        partition = partitions[i]
        if number == 1:
            deadline = (
                clock() + limit
            )  # the first one loaded the codecs, which may have taken longer
        if partition.error is not None:
            problems.setdefault(i, []).append(str(partition.error))
            continue
        if is_over():
            skipped += 1
            continue
        written = [segment for segment in partition.segments if not segment.is_empty]
        if not written:
            checked += 1
            continue
        try:
            times += _read_first_times(written[0])
            times += _read_end(written[-1], is_over)
            checked += 1
            lines = list(starmap(describe_lost, find_end_losses(partition, read_broker)))
            if lines:
                problems.setdefault(i, []).extend(lines)
        except _TooFarError:
            skipped += 1
        except (CodecError, OSError, _IncompleteError) as error:
            gone = isinstance(error, UnreadableError) and error.errno == errno.ENOENT
            if gone and explain_removal(written[0]) is not None:
                skipped += 1
                continue
            checked += 1
            problems.setdefault(i, []).append(str(error))
    return QuickCheck(
        checked,
        skipped,
        tuple(line for i in sorted(problems) for line in problems[i]),
        min(times, default=None),
        max(times, default=None),
    )


class _IncompleteError(Exception):
    """A rolled segment ends with an incomplete batch."""


def _read_first_times(segment: Segment) -> list[int]:
    """Return the timestamps in the first batch header of a segment, without missing ones; none if
    no batch is complete. Raise CodecError for bytes that are no batch, OSError for an unreadable file.
    """
    return [t for row in islice(headers(segment.path, _OF_FIRST), 1) for t in row if _is_time(t)]


def _read_end(segment: Segment, is_over: Callable[[], bool]) -> list[int]:
    """Return the timestamps in the batch headers from the last index entry of a segment on, without
    missing ones. Without an index, or if it leads to no batch, read all headers. Raise CodecError
    for bytes that are no batch, _IncompleteError for an incomplete batch at the end of a rolled
    segment, OSError for an unreadable file, and _TooFarError if there are more than MAX_HEADERS
    headers, or the time is over.
    """
    index = read_index_entries(segment.path.with_suffix(".index"), OFFSET_ENTRY_DTYPE)
    position = int(index["position"][-1]) if len(index) else 0
    if 0 < position < segment.size:
        with suppress(CodecError, _IncompleteError):  # the index may be wrong
            return _read_times(segment, position, is_over)
    return _read_times(segment, 0, is_over)


def _read_times(segment: Segment, start: int, is_over: Callable[[], bool]) -> list[int]:
    """Return the timestamps in the batch headers of a segment from byte ``start`` on, without
    missing ones. Raise CodecError for bytes that are no batch, _IncompleteError if a rolled segment
    ends with an incomplete batch, OSError if the file cannot be read, and _TooFarError after
    MAX_HEADERS headers, or if ``is_over()``, called every 256 headers, returns True.
    """
    columns = HeaderColumns(("max_timestamp",), os.fspath(segment.path))
    times, end = [], start
    for count, entry in enumerate(entries(segment.path, start=start)):
        if count >= MAX_HEADERS or (count and not count % 256 and is_over()):
            raise _TooFarError
        (latest,) = columns.read(entry)
        if _is_time(latest):
            times.append(latest)
        end = entry.position + entry.frame.size
    if segment.rolled and end < segment.size:
        raise _IncompleteError(
            f"{segment.path}: byte {end}: the last {count_noun(segment.size - end, 'byte of the rolled segment is', 'bytes of the rolled segment are')} not a complete batch; kafka-log check says what to do"
        )
    return times


def _is_time(timestamp: int | None) -> bool:
    """Return whether a header has a timestamp."""
    return timestamp is not None and timestamp >= 0
