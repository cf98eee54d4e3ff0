"""What a broker recovers when it starts on a directory where it was killed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path

from kafka_log.logs.broker_files import BrokerFiles, is_broker_running
from kafka_log.logs.names import CLEAN_SHUTDOWN, CLUSTER_METADATA, META, RECOVERY_POINT
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.report.check.base import are
from kafka_log.report.check.finding import Finding


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
