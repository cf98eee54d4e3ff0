"""Segments that a broker deletes after their directory was listed, and whether that loses a record."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from kafka_log.logs.listing import list_segment_files
from kafka_log.logs.log_start import LOG_STATES
from kafka_log.logs.partitions import Segment
from kafka_log.segment.positioned_reads import UnreadableError, unreadable

T = TypeVar("T")


def read_options(segment: Segment) -> dict[str, Any]:
    """Return the options of a reader of a listed segment. The reader accepts it if retention deletes the segment meanwhile."""
    missing = partial(check_removal, segment)
    return {"tail": segment.tail, "size": segment.size, "is_removed": missing}


def history_options(segment: Segment) -> dict[str, Any]:
    """Return the options of a reader whose caller needs all earlier segments: it raises UnreadableError if retention deletes the segment."""
    return read_options(segment) | {"is_removed": partial(_raise_if_removed, segment)}


def read_history(segments: Sequence[Segment], read: Callable[[Sequence[Segment]], T]) -> T:
    """Return ``read(segments)``; if retention deletes a segment meanwhile, warn, and call it again
    with the segments after that one, perhaps none. Raise UnreadableError if a segment cannot be
    read, or is gone and retention does not explain it; other errors of ``read`` pass through.

    ``read`` interprets segments by the segments before them, such as transactions. Retention deletes earlier segments too, and transactions that
    began in them would seem to continue.
    """
    left = list(segments)
    while True:
        try:
            return read(left)
        except UnreadableError as error:
            gone = [i for i, one in enumerate(left) if os.fspath(one.path) == error.filename]
            if error.errno != errno.ENOENT or not gone or not check_removal(left[gone[0]]):
                raise
            del left[: gone[0] + 1]


def check_removal(segment: Segment) -> bool:
    """Return whether the removal of a missing segment loses no record of the log, by a new listing
    of its directory. If so, warn that the broker removed it.

    The directory is listed again. Retention deletes segments at the start of a log, so the log must start after the segment now. A segment
    that was marked for deletion or written by a cleaner is not part of the log.
    """
    reason = explain_removal(segment)
    if reason is not None:
        warnings.warn(
            f"kafka-log: {segment.path}: the broker removed this segment after it was listed, so that it is not read: {reason}",
            stacklevel=2,
        )
    return reason is not None


def _raise_if_removed(segment: Segment) -> bool:
    """Raise UnreadableError if retention explains that a segment is gone. Return False if nothing explains it."""
    if explain_removal(segment) is None:
        return False
    raise unreadable(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), 0, segment.path)


def explain_removal(segment: Segment) -> str | None:
    """Return why the removal of a segment loses no record of the log: it was marked for deletion,
    was a cleaner's output, or retention moved the log's start beyond it. Return None if nothing
    explains it, also if its path is still listed, the directory has no segments or cannot be
    listed, the partition has segments in tiered storage, or the segment has another state, such as
    ``swap``.
    """
    if segment.state in ("deleted", "delete"):
        return "it was marked for deletion"
    if segment.state == "cleaned":
        return "a cleaner was writing it, and the segments that it is made of are read"
    if segment.state not in LOG_STATES or not segment.has_offset_in_name or segment.tiered:
        return None  # its copy in tiered storage would have to be read
    try:
        found = list_segment_files(segment.path.parent)
    except OSError:
        return None
    # Segments in tiered storage have the state of their directory.
    start = min((file.base_offset for file in found if file.state in LOG_STATES), default=0)
    if start <= segment.base_offset:
        return None
    return (
        f"its offsets, {segment.base_offset} to at most {start - 1}, are below {start}, where the log begins now"
        f" because of retention; no record of the log is missing"
    )
