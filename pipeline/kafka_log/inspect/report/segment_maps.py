"""Maps of damaged segments: which bytes are batches, which are not, and which offsets are missing there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kafka_log.inspect.check.segment_scan import ScannedSegment, ScanOptions, scan_segment
from kafka_log.inspect.report.missing_ends import (
    LostRange,
    find_missing_end,
    find_missing_offsets,
    separate_tail,
)
from kafka_log.logs.partitions import Partition, Segment, group_by_state, pair_with_next_base_offset
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.header_arrays import Headers

MAX_SEGMENTS = 30
"""Maximum number of segments that are read again for a map."""
CUT = frozenset({"offsets_missing", "segment_missing", "segment_shrunk"})
"""Findings at a byte of a segment where batches are missing."""
TOO_SHORT = frozenset(
    {
        "high_watermark_beyond_end",
        "leader_epoch_beyond_end",
        "recovery_point_beyond_end",
        "snapshot_beyond_end",
    }
)
"""Findings about other files of the broker, by which offsets after the last batch of a log are missing."""
TAILS = frozenset({"torn_tail", "zero_tail"})
"""Findings about an incomplete end of a segment."""

Row = Mapping[str, Any]
"""A row of ``check``."""


@dataclass(frozen=True, slots=True)
class SegmentMap:
    """A segment with findings.

    Attributes:
        topic: Topic.
        partition: Partition number.
        path: Path of the file.
        size: Number of bytes.
        batches: Number of valid batches.
        offsets: First and last offset of the valid batches between lost ranges, by position.
        lost: Ranges that are not valid batches, and places where batches are missing, by position.
        marks: Positions of findings.
        error: Why the file could not be read; None if it was.
    """

    topic: str
    partition: int
    path: str
    size: int
    batches: int = 0
    offsets: tuple[tuple[int, int], ...] = ()
    lost: tuple[LostRange, ...] = ()
    marks: tuple[int, ...] = ()
    error: str | None = None


def find_damaged_segments(
    findings: Iterable[Row], partitions: Sequence[Partition]
) -> dict[str, list[Row]]:
    """Return the paths of damaged segments in the order of ``findings``, each with its findings. These
    are errors and warnings at a position in the file, and those by which a log is too short
    (:data:`TOO_SHORT`), which belong to its last segment.
    """
    paths = {utf8(os.fspath(s.path)) for p in partitions for s in p.segments}
    last = {
        utf8(os.fspath(p.directory)): utf8(os.fspath(p.segments[-1].path))
        for p in partitions
        if p.state == "live" and p.segments
    }
    damaged: dict[str, list[Row]] = {}
    for row in findings:
        if row["severity"] == "note":
            continue
        if row["code"] in TOO_SHORT:
            parent = os.path.dirname(row["file"])  # noqa: PTH120
            inside = os.path.join(parent, f"{row['topic']}-{row['partition']}")  # noqa: PTH118
            path = last.get(parent) or last.get(inside)
            if path is not None:
                damaged.setdefault(path, []).append(row)
        elif row["byte"] is not None and row["file"] in paths:
            damaged.setdefault(row["file"], []).append(row)
    return damaged


def map_segments(
    damaged: Mapping[str, Sequence[Row]],
    partitions: Sequence[Partition],
    *,
    deep: bool = False,
    advance: Callable[[int], None] = lambda _: None,
) -> list[SegmentMap]:
    """Return the maps of the first MAX_SEGMENTS of the ``damaged`` segments (findings by path). They
    are read once more, with ``deep`` also their records. A path that is no segment of
    ``partitions`` has no map; one that cannot be read has a map with an ``error``.

    Args:
        damaged: Findings by path, from :func:`find_damaged_segments`.
        partitions: The partitions with these segments.
        deep: Decode records too.
        advance: Called with numbers of bytes that are done.
    """
    chosen = dict(list(damaged.items())[:MAX_SEGMENTS])
    reading = ScanOptions(deep, "auto", advance)
    maps: dict[str, SegmentMap] = {}
    for _, _, segments in group_by_state(partitions):
        for segment, following in pair_with_next_base_offset(segments):
            path = utf8(os.fspath(segment.path))
            if path in chosen and path not in maps:
                maps[path] = _map_segment(segment, following, path, chosen[path], reading)
    return [maps[path] for path in chosen if path in maps]


def _map_segment(
    segment: Segment,
    following: int | None,
    path: str,
    findings: Sequence[Row],
    reading: ScanOptions,
) -> SegmentMap:
    """Read a segment with ``findings`` and return its map; one with only size and ``error`` if the
    file cannot be read. ``following`` is the base offset of the next segment (None: none), ``path``
    the name to show.
    """
    place = utf8(segment.topic), segment.partition, path
    pieces = reading.read_pieces([segment], {segment: following})
    try:
        scanned = scan_segment(segment, following, pieces, reading)
        lost = _add_missing(scanned, _list_lost_ranges(scanned, findings), findings)
    except OSError as error:
        return SegmentMap(*place, segment.size, error=error.strerror or str(error))
    marks = tuple(dict.fromkeys(row["byte"] for row in findings if row["file"] == path))
    refused = [one.start for one in lost if one.kind == "refused"]
    is_valid = ~np.isin(scanned.headers.position, refused)
    offsets = _list_offsets(scanned.headers, is_valid, [one.start for one in lost])
    return SegmentMap(*place, scanned.size, int(is_valid.sum()), tuple(offsets), tuple(lost), marks)


def _list_offsets(
    headers: Headers, is_valid: Any, lost: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield the first and last offset of the batches of ``is_valid`` between the positions ``lost``
    (ascending), by position.
    """
    if not is_valid.any():
        return
    part = np.searchsorted(np.array(lost, np.int64), headers.position[is_valid], "right")
    begins = np.flatnonzero(np.diff(part, prepend=-1))
    firsts = np.minimum.reduceat(headers.first[is_valid], begins)
    lasts = np.maximum.reduceat(headers.last[is_valid], begins)
    yield from zip(firsts.tolist(), lasts.tolist(), strict=True)


def _list_lost_ranges(scanned: ScannedSegment, findings: Sequence[Row]) -> list[LostRange]:
    """Return the lost ranges and refused batches of a segment, by position. An incomplete end is one
    that a crash leaves if the segment is the active one, and none of ``findings`` is about it.
    """
    errors = {row["byte"] for row in findings}
    found = []
    for lost in scanned.lost:
        is_normal = scanned.is_active and lost.start not in errors
        is_tail = is_normal and scanned.tail_kind_of(lost) is not None
        missing = find_missing_offsets(lost.after_offset, lost.before_offset)
        found.append(
            LostRange(lost.start, lost.end, "tail" if is_tail else "lost", *missing, lost.reason)
        )
    positions, sizes = scanned.headers.position, scanned.headers.size
    ends = dict(zip(positions.tolist(), (positions + sizes).tolist(), strict=True))
    for batch in scanned.refused:
        end = ends.get(batch.position, batch.position + 1)
        reason = f"{batch.problem.at}: {batch.problem.error}"
        found.append(LostRange(batch.position, end, "refused", batch.first, batch.last, reason))
    return sorted(found, key=lambda lost: lost.start)


def _add_missing(
    scanned: ScannedSegment, lost: Sequence[LostRange], findings: Sequence[Row]
) -> list[LostRange]:
    """Return the lost ranges of a segment with the places where batches are missing, by position:
    those of ``findings``, and the end of the file. Raise OSError if the file cannot be read.
    """
    segment, size = scanned.segment, scanned.size
    end = int(scanned.headers.last.max(initial=segment.base_offset - 1)) + 1
    found = list(lost)
    starts = {one.start for one in lost}
    at_end = [row for row in findings if _is_after(row, end)]
    for row in findings:
        if row["code"] in CUT and row["byte"] not in starts and row not in at_end:
            offsets = row["first_offset"], row["last_offset"]
            found.append(LostRange(row["byte"], row["byte"], "missing", *offsets, row["meaning"]))
    tail = next((one for one in lost if one.start < one.end == size), None)
    limit = max(
        (row["last_offset"] + 1 for row in at_end if row["last_offset"] is not None),
        default=scanned.next_base,
    )
    missing = find_missing_end(segment, size if tail is None else tail.start, size, end, limit)
    last = None if limit is None else limit - 1
    if tail is not None and (missing is not None or at_end):
        found.remove(tail)
        tail = replace(tail, first_offset=end, last_offset=last)
        found.append(tail if missing is None else separate_tail(tail, missing))
    if missing is not None:
        found.append(missing)
    elif at_end and tail is None:
        reason = " ".join(dict.fromkeys(row["meaning"] for row in at_end))
        found.append(LostRange(size, size, "missing", end, last, reason))
    return sorted(found, key=lambda one: (one.start, one.end))


def _is_after(row: Row, end: int) -> bool:
    """Return whether a finding says that offsets from ``end``, the end of a segment, on are missing."""
    first = row["first_offset"]
    return first is not None and first >= end and row["code"] in CUT | TOO_SHORT | TAILS
