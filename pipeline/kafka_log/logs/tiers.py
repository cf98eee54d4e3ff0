"""Tiered storage: remote segments and local segments as one log in which each record occurs once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace

from codecgen.runtime.errors import CodecError
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.logs.replicas import read_segment_end
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.ranges import MAX_OFFSET

Ends = MutableMapping[Segment, int]
"""Cached end offsets of remote segments, which never change."""


def merge_tiered_segments(
    partitions: Iterable[Partition], known: Ends | None = None
) -> list[Partition]:
    """Return the partitions with the remote segments of each topic and number added to the first of
    its live and remote partitions, before the live segments and without overlap. Its other remote
    partitions are left out, its other live ones unchanged, as are partitions in other states. A
    file that cannot be read raises no error. ``known`` caches end offsets for later calls.

    Each offset is read once: :attr:`Segment.offsets` limits overlapping remote segments. Of copies with the same base offset the longest is
    read.

    Args:
        partitions: Live and remote partitions, and any others.
        known: Cache of end offsets, which is extended. An end is read from a file only if another copy begins before it.
    """
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
            before = _select_disjoint(segments, min(bases, default=None), known)
            if segments:
                live = [replace(segment, tiered=True) for segment in live]
            error = partition.error or errors.get(partition.key)
            out.append(replace(partition, segments=(*before, *live), error=error))
        remote[partition.key] = []  # they are added to the first partition only
    return out


def find_tiered_partitions(partitions: Iterable[Partition]) -> Iterator[tuple[Partition, int]]:
    """Yield the partitions whose live segments overlap with remote ones of the same topic and
    number, each with its first live base offset: some remote segment begins at or after it. Ignore
    live segments without a canonical file name.
    """
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
    """Return the partitions; leave out the first segments of live ones, up to the first that has no
    remote copy of at least its size. The last segment always stays. Brokers delete such segments
    soon.

    :func:`merge_tiered_segments` reads the same records from tiered storage.
    """
    found = list(partitions)
    copied = {
        (*partition.key, segment.base_offset): segment.size
        for partition in found
        if partition.state == "remote"
        for segment in partition.segments
    }
    return [
        replace(partition, segments=_drop_copied(partition, copied))
        if partition.state == "live"
        else partition
        for partition in found
    ]


def _drop_copied(
    partition: Partition, copied: Mapping[tuple[str, int, int], int]
) -> tuple[Segment, ...]:
    """Return the segments of a partition without the first ones for which ``copied`` has at least
    the same size, by topic, partition and base offset. The last segment always stays.
    """
    segments = partition.segments
    first = 0
    while (
        first < len(segments) - 1  # the broker writes to the last one
        and copied.get((*partition.key, segments[first].base_offset), -1) >= segments[first].size
    ):
        first += 1
    return segments[first:]


def _select_disjoint(segments: Sequence[Segment], end: int | None, known: Ends) -> list[Segment]:
    """Return remote segments below the offset ``end``, in order, with ``offsets`` limited so that
    none occurs twice. Of copies with the same base offset the longest is taken; an unreadable one
    counts up to the next segment. Leave out segments whose offsets others have already.

    Args:
        segments: Remote segments in any order.
        end: First offset that is read elsewhere. None: no limit.
        known: Cache of end offsets, which is extended.
    """
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
            if one not in known and (found := _read_end(one)) is not None:
                known[one] = found
        unknown = MAX_OFFSET if following is None else following
        for segment in _select_copies(copies[base], known):
            stop = known.get(segment, unknown)
            last = stop if end is None else min(stop, end)
            if last > done:
                out.append(replace(segment, offsets=(max(done, base), last)))
                done = last
    return out


def _select_copies(copies: Sequence[Segment], known: Ends) -> list[Segment]:
    """Return the copy with the highest known end offset, of several segments with the same base
    offset; after it the largest of the copies without a known end, if it has more bytes. If no end is known, only
    the largest copy.
    """
    readable = [segment for segment in copies if segment in known]
    others = [segment for segment in copies if segment not in known]
    best = [max(readable, key=lambda s: known[s])] if readable else []
    size = best[0].size if best else -1
    return best + [s for s in sorted(others, key=lambda s: -s.size)[:1] if s.size > size]


def _read_end(segment: Segment) -> int | None:
    """Return the offset after the last batch of a segment, its base offset if it has none. Return
    None if it is damaged or cannot be read.
    """
    try:
        found = read_segment_end(segment)
    except CodecError:
        return None
    return segment.base_offset if found is None else found.offset
