"""Producer snapshots: what a broker knew of the producers of a partition when it wrote one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_codecs import PRODUCER_SNAPSHOT, ProducerSnapshotEntry
from kafka_log.logs.small_files import small_file

_NAME = re.compile(r"\d{20}\.snapshot\Z", re.ASCII)


def producers_of(path: Path) -> list[ProducerSnapshotEntry] | None:
    """The entries of a snapshot. None when it is missing, or is not what it should be: brokers pass over it too."""
    try:
        return list(PRODUCER_SNAPSHOT.parse(small_file(path), file=os.fspath(path)).entries)
    except (OSError, CodecError):
        return None


def offsets_of_snapshots(directory: Path) -> list[int]:
    """The offsets of the snapshots of a partition, by their names. Raises OSError."""
    names = (child.name for child in directory.iterdir())
    return [int(name[:20]) for name in names if _NAME.match(name)]


def newest(directory: Path) -> list[ProducerSnapshotEntry] | None:
    """The entries of the newest snapshot of a partition that can be read, None without one. Raises OSError."""
    return next(_readable(directory), None)


def _readable(directory: Path) -> Iterator[list[ProducerSnapshotEntry]]:
    names = (child.name for child in directory.iterdir())
    for name in sorted(filter(_NAME.match, names), reverse=True):
        entries = producers_of(directory / name)
        if entries is not None:
            yield entries
