"""Partitions whose older segments lie in tiered storage: what is there and what is local as one log, each record once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace

from codecgen.runtime.errors import CodecError
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.logs.replicas import MAX_END, read_segment_end
from kafka_log.segment.positioned_reads import UnreadableError

Ends = MutableMapping[Segment, int]
"""Where segments of tiers end that were looked at. They do not change."""


def merge_tiered_segments(
    partitions: Iterable[Partition], known: Ends | None = None
) -> list[Partition]:
    """Live partitions with the remote segments that have records before their first live segment; of these, and of copies of one
    another, each offset is read once (:attr:`Segment.offsets`). Partitions that are remote alone stay so. Others are as they were.

    Where copies have the same offsets, that one is read which begins first, and of those that begin alike the one that goes on longest:
    the end of a segment is looked up by its index where another begins before it may end, unless it is ``known`` from earlier. Raises OSError."""
    known = {} if known is None else known
    found = list(partitions)
    remote: dict[tuple[str, int], list[Segment]] = {}
    errors: dict[tuple[str, int], UnreadableError] = {}
    for partition in found:
        if partition.state == "remote":
            remote.setdefault(partition.key, []).extend(partition.segments)
            if partition.segments and partition.error is not None:
                errors.setdefault(partition.key, partition.error)
    out = []
    for partition in found:
        segments = remote.get(partition.key) if partition.state in ("live", "remote") else None
        if segments is None or (partition.error is not None and not partition.segments):
            out.append(partition)
            continue
        live = [] if partition.state == "remote" else list(partition.segments)
        bases = [s.base_offset for s in live if s.state == "live" and s.has_canonical_name]
        if segments or live:
            before = _each_once(segments, min(bases, default=None), known)
            if segments:
                live = [replace(segment, tiered=True) for segment in live]
            error = partition.error or errors.get(partition.key)
            out.append(replace(partition, segments=(*before, *live), error=error))
        remote[partition.key] = []  # they are read with the first
    return out


def find_tiered_partitions(partitions: Iterable[Partition]) -> Iterator[tuple[Partition, int]]:
    """Yield the live partitions whose live segments lie in tiered storage too, each with the first base offset of which that is known by the names of
    files."""
    found = list(partitions)
    last: dict[tuple[str, int], int] = {}
    for partition in found:
        for segment in partition.segments if partition.state == "remote" else ():
            last[partition.key] = max(last.get(partition.key, 0), segment.base_offset)
    for partition in found:
        live = [
            s.base_offset for s in partition.segments if s.state == "live" and s.has_canonical_name
        ]
        if live and live[0] <= last.get(partition.key, -1):
            yield partition, live[0]


def drop_tiered_segments(partitions: Iterable[Partition]) -> list[Partition]:
    """The partitions without those first live segments that lie in a tier too: brokers delete these before long. What one that is read
    by :func:`merge_tiered_segments` has is the same."""
    found = list(partitions)
    copied = {
        (*partition.key, segment.base_offset): segment.size
        for partition in found
        if partition.state == "remote"
        for segment in partition.segments
    }
    return [
        replace(partition, segments=_not_copied(partition, copied))
        if partition.state == "live"
        else partition
        for partition in found
    ]


def _not_copied(
    partition: Partition, copied: Mapping[tuple[str, int, int], int]
) -> tuple[Segment, ...]:
    segments = partition.segments
    first = 0
    while (
        first < len(segments) - 1  # the last one is written to
        and copied.get((*partition.key, segments[first].base_offset), -1) >= segments[first].size
    ):
        first += 1
    return segments[first:]


def _each_once(segments: Sequence[Segment], end: int | None, known: Ends) -> list[Segment]:
    """The segments that have offsets before ``end`` (None: all) which no other one has, and which of them are read of each."""
    ordered = sorted(segments, key=lambda s: (s.base_offset, str(s.path)))
    copies: dict[int, list[Segment]] = {}
    for segment in ordered:
        if end is None or segment.base_offset < end:
            copies.setdefault(segment.base_offset, []).append(segment)
    bases = list(copies)
    out: list[Segment] = []
    done = 0
    for i, base in enumerate(bases):
        following = bases[i + 1] if i + 1 < len(bases) else end
        for one in copies[base]:
            if one not in known and (found := _end(one)) is not None:
                known[one] = found
        unknown = MAX_END if following is None else following
        ends = {s: known.get(s, unknown) for s in copies[base]}
        segment = max(ends, key=lambda s: ends[s])
        last = ends[segment] if end is None else min(ends[segment], end)
        if last > done:
            out.append(replace(segment, offsets=(max(done, base), last)))
            done = last
    return out


def _end(segment: Segment) -> int | None:
    """The offset after the last one of a segment; None where it cannot be read: then it is that at which the next one begins."""
    try:
        found = read_segment_end(segment)
    except CodecError:
        return None
    return segment.base_offset if found is None else found.offset
