"""Answers from ``__cluster_metadata`` out of what of it is whole, and what is said of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from codecgen.runtime.errors import CodecError
from kafka_log.inspect.metadata.metadata_log import (
    Event,
    MetadataLog,
    Reason,
    Unread,
    last_offset,
    metadata_log,
    refused,
    salvaged,
)
from kafka_log.inspect.partition_headers import OnDamage
from kafka_log.logs.names import CLUSTER_METADATA
from kafka_log.logs.partitions import DirectoryError, NotFoundError, Partition, make_not_found_error
from kafka_log.logs.replicas import read_log_end

Row = dict[str, Any]
Rows = Callable[[Iterable[Event]], Iterable[Row]]


@dataclass(frozen=True)
class Answer:
    """Rows that say what there is after the record at ``as_of``. ``asked`` is the offset that was asked for, None for the end of the
    log; where it is another one, ``reason`` says why. ``log`` is what was read."""

    rows: list[Row]
    as_of: int
    asked: int | None
    reason: Reason | None
    log: MetadataLog

    def raise_for_reason(self) -> None:
        """Raise the reason why this is not what was asked for, if it is not."""
        if self.reason is not None:
            raise self.reason

    def said(self) -> list[str]:
        """A line for each thing that was left out."""
        lines = []
        for path, why in self.log.passed:
            snapshot = self.log.snapshot
            source = "the log" if snapshot is None else f"{snapshot.path.name} and the log after it"
            lines.append(f"{path} is left out, the answer is from {source}: {why}")
        if self.log.salvage:
            lines.append(f"what cannot be read is passed over, and what it said is missing: {self.reason}")  # fmt: skip
        elif self.reason is not None:
            asked = "the end of the log" if self.asked is None else self.asked
            lines.append(
                f"the answer is as of offset {self.as_of}, not {asked}: {self.reason}; salvage goes on after it"
            )
        return lines


def metadata_replicas(partitions: Sequence[Partition], on_damage: OnDamage | None) -> list[Partition]:  # fmt: skip
    """The replicas of the metadata log, the one that goes furthest first. ``on_damage`` is told of those that cannot be read. Raises
    NotFoundError; UnreadableError where none can be, or nobody wants to be told."""
    found = [partition for partition in partitions if partition.topic == CLUSTER_METADATA]
    if not found:
        raise make_not_found_error(
            "topic", [CLUSTER_METADATA], {partition.topic for partition in partitions}
        )
    good = [replace(p, error=None) for p in found if p.error is None or p.segments]
    for partition in found:
        if partition.error is not None:
            if on_damage is None or not good:
                raise partition.error
            on_damage(str(partition.error))
    return sorted(good, key=lambda p: read_log_end(p.segments) or (-2, -1), reverse=True)


def answer(
    replicas: Sequence[Partition],
    views: Sequence[str],
    rows: Rows,
    as_of: int | None,
    *,
    salvage: bool,
) -> Answer:
    """What ``rows`` make of some views as of an offset (None: the end of the log). Of what cannot be read in one replica another one
    may have more; what comes after it is left out, or (``salvage``) all that can be read is taken. Raises as
    :func:`~kafka_log.inspect.metadata.metadata_log.metadata_log`, where nothing is whole."""
    best: Answer | None = None
    error: Reason | None = None
    last = last_offset(replicas[0])
    if as_of is not None and not -1 <= as_of <= last:
        raise NotFoundError(f"there is no offset {as_of}: the log ends at {last}")
    wanted = last if as_of is None else as_of
    for replica in replicas:
        try:
            found = _of(replica, views, rows, wanted, as_of)
        except (CodecError, DirectoryError) as wrong:
            error = error or wrong
            continue
        if best is None or (best.reason is not None and found.as_of > best.as_of):
            best = found
        if best.reason is None:
            return best
    if salvage:
        return _salvaged(replicas[0], views, rows, wanted, as_of, best, error)
    if best is None:
        assert error is not None
        raise error
    return best


def _of(
    replica: Partition, views: Sequence[str], rows: Rows, wanted: int, asked: int | None
) -> Answer:
    """The answer of one replica: what turns out not to be readable is left out, and it is asked again."""
    unread = Unread()
    while True:
        log = metadata_log(replica, wanted, unread)
        try:
            made = list(rows(log.events(views)))
        except CodecError as error:
            more = refused(log, error, unread)
            if more is None:
                raise
            unread = more
            continue
        return Answer(made, log.as_of, asked, log.reason, log)


def _salvaged(
    replica: Partition,
    views: Sequence[str],
    rows: Rows,
    wanted: int,
    asked: int | None,
    found: Answer | None,
    error: Reason | None,
) -> Answer:
    """The answer of a replica from all of it that can be read."""
    log = salvaged(replica, wanted, None if found is None else found.log)
    reason = error if found is None else found.reason
    return Answer(list(rows(log.events(views))), wanted, asked, reason, log)
