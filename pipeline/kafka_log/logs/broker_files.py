"""Files that a broker keeps beside its logs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from codecgen.runtime.errors import CodecError
from kafka_codecs import META_PROPERTIES, OFFSET_CHECKPOINT
from kafka_log.logs.names import CHECKPOINTS, CLEAN_SHUTDOWN, META

if TYPE_CHECKING:
    from kafka_codecs import MetaProperties

import re
import struct
import sys
from collections.abc import Iterator

from kafka_codecs import PARTITION_METADATA, PRODUCER_SNAPSHOT, ProducerSnapshotEntry
from kafka_log.logs.names import LOCK
from kafka_log.segment.regular_files import open_regular

MAX_BYTES = 64 << 20
"""Larger ones are not read: more than a million entries of a snapshot or an index, of lines of text more than a broker has partitions."""

_PIECE = 1 << 20


class TooLargeError(OSError):
    """A file with more bytes than any file of its kind has."""

    def __init__(self, path: Path, most: int) -> None:
        self.path = path
        self.most = most
        super().__init__(f"{path}: {self.reason}")

    @property
    def reason(self) -> str:
        return f"it has more than {self.most} bytes"


def read_small_file(path: Path, most: int = MAX_BYTES) -> bytes:
    """The bytes of a file. Raises OSError; :class:`TooLargeError` when there are more than ``most``."""
    data = bytearray()
    with open_regular(path, -1) as file:
        # Python makes room for all that is asked for, which may be more than a process may have.
        while part := file.read(min(_PIECE, most + 1 - len(data))):
            data += part
    if len(data) > most:
        raise TooLargeError(path, most)
    return bytes(data)


PartitionOffsets = Mapping[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class BrokerFiles:
    """The checkpoints of a directory by their names: offsets by topic and partition. Those that are not there or cannot be
    read are left out; ``errors`` says why."""

    directory: Path
    checkpoints: Mapping[str, PartitionOffsets] = field(default_factory=dict)
    errors: Mapping[str, str | CodecError] = field(default_factory=dict)
    was_clean_shutdown: bool = False
    """Whether the broker was stopped in an orderly way: then all that it knew is in the files."""

    def offset(self, name: str, key: tuple[str, int]) -> int | None:
        """What a checkpoint says of a partition, None when it says nothing."""
        return self.checkpoints.get(name, {}).get(key)


def read_broker_files(directory: Path) -> BrokerFiles:
    """Read the checkpoints of a directory. Never raises: what cannot be read is in ``errors``."""
    found: dict[str, PartitionOffsets] = {}
    errors: dict[str, str | CodecError] = {}
    for name in CHECKPOINTS:
        path = directory / name
        if not path.is_file():
            continue
        try:
            found[name] = read_checkpoint(path)
        except (CodecError, OSError) as error:
            errors[name] = error if isinstance(error, CodecError) else str(error)
    stopped = (directory / CLEAN_SHUTDOWN).exists()
    return BrokerFiles(directory, found, errors, stopped)


def read_checkpoint(path: Path) -> PartitionOffsets:
    """What a checkpoint says. Raises CodecError where it is none, OSError."""
    parsed = OFFSET_CHECKPOINT.parse(read_small_file(path), file=os.fspath(path), strict=False)
    return {(e.topic, e.partition): e.offset for e in parsed.entries or ()}


def read_meta_properties(directory: Path) -> MetaProperties | None:
    """What the file in a log directory says; None where there is none, or it cannot be read."""
    path = directory / META
    try:
        return META_PROPERTIES.parse(read_small_file(path), file=os.fspath(path), strict=False)
    except (OSError, CodecError):
        return None


def get_node_id(said: MetaProperties) -> int | None:
    """The id of the node, which older brokers call that of the broker."""
    return said.broker_id if said.node_id is None else said.node_id


_MAX_BYTES = 4096


def read_topic_id(directory: Path) -> bytes | None:
    """What ``partition.metadata`` says, in 16 bytes. None where it is not there (as before Kafka 2.8), or cannot be read."""
    path = directory / "partition.metadata"
    try:
        with open_regular(path, -1) as file:
            data = file.read(_MAX_BYTES)
        return PARTITION_METADATA.parse(data, strict=False).topic_id.bytes
    except (OSError, CodecError):
        return None


_NAME = re.compile(r"\d{20}\.snapshot\Z", re.ASCII)


def read_producer_snapshot(path: Path) -> list[ProducerSnapshotEntry] | None:
    """The entries of a snapshot. None when it is missing, or is not what it should be: brokers pass over it too."""
    try:
        return list(PRODUCER_SNAPSHOT.parse(read_small_file(path), file=os.fspath(path)).entries)
    except (OSError, CodecError):
        return None


def list_snapshot_offsets(directory: Path) -> list[int]:
    """The offsets of the snapshots of a partition, by their names. Raises OSError."""
    names = (child.name for child in directory.iterdir())
    return [int(name[:20]) for name in names if _NAME.match(name)]


def read_newest_producer_snapshot(directory: Path) -> list[ProducerSnapshotEntry] | None:
    """The entries of the newest snapshot of a partition that can be read, None without one. Raises OSError."""
    return next(_readable(directory), None)


def _readable(directory: Path) -> Iterator[list[ProducerSnapshotEntry]]:
    names = (child.name for child in directory.iterdir())
    for name in sorted(filter(_NAME.match, names), reverse=True):
        entries = read_producer_snapshot(directory / name)
        if entries is not None:
            yield entries


_FLOCK = "hhqqi"
"""The struct flock of Linux: type, whence, start, length and process."""


def is_broker_running(directory: Path) -> bool | None:
    """Return whether a process on this machine holds the lock of a log directory, None if nobody can say. The lock is not touched."""
    if sys.platform != "linux":
        return None
    import fcntl

    try:
        descriptor = os.open(directory / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, asked)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    kind: int = struct.unpack(_FLOCK, answer)[0]
    return kind != fcntl.F_UNLCK
