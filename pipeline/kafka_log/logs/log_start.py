"""Log start offsets. Records below them were deleted with DeleteRecords, but stay in the files until a whole segment can be deleted."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kafka_log.logs.names import LOG_START, State
from kafka_log.segment.paths import resolve_links
from kafka_log.segment.regular_files import is_listed
from kafka_log.segment.urls import is_url

if TYPE_CHECKING:
    from kafka_log.logs.partitions import Segment


LOG_STATES = frozenset({"live", "remote"})
"""States of segments that are part of a log."""


class Log(Protocol):
    """A partition in its directory."""

    @property
    def topic(self) -> str:
        """Return the name of the topic."""

    @property
    def partition(self) -> int:
        """Return the partition number."""

    @property
    def directory(self) -> Path:
        """Return the partition directory."""

    @property
    def state(self) -> State:
        """Return the state of the partition directory."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return the segments, lowest base offset first."""


class LogStarts:
    """Log start offsets from the ``log-start-offset-checkpoint`` beside partition directories. Each file is read once.

    A file that cannot be read counts as empty, as for a broker that starts, and a warning names it.
    """

    def __init__(self) -> None:
        self._read: dict[Path, Mapping[tuple[str, int], int] | None] = {}

    def get(self, partition: Log) -> int | None:
        """Return the log start offset that the checkpoint beside a partition directory states.
        Return None if no file states it, it is not above the first base offset, or the partition
        has no live or remote segments or is a directory in tiered storage. Raise OSError if the
        directory of the checkpoint may not be searched, or its store cannot be asked.

        Segments in tiered storage are part of the log if the partition has them.
        """
        first = min(
            (s.base_offset for s in partition.segments if s.state in LOG_STATES), default=None
        )
        if first is None or partition.state == "remote":
            return None  # a broker keeps the file beside live directories
        for directory in candidate_log_directories(partition.directory):
            there = self._offsets(directory)
            if there is not None:
                start = there.get((partition.topic, partition.partition))
                return None if start is None or start <= first else start
        return None

    def _offsets(self, directory: Path) -> Mapping[tuple[str, int], int] | None:
        """Return the log start offsets of a log directory from the cache, None if it has no checkpoint."""
        if directory not in self._read:
            self._read[directory] = _read_checkpoint(directory / LOG_START)
        return self._read[directory]


def candidate_log_directories(directory: Path) -> list[Path]:
    """Return the directories that may be the log directory of a partition directory, as absolute
    paths: its parent, and if it is itself a link, the parent of the link's target (perhaps the same
    directory again). A link that leads nowhere is followed as far as it leads. For a URL return
    only the parent.
    """
    if is_url(directory):
        return [directory.parent]
    out = [Path(os.path.abspath(directory)).parent]  # noqa: PTH100 (no links are followed)
    if directory.is_symlink():
        out.append(resolve_links(directory).parent)
    return out


def _read_checkpoint(path: Path) -> Mapping[tuple[str, int], int] | None:
    """Return the offsets in a checkpoint file by topic and partition number. Return None if the
    file does not exist. If it is invalid or cannot be read, warn of it and return ``{}``. Raise
    OSError if its directory may not be searched, or its store cannot be asked.
    """
    if not is_listed(path):
        return None
    from codecgen.runtime.errors import CodecError
    from kafka_log.logs.broker_files import read_checkpoint  # the codecs: only where it is there

    try:
        return read_checkpoint(path)
    except (CodecError, OSError) as error:
        warnings.warn(
            f"kafka-log: records that DeleteRecords deleted may be read, because the log start offsets are unknown: {error}",
            stacklevel=2,
        )
        return {}
