"""Log directories that a follower reads while a test appends to their segments."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka_log.logs.discovery import survey
from kafka_log.logs.partitions import Segment
from kafka_log.read.following import PartitionFollower
from kafka_log.read.selection import Selection
from kafka_log.segment.model import Batch, End, Lost
from tests.support.batches import batch

batch_of_epoch_0 = partial(batch, epoch=0)

CALLS = ("stat", "open", "preadv", "scandir")
"""Functions of ``os`` by which a follower sees files."""


@dataclass
class FollowedDirectory:
    """A follower of the only partition of a directory, with all that it reports.

    Args:
        root: A log directory with one partition.
        filters: Arguments of the follower's Selection.
        offsets_are_start: That of PartitionFollower.
    """

    root: Path
    filters: dict[str, Any] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    follower: PartitionFollower | None = None
    offsets_are_start: bool = False

    def unreadable(self, error: Exception) -> None:
        self.errors.append(error)

    def missing(self, path: Path, lost: Lost) -> None:
        raise AssertionError(f"live segments have no copies: {path}: {lost.reason}")

    def batch(self, batch: Batch) -> None:
        self.damaged.append(batch.position)

    def end(self, segment: Segment, end: End | None) -> None:
        if end is not None and not end.is_normal:
            self.ends.append(end)

    def read(self) -> list[tuple[int, bytes]]:
        """Return the offset and value of each record that is new since the last call."""
        [partition] = survey([self.root], (), unreadable_raises=False).partitions
        if self.follower is None:
            selection = Selection(**self.filters)
            columns = ("offset", "value")
            self.follower = PartitionFollower(
                partition,
                columns,
                selection,
                self,
                self.said.append,
                offsets_are_start=self.offsets_are_start,
            )
        rows = [row for part in self.follower.read_new(partition) for row in part.to_pylist()]
        return [(row["offset"], row["value"]) for row in rows]


def offsets_of(rows: list[tuple[int, bytes]]) -> list[int]:
    """Return the offsets of ``rows``, as FollowedDirectory.read returns them."""
    return [offset for offset, _ in rows]


def create_log_file(directory: Path, base: int = 0) -> Path:
    """Return the segment file of ``base``; create it, and its directory, if it does not exist."""
    directory.mkdir(exist_ok=True)
    path = directory / f"{base:020d}.log"
    path.touch()
    return path


def append_bytes(path: Path, data: bytes) -> None:
    """Append ``data`` to the file ``path``."""
    with path.open("ab") as file:
        file.write(data)


@contextmanager
def interrupted(at: int, action: Callable[[], None]) -> Iterator[list[int]]:
    """Run ``action`` before the call ``at`` (from 0) of the functions of CALLS. The list has the number of calls."""
    count = [0]
    patch = pytest.MonkeyPatch()
    is_inside = False

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal is_inside
            if not is_inside:
                is_inside = True
                if count[0] == at:
                    action()
                count[0] += 1
                is_inside = False
            return function(*arguments, **named)

        return call

    with patch.context() as patched:
        for name in CALLS:
            patched.setattr(os, name, wrap(getattr(os, name)))
        yield count
