"""Batches whose base offset, which no checksum covers, is contradicted by another replica that has the same bytes elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kafka_log.inspect.merge.candidates import CONTENT, Candidates, list_candidates
from kafka_log.inspect.merge.replica import DamagedRange, Replica

MISNUMBERED = (
    "its base offset, which no checksum covers, is wrong: another replica has the same bytes at offset {},"
    " which fits this place too"
)
UNCERTAIN = (
    "a replica has the same bytes at other offsets, which fit this place too; no checksum covers a base offset, and"
    " nothing says which one is right"
)
_MAX = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class CheckedReplicas:
    """Replicas without the batches whose base offset is wrong or uncertain.

    Attributes:
        replicas: The replicas that are left, by number.
        misnumbered: Batches with a wrong base offset. Another replica has the same bytes at the right one.
        uncertain: Batches whose bytes stand at several offsets, of which any may be the right one.
    """

    replicas: Sequence[Replica]
    misnumbered: list[DamagedRange]
    uncertain: list[DamagedRange]


def check_base_offsets(replicas: Sequence[Replica]) -> CheckedReplicas:
    """Return the replicas without batches whose base offset is wrong or uncertain, and these
    batches as ranges of bytes. A batch is left alone unless another replica has the same bytes at
    another offset that fits its place too. Its offset is then wrong if another replica has other
    bytes there, or if the other offset lies as many bytes after the batch before in both replicas;
    otherwise it is uncertain which one is right.

    A flipped base offset leaves the batch whole, since no checksum covers it. So the bytes of a batch
    may stand at two offsets. A producer that sends a batch again has the same effect. A batch is suspect
    if all of this is true:

    - Another replica has the same bytes at another offset, in whichever leader epoch (no checksum covers that either), and none has
      them twice.
    - No other replica has them at the offset that the batch states.
    - Neither its neighbors in the file nor the name of a segment confirm its offset.
    - The other offset fits between the whole batches around it in the file.
    """
    batches = list_candidates(replicas)
    group = _group_moved(batches, replicas)
    places = {one.number: _Places(one) for one in replicas}
    suspects = dict(_find_suspects(batches, group, places))
    if not suspects:
        return CheckedReplicas(replicas, [], [])
    right: dict[int, int] = {}
    refuted = {i for i in suspects if _is_refuted(batches, replicas, suspects, i)}
    for i in refuted:
        sound = [j for j in suspects[i] if j not in refuted]
        if sound:
            right[i] = int(batches.first[min(sound, key=lambda j: j in suspects)])
    left = {i: [j for j in fits if j not in right] for i, fits in suspects.items()}
    left = {i: fits for i, fits in left.items() if fits and i not in right}
    for i, fits in left.items():
        same = [j for j in fits if j not in left and _is_same_place(batches, places, i, j)]
        if same:
            right[i] = int(batches.first[same[0]])
    uncertain = left.keys() - right.keys()
    kept: list[Replica] = []
    misnumbered: list[DamagedRange] = []
    doubtful: list[DamagedRange] = []
    for one in replicas:
        own = [i for i in sorted({*right, *uncertain}) if batches.replica[i] == one.number]
        starts = {int(batches.index[i]): right.get(i) for i in own}
        kept.append(_drop(one, starts))
        for at, start in starts.items():
            reason = UNCERTAIN if start is None else MISNUMBERED.format(start)
            (doubtful if start is None else misnumbered).append(_describe(one, at, reason))
    return CheckedReplicas(kept, misnumbered, doubtful)


def _group_moved(batches: Candidates, replicas: Sequence[Replica]) -> Any:
    """Return the number of the bytes of each batch: equal for batches with the same bytes after
    the leader epoch. It is -1 for bytes that stand at one offset only, or twice in one replica.
    """
    count = len(batches)
    columns = [batches.gather(replicas, name) for name in CONTENT]
    columns.append(batches.last - batches.first)
    group = _number(columns)
    is_first = np.append(np.ones(min(count, 1), np.bool_), np.diff(batches.content) != 0)
    several = np.bincount(group[is_first], minlength=count)[group] > 1
    pairs = _number([group, batches.replica])
    repeats = np.unique(group[np.bincount(pairs, minlength=count)[pairs] > 1])
    return np.where(several & ~np.isin(group, repeats), group, -1)


def _number(columns: Sequence[Any]) -> Any:
    """Return a number for each row of ``columns``, from 0 on; equal rows have the same one."""
    order = np.lexsort(columns)
    ordered = np.stack(columns)[:, order]
    found = np.zeros(len(order), np.int64)
    found[order[1:]] = np.cumsum((np.diff(ordered) != 0).any(axis=0))
    return found


class _Places:
    """The batches of a replica in the order of its files, and the offsets between which each one lies."""

    def __init__(self, one: Replica) -> None:
        self._one = one
        segments = one.partition.segments
        self._bases = [s.base_offset if s.has_canonical_name else -1 for s in segments]
        """The base offset in the name of each segment, -1 if the name has none."""

    @cached_property
    def _order(self) -> Any:
        return np.lexsort((self._one.headers.position, self._one.segment))

    @cached_property
    def _index_in_order(self) -> Any:
        """Index in ``_order`` of each batch, as an array."""
        found = np.empty(len(self._order), np.int64)
        found[self._order] = np.arange(len(found))
        return found

    def find_run(self, i: int) -> list[int]:
        """Return the indexes of the batches around batch ``i``, and of itself, that adjoin in a
        file and whose offsets continue, ascending.
        """
        order, at, one = self._order, int(self._index_in_order[i]), self._one
        run = [i]
        for step in (-1, 1):
            k = at + step
            while 0 <= k < len(order):
                low, high = sorted((k - step, k))
                before, after = int(order[low]), int(order[high])
                end = one.headers.position[before] + one.headers.size[before]
                if (
                    one.segment[before] != one.segment[after]
                    or end != one.headers.position[after]
                    or one.headers.last[before] + 1 != one.headers.first[after]
                ):
                    break
                run.append(int(order[k]))
                k += step
        return sorted(run)

    def is_named(self, run: Sequence[int]) -> bool:
        """Return whether the name of a segment confirms the offsets of a run: it begins where its
        segment begins, or ends where the next one does.
        """
        one, first, last = self._one, run[0], run[-1]
        k = int(one.segment[first])
        if one.headers.position[first] == 0 and self._bases[k] == one.headers.first[first]:
            return True
        end = one.headers.position[last] + one.headers.size[last]
        following = self._bases[k + 1] if k + 1 < len(self._bases) else -1
        is_last = end == one.partition.segments[k].size
        return bool(is_last and following == one.headers.last[last] + 1)

    def find_room(self, run: Sequence[int]) -> tuple[int, int]:
        """Return the offsets between which a run lies by the whole batches around it and the names
        of segments, both excluded. If nothing limits it, they are -2 and the largest 64-bit
        integer.
        """
        one, order = self._one, self._order
        k = int(one.segment[run[0]])
        low = self._bases[k] - 1
        high = min((base for base in self._bases[k + 1 :] if base >= 0), default=_MAX)
        before, after = (
            int(self._index_in_order[run[0]]) - 1,
            int(self._index_in_order[run[-1]]) + 1,
        )
        if before >= 0:
            low = max(low, int(one.headers.last[order[before]]))
        if after < len(order):
            high = min(high, int(one.headers.first[order[after]]))
        return low, high

    def find_place(self, i: int) -> tuple[int, int]:
        """Return the offset after the batch before ``i`` in its file, and the number of bytes
        between both. For the first batch of a file return the base offset in the name (-1 if it has
        none), and the bytes before the batch.
        """
        one, order, at = self._one, self._order, int(self._index_in_order[i])
        position, k = int(one.headers.position[i]), int(one.segment[i])
        before = int(order[at - 1]) if at else -1
        if before < 0 or one.segment[before] != k:
            return self._bases[k], position
        end = int(one.headers.position[before] + one.headers.size[before])
        return int(one.headers.last[before]) + 1, position - end

    def count_bytes(self, offset: int, i: int) -> int | None:
        """Return the number of bytes from where ``offset`` begins to batch ``i``. None if no whole
        batch ends before ``offset`` and none begins with it.
        """
        one = self._one
        start = one.end_of(i) - int(one.headers.size[i])
        at = int(np.searchsorted(one.headers.first, offset))
        if at and one.headers.last[at - 1] + 1 == offset:
            return start - one.end_of(at - 1)
        if at < len(one.headers) and one.headers.first[at] == offset:
            return start - one.end_of(at) + int(one.headers.size[at])
        return None


def _find_suspects(
    batches: Candidates, group: Any, places: Mapping[int, _Places]
) -> Iterator[tuple[int, list[int]]]:
    """Yield the batches whose base offset is suspect, each with the batches of the same bytes whose
    offset fits its place. ``group`` has the number of the bytes of each batch, or -1.
    """
    copies = np.bincount(batches.content, minlength=1)
    moved = (group >= 0) & (copies[batches.content] == 1)
    candidates = np.flatnonzero(group >= 0)
    by_group: dict[int, list[int]] = {}
    for i in candidates.tolist():
        by_group.setdefault(int(group[i]), []).append(i)
    row_of = {(int(batches.replica[i]), int(batches.index[i])): i for i in candidates.tolist()}
    for i in np.flatnonzero(moved).tolist():
        number = int(batches.replica[i])
        place = places[number]
        run = place.find_run(int(batches.index[i]))
        members = [row_of.get((number, k)) for k in run]
        if place.is_named(run) or not all(m is not None and moved[m] for m in members):
            continue
        low, high = place.find_room(run)
        first, last = int(batches.first[members[0]]), int(batches.last[members[-1]])
        fits = []
        for j in by_group[int(group[i])]:
            shift = int(batches.first[j] - batches.first[i])
            if shift and low < first + shift and last + shift < high:
                fits.append(j)
        if fits:
            yield i, fits


def _is_refuted(
    batches: Candidates,
    replicas: Sequence[Replica],
    suspects: Mapping[int, Sequence[int]],
    i: int,
) -> bool:
    """Return whether another replica has other bytes at the offsets of batch ``i``, in a batch whose
    own offset is not suspect.
    """
    is_suspect = {(int(batches.replica[k]), int(batches.index[k])) for k in suspects}
    for one in replicas:
        if one.number == batches.replica[i]:
            continue
        low = int(np.searchsorted(one.headers.last, batches.first[i]))
        high = int(np.searchsorted(one.headers.first, batches.last[i], side="right"))
        if any((one.number, k) not in is_suspect for k in range(low, high)):
            return True
    return False


def _is_same_place(batches: Candidates, places: Mapping[int, _Places], i: int, j: int) -> bool:
    """Return whether batch ``i`` lies where batch ``j`` does: as many bytes after the same offset.
    If these are 0 bytes, no other replica than that of ``i`` may have a batch between the offsets
    of ``j`` and ``i``.

    Compaction removes bytes. If none lie between batch ``i`` and the batch before, it may have removed
    all between the offset of ``j`` and that of ``i``, unless no replica has any there.
    """
    start, size = places[int(batches.replica[i])].find_place(int(batches.index[i]))
    if places[int(batches.replica[j])].count_bytes(start, int(batches.index[j])) != size:
        return False
    if size:
        return True
    between = (batches.first > batches.last[j]) & (batches.first < batches.first[i])
    return not bool((between & (batches.replica != batches.replica[i])).any())


def _describe(one: Replica, i: int, reason: str) -> DamagedRange:
    """Return a batch of a replica as a range of bytes and offsets, with a reason."""
    start, first, last = (int(getattr(one.headers, n)[i]) for n in ("position", "first", "last"))
    path = one.partition.segments[int(one.segment[i])].path
    return DamagedRange(path, start, start + int(one.headers.size[i]), first, last, reason)


def _drop(one: Replica, starts: Mapping[int, int | None]) -> Replica:
    """Return a replica without some batches. ``starts`` has their right first offsets, None if they
    are unknown. Damage that adjoins them gets the offsets that these leave for it.
    """
    if not starts:
        return one
    damage = list(one.damage)
    for i, start in starts.items():
        if start is None:
            continue
        first, last = int(one.headers.first[i]), int(one.headers.last[i])
        for n, found in enumerate(damage):
            if found.last == first - 1:
                damage[n] = replace(found, last=start - 1)
            elif found.first == last + 1:
                damage[n] = replace(found, first=start + last - first + 1)
    left = np.ones(len(one.headers), np.bool_)
    left[list(starts)] = False
    return replace(
        one,
        headers=one.headers.take(left),
        rows=one.rows[left],
        segment=one.segment[left],
        damage=tuple(d for d in damage if d.last is None or d.first <= d.last),
    )
