"""The id of the topic that a partition's directory belongs to."""

from __future__ import annotations

from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_codecs import PARTITION_METADATA
from kafka_log.segment.regular_files import open_regular

_MAX_BYTES = 4096


def topic_id(directory: Path) -> bytes | None:
    """What ``partition.metadata`` says, in 16 bytes. None where it is not there (as before Kafka 2.8), or cannot be read."""
    path = directory / "partition.metadata"
    try:
        with open_regular(path, -1) as file:
            data = file.read(_MAX_BYTES)
        return PARTITION_METADATA.parse(data, strict=False).topic_id.bytes
    except (OSError, CodecError):
        return None
