"""Which of several replicas leads, and where the others diverge from it, by Kafka's rule of leader epochs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_log.inspect.merge.replica import LeaderEpoch, Replica


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a follower truncates its log to follow the leader.

    Attributes:
        offset: Offset to which the follower truncates its log.
        leader_epoch: First leader epoch of the leader that the follower does not share.
    """

    offset: int
    leader_epoch: int


Epochs = Sequence[Sequence[LeaderEpoch]]
"""The leader epochs of each replica, by its number."""


def find_leader(replicas: Sequence[Replica], epochs: Epochs) -> Replica:
    """Return the replica with the highest leader epoch, then the highest end offset; the first of
    equal ones. Kafka would make this replica the leader, and the others would follow it.
    """

    def rank(one: Replica) -> tuple[int, int]:
        own = epochs[one.number]
        return own[-1].epoch if own else -1, one.end

    return max(replicas, key=rank)


def find_divergence(
    leader: Sequence[LeaderEpoch], follower: Sequence[LeaderEpoch]
) -> Divergence | None:
    """Return where a follower truncates its log to follow a leader, by the leader epochs of both:
    where the last epoch that both have ends, the lower of the two ends; where the leader's first
    epoch starts if they have none in common. Return None if the leader has no later epoch than the
    last common one, or one of them knows no epochs.

    If damage of the leader may hold the first batches of its next epoch, the lowest possible start counts.
    """
    if not leader or not follower:
        return None
    common = max({e.epoch for e in leader} & {e.epoch for e in follower}, default=-1)
    after_leader, after_follower = _epochs_after(leader, common), _epochs_after(follower, common)
    if not after_leader:
        return None
    offset = after_leader[0].min_start
    if common >= 0 and after_follower:
        offset = min(offset, after_follower[0].start)
    return Divergence(offset, after_leader[0].epoch)


def _epochs_after(epochs: Sequence[LeaderEpoch], epoch: int) -> list[LeaderEpoch]:
    """Return the epochs above a number, ascending."""
    return [one for one in epochs if one.epoch > epoch]
