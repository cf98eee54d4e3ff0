"""Segments that a broker removes after their directory was listed: whether that loses a record."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

from kafka_log.disk.directory import Segment
from kafka_log.disk.files import segment_files
from kafka_log.disk.log_start import OF_LOG


def read_options(segment: Segment) -> dict[str, Any]:
    """Return the options of a reader that reads a segment as its directory was listed, and takes it for no loss if retention removes it meanwhile."""
    missing = partial(is_removed, segment)
    return {"tail": segment.tail, "size": segment.size, "is_removed": missing}


def is_removed(segment: Segment) -> bool:
    """Return whether a segment that is not there any more was removed by its broker, which loses no record of the log. Warn that it was.

    The directory is listed again. Retention removes segments at the start of a log, so the log has to start after the segment now. A segment
    that was about to be deleted when it was listed, or that a cleaner was writing, is no part of the log.
    """
    said = _explanation(segment)
    if said is not None:
        warnings.warn(
            f"kafka-log: {segment.path}: the broker removed this segment after it was listed: {said}",
            stacklevel=2,
        )
    return said is not None


def _explanation(segment: Segment) -> str | None:
    """Return why nothing of the log is lost, None if nothing says so."""
    if segment.state in ("deleted", "delete"):
        return "it was marked for deletion"
    if segment.state == "cleaned":
        return "a cleaner was writing it, and the segments that it is made of are read"
    if segment.state not in OF_LOG or not segment.says_offset or segment.tiered:
        return None  # what tiered storage has of it would have to be read
    try:
        found = segment_files(segment.path.parent)
    except OSError:
        return None
    # A segment in a tier has the state of its directory.
    live = [base for base, state, path, _ in found if state in OF_LOG and path != segment.path]
    start = min(live, default=0)
    if start <= segment.base_offset:
        return None
    return (
        f"its offsets, {segment.base_offset} to {start - 1} at most, lie before the first one in this directory"
        f" now, which is {start} by retention; no record that is still there is missing"
    )
