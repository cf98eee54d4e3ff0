"""Identity of logs and segments: values that distinguish files with equal names and sizes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any
from uuid import UUID

from kafka_log.logs.broker_files import get_node_id, read_meta_properties, read_topic_id
from kafka_log.logs.log_start import candidate_log_directories
from kafka_log.logs.partitions import Partition, Segment
from kafka_log.segment.paths import resolve_links
from kafka_log.segment.regular_files import open_regular
from kafka_log.segment.urls import is_url

_SAMPLE = 4096
"""Number of bytes that are hashed at the beginning, middle and end of a segment. They contain checksums and timestamps."""


def identify_log(partition: Partition) -> dict[str, Any]:
    """Return a dict of JSON values that identify the log in a partition directory: ``topic_id`` if
    it is known, and ``cluster``, ``node`` and ``disk`` (directory id) from ``meta.properties``, as
    far as known. If that has neither a directory id nor both other ids, or cannot be read, ``path``
    has the path of the directory instead.

    The ids stay the same when the log directory is moved, copied or mounted elsewhere. The path is used because nothing else distinguishes two
    replicas.
    """
    found: dict[str, Any] = {}
    if (topic := read_topic_id(partition.directory)) is not None:
        found["topic_id"] = str(UUID(bytes=topic))
    for directory in candidate_log_directories(partition.directory):
        if ids := _read_disk_ids(directory):
            return found | ids
    return found | {"path": resolve_directory(partition.directory)}


def resolve_directory(directory: Path) -> str:
    """Return the absolute path of a directory without symbolic links as text. A URL is returned unchanged."""
    return os.fspath(resolve_links(directory))


def _read_disk_ids(directory: Path) -> dict[str, Any]:
    """Return the cluster id, node id and directory id in ``meta.properties`` of a log directory
    that are set, as texts. Return ``{}`` if the file is missing or invalid, or has neither a
    directory id nor both other ids.
    """
    properties = read_meta_properties(directory)
    if properties is None:
        return {}
    node = get_node_id(properties)
    if properties.directory_id is None and (properties.cluster_id is None or node is None):
        return {}
    ids = {"cluster": properties.cluster_id, "node": node, "disk": properties.directory_id}
    return {name: str(value) for name, value in ids.items() if value is not None}


def identify_segment(segment: Segment) -> list[Any]:
    """Return a list of the file name, size in bytes and digest of a segment, as plain JSON types.
    The digest covers samples of the bytes and the modification time; in an object store it is the
    modification time alone, in nanoseconds. The digest is None if the file cannot be read.
    """
    return [segment.path.name, segment.size, _digest(segment)]


def _digest(segment: Segment) -> str | int | None:
    """Return a hexadecimal digest of a segment's modification time and of samples at its start,
    middle and end; in an object store the time in nanoseconds. Return None if the file cannot be
    read.
    """
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
