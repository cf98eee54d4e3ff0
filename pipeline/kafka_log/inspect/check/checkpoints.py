"""What the checkpoints of a broker say of a partition, beside its segments."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_log.inspect.check.base import are
from kafka_log.inspect.check.cluster import Cluster
from kafka_log.inspect.check.finding import Finding, Severity
from kafka_log.inspect.check.log_end import KILLED, REACHED, TAKE_ANOTHER, EndCheck
from kafka_log.logs.broker_files import BrokerFiles, is_broker_running
from kafka_log.logs.listing import list_partition_names
from kafka_log.logs.names import (
    CHECKPOINTS,
    CLEAN_SHUTDOWN,
    CLEANER,
    CLUSTER_METADATA,
    HIGH_WATERMARK,
    LOG_START,
    META,
    RECOVERY_POINT,
    parse_live_partition_name,
    parse_partition_name,
)
from kafka_log.logs.partitions import Partition, Segment

_BEYOND: dict[str, tuple[Severity, str, str, str]] = {
    LOG_START: (
        "error",
        "log_start_beyond_end",
        "The log start offset",
        "Keep a copy of the partition before you start the broker: it deletes a log that ends before its start.",
    ),
    RECOVERY_POINT: ("warning", "recovery_point_beyond_end", "The recovery point", TAKE_ANOTHER),
    HIGH_WATERMARK: ("warning", "high_watermark_beyond_end", "The high watermark", TAKE_ANOTHER),
    CLEANER: (
        "note",
        "cleaner_offset_beyond_end",
        "The offset of the cleaner",
        "Nothing: the cleaner begins anew when the offset does not fit the log.",
    ),
}

_WITHOUT = {
    LOG_START: "without it records that were deleted may come back",
    RECOVERY_POINT: "without it all segments are recovered, which takes its time",
    HIGH_WATERMARK: "without it the high watermarks begin at the start of the logs",
    CLEANER: "without it the cleaner begins at the start of the logs",
}
"""What a broker does without a checkpoint."""


class CheckpointCheck(EndCheck):
    """Offsets in checkpoints that do not lie within the log."""

    def end(self) -> Iterable[Finding]:
        context = self.context
        if not self.is_settled():
            return
        if not context.bases:
            yield from self._nothing()
            return
        for name in CHECKPOINTS:
            offset = context.broker.offset(name, context.key)
            if offset is None or 0 <= offset <= self.log_end:
                continue
            if self.is_told and name in REACHED and offset > 0:
                continue
            severity, code, what, remedy = _BEYOND[name]
            if name == HIGH_WATERMARK and not context.broker.was_clean_shutdown:
                remedy = KILLED
            path = context.broker.directory / name
            if offset < 0:
                yield context.finding(
                    "warning", "checkpoint_value", path, f"{what} is {offset}.", remedy
                )
                continue
            yield context.finding(
                severity,
                code,
                path,
                f"{what} is {offset}, but the log ends before offset {self.log_end}.",
                remedy,
                first_offset=self.log_end,
                last_offset=offset - 1,
                records=None if name == CLEANER else offset - self.log_end,
            )

    def _nothing(self) -> Iterator[Finding]:
        """A partition always has a segment: a new one before the last one is deleted."""
        context, directory = self.context, self.context.partition.directory
        first, end = _extent(context.broker, context.key)
        if (
            end <= first
            or context.partition.state != "live"
            or parse_live_partition_name(directory) is None
        ):
            return
        yield context.finding(
            "error",
            "segment_missing",
            directory,
            f"There is no segment in the directory, though by the checkpoints the log reached offset {end}.",
            "Copy the partition from another replica, or look for its files in a backup.",
            first_offset=first,
            last_offset=end - 1,
            records=end - first,
        )


def _extent(broker: BrokerFiles, key: tuple[str, int]) -> tuple[int, int]:
    """The offsets that a log had by the checkpoints: the first one, and the one after the last."""
    start, *ends = (max(broker.offset(name, key) or 0, 0) for name in (LOG_START, *REACHED))
    return start, max(ends)


def check_checkpoints(broker: BrokerFiles, cluster: Cluster) -> Iterator[Finding]:
    """Checkpoints that cannot be read, and their entries of partitions that are not there. Raises OSError."""
    for name, error in broker.errors.items():
        reason = error.reason if isinstance(error, CodecError) else error
        yield Finding(
            "warning",
            "checkpoint_damaged",
            broker.directory / name,
            f"The checkpoint cannot be read: {reason}.",
            f"Move the file away before you start the broker, which may refuse the directory: {_WITHOUT[name]}.",
            byte=error.where.position if isinstance(error, CodecError) else None,
        )
    there = list_partition_names(broker.directory)
    missing = _missing(broker, cluster)
    for name, offsets in broker.checkpoints.items():
        for topic, partition in sorted(offsets):
            if (os.fsencode(topic), partition) in there or (topic, partition) in missing:
                continue
            yield Finding(
                "note",
                "checkpoint_unknown_partition",
                broker.directory / name,
                "The checkpoint has an offset for a partition that is not in the directory.",
                "Nothing if the partition was moved or deleted; else look for its directory.",
                topic=topic,
                partition=partition,
            )
    for key, why in missing.items():
        first, end = _extent(broker, key)
        yield Finding(
            "warning",
            "partition_missing",
            broker.directory / RECOVERY_POINT,
            f"The partition's directory is not there, {why}: its log reached offset {end}.",
            "Look for the directory, also in the broker's other log directories; else the broker copies the partition from another replica, or begins an empty one.",
            topic=key[0],
            partition=key[1],
            first_offset=first,
            last_offset=end - 1,
            records=end - first,
        )


def _missing(broker: BrokerFiles, cluster: Cluster) -> dict[tuple[str, int], str]:
    """The partitions with records that have no directory, in whatever state, and belong here: why that is known. A broker that stops in order
    writes recovery points of those that it has then, but before 3.0 none where it has none; until that it does so once a minute."""
    there = {
        found[:2] for path in broker.directory.iterdir() if (found := parse_partition_name(path))
    }
    out = {}
    for key in sorted(broker.checkpoints.get(RECOVERY_POINT, {}).keys() - there):
        first, end = _extent(broker, key)
        if end <= first:
            continue
        if broker.was_clean_shutdown and there:
            out[key] = "and was when the broker was stopped in order"
        elif cluster.is_here(key):
            out[key] = "and by the metadata of the cluster it belongs here"
    return out


def check_recovery(
    directory: Path, broker: BrokerFiles, partitions: Sequence[Partition]
) -> Iterable[Finding]:
    """Say what a broker reads again when it starts, if it was not stopped in order, and does not run."""
    if (
        broker.was_clean_shutdown
        or not (directory / META).is_file()
        or is_broker_running(directory)
    ):
        return
    of_directory = [p for p in partitions if p.directory.parent == directory]
    recovered = [segments for p in of_directory if (segments := recovered_segments(p, broker))]
    count = sum(map(len, recovered))
    if not count:
        return
    size = sum(segment.size for segments in recovered for segment in segments)
    what = f"{are(count, 'segment')} of {are(len(recovered), 'partition')}, {are(size, 'byte')}"
    yield Finding(
        "note",
        "not_stopped",
        directory,
        f"There is no {CLEAN_SHUTDOWN}: the broker was killed, or runs elsewhere. When it starts, it recovers {what}: it reads the batches"
        " of each from its recovery point on, makes the indexes anew, and cuts the log off before the first batch that is not whole.",
        "Nothing: other findings say where logs are cut off. Start the broker, or copy a partition that must not lose anything first.",
    )


def recovered_segments(partition: Partition, broker: BrokerFiles) -> list[Segment]:
    """Return the segments of a partition from the one on that holds the recovery point; without one all. The metadata log is recovered
    at each start."""
    if partition.state != "live" or partition.topic == CLUSTER_METADATA:
        return []
    live = [s for s in partition.segments if s.state == "live" and s.has_canonical_name]
    point = broker.offset(RECOVERY_POINT, partition.key) or 0
    first = bisect_right([s.base_offset for s in live], point) - 1
    return live[max(first, 0) :]
