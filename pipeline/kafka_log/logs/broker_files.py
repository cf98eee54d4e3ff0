"""Files that a broker keeps beside its segments: checkpoints, properties, topic ids, producer snapshots, the lock."""

from __future__ import annotations

import itertools
import os
import re
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from codecgen.runtime.errors import CodecError, ValueRefused, Where
from kafka_codecs import (
    LEADER_EPOCH_CHECKPOINT,
    META_PROPERTIES,
    OFFSET_CHECKPOINT,
    PARTITION_METADATA,
)
from kafka_log.logs.names import (
    CHECKPOINTS,
    CLEAN_SHUTDOWN,
    HIGH_WATERMARK,
    LOCK,
    META,
    RECOVERY_POINT,
)
from kafka_log.segment.positioned_reads import unreadable
from kafka_log.segment.regular_files import is_listed, open_regular

if TYPE_CHECKING:
    from kafka_codecs import MetaProperties, ProducerSnapshotEntry


MAX_BYTES = 64 << 20
"""Maximum size of a small file. It has room for a million entries of a snapshot or index, and for more lines than a broker has partitions."""

_PIECE = 1 << 20


class TooLargeError(OSError):
    """A file is larger than any file of its kind.

    Attributes:
        path: The file.
        max_bytes: Maximum size of files of its kind.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path = path
        self.max_bytes = max_bytes
        super().__init__(f"{path}: {self.reason}")

    @property
    def reason(self) -> str:
        """What is wrong with the file, without its path."""
        return f"it has more than {self.max_bytes} bytes"


def read_small_file(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the bytes of a regular file. Raise TooLargeError if it has more than ``max_bytes``;
    OSError if it cannot be read, or is a directory, FIFO, socket or device.
    """
    data = bytearray()
    with open_regular(path, -1) as file:
        # Python allocates as many bytes as are requested, which may exceed the memory limit.
        while part := file.read(min(_PIECE, max_bytes + 1 - len(data))):
            data += part
    if len(data) > max_bytes:
        raise TooLargeError(path, max_bytes)
    return bytes(data)


PartitionOffsets = Mapping[tuple[str, int], int]
"""Offsets by topic and partition number."""

REACHED = (RECOVERY_POINT, HIGH_WATERMARK)
"""Checkpoint files of offsets that the log has reached."""


@dataclass(frozen=True, slots=True)
class BrokerFiles:
    """The checkpoint files of a log directory, their errors, and whether the broker was shut down
    cleanly.

    Attributes:
        directory: The log directory.
        checkpoints: Offsets by file name. A file that does not exist or cannot be read is missing.
        errors: Why files cannot be read, by file name.
        was_clean_shutdown: Whether the broker was shut down cleanly, so that the files are complete.
    """

    directory: Path
    checkpoints: Mapping[str, PartitionOffsets] = field(default_factory=dict)
    errors: Mapping[str, str | CodecError] = field(default_factory=dict)
    was_clean_shutdown: bool = False

    def offset(self, name: str, key: tuple[str, int]) -> int | None:
        """Return the offset of a partition in the checkpoint ``name``, None if it has none."""
        return self.checkpoints.get(name, {}).get(key)

    def reached_offset(self, key: tuple[str, int]) -> int:
        """Return the offset that the log of a partition has reached: the higher one of its recovery
        point and high watermark. Return 0 if the checkpoints have neither, or negative ones.
        """
        return max(0, *(self.offset(name, key) or 0 for name in REACHED))


def log_directory_of(directory: Path) -> Path:
    """Return the log directory of a partition directory, whose path may be relative or end in ``..``."""
    has_name = directory.name not in ("", "..")
    return directory.parent if has_name else directory.resolve().parent


def list_proof_files(directory: Path) -> list[str]:
    """Return the names of the files of a log directory that may prove how far logs were written:
    that of a clean shutdown, and the checkpoints of :data:`REACHED`. Raise OSError if the directory
    may not be searched, or its store cannot be asked.
    """
    return [name for name in (CLEAN_SHUTDOWN, *REACHED) if (directory / name).is_file()]


def read_broker_files(directory: Path) -> BrokerFiles:
    """Return the offsets in the checkpoint files of a log directory, and whether the file of a
    clean shutdown exists. Missing files are left out. A file that is invalid or cannot be read is
    described in ``errors``, not raised. Raise OSError only if the directory may not be searched, or
    its store cannot be asked.
    """
    found: dict[str, PartitionOffsets] = {}
    errors: dict[str, str | CodecError] = {}
    for name in CHECKPOINTS:
        path = directory / name
        if not is_listed(path):
            continue
        try:
            found[name] = read_checkpoint(path)
        except (CodecError, OSError) as error:
            errors[name] = error if isinstance(error, CodecError) else str(error)
    stopped = (directory / CLEAN_SHUTDOWN).exists()
    return BrokerFiles(directory, found, errors, stopped)


def read_checkpoint(path: Path) -> PartitionOffsets:
    """Return the offsets in an offset checkpoint, by topic and partition number; ``{}`` for an
    empty file. Of several entries for a partition the last one counts. Raise CodecError if it has
    another form; OSError if it cannot be read, or has more than 64 MiB (TooLargeError).
    """
    parsed = OFFSET_CHECKPOINT.parse(read_small_file(path), file=os.fspath(path), strict=False)
    return {(e.topic, e.partition): e.offset for e in parsed.entries or ()}


def read_meta_properties(directory: Path) -> MetaProperties | None:
    """Return the parsed ``meta.properties`` of a log directory. Return None if the file does not
    exist, is invalid or cannot be read.
    """
    path = directory / META
    try:
        return META_PROPERTIES.parse(read_small_file(path), file=os.fspath(path), strict=False)
    except (OSError, CodecError):
        return None


def get_node_id(properties: MetaProperties) -> int | None:
    """Return the node id, which brokers before KRaft call the broker id. None if the file has neither."""
    return properties.broker_id if properties.node_id is None else properties.node_id


_MAX_BYTES = 4096


def read_topic_id(directory: Path) -> bytes | None:
    """Return the topic id in ``partition.metadata`` of a partition directory, as 16 bytes. Return
    None if the file does not exist (before Kafka 2.8), is invalid, has the nil id, which brokers
    refuse, or cannot be read.
    """
    return find_topic_id(directory)[0]


def find_topic_id(directory: Path) -> tuple[bytes | None, CodecError | None]:
    """Return the topic id of a partition directory as :func:`read_topic_id` does, and the error that
    hides it: ``partition.metadata`` is invalid, has the nil id or cannot be read. The error is None
    if the id is known, and if the file does not exist.
    """
    path = directory / "partition.metadata"
    where = Where(file=os.fspath(path))
    try:
        with open_regular(path, -1) as file:
            data = file.read(_MAX_BYTES)
        stated = PARTITION_METADATA.parse(data, file=where.file, strict=False).topic_id.bytes
    except FileNotFoundError:
        return None, None
    except CodecError as error:
        return None, error.without_frames()
    except OSError as error:
        return None, unreadable(error, None, path)
    return (stated, None) if any(stated) else (None, ValueRefused("the topic id is zero", where))


def find_epoch(epochs: Sequence[tuple[int, int]], offset: int) -> int | None:
    """Return the leader epoch of an offset, or None if it lies before the first epoch."""
    found = [epoch for epoch, start in epochs if start <= offset]
    return found[-1] if found else None


def read_leader_epochs(path: Path) -> list[tuple[int, int]] | None:
    """Return the leader epochs of a checkpoint file as (epoch, start offset) pairs, in file order;
    ``[]`` if it lists none. Return None if the file is missing, unreadable or invalid, an epoch is
    not above the one before, or a start offset is below the one before.
    """
    try:
        parsed = LEADER_EPOCH_CHECKPOINT.parse(
            read_small_file(path), file=os.fspath(path), strict=False
        )
        found = [(e.epoch, e.start_offset) for e in parsed.epochs or ()]
    except (OSError, CodecError):
        return None
    rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in itertools.pairwise(found))
    return found if rising else None


_NAME = re.compile(r"\d{20}\.snapshot\Z", re.ASCII)


def read_producer_snapshot(path: Path) -> list[ProducerSnapshotEntry] | None:
    """Return the entries of a producer snapshot, one for each producer. Return None if the file
    does not exist, is invalid (also by its checksum), too large or cannot be read: brokers ignore
    such a file too.
    """
    from kafka_codecs import PRODUCER_SNAPSHOT  # loads the library of its checksum

    try:
        return list(PRODUCER_SNAPSHOT.parse(read_small_file(path), file=os.fspath(path)).entries)
    except (OSError, CodecError):
        return None


def list_snapshot_offsets(directory: Path) -> list[int]:
    """Return the offsets in the names of the producer snapshots in a directory, in any order;
    ``[]`` if there are none. Raise OSError if the directory cannot be listed.
    """
    names = (child.name for child in directory.iterdir())
    return [int(name[:20]) for name in names if _NAME.match(name)]


def read_newest_producer_snapshot(directory: Path) -> list[ProducerSnapshotEntry] | None:
    """Return the entries of the newest valid producer snapshot in a directory, None without one.
    Raise OSError if the directory cannot be listed.
    """
    return next(_read_valid_snapshots(directory), None)


def _read_valid_snapshots(directory: Path) -> Iterator[list[ProducerSnapshotEntry]]:
    """Yield the entries of each valid producer snapshot in a directory, the newest first. Iterating
    raises OSError if the directory cannot be listed.
    """
    names = (child.name for child in directory.iterdir())
    for name in sorted(filter(_NAME.match, names), reverse=True):
        entries = read_producer_snapshot(directory / name)
        if entries is not None:
            yield entries


_FLOCK = "hhqqi"
"""Format of Linux's struct flock: type, whence, start, length and process id."""


def is_broker_running(directory: Path) -> bool | None:
    """Return whether another process on this machine locks the ``.lock`` file of a log directory.
    Return None if that is unknown: not on Linux, or without a regular lock file that can be opened.
    The lock is not taken.
    """
    if sys.platform != "linux":
        return None
    import fcntl

    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        with open_regular(directory / LOCK) as file:
            answer = fcntl.fcntl(file, fcntl.F_GETLK, asked)
    except OSError:
        return None
    kind: int = struct.unpack(_FLOCK, answer)[0]
    return kind != fcntl.F_UNLCK
