"""Tiered storage: remote segments and local segments as one log in which each record occurs once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from codecgen.runtime.errors import CodecError
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.logs.remote_topics import Key, find_mixed_topics
from kafka_log.logs.replicas import read_segment_end
from kafka_log.segment.model import Lost
from kafka_log.segment.offsets_of_files import MAX_RELATIVE
from kafka_log.segment.ranges import MAX_OFFSET, Range


class CopyEnd(NamedTuple):
    """The end of a copy in tiered storage, by its last batch or, if that has a wrong base offset, by the others.

    Attributes:
        leader_epoch: Leader epoch of the last batch, -1 without a batch.
        offset: End of the copy (excluded).
        last_first: First offset of the last batch. None if it was not read yet.
        others_end: Offset after the highest one of the other batches, at least the base offset. None if it was not read yet.
    """

    leader_epoch: int
    offset: int
    last_first: int | None = None
    others_end: int | None = None


Ends = MutableMapping[Segment, CopyEnd]
"""Cached ends of remote segments, which never change."""


def merge_tiered_segments(
    partitions: Iterable[Partition], known: Ends | None = None
) -> list[Partition]:
    """Return the partitions with the remote segments of each topic and number added to the first of
    its live and remote partitions, before the live segments and without overlap. Its other remote
    partitions are left out, its other live ones unchanged, as are partitions in other states. Remote
    partitions with several topic ids add an ``error`` and no segments. A file that cannot be read
    raises no error. ``known`` caches end offsets for later calls.

    Each offset is read once: :attr:`Segment.offsets` limits overlapping remote segments. Of copies that overlap, the one whose last batch has
    the highest leader epoch is read, as a broker does after it truncated its log.

    Args:
        partitions: Live and remote partitions, and any others.
        known: Cache of the ends of remote segments, which is extended.
    """
    known = {} if known is None else known
    found = list(partitions)
    remote: dict[Key, list[Segment]] = {}
    mixed = find_mixed_topics(found)
    errors = dict(mixed)
    for partition in found:
        if partition.state == "remote":
            copies = remote.setdefault(partition.key, [])
            copies += () if partition.key in mixed else partition.segments
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
        error = errors.pop(partition.key, None)
        if segments or live or error is not None:
            before = _select_disjoint(segments, min(bases, default=None), known)
            if segments:
                live = [replace(segment, tiered=True) for segment in live]
            error = partition.error or error
            out.append(replace(partition, segments=(*before, *live), error=error))
        remote[partition.key] = []  # they are added to the first partition only
    return out


def find_repeated_offsets(
    partitions: Iterable[Partition], known: Ends | None = None
) -> Iterator[tuple[Partition, int]]:
    """Yield a partition of each topic and number that has an offset in several remote segments, or
    in a remote and a live one, with the first such offset. Ignore live segments whose file name is
    not 20 digits and ``.log``, and remote ones whose end is unknown. ``known`` caches the ends of
    remote segments.
    """
    known = {} if known is None else known
    logs: dict[Key, list[Partition]] = {}
    for partition in partitions:
        logs.setdefault(partition.key, []).append(partition)
    for found in logs.values():
        remote = [s for p in found if p.state == "remote" for s in p.segments]
        if not remote:
            continue
        live = (
            s.base_offset
            for p in found
            for s in p.segments
            if s.state == "live" and s.has_canonical_name
        )
        first = min(live, default=None)
        _find_ends(remote, first, known)
        ranges = [(s.base_offset, known[s].offset) for s in remote if s in known]
        if first is not None:
            ranges.append((first, MAX_OFFSET))
        done = 0
        for base, stop in sorted(ranges):
            if base < min(done, stop):
                yield found[0], base
                break
            done = max(done, stop)


def find_tier_gaps(partition: Partition) -> Iterator[tuple[int, int, Segment]]:
    """Yield the half-open ranges of offsets that are missing between the remote segments of a merged
    partition (:func:`merge_tiered_segments`), and between the last one and the first live segment,
    each with the segment after it. The end of a segment is that of its last batch, or a higher one
    that ``__remote_log_metadata`` states. A segment without a readable end reaches the next one.
    """
    done: int | None = None
    live = [s for s in partition.segments if s.state == "live" and s.has_canonical_name]
    remote = [s for s in partition.segments if s.state == "remote"]
    for segment in (*remote, *live[:1]):
        base, stop = segment.offsets
        first = segment.base_offset if base is None else base
        if done is not None and first > done:
            yield done, first, segment
        done = max(done or 0, stop or 0, segment.stated_end or 0)


def find_lost_offsets(
    partition: Partition, offsets: Range, starts: LogStarts
) -> Iterator[tuple[Path, Lost]]:
    """Yield an empty lost range for each range of ``offsets`` (half-open) that neither a copy in
    tiered storage nor a live segment of a merged partition has (:func:`find_tier_gaps`), from the
    log start offset on; with the path of the segment after it.
    """
    low, high = offsets
    for gap, end, segment in find_tier_gaps(partition):
        first = max(gap, starts.get(partition) or 0, low or 0)
        stop = end if high is None else min(end, high)
        if first < stop:
            reason = f"offsets {first} to {stop - 1} are lost: no copy in tiered storage and no live segment has them"
            yield segment.path, Lost(0, 0, reason, first - 1, stop)


def drop_tiered_segments(partitions: Iterable[Partition]) -> list[Partition]:
    """Return the partitions; leave out the first segments of live ones, up to the first that has no
    remote copy of at least its size and leader epoch (by size alone if either cannot be read). The
    last segment always stays. Brokers delete such segments soon.

    :func:`merge_tiered_segments` reads the same records from tiered storage.
    """
    found = list(partitions)
    copies: dict[tuple[Key, int], list[Segment]] = {}
    for partition in found:
        for segment in partition.segments if partition.state == "remote" else ():
            copies.setdefault((partition.key, segment.base_offset), []).append(segment)
    return [
        replace(partition, segments=_drop_copied(partition, copies))
        if partition.state == "live"
        else partition
        for partition in found
    ]


def _drop_copied(
    partition: Partition, copies: Mapping[tuple[Key, int], Sequence[Segment]]
) -> tuple[Segment, ...]:
    """Return the segments of a partition without the first ones of which ``copies``, by topic and
    partition, and base offset, has a copy of at least their size and leader epoch. The last segment
    always stays.
    """
    segments = partition.segments
    first = 0
    while first < len(segments) - 1 and any(  # the broker writes to the last one
        _is_copy(copy, segments[first])
        for copy in copies.get((partition.key, segments[first].base_offset), ())
    ):
        first += 1
    return segments[first:]


def _is_copy(copy: Segment, segment: Segment) -> bool:
    """Return whether a remote segment with the same base offset as a live one is at least as large,
    and ends with at least its leader epoch, as far as both can be read. A copy with a lower epoch
    was made before the leader of that epoch truncated the segment.
    """
    if copy.size < segment.size:
        return False
    ends: Ends = {}
    of_copy, end = _find_end(copy, ends), _find_end(segment, ends)
    return of_copy is None or end is None or of_copy.leader_epoch >= end.leader_epoch


def _select_disjoint(segments: Sequence[Segment], end: int | None, known: Ends) -> list[Segment]:
    """Return remote segments below the offset ``end``, in order, with ``offsets`` limited so that
    none occurs twice, and ``overlap_limits`` where this leaves out offsets of a segment. Of segments that overlap, the one with the highest leader epoch in its last
    batch is taken from its base offset on, and the rest of others left out; of equal ones the first
    is taken. An unreadable one counts up to the next segment.

    Args:
        segments: Remote segments in any order.
        end: First offset that is read elsewhere. None: no limit.
        known: Cache of ends, which is extended.
    """
    ordered = sorted(segments, key=lambda s: (s.base_offset, str(s.path)))
    copies: dict[int, list[Segment]] = {}
    before = [segment for segment in ordered if end is None or segment.base_offset < end]
    _find_ends(before, end, known)
    for segment in before:
        copies.setdefault(segment.base_offset, []).append(segment)
    chosen = [s for found in copies.values() for s in _select_copies(found, known)]
    out: list[Segment] = []
    done, epoch = 0, -1  # end and leader epoch of what was taken
    for i, segment in enumerate(chosen):
        base, held = segment.base_offset, known.get(segment, CopyEnd(-1, MAX_OFFSET)).leader_epoch
        if segment in known and base < done and held < epoch:
            continue  # truncated by the leader of what was taken
        stop = _find_stop(chosen, i, known, MAX_OFFSET if end is None else end)
        last = stop if end is None else min(stop, end)
        following = chosen[i + 1].base_offset if i + 1 < len(chosen) else end
        is_repeated = (
            _has_stray_batch(known, segment) and following is not None and following <= last
        )
        if last > done or base >= done:  # its only batch may have a wrong offset
            limits = (
                done if done > base else None,
                None
                if segment in known and last == known[segment].offset and not is_repeated
                else last,
            )
            out.append(replace(segment, offsets=(max(done, base), last), overlap_limits=limits))
            done, epoch = last, held
    return out


def _find_stop(segments: Sequence[Segment], i: int, known: Ends, end: int) -> int:
    """Return the offset up to which segment ``i`` is part of the log: its end offset, or the base
    offset of the first overlapping segment whose last batch has a higher leader epoch. Without a
    known end, return the base offset of the next segment, ``end`` if there is none.

    The leader of that epoch truncated the log before it wrote the batch.

    Args:
        segments: Segments by base offset.
        i: Index of the segment.
        known: Ends of segments.
        end: End of the log.
    """
    found = known.get(segments[i])
    for j in range(i + 1, len(segments)):
        later = segments[j]
        if found is None:
            if later.base_offset > segments[i].base_offset:
                return later.base_offset
        elif later.base_offset >= found.offset:
            break
        elif later in known and known[later].leader_epoch > found.leader_epoch:
            return later.base_offset
    return end if found is None else found.offset


def _select_copies(copies: Sequence[Segment], known: Ends) -> list[Segment]:
    """Return the copy with the highest leader epoch, then end offset, of several segments with the
    same base offset; after it the largest of the copies without a known end, if it has more bytes.
    If no end is known, return only the largest copy.
    """
    readable = [segment for segment in copies if segment in known]
    others = [segment for segment in copies if segment not in known]
    best = [max(readable, key=lambda s: known[s][:2])] if readable else []
    size = best[0].size if best else -1
    return best + [s for s in sorted(others, key=lambda s: -s.size)[:1] if s.size > size]


def _find_ends(segments: Sequence[Segment], end: int | None, known: Ends) -> None:
    """Add the ends of copies to ``known``, except of those that are damaged or cannot be read. If
    the last batch of a copy must have a wrong base offset, its end is that of its other batches.

    Args:
        segments: Copies of one log.
        end: First offset that is read elsewhere. None: no limit.
        known: Cache of ends, which is extended.
    """
    begins = sorted({s.base_offset for s in segments} | (set() if end is None else {end}))
    for segment in segments:
        if _find_end(segment, known) is not None:
            later = begins[bisect_right(begins, segment.base_offset) :]
            with suppress(CodecError):
                known[segment] = _without_stray_batch(segment, known[segment], later)


def _find_end(segment: Segment, known: Ends) -> CopyEnd | None:
    """Return the end of a segment by its last batch; its base offset and the leader epoch -1 if it
    has no batch. Return None if it is damaged or cannot be read. Ends that are found are cached in ``known``.
    """
    if segment not in known:
        try:
            found = read_segment_end(segment)
            end = CopyEnd(*(found or (-1, segment.base_offset)))
            if found is not None and not _is_in_reach(segment, end.offset):
                end = _read_last_two_ends(segment, end)
                assert end.others_end is not None
                end = end._replace(offset=end.others_end)
        except CodecError:
            return None
        known[segment] = end
    return known[segment]


def _is_in_reach(segment: Segment, end: int) -> bool:
    """Return whether a segment with batches may end at the offset ``end`` (excluded): above its
    base offset, and as far from it as its indexes can state.
    """
    return 0 < end - segment.base_offset <= MAX_RELATIVE + 1


def _without_stray_batch(segment: Segment, end: CopyEnd, later: Sequence[int]) -> CopyEnd:
    """Return the end of a copy; that of its other batches if the last batch is before their end, or
    is not there and states offsets of the next segment: no checksum covers its base offset, which
    is wrong then. Raise CodecError if a header is damaged, or the file cannot be read.

    Args:
        segment: The copy.
        end: Its end by the last batch.
        later: Base offsets of the segments after it, ascending.
    """
    if not later or end.offset == later[0]:
        return end
    if end.others_end is None:
        end = _read_last_two_ends(segment, end)
    assert end.others_end is not None and end.last_first is not None
    following = next((base for base in later if base >= end.others_end), MAX_OFFSET)
    is_ahead = end.last_first > end.others_end and end.offset > following
    if is_ahead or end.last_first < end.others_end:
        return end._replace(offset=end.others_end)
    return end


def _has_stray_batch(known: Ends, segment: Segment) -> bool:
    """Return whether the last batch of a copy has a wrong base offset, so that its other batches are its end in ``known``."""
    end = known.get(segment)
    return end is not None and end.offset == end.others_end


def _read_last_two_ends(segment: Segment, end: CopyEnd) -> CopyEnd:
    """Return ``end``, the end of a segment, with its ``last_first`` and ``others_end``. Batches with
    impossible offsets or out of order do not count as others. Raise CodecError if a header is
    damaged, or the file cannot be read.
    """
    import numpy as np  # not for other copies

    from kafka_log.segment.placement import find_outside_segment, find_placed
    from kafka_log.segment.scanner import header_scanner

    columns = ("base_offset", "last_offset")
    scanner = header_scanner(segment.path, columns, tail=segment.tail, size=segment.size)
    spans = [
        (last if first is None else first, last)
        for rows in scanner
        for first, last in zip(*(column.to_pylist() for column in rows.columns), strict=True)
    ]
    base = segment.base_offset
    first, last = np.array(spans, np.int64).reshape(-1, 2).T
    placed = find_placed(first, last, find_outside_segment(first, last, base, None), (base, None))
    others = last[:-1][placed[:-1]]
    return end._replace(
        last_first=int(first[-1]) if spans else end.offset,
        others_end=int(others[-1]) + 1 if len(others) else base,
    )
