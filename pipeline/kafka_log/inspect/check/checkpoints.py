"""Checks of the checkpoint files of a log directory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from codecgen.runtime.errors import CodecError
from kafka_log.inspect.check.catalog import CATALOG
from kafka_log.inspect.check.cluster import Cluster
from kafka_log.inspect.check.finding import Finding, make_finding
from kafka_log.inspect.check.log_end import KILLED, EndCheck
from kafka_log.logs.broker_files import REACHED, BrokerFiles
from kafka_log.logs.listing import list_partition_names
from kafka_log.logs.names import (
    CHECKPOINTS,
    CLEANER,
    HIGH_WATERMARK,
    LOG_START,
    RECOVERY_POINT,
    parse_live_partition_name,
    parse_partition_name,
)

_BEYOND_END = {
    LOG_START: ("log_start_beyond_end", "The log start offset"),
    RECOVERY_POINT: ("recovery_point_beyond_end", "The recovery point"),
    HIGH_WATERMARK: ("high_watermark_beyond_end", "The high watermark"),
    CLEANER: ("cleaner_offset_beyond_end", "The offset of the log cleaner"),
}
"""Checkpoint files: id of the finding for an offset beyond the end of the log, and name of the offset."""

_AT_RISK = {
    RECOVERY_POINT: " Records up to the recovery point were on the disk.",
    HIGH_WATERMARK: " Records below the high watermark were committed.",
}
"""Checkpoint files: what an offset beyond the end of the log means for records."""

_WITHOUT = {
    LOG_START: "without it, deleted records may reappear",
    RECOVERY_POINT: "without it, the broker recovers all segments, which takes long, and truncates each log at its first damaged batch",
    HIGH_WATERMARK: "without it, the high watermarks begin at the log start offsets",
    CLEANER: "without it, the log cleaner begins at the log start offsets",
}
"""Checkpoint files: what happens if the broker starts without the file."""

_WITHOUT_LINE = {
    RECOVERY_POINT: "without the line, the broker recovers the partition from its first segment after a crash",
    HIGH_WATERMARK: "without the line, the high watermark begins at the log start offset",
    CLEANER: "without the line, the log cleaner begins at the log start offset",
}
"""Checkpoint files: what happens if the broker starts without the line of a partition."""

_BEFORE = {
    LOG_START: "Correct the file with the log start offsets of other replicas (0 in the first line, the number of lines that follow in the second one, then TOPIC PARTITION OFFSET). Or move",
    RECOVERY_POINT: "If other findings name damaged segments, follow these first. Move",
}
"""Checkpoint files: what comes before the file is moved away."""


class CheckpointCheck(EndCheck):
    """Reports negative offsets in the checkpoint files and offsets beyond the end of the log, and a
    partition without any segment although checkpoints say that it had records.
    """

    def check_end(self) -> Iterable[Finding]:
        context = self.context
        if not self.is_resolved():
            return
        if not context.bases:
            yield from self._find_missing_segments()
            return
        for name in CHECKPOINTS:
            offset = context.broker.offset(name, context.key)
            if offset is None or 0 <= offset <= self.log_end:
                continue
            if self.is_reported and name in REACHED and offset > 0:
                continue
            code, what = _BEYOND_END[name]
            remedy = CATALOG[code].remedy
            if name == HIGH_WATERMARK and not context.broker.was_clean_shutdown:
                remedy = KILLED
            path = context.broker.directory / name
            if offset < 0:
                topic, partition = context.key
                meaning = f"{what} is {offset} (line {topic} {partition} {offset}): offsets are not negative."
                yield context.finding(
                    "checkpoint_value", path, meaning, remedy=self._repair_value(name)
                )
                continue
            meaning = f"{what} is {offset}, but {self.describe_end()}.{_AT_RISK.get(name, '')}"
            first, end = self.log_end, offset
            if name == LOG_START:
                remedy = self._repair_log_start(offset)
                meaning += f" When the broker starts, it deletes all segments and begins an empty log at offset {offset}."
                first, end = context.bases[0], self.log_end
            yield context.finding(
                code,
                path,
                meaning,
                remedy=remedy,
                first_offset=first if first < end else None,
                last_offset=end - 1 if first < end else None,
                records=None if name == CLEANER else end - first,
            )

    def _repair_value(self, name: str) -> str:
        """Return the remedy for a negative offset in the checkpoint file ``name``. For the log
        start offsets: write that of another replica, or the first offset of the log here. For all
        others: remove the line. The partition must have a segment.
        """
        if name == LOG_START:
            return f"Stop the broker, and write the log start offset of another replica into the line, or {self.context.bases[0]}, the first offset of the log here: deleted records then may appear again."
        return f"Stop the broker, remove the line, and subtract 1 from the number in the second line of the file: {_WITHOUT_LINE[name]}."

    def _repair_log_start(self, offset: int) -> str:
        """Return the remedy for a log start offset beyond the end of the log, which is ``offset``.
        The partition must have a segment.
        """
        topic, partition = self.context.key
        return (
            f"Stop the broker and keep a copy of the partition directory. If {offset} is right, copy the partition from another replica. If it is wrong, correct the offset"
            f' in the line "{topic} {partition} {offset}" to the log start offset of another replica. Without another replica, correct it to {self.context.bases[0]}, the first'
            " offset of the log: deleted records then appear again."
        )

    def _find_missing_segments(self) -> Iterator[Finding]:
        """Yield a ``segment_missing`` error if the partition's recovery point or high watermark is
        above its log start offset (each 0 if unknown). Brokers never delete the last segment. Yield
        nothing if the directory is not a live partition by its state and name. Call it only for a
        partition without segments: this is not checked.
        """
        context, directory = self.context, self.context.partition.directory
        first, end = _offset_range(context.broker, context.key)
        if (
            end <= first
            or context.partition.state != "live"
            or parse_live_partition_name(directory) is None
        ):
            return
        yield context.finding(
            "segment_missing",
            directory,
            f"The directory has no segment, but by the checkpoints the log reached offset {end}.",
            first_offset=first,
            last_offset=end - 1,
            records=end - first,
        )


def _offset_range(broker: BrokerFiles, key: tuple[str, int]) -> tuple[int, int]:
    """Return the log start offset, and the end offset (excluded): the higher one of recovery point
    and high watermark. Each is 0 if the checkpoints do not have it, or have a negative one.
    """
    return max(broker.offset(LOG_START, key) or 0, 0), broker.reached_offset(key)


def check_checkpoints(broker: BrokerFiles, cluster: Cluster) -> Iterator[Finding]:
    """Yield the findings about the checkpoint files of ``broker``. These are ``checkpoint_damaged``
    for each file that cannot be read or parsed, ``checkpoint_unknown_partition`` for each entry
    without a directory here, and ``partition_missing`` for each partition with records that should
    have one, by a clean shutdown or the metadata of ``cluster``. Entries of missing partitions are
    not reported as unknown. Raise OSError if the log directory cannot be listed.
    """
    for name, error in broker.errors.items():
        reason = error.reason if isinstance(error, CodecError) else error
        yield make_finding(
            "checkpoint_damaged",
            broker.directory / name,
            f"The checkpoint file cannot be read: {reason}. The broker may take the log directory offline.",
            remedy=f"{_BEFORE.get(name, 'Move')} the file away before you start the broker: {_WITHOUT[name]}.",
            byte=error.where.position if isinstance(error, CodecError) else None,
        )
    there = list_partition_names(broker.directory)
    missing = _missing_partitions(broker, cluster)
    for name, offsets in broker.checkpoints.items():
        for topic, partition in sorted(offsets):
            if (os.fsencode(topic), partition) in there or (topic, partition) in missing:
                continue
            line = f"{topic} {partition} {offsets[topic, partition]}"
            yield make_finding(
                "checkpoint_unknown_partition",
                broker.directory / name,
                f"The checkpoint file has the line {line}, but the log directory has no directory of this partition.",
                topic=topic,
                partition=partition,
            )
    for key, why in missing.items():
        first, end = _offset_range(broker, key)
        yield make_finding(
            "partition_missing",
            broker.directory / RECOVERY_POINT,
            f"The directory of the partition is missing, {why}. By the checkpoints, its log reached offset {end}.",
            topic=key[0],
            partition=key[1],
            first_offset=first,
            last_offset=end - 1,
            records=end - first,
        )


def _missing_partitions(broker: BrokerFiles, cluster: Cluster) -> dict[tuple[str, int], str]:
    """Return the partitions that should have a directory here and have none in any state, with the
    reason. They have a recovery point and, by the checkpoints, records; and the broker was shut
    down cleanly and other partitions are here, or the cluster metadata assigns them to this
    directory. Raise OSError if the directory cannot be listed.

    A broker writes the recovery points of its partitions once a minute and in a clean shutdown. Brokers before
    3.0 write none in a shutdown without partitions.
    """
    there = {
        found[:2] for path in broker.directory.iterdir() if (found := parse_partition_name(path))
    }
    out = {}
    for key in sorted(broker.checkpoints.get(RECOVERY_POINT, {}).keys() - there):
        first, end = _offset_range(broker, key)
        if end <= first:
            continue
        if broker.was_clean_shutdown and there:
            out[key] = "but existed when the broker was shut down cleanly"
        elif cluster.is_here(key):
            out[key] = "but by the metadata of the cluster it belongs here"
    return out
