"""The checkpoint files of a broker's log directory, as far as they can be read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from codecgen.runtime.errors import CodecError
from kafka_codecs import OFFSET_CHECKPOINT
from kafka_log.logs.names import CHECKPOINTS, CLEAN_SHUTDOWN
from kafka_log.logs.small_files import small_file

Offsets = Mapping[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class BrokerFiles:
    """The checkpoints of a directory by their names: offsets by topic and partition. Those that are not there or cannot be
    read are left out; ``errors`` says why."""

    directory: Path
    checkpoints: Mapping[str, Offsets] = field(default_factory=dict)
    errors: Mapping[str, str | CodecError] = field(default_factory=dict)
    was_stopped: bool = False
    """Whether the broker was stopped in an orderly way: then all that it knew is in the files."""

    def offset(self, name: str, key: tuple[str, int]) -> int | None:
        """What a checkpoint says of a partition, None when it says nothing."""
        return self.checkpoints.get(name, {}).get(key)


def read_broker_files(directory: Path) -> BrokerFiles:
    """Read the checkpoints of a directory. Never raises: what cannot be read is in ``errors``."""
    found: dict[str, Offsets] = {}
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


def read_checkpoint(path: Path) -> Offsets:
    """What a checkpoint says. Raises CodecError where it is none, OSError."""
    parsed = OFFSET_CHECKPOINT.parse(small_file(path), file=os.fspath(path), strict=False)
    return {(e.topic, e.partition): e.offset for e in parsed.entries or ()}
