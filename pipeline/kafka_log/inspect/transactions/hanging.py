"""Whether an open transaction hangs: whether nobody is left who would end it."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_log.inspect.transactions.coordinator_states import Coordinators, IdState
from kafka_log.logs.transactions import ObservedTransaction

MAX_TIMEOUT_MS = 15 * 60 * 1000
"""How long a transaction may be open where its own timeout is not known: what brokers allow (``transaction.max.timeout.ms``)."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The time at which the log is looked at, in milliseconds since 1970. ``is_given``: somebody vouches that the log stood so at
    that time; otherwise it is the present, and the log may be a copy from long ago."""

    now: int
    is_given: bool
    max_timeout_ms: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an open transaction hangs, and why, or why not."""

    is_hanging: bool
    reason: str


def verdict(
    one: ObservedTransaction,
    place: tuple[str, int],
    known: Coordinators,
    clock: Clock,
    *,
    is_cut: bool,
) -> Verdict:
    """What is to be said of a transaction that is open in a partition (``place``: topic and number).

    ``is_cut``: some bytes of the partition cannot be read.
    """
    if is_cut:
        return Verdict(False, "its marker may be in bytes of the partition that cannot be read")
    state = known.of(one.producer_id)
    limit = clock.max_timeout_ms
    if state is not None and state.timeout_ms is not None and state.timeout_ms > 0:
        limit = state.timeout_ms
    since = one.last_timestamp
    is_old = since is None or clock.now - since > limit
    if state is None and not known.is_whole:
        return _without_coordinator(known, clock, limit, is_old=is_old)
    if state is not None and _expects(state, one, place):
        return _with_coordinator(state, clock, limit)
    reason = _no_marker(state, one, place)
    if is_old:
        return Verdict(True, f"{reason}: no marker will come")
    return Verdict(False, f"{reason}, but its last batch is not older than {limit} ms")


def _expects(state: IdState, one: ObservedTransaction, place: tuple[str, int]) -> bool:
    """Whether the coordinator has a marker to write to the partition."""
    return (
        state.is_unfinished and state.producer_id == one.producer_id and place in state.partitions
    )


def _without_coordinator(known: Coordinators, clock: Clock, limit: int, *, is_old: bool) -> Verdict:
    here = "what is here of __transaction_state does not know the producer"
    reason = here if known.is_there else "__transaction_state is not here"
    if clock.is_given and is_old:
        return Verdict(True, f"its last batch is older than {limit} ms; {reason}")
    return Verdict(False, f"cannot be told: {reason}")


def _with_coordinator(state: IdState, clock: Clock, limit: int) -> Verdict:
    begun = state.start_time
    is_over = begun is not None and clock.now - begun > limit
    if clock.is_given and state.is_ongoing and is_over:
        return Verdict(True, f"Ongoing for more than {limit} ms: the coordinator has not ended it")
    return Verdict(False, f"the coordinator has to end it: {state.status_name}")


def _no_marker(state: IdState | None, one: ObservedTransaction, place: tuple[str, int]) -> str:
    if state is None:
        return "no transactional id has the producer"
    if state.status is None:
        return "the coordinator has forgotten the transactional id"
    if state.is_unfinished and state.producer_id == one.producer_id:
        return f"the coordinator's transaction ({state.status_name}) is without the partition"
    if state.producer_id != one.producer_id:
        return f"the transactional id has producer {state.producer_id} now"
    return f"the coordinator has no transaction that goes on: {state.status_name}"
