"""Where logs start: what DeleteRecords has cut off lies in the files until whole segments can go."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kafka_log.logs.names import LOG_START, State
from kafka_log.segment.places import is_url

if TYPE_CHECKING:
    from kafka_log.logs.partitions import Segment


LOG_STATES = frozenset({"live", "remote"})
"""States of the segments that make up a log. Those in other states lie beside it."""


class Log(Protocol):
    """A partition in its directory."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def directory(self) -> Path: ...
    @property
    def state(self) -> State: ...
    @property
    def segments(self) -> tuple[Segment, ...]: ...


class LogStarts:
    """Log start offsets by the ``log-start-offset-checkpoint`` beside the directories of partitions. Each file is read once.

    One that cannot be read says nothing, as a broker has it that starts.
    """

    def __init__(self) -> None:
        self._read: dict[Path, Mapping[tuple[str, int], int] | None] = {}

    def of(self, partition: Log) -> int | None:
        """Return the log start offset of a partition, None if no file says one or it lies at or before the first segment of the log. Segments in
        tiered storage are part of the log if the partition has them."""
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
        if directory not in self._read:
            self._read[directory] = _read(directory / LOG_START)
        return self._read[directory]


def candidate_log_directories(directory: Path) -> list[Path]:
    """The directories that may be the broker's, for a partition's directory."""
    if is_url(directory):
        return [directory.parent]
    out = [Path(os.path.abspath(directory)).parent]  # noqa: PTH100 (no links are followed)
    if directory.is_symlink():
        out.append(directory.resolve().parent)
    return out


def _read(path: Path) -> Mapping[tuple[str, int], int] | None:
    """Offsets by topics and partitions; None where there is no file."""
    if not path.is_file():
        return None
    from codecgen.runtime.errors import CodecError
    from kafka_log.logs.broker_files import read_checkpoint  # the codecs: only where it is there

    try:
        return read_checkpoint(path)
    except (CodecError, OSError):
        return {}
