"""Where logs start that are written again: DeleteRecords moves the log start offset into the first segment, and brokers keep it in a file
beside the partitions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kafka_codecs import OFFSET_CHECKPOINT
from kafka_log.logs.discovery import discover
from kafka_log.logs.log_start import LogStarts
from kafka_log.logs.partitions import Partition
from kafka_log.logs.replicas import read_log_end


def log_start(starts: LogStarts, partition: Partition) -> int | None:
    """The log start offset of a partition, None where nothing says it. Segments that are not live lie before it on purpose: with them
    it does not count."""
    if any(segment.state != "live" for segment in partition.segments):
        return None
    return starts.get(partition)


def kept(start: int | None, directory: Path) -> int | None:
    """The log start offset of a partition that is written, if it lies inside of its log: a broker takes the first offset of the first
    segment without being told, and throws a log away that ends before. Raises OSError."""
    found = discover(directory) if start is not None and any(directory.glob("*.log")) else []
    segments = [segment for partition in found for segment in partition.segments]
    end = read_log_end(segments)
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
