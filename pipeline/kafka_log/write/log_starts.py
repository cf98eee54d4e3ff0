"""Where logs start that are written again: DeleteRecords moves the log start offset into the first segment, and brokers keep it in a file
beside the partitions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kafka_codecs import OFFSET_CHECKPOINT
from kafka_log.disk.broker_files import LOG_START, BrokerFiles, read_broker_files
from kafka_log.disk.directory import Partition, discover
from kafka_log.disk.replicas import log_end

__all__ = ["LOG_START", "LogStarts", "checkpoint", "kept"]


class LogStarts:
    """The log start offsets that brokers have written down, each file read once."""

    def __init__(self) -> None:
        self._brokers: dict[Path, BrokerFiles] = {}

    def of(self, partition: Partition) -> int | None:
        """That of a partition, None where nothing says it. Segments that are not live lie before it on purpose: with them it does not
        count."""
        if any(segment.state != "live" for segment in partition.segments):
            return None
        parent = partition.directory.resolve().parent
        if parent not in self._brokers:
            self._brokers[parent] = read_broker_files(parent)
        return self._brokers[parent].offset(LOG_START, (partition.topic, partition.partition))


def kept(start: int | None, directory: Path) -> int | None:
    """The log start offset of a partition that is written, if it lies inside of its log: a broker takes the first offset of the first
    segment without being told, and throws a log away that ends before. Raises OSError."""
    found = discover(directory) if start is not None and any(directory.glob("*.log")) else []
    segments = [segment for partition in found for segment in partition.segments]
    end = log_end(segments)
    if start is None or end is None or not segments[0].base_offset < start <= end.offset:
        return None
    return start


def checkpoint(starts: Mapping[tuple[str, int], int]) -> bytes:
    """The bytes of the file with these log start offsets, by topic and partition."""
    entries = [
        {"topic": topic, "partition": partition, "offset": offset}
        for (topic, partition), offset in sorted(starts.items())
    ]
    return bytes(OFFSET_CHECKPOINT.build({"entries": entries}))
