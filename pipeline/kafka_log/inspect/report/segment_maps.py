"""Maps of damaged segments: which bytes are batches, which are not, and which offsets are missing there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kafka_log.inspect.check.segment_scan import ScannedSegment, ScanOptions, scan_segment
from kafka_log.logs.partitions import Partition, Segment, group_by_state, pair_with_next_base_offset
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.header_arrays import Headers

MAX_SEGMENTS = 30
"""Maximum number of segments that are read again for a map."""


@dataclass(frozen=True, slots=True)
class LostRange:
    """A range of bytes of a segment that are not valid batches.

    Attributes:
        start: First byte.
        end: Byte after the last one.
        kind: ``lost``, ``refused`` (a valid checksum, but records that cannot be decoded) or ``tail`` (an incomplete batch
            or zeros at the end, which a crash leaves).
        first_offset: First offset that is missing there; None if unknown.
        last_offset: Last offset that is missing there; None if unknown.
        reason: What is wrong.
    """

    start: int
    end: int
    kind: str
    first_offset: int | None
    last_offset: int | None
    reason: str


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
        lost: Ranges that are not valid batches, by position.
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
    findings: Iterable[Mapping[str, Any]], partitions: Sequence[Partition]
) -> dict[str, tuple[int, ...]]:
    """Return the paths of segments with an error or a warning at a position in the file, in the
    order of ``findings``, and these positions, each once and in the same order.
    """
    paths = {utf8(os.fspath(s.path)) for p in partitions for s in p.segments}
    marks: dict[str, dict[int, None]] = {}
    for row in findings:
        if row["severity"] != "note" and row["byte"] is not None and row["file"] in paths:
            marks.setdefault(row["file"], {})[row["byte"]] = None
    return {path: tuple(found) for path, found in marks.items()}


def map_segments(
    damaged: Mapping[str, tuple[int, ...]],
    partitions: Sequence[Partition],
    *,
    deep: bool = False,
    advance: Callable[[int], None] = lambda _: None,
) -> list[SegmentMap]:
    """Return the maps of the first MAX_SEGMENTS of the ``damaged`` segments (byte positions of
    findings by path). They are read once more, with ``deep`` also their records. A path that is no
    segment of ``partitions`` has no map; one that cannot be read has a map with an ``error``.

    Args:
        damaged: Positions of findings by path, from :func:`find_damaged_segments`.
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
    marks: tuple[int, ...],
    reading: ScanOptions,
) -> SegmentMap:
    """Read a segment and return its map, with ``marks`` (byte positions of findings) as given; one
    with only size and ``error`` if the file cannot be read. ``following`` is the base offset of the
    next segment (None: none), ``path`` the name to show.
    """
    place = utf8(segment.topic), segment.partition, path
    pieces = reading.read_pieces([segment], {segment: following})
    try:
        scanned = scan_segment(segment, following, pieces, reading)
    except OSError as error:
        return SegmentMap(*place, segment.size, error=error.strerror or str(error))
    lost = tuple(_list_lost_ranges(scanned))
    refused = [one.start for one in lost if one.kind == "refused"]
    is_valid = ~np.isin(scanned.headers.position, refused)
    offsets = _list_offsets(scanned.headers, is_valid, [one.start for one in lost])
    return SegmentMap(*place, scanned.size, int(is_valid.sum()), tuple(offsets), lost, marks)


def _list_offsets(
    headers: Headers, is_valid: Any, lost: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield the first and last offset of the batches of ``is_valid`` between the positions ``lost``
    (ascending), by position.
    """
    if not is_valid.any():
        return
    part = np.searchsorted(np.array(lost, np.int64), headers.position[is_valid])
    begins = np.flatnonzero(np.diff(part, prepend=-1))
    firsts = np.minimum.reduceat(headers.first[is_valid], begins)
    lasts = np.maximum.reduceat(headers.last[is_valid], begins)
    yield from zip(firsts.tolist(), lasts.tolist(), strict=True)


def _list_lost_ranges(scanned: ScannedSegment) -> list[LostRange]:
    """Return the lost ranges and refused batches of a segment, by position."""
    found = [
        LostRange(
            lost.start,
            lost.end,
            "lost" if scanned.tail_kind_of(lost) is None else "tail",
            *find_missing_offsets(lost.after_offset, lost.before_offset),
            lost.reason,
        )
        for lost in scanned.lost
    ]
    positions, sizes = scanned.headers.position, scanned.headers.size
    ends = dict(zip(positions.tolist(), (positions + sizes).tolist(), strict=True))
    for batch in scanned.refused:
        end = ends.get(batch.position, batch.position + 1)
        reason = f"{batch.problem.at}: {batch.problem.error}"
        found.append(LostRange(batch.position, end, "refused", batch.first, batch.last, reason))
    return sorted(found, key=lambda lost: lost.start)


def find_missing_offsets(after: int | None, before: int | None) -> tuple[int | None, int | None]:
    """Return the first and last offset that a range between two offsets has lost. ``after`` is the
    offset before the range, ``before`` the first one after it; the result is None where one is
    None, and twice None if nothing lies between them.
    """
    first = None if after is None else after + 1
    last = None if before is None else before - 1
    if first is not None and last is not None and first > last:
        return None, None
    return first, last
