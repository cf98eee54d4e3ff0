"""Segments that a broker removes after their directory was listed: whether that loses a record."""

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
    """Return the options of a reader that reads a segment as its directory was listed, and takes it for no loss if retention removes it meanwhile."""
    missing = partial(check_removal, segment)
    return {"tail": segment.tail, "size": segment.size, "is_removed": missing}


def history_options(segment: Segment) -> dict[str, Any]:
    """Return the options of a reader whose caller judges a segment by those before it: it raises UnreadableError if retention removes the segment."""
    return read_options(segment) | {"is_removed": partial(_stop_at, segment)}


def read_history(segments: Sequence[Segment], read: Callable[[Sequence[Segment]], T]) -> T:
    """Return `read(segments)`, which judges segments of a partition by those before them, such as transactions.

    If retention removes a segment meanwhile, call `read` again with those after it: earlier segments are removed too, and what they began
    would seem to go on.

    Raises:
        UnreadableError: If a segment is gone that retention does not explain, or cannot be read.
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
    """Return whether a segment that is not there any more was removed by its broker, which loses no record of the log. Warn that it was.

    The directory is listed again. Retention removes segments at the start of a log, so the log has to start after the segment now. A segment
    that was about to be deleted when it was listed, or that a cleaner was writing, is no part of the log.
    """
    said = explain_removal(segment)
    if said is not None:
        warnings.warn(
            f"kafka-log: {segment.path}: the broker removed this segment after it was listed: {said}",
            stacklevel=2,
        )
    return said is not None


def _stop_at(segment: Segment) -> bool:
    if explain_removal(segment) is None:
        return False
    raise unreadable(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), 0, segment.path)


def explain_removal(segment: Segment) -> str | None:
    """Return why nothing of the log is lost by the removal of a segment, None if nothing says so."""
    if segment.state in ("deleted", "delete"):
        return "it was marked for deletion"
    if segment.state == "cleaned":
        return "a cleaner was writing it, and the segments that it is made of are read"
    if segment.state not in LOG_STATES or not segment.has_offset_in_name or segment.tiered:
        return None  # what tiered storage has of it would have to be read
    try:
        found = list_segment_files(segment.path.parent)
    except OSError:
        return None
    # A segment in a tier has the state of its directory.
    live = [base for base, state, path, _ in found if state in LOG_STATES and path != segment.path]
    start = min(live, default=0)
    if start <= segment.base_offset:
        return None
    return (
        f"its offsets, {segment.base_offset} to {start - 1} at most, lie before the first one in this directory"
        f" now, which is {start} by retention; no record that is still there is missing"
    )
