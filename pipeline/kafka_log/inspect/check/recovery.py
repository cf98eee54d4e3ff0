"""Check of what a broker truncates when it starts after it was killed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.check.base import Context
from kafka_log.inspect.check.finding import Finding, make_finding
from kafka_log.inspect.check.log_end import EndCheck
from kafka_log.inspect.check.segment_scan import ScannedSegment
from kafka_log.logs.broker_files import BrokerFiles, is_broker_running
from kafka_log.logs.names import CLEAN_SHUTDOWN, CLUSTER_METADATA, META, RECOVERY_POINT
from kafka_log.logs.partitions import Partition, Segment

_MAX_NAMED = 5
NOT_STOPPED = "not_stopped"


class _Cut(NamedTuple):
    """Place at which a broker truncates a segment.

    Attributes:
        path: The segment.
        position: First byte that is removed.
        first: Offset at which the segment is truncated.
        end: Base offset of the next segment if the broker keeps that one; None if it removes all after it.
    """

    path: Path
    position: int
    first: int
    end: int | None


class RecoveryCheck(EndCheck):
    """Reports which offsets are lost when a broker that was killed starts.

    The broker reads the segments from the recovery point on, truncates the first damaged one at the damage, and
    deletes all after it. A segment without an offset index is truncated before, and the next ones stay.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        recovered = recovered_segments(context.partition, context.broker)
        self.recovered = {segment.path for segment in recovered}
        self.is_killed = was_killed(context.broker)
        self.cuts: list[_Cut] = []

    def check_segment(self, scanned: ScannedSegment) -> Iterable[Finding]:
        super().check_segment(scanned)
        if not self.is_killed or not scanned.lost or not scanned.segment.has_canonical_name:
            return ()
        has_index = scanned.segment.path.with_suffix(".index").exists()
        if has_index and scanned.segment.path not in self.recovered:
            return ()
        damage = min(scanned.lost, key=lambda run: run.start)
        if scanned.is_active and scanned.tail_kind_of(damage) is not None:
            return ()  # TailCheck says what is lost of the last batch
        position = damage.start
        before = scanned.headers.last[scanned.headers.position < position]
        first = int(before.max(initial=scanned.segment.base_offset - 1)) + 1
        end = None if has_index else scanned.next_base
        self.cuts.append(_Cut(scanned.segment.path, position, first, end))
        return ()

    def check_end(self) -> Iterable[Finding]:
        if not self.cuts or not self.is_resolved() or self.context.partition.state != "live":
            return
        reached = max(self.log_end, self.context.broker.reached_offset(self.context.key))
        for cut in self.cuts:
            end = reached if cut.end is None else cut.end
            if cut.first < end:
                yield self.context.finding(
                    NOT_STOPPED,
                    cut.path,
                    f"The file {CLEAN_SHUTDOWN} is missing: the broker was killed, or runs elsewhere. When it starts, {_describe(cut, end)}.",
                    remedy="Do not start the broker before you have followed the other findings of the partition, or copied its directory.",
                    byte=cut.position,
                    first_offset=cut.first,
                    last_offset=end - 1,
                    records=end - cut.first,
                )
            if cut.end is None:
                return


def _describe(cut: _Cut, end: int) -> str:
    """Return the words about what is truncated, and the offsets that are lost, up to ``end`` (excluded)."""
    what = "the log" if cut.end is None else "the segment, which has no .index,"
    lost = (
        f"offset {cut.first} is"
        if end - cut.first == 1
        else f"offsets {cut.first} to {end - 1} are"
    )
    return f"it truncates {what} at offset {cut.first}: {lost} lost"


def was_killed(broker: BrokerFiles) -> bool:
    """Return whether the broker of a log directory was killed: the marker of a clean shutdown is
    missing, meta.properties exists, and no process on this machine is known to hold the lock.
    """
    return (
        not broker.was_clean_shutdown
        and (broker.directory / META).is_file()
        and not is_broker_running(broker.directory)
    )


def check_recovery(
    broker: BrokerFiles, partitions: Sequence[Partition], truncated: Sequence[Finding]
) -> Iterable[Finding]:
    """Yield one ``not_stopped`` note that counts the segments and bytes that a killed broker reads
    again when it starts, with the first of the partitions that it truncates. Only partitions
    directly in the log directory of ``broker`` count. Yield nothing if they have no such segments,
    or the broker was not killed (:func:`was_killed`).

    Args:
        broker: Checkpoints of the log directory.
        partitions: Partitions of any log directory.
        truncated: Findings of :class:`RecoveryCheck`, of any log directory.
    """
    if not was_killed(broker):
        return
    of_directory = [p for p in partitions if p.directory.parent == broker.directory]
    recovered = [segments for p in of_directory if (segments := recovered_segments(p, broker))]
    count = sum(map(len, recovered))
    if not count:
        return
    size = sum(segment.size for segments in recovered for segment in segments)
    what = f"{count_noun(count, 'segment')} of {count_noun(len(recovered), 'partition')}, {count_noun(size, 'byte')}"
    losses = [one for one in truncated if one.path.parent.parent == broker.directory]
    yield make_finding(
        NOT_STOPPED,
        broker.directory,
        f"The file {CLEAN_SHUTDOWN} is missing: the broker was killed, or runs elsewhere. When it starts, it recovers {what}: it rereads"
        " them from the recovery point, rebuilds their indexes, and truncates the log at the first incomplete or damaged batch: this batch"
        f" and all after it are lost.{_list_losses(losses)}",
    )


def _list_losses(losses: Sequence[Finding]) -> str:
    """Return a sentence that names the first partitions that are truncated, with the offsets, and
    the number of records in all of them. Return ``""`` if there are none.
    """
    if not losses:
        return ""
    named = [
        f"{one.topic}-{one.partition}: truncated at offset {one.first_offset}, offsets {one.first_offset} to {one.last_offset} are lost"
        for one in losses[:_MAX_NAMED]
    ]
    left = len(losses) - len(named)
    more = f"; and {count_noun(left, 'other place')}" if left else ""
    total = sum(one.records or 0 for one in losses)
    return f" {'; '.join(named)}{more}. Together: at most {count_noun(total, 'record')}."


def recovered_segments(partition: Partition, broker: BrokerFiles) -> list[Segment]:
    """Return the segments that a broker reads again when it starts after a crash. These are the
    live ones from the segment that contains the recovery point on; all without a recovery point.
    Segments whose name is not their base offset are left out. Return ``[]`` if the partition is not
    live, and for the metadata log, which is recovered at each start.
    """
    if partition.state != "live" or partition.topic == CLUSTER_METADATA:
        return []
    live = [s for s in partition.segments if s.state == "live" and s.has_canonical_name]
    point = broker.offset(RECOVERY_POINT, partition.key) or 0
    first = bisect_right([s.base_offset for s in live], point) - 1
    return live[max(first, 0) :]
