"""Which log a partition's directory holds: what tells it from another one whose files have the same names and sizes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any
from uuid import UUID

from kafka_log.logs.broker_files import get_node_id, read_meta_properties, read_topic_id
from kafka_log.logs.log_start import candidate_log_directories
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.segment.places import is_url
from kafka_log.segment.regular_files import open_regular

_SAMPLE = 4096
"""Bytes that are looked at where a segment begins, in its middle, and at its end: there are checksums and times in them."""


def identify_log(partition: Partition) -> dict[str, Any]:
    """What identifies the log that a directory holds, as plain values.

    That is what the broker has written down: the cluster, the node and the disk, as ``meta.properties`` beside the directory has them, and the
    topic's id. It goes along when the whole log directory is moved, copied, or mounted elsewhere. Where a partition lies without that
    file, it is the path: nothing else tells two replicas apart."""
    found: dict[str, Any] = {}
    if (topic := read_topic_id(partition.directory)) is not None:
        found["topic_id"] = str(UUID(bytes=topic))
    for directory in candidate_log_directories(partition.directory):
        if ids := _ids(directory):
            return found | ids
    return found | {"path": resolve_directory(partition.directory)}


def resolve_directory(directory: Path) -> str:
    """An absolute path without links; a URL as it is."""
    return os.fspath(directory if is_url(directory) else directory.resolve())


def _ids(directory: Path) -> dict[str, Any]:
    """What tells a broker's disk from others; nothing where that is not known."""
    said = read_meta_properties(directory)
    if said is None:
        return {}
    node = get_node_id(said)
    if said.directory_id is None and (said.cluster_id is None or node is None):
        return {}
    ids = {"cluster": said.cluster_id, "node": node, "disk": said.directory_id}
    return {name: str(value) for name, value in ids.items() if value is not None}


def identify_segment(segment: Segment) -> list[Any]:
    """A segment's name and size, and a digest of some of its bytes and of when it was written: damage that is mended has another time. In a
    store that time alone, as each look at bytes is a request. None for what cannot be read."""
    return [segment.path.name, segment.size, _digest(segment)]


def _digest(segment: Segment) -> str | int | None:
    try:
        written = segment.path.stat().st_mtime_ns
        if is_url(segment.path):
            return int(written)
        made = hashlib.blake2b(written.to_bytes(8, "big", signed=True), digest_size=16)
        with open_regular(segment.path) as file:
            middle = max(segment.size // 2 - _SAMPLE // 2, 0)
            for position in (0, middle, max(segment.size - _SAMPLE, 0)):
                file.seek(position)
                made.update(file.read(min(_SAMPLE, segment.size - position)))
        return made.hexdigest()
    except OSError:
        return None
