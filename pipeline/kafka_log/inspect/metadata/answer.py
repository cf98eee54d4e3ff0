"""Answer questions from the undamaged part of ``__cluster_metadata``, and report the rest."""

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
    exclude_unreadable,
    find_last_offset,
    plan_metadata_log,
    plan_salvage,
)
from kafka_log.inspect.partition_headers import OnDamage
from kafka_log.logs.clusters import ClusterIds
from kafka_log.logs.names import CLUSTER_METADATA
from kafka_log.logs.partitions import DirectoryError, NotFoundError, Partition, make_not_found_error
from kafka_log.logs.replicas import find_log_end

Row = dict[str, Any]
Rows = Callable[[Iterable[Event]], Iterable[Row]]


@dataclass(frozen=True)
class Answer:
    """The state after the record at offset ``as_of``, as rows.

    ``asked`` is the requested offset, None for the end of the log. If records before it cannot be read, ``as_of`` is smaller or
    (salvage) rows are missing, and ``reason`` is the error. ``log`` is the part of the metadata log that was read.
    """

    rows: list[Row]
    as_of: int
    asked: int | None
    reason: Reason | None
    log: MetadataLog

    def raise_for_reason(self) -> None:
        """Raise ``reason`` if the answer is not complete as of the requested offset."""
        if self.reason is not None:
            raise self.reason

    def describe_gaps(self) -> list[str]:
        """Return a line for each gap in the answer, ``[]`` if it is complete. Each snapshot that
        was skipped has one, and so has an answer that ends before the requested offset or (salvage)
        lacks unreadable records.
        """
        lines = []
        for path, why in self.log.passed:
            snapshot = self.log.snapshot
            source = "the log" if snapshot is None else f"{snapshot.path.name} and the log after it"
            lines.append(f"{path} was skipped, so that the answer comes from {source}: {why}")
        if self.log.salvage:
            lines.append(f"unreadable records were skipped, so that their changes are missing: {self.reason}")  # fmt: skip
        elif self.reason is not None:
            asked = "the end of the log" if self.asked is None else self.asked
            lines.append(
                f"the answer is as of offset {self.as_of}, not {asked}: {self.reason}; add --policy salvage (salvage=True) to continue after it"
            )
        return lines


def metadata_replicas(
    partitions: Sequence[Partition], on_damage: OnDamage | None, *, checks_ends: bool = True
) -> list[Partition]:
    """Return the readable replicas of the metadata log, by the leader epoch and then the offset at
    their ends, highest first, unknown ends last. Report the error of each unreadable one to
    ``on_damage``; with ``checks_ends``, of several replicas also the damage at the end of each,
    which may be newer than the others. Raise NotFoundError if ``partitions`` has no replica;
    DirectoryError if replicas are of different clusters;
    UnreadableError if none can be read; the first error to report if ``on_damage`` is None.
    """
    found = [partition for partition in partitions if partition.topic == CLUSTER_METADATA]
    if not found:
        raise make_not_found_error(
            "topic", [CLUSTER_METADATA], {partition.topic for partition in partitions}
        )
    ClusterIds().find_only(found)
    good = [replace(p, error=None) for p in found if p.error is None or p.segments]
    for partition in found:
        if partition.error is not None:
            if on_damage is None or not good:
                raise partition.error
            on_damage(str(partition.error))
    ends = [find_log_end(partition.segments) for partition in good]
    for _, damage in ends if checks_ends and len(good) > 1 else ():
        if damage is not None and on_damage is None:
            raise damage
        if damage is not None and on_damage is not None:
            on_damage(f"this replica of {CLUSTER_METADATA} may be newer than the one that is read: {damage}")  # fmt: skip
    order = sorted(range(len(good)), key=lambda i: ends[i][0] or (-2, -1), reverse=True)
    return [good[i] for i in order]


def answer_metadata(
    replicas: Sequence[Partition],
    views: Sequence[str],
    rows: Rows,
    as_of: int | None,
    *,
    salvage: bool,
) -> Answer:
    """Return the state as of ``as_of`` (None: the end) from the replica readable furthest; ``rows``
    makes rows from the events of ``views``. It ends before unreadable records, with the error as
    ``reason``; ``salvage`` then takes the first replica instead and skips them. Raise NotFoundError
    if ``as_of`` is below -1 or beyond the first replica's end; without ``salvage`` CodecError or
    DirectoryError if no replica has an answer.

    Args:
        replicas: Replicas of the metadata log, not empty.
        views: Names of the views to read.
        rows: Builds the answer's rows from events of the views.
        as_of: Offset whose record is the last one to count; None is the end of the log.
        salvage: Skip records that cannot be read, instead of ending the answer before them.
    """
    best: Answer | None = None
    error: Reason | None = None
    last = find_last_offset(replicas[0])
    if as_of is not None and not -1 <= as_of <= last:
        raise NotFoundError(f"there is no offset {as_of}: the log ends at {last}")
    wanted = last if as_of is None else as_of
    for replica in replicas:
        try:
            found = _answer_from(replica, views, rows, wanted, as_of)
        except (CodecError, DirectoryError) as refusal:
            error = error or refusal
            continue
        if best is None or (best.reason is not None and found.as_of > best.as_of):
            best = found
        if best.reason is None:
            return best
    if salvage:
        return _answer_with_salvage(replicas[0], views, rows, wanted, as_of, best, error)
    if best is None:
        assert error is not None
        raise error
    return best


def _answer_from(
    replica: Partition, views: Sequence[str], rows: Rows, wanted: int, asked: int | None
) -> Answer:
    """Return the answer of one replica as of ``wanted``. At an unreadable record or snapshot, plan
    again without it, so that the answer may end at an earlier offset and have a ``reason``.
    ``asked`` (None: the end of the log) is only noted in it. Raise CodecError or DirectoryError if
    the replica has no readable state.
    """
    unread = Unread()
    while True:
        log = plan_metadata_log(replica, wanted, unread)
        try:
            made = list(rows(log.events(views)))
        except CodecError as error:
            more = exclude_unreadable(log, error, unread)
            if more is None:
                raise
            unread = more
            continue
        return Answer(made, log.as_of, asked, log.reason, log)


def _answer_with_salvage(
    replica: Partition,
    views: Sequence[str],
    rows: Rows,
    wanted: int,
    asked: int | None,
    found: Answer | None,
    error: Reason | None,
) -> Answer:
    """Return the answer of a replica as of ``wanted`` from all its readable records; unreadable
    ones are skipped. Its reason is that of ``found``, or ``error`` if ``found`` is None; ``asked``
    is only noted in it. Raise UnreadableError if the directory cannot be listed.
    """
    log = plan_salvage(replica, wanted, None if found is None else found.log)
    reason = error if found is None else found.reason
    return Answer(list(rows(log.events(views))), wanted, asked, reason, log)
