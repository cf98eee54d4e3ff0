"""Decide whether an open transaction hangs, that is, whether nobody is left to write its marker."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_log.inspect.transactions.coordinator_states import Coordinators, IdState
from kafka_log.logs.transactions import ObservedTransaction

MAX_TIMEOUT_MS = 15 * 60 * 1000
"""Timeout of transactions whose own timeout is unknown: the default of the broker setting ``transaction.max.timeout.ms``."""


LOST_MARKER = "its marker may be in bytes of the partition that are damaged, lost or cannot be read"
"""Part of the reason of a verdict: the transaction may have ended, because damage may hide its marker."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The time at which the log is judged, in milliseconds since 1970.

    ``is_given``: the caller states that the log was in this condition at ``now``. Otherwise ``now`` is the present, and the log may
    be an old copy: age alone then proves nothing. ``max_timeout_ms`` applies to transactions whose own timeout is unknown.
    """

    now: int
    is_given: bool
    max_timeout_ms: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer whether an open transaction hangs (None: it may, which cannot be known), and its reason."""

    is_hanging: bool | None
    reason: str


def judge_transaction(
    transaction: ObservedTransaction,
    place: tuple[str, int],
    known: Coordinators,
    clock: Clock,
    *,
    is_cut: bool,
) -> Verdict:
    """Return whether a transaction that is open in a partition hangs, with the reason. If the
    coordinator still has to write its marker here, it hangs only if by a given clock it is ongoing
    for longer than its timeout. Otherwise it never hangs before its last batch is older than the
    timeout. Then it hangs if the coordinator has no marker left to write; if the coordinator is
    unknown, it hangs with a given clock, and else may hang. If its marker may be in damaged, lost or
    unread bytes (``is_cut``), it may hang at most.

    Args:
        transaction: The open transaction.
        place: Topic and number of the partition.
        known: The states from ``__transaction_state``.
        clock: The time at which the log is judged.
        is_cut: Whether bytes of the partition are damaged, lost or cannot be read. The marker may be there, so that the answer is unknown.
    """
    state = known.find_state(transaction.producer_id)
    limit = clock.max_timeout_ms
    if state is not None and state.timeout_ms is not None and state.timeout_ms > 0:
        limit = state.timeout_ms
    since = transaction.last_timestamp
    is_old = since is None or clock.now - since > limit
    young = f"its last batch is not older than {limit} ms"
    if is_cut:
        if is_old:
            return Verdict(None, f"unknown whether it hangs: {LOST_MARKER}")
        return Verdict(False, f"{LOST_MARKER}, but {young}")
    if state is not None and _has_marker_to_write(state, transaction, place):
        return _with_coordinator(state, clock, limit)
    if not known.is_whole and (state is None or state.transactional_id in known.unsure):
        reason = "the readable part of __transaction_state has no entry of the producer"
        if state is not None:
            reason = "__transaction_state lost records, perhaps a newer state of the producer"
        if not known.is_there:
            reason = "__transaction_state was not read"
        if not is_old:
            return Verdict(False, f"{reason}, but {young}")
        if clock.is_given:
            return Verdict(True, f"its last batch is older than {limit} ms; {reason}")
        more = "read the directories of all brokers, or give now (--now) to judge by its age"
        return Verdict(None, f"unknown whether it hangs: {reason}; {more}")
    reason = _no_marker_reason(state, transaction)
    if is_old:
        return Verdict(True, f"{reason}: no marker will come")
    return Verdict(False, f"{reason}, but {young}")


def _has_marker_to_write(
    state: IdState, transaction: ObservedTransaction, place: tuple[str, int]
) -> bool:
    """Return whether the coordinator still has to write a marker of this transaction to the partition."""
    return (
        state.is_unfinished
        and state.producer_id == transaction.producer_id
        and place in state.partitions
    )


def _with_coordinator(state: IdState, clock: Clock, limit: int) -> Verdict:
    """Return the verdict about a transaction that its coordinator will end. It hangs only if the
    clock is given and the coordinator has it as ongoing for more than ``limit`` ms.
    """
    begun = state.start_time
    is_over = begun is not None and clock.now - begun > limit
    if clock.is_given and state.is_ongoing and is_over:
        return Verdict(True, f"ongoing for more than {limit} ms: the coordinator has not ended it")
    return Verdict(False, f"the coordinator will end it (state {state.status_name})")


def _no_marker_reason(state: IdState | None, transaction: ObservedTransaction) -> str:
    """Return the reason why the coordinator will not write a marker for the transaction. The reason
    is no id or a forgotten one (``state`` or its status is None), another producer, a transaction
    without this partition, or no ongoing transaction.
    """
    if state is None:
        return "no transactional id uses the producer"
    if state.status is None:
        return "the coordinator has forgotten the transactional id"
    if state.is_unfinished and state.producer_id == transaction.producer_id:
        return f"the coordinator's transaction (state {state.status_name}) does not contain the partition"
    if state.producer_id != transaction.producer_id:
        return f"the transactional id uses producer {state.producer_id} now"
    return f"the coordinator has no ongoing transaction (state {state.status_name})"
