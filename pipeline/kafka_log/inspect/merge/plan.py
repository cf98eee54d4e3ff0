"""Which batch of which replica is merged, which offsets are lost, and why other batches are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kafka_log.inspect.diff.comparison import compare_partitions
from kafka_log.inspect.merge.base_offsets import check_base_offsets
from kafka_log.inspect.merge.candidates import Candidates, list_candidates
from kafka_log.inspect.merge.lineage import Divergence, find_divergence, find_leader
from kafka_log.inspect.merge.overlaps import Choice, choose_copies
from kafka_log.inspect.merge.replica import DamagedRange, LeaderEpoch, Replica

_MAX = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class LostRange:
    """Offsets that no replica has whole.

    Attributes:
        first: First offset.
        last: Last offset. None: unknown, the log ends with the damage.
        damage: Damage of replicas that may have held them.
        reason: Why they are lost, if not for damage.
    """

    first: int
    last: int | None
    damage: tuple[DamagedRange, ...] = ()
    reason: str | None = None

    def touches(self, after: LostRange) -> bool:
        """Return whether ``after``, which does not begin before this range, overlaps it, or adjoins it
        if neither is lost for damage.
        """
        return self.last is None or after.first <= self.last + (self.reason is not None)

    def join(self, after: LostRange) -> LostRange:
        """Return this range and ``after``, which touches it, as one."""
        ends = self.last, after.last
        last = None if None in ends else max(end for end in ends if end is not None)
        return LostRange(self.first, last, self.damage + after.damage, self.reason)


@dataclass(slots=True)
class MergePlan:
    """What is merged of the replicas of a partition.

    Attributes:
        replicas: The replicas.
        leader: The replica that the others follow.
        batches: The batches to write, by offset.
        diverged: Batches that their replica would truncate to follow the leader, with the divergence, by number of the replica.
        below_start: Batches below the log start offset.
        absent: Batches that are merged and that a replica lacks although it is whole there, by number of the replica.
        removed: Batches that are not merged because ``compacted`` lacks them.
        misnumbered: Batches with a wrong base offset; another replica has the same bytes at the right one.
        other_epochs: Batches that are merged with another leader epoch from another replica, and nothing says which one is right.
        lost: Offsets that no replica has whole, ascending.
        replaced: Damage of replicas whose offsets are all merged from others.
        log_start: Highest log start offset that a replica states. None: none states one.
        compacted: The replica whose compaction is followed below lost offsets. None: records of all are merged.
        is_part: Whether only a part of the log is written: it then begins and ends with its batches.
    """

    replicas: Sequence[Replica]
    leader: Replica
    batches: Candidates
    diverged: dict[int, tuple[Divergence, Candidates]] = field(default_factory=dict)
    below_start: Candidates | None = None
    absent: dict[int, Candidates] = field(default_factory=dict)
    removed: Candidates | None = None
    misnumbered: list[DamagedRange] = field(default_factory=list)
    other_epochs: Candidates | None = None
    lost: list[LostRange] = field(default_factory=list)
    replaced: list[DamagedRange] = field(default_factory=list)
    log_start: int | None = None
    compacted: Replica | None = None
    is_part: bool = False

    @property
    def end(self) -> int:
        """Offset after the last written batch; unless ``is_part``, also after deleted and lost offsets, as
        far as they are known, and at least the highest base offset of a segment.
        """
        last = int(self.batches.last[-1]) + 1 if len(self.batches) else 0
        if self.is_part:
            return last
        deleted = 0
        if self.below_start is not None and len(self.below_start):
            deleted = int(self.below_start.last.max()) + 1
        lost = [one.last + 1 for one in self.lost if one.last is not None]
        return max([last, deleted, *lost, *self.base_offsets])

    @property
    def base_offsets(self) -> list[int]:
        """Base offsets of the segments of all replicas where they do not diverge, ascending."""
        found = set()
        for one in self.replicas:
            end = self.diverged[one.number][0].offset if one.number in self.diverged else _MAX
            found |= {base for base in one.base_offsets if base < end or one is self.leader}
        return sorted(found)


def make_plan(replicas: Sequence[Replica], log_start: int | None) -> MergePlan:
    """Return the plan for merging replicas of a partition; ``log_start`` (None: none) is the
    highest log start offset that one of them states. Damage and contradictions are part of the
    plan, and not raised. Raise UnreadableError (an OSError) if retention deletes a segment
    meanwhile, and CodecError if a batch changes meanwhile.
    """
    checked = check_base_offsets(replicas)
    replicas = checked.replicas
    every = list_candidates(replicas)
    is_wrong = _find_wrong_epochs(every, replicas)
    epochs = [one.list_epochs(is_wrong[one.number]) for one in replicas]
    leader = find_leader(replicas, epochs)
    every = _rank(every, replicas, is_wrong, leader, epochs[leader.number])
    plan = MergePlan(replicas, leader, every, log_start=log_start, misnumbered=checked.misnumbered)
    is_common = np.ones(len(every), np.bool_)
    divergences: dict[int, Divergence] = {}
    for one in replicas:
        found = (
            None if one is leader else find_divergence(epochs[leader.number], epochs[one.number])
        )
        if found is not None:
            divergences[one.number] = found
            is_common &= (every.replica != one.number) | (every.last < found.offset)
    diverged = every.take(~is_common)
    ends = {number: found.offset for number, found in divergences.items()}
    if log_start is not None:
        is_deleted = is_common & (every.last < log_start)
        _, first_copies = np.unique(every.content[is_deleted], return_index=True)
        plan.below_start = every.take(is_deleted).take(first_copies)
        is_common &= ~is_deleted
    common = every.take(is_common)
    damage = {one.number: list(_clip(one, ends.get(one.number), log_start)) for one in replicas}
    for number, found_damage in damage.items():
        damage[number] = [_bound(one, replicas[number], replicas, ends) for one in found_damage]
    choice = choose_copies(common, replicas)
    _resolve_compaction(plan, common, choice, ends, damage)
    contradictions = [LostRange(low, high, (), why) for low, high, why in choice.contradictions]
    contradictions += [LostRange(one.first, one.last, (), one.reason) for one in checked.uncertain]
    _find_lost(plan, contradictions, common.take(choice.chosen), damage)
    for number, found in divergences.items():
        own = diverged.take(diverged.replica == number)
        plan.diverged[number] = found, own.take(~np.isin(own.content, plan.batches.content))
    plan.other_epochs = _find_other_epochs(every, plan, is_wrong)
    return plan


def _find_wrong_epochs(batches: Candidates, replicas: Sequence[Replica]) -> list[Any]:
    """Return for each replica a mask of the batches whose leader epoch, which no checksum covers, is
    wrong: it breaks the order of epochs, or it contradicts the leader-epoch-checkpoint of its replica
    while another replica has the same bytes with another epoch that contradicts nothing.
    """
    breaks, contradicts = np.zeros((2, len(batches)), np.bool_)
    for one in replicas:
        own = batches.replica == one.number
        breaks[own] = one.breaks_epoch_order[batches.index[own]]
        contradicts[own] = one.contradicts_checkpoint[batches.index[own]]
    sound = ~(breaks | contradicts)
    known = np.full(int(batches.content[-1]) + 1 if len(batches) else 0, -1)
    known[batches.content[sound]] = batches.epoch[sound]
    right = known[batches.content]
    wrong = breaks | (contradicts & (right >= 0) & (right != batches.epoch))
    found = []
    for one in replicas:
        own = batches.replica == one.number
        mask = np.zeros(len(one.headers), np.bool_)
        mask[batches.index[own]] = wrong[own]
        found.append(mask)
    return found


def _rank(
    batches: Candidates,
    replicas: Sequence[Replica],
    is_wrong: Sequence[Any],
    leader: Replica,
    epochs: Sequence[LeaderEpoch],
) -> Candidates:
    """Return the batches with a rank, and sorted by it within each content: first those whose leader
    epoch is the one of the leader's log, of these the ones of the leader.
    """
    starts = np.array([e.start for e in epochs], np.int64)
    numbers = np.array([-1, *(e.epoch for e in epochs)], np.int64)
    expected = numbers[np.searchsorted(starts, batches.first, side="right")]
    doubt = (expected >= 0) & (batches.epoch != expected)
    rank = np.zeros(len(batches), np.int64)
    for one in replicas:
        own = batches.replica == one.number
        doubt[own] |= is_wrong[one.number][batches.index[own]]
        rank[own] = 0 if one is leader else one.number + 1
    rank += doubt * (len(replicas) + 1)
    order = np.lexsort((rank, batches.content))
    return replace(batches, rank=rank).take(order)


def _find_other_epochs(every: Candidates, plan: MergePlan, is_wrong: Sequence[Any]) -> Candidates:
    """Return the copies that are not written because the plan has the same bytes, from another
    replica, with another leader epoch, although nothing says that the epoch of the copy is wrong.
    Copies without an epoch are left out. ``is_wrong`` has a mask of batches for each replica.
    """
    merged = np.full(int(every.content[-1]) + 1 if len(every) else 0, -1)
    merged[plan.batches.content] = plan.batches.epoch
    epoch = merged[every.content]
    differs = (epoch >= 0) & (every.epoch >= 0) & (epoch != every.epoch)
    for one in plan.replicas:
        own = every.replica == one.number
        differs[own] &= ~is_wrong[one.number][every.index[own]]
    return every.take(differs)


def _clip(one: Replica, end: int | None, log_start: int | None) -> Iterator[DamagedRange]:
    """Yield the damage of a replica, limited to the offsets from ``log_start`` (None: all) to ``end``
    (excluded; None: all).
    """
    for found in one.damage:
        last = found.last
        if end is not None:
            last = end - 1 if last is None else min(last, end - 1)
        first = max(found.first, log_start or 0)
        if last is None or first <= last:
            yield replace(found, first=first, last=last)


def _bound(
    found: DamagedRange, of: Replica, replicas: Sequence[Replica], ends: dict[int, int]
) -> DamagedRange:
    """Return damage at the end of the log ``of`` with a last offset, if that is unknown. It is the
    last whole offset of the first other replica that has as many bytes there, because replicas hold
    the same bytes. Replicas that diverge (``ends``) do not count. Return other damage, and damage
    without such a replica, unchanged.
    """
    if found.last is not None:
        return found
    for one in replicas:
        if one is of or one.number in ends:
            continue
        if found.end > found.start and one.bytes_from(found.first) >= found.end - found.start:
            return replace(found, last=int(one.headers.last[-1]))
    return found


def _resolve_compaction(
    plan: MergePlan,
    common: Candidates,
    choice: Choice,
    ends: dict[int, int],
    damage: dict[int, list[DamagedRange]],
) -> None:
    """Set ``batches`` of the plan, and ``absent``: those that a replica lacks although it is whole
    there. If a replica was compacted further, leave out what it lacks below lost offsets, and set
    ``compacted`` and ``removed``. Raise UnreadableError (an OSError) if retention deletes a segment
    meanwhile.

    If some offsets are whole nowhere, they may have held newer records of the same keys, or their
    tombstones.
    """
    chosen = common.take(choice.chosen)
    plan.batches = chosen
    lacks = {one.number: choice.lacks[one.number] for one in plan.replicas}
    for one in plan.replicas:
        end = ends.get(one.number, one.end)
        whole = one.is_whole(chosen.first, chosen.last) & (chosen.last < end)
        lacks[one.number] &= whole
    limit = max([-1, *_list_open_ends(chosen, damage)])
    for one in plan.replicas:
        own = lacks[one.number] & (chosen.first <= limit)
        givers = [r for r in plan.replicas if (own & (chosen.replica == r.number)).any()]
        if any(_is_compacted_further(one, giver) for giver in givers):
            plan.compacted = one
            instead = choice.copies_of(common, chosen.take(own), one.number)
            plan.removed = chosen.take(own)
            kept = np.append(np.flatnonzero(choice.chosen)[~own], instead)
            plan.batches = common.take(np.sort(kept))
            lacks = {n: mask[~own] for n, mask in lacks.items()}
            chosen = chosen.take(~own)
            break
    plan.absent = {n: chosen.take(mask) for n, mask in lacks.items() if mask.any()}


def _is_compacted_further(one: Replica, other: Replica) -> bool:
    """Return whether compaction removed records of ``other`` from ``one``, by their keys. Raise
    UnreadableError (an OSError) if retention deletes a segment meanwhile.
    """
    found = compare_partitions(one.partition, other.partition, lambda _: None)
    return found.a.cleaned > 0


def _list_open_ends(chosen: Candidates, damage: dict[int, list[DamagedRange]]) -> Iterator[int]:
    """Yield the last offset of each damaged range in which a record may be missing: some offset has
    no record in the batches ``chosen``. If its end is unknown, yield the largest 64-bit integer.
    """
    dense = chosen.take(chosen.records == chosen.last - chosen.first + 1)
    for ranges in damage.values():
        for found in ranges:
            for _, last in _subtract(found.first, found.last, dense):
                yield _MAX if last is None else last


def _find_lost(
    plan: MergePlan,
    contradictions: Sequence[LostRange],
    whole: Candidates,
    damage: dict[int, list[DamagedRange]],
) -> None:
    """Set the lost ranges of the plan: the ``contradictions``, and damage that no other replica
    replaces. Set the damage that others replace. ``whole`` are the batches that some replica has whole.
    """
    parts = [*contradictions]
    for ranges in damage.values():
        for found in ranges:
            missing = [
                LostRange(*some, (found,)) for some in _subtract(found.first, found.last, whole)
            ]
            parts += missing
            if not missing:
                plan.replaced.append(found)
    for one in sorted(parts, key=lambda part: (part.first, part.reason or "")):
        before = plan.lost[-1] if plan.lost else None
        if before is not None and before.reason == one.reason and before.touches(one):
            plan.lost[-1] = before.join(one)
        else:
            plan.lost.append(one)


def _subtract(
    first: int, last: int | None, batches: Candidates
) -> Iterator[tuple[int, int | None]]:
    """Yield the parts of an offset range (both ends included, ``last`` None: open) that lie in none
    of the ``batches``, which ascend.
    """
    at = int(np.searchsorted(batches.last, first))
    low = first
    while at < len(batches) and (last is None or batches.first[at] <= last):
        if batches.first[at] > low:
            yield low, int(batches.first[at]) - 1
        low = int(batches.last[at]) + 1
        at += 1
    if last is None or low <= last:
        yield low, last
