"""What checks are made of: what they know beforehand, and when they are asked."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self

from kafka_log.inspect.check.cluster import Cluster
from kafka_log.inspect.check.finding import Finding, Severity
from kafka_log.inspect.check.segment_scan import Walked
from kafka_log.logs.broker_files import BrokerFiles
from kafka_log.logs.names import State
from kafka_log.logs.partitions import Partition, Segment


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of a partition before it is read. ``bases`` are the base offsets of all segments in its directory, in
    their order; ``is_whole`` is False when only some of them were asked for; ``included`` are the states of all segments that are read."""

    partition: Partition
    bases: tuple[int, ...]
    is_whole: bool
    broker: BrokerFiles
    cluster: Cluster
    included: frozenset[State]
    missing: list[range] = field(default_factory=list)
    """Offsets that are told to be missing: of segments, and of batches that were cut out."""

    def may_grow(self, walked: Walked) -> bool:
        """Return whether a broker may have appended to a segment after it was read. A broker that was stopped in order does not."""
        return walked.is_active and not self.broker.was_clean_shutdown

    @property
    def key(self) -> tuple[str, int]:
        """Topic and number, as checkpoint files name a partition."""
        return self.partition.topic, self.partition.partition

    def finding(
        self, severity: Severity, code: str, path: Path, meaning: str, remedy: str, **more: Any
    ) -> Finding:
        """A finding about a file of the partition."""
        topic, partition = self.key
        return Finding(
            severity, code, path, meaning, remedy, topic=topic, partition=partition, **more
        )


class Check:
    """One check of one partition: it is given its segments in the order of their offsets, one at a time; then the end.

    What it keeps from one segment to the next must not grow with the number of batches.
    """

    def __init__(self, context: Context) -> None:
        self.context = context

    def saved(self) -> Self:
        """Return a copy with containers of its own: with it the next segment can be checked once more."""
        other = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | list | set):
                setattr(other, name, value.copy())
        return other

    def renew(self) -> None:
        """Read again what was read of other files beforehand."""

    def segment(self, walked: Walked) -> Iterable[Finding]:
        """What is wrong with a segment. Raises OSError."""
        return ()

    def unread(self, segment: Segment) -> None:
        """A segment could not be read: nothing is known of what it holds."""

    def end(self) -> Iterable[Finding]:
        """What is wrong with the whole, after the last segment. Raises OSError."""
        return ()


def are(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun: ``1 batch``, ``2 batches``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def only_zeros(file: BinaryIO, start: int, end: int) -> bool:
    """Whether all bytes of a file from one place to another are 0. Raises OSError."""
    file.seek(start)
    while start < end:
        data = file.read(min(end - start, 1 << 20))
        if not data:
            return True  # it became shorter
        if data.strip(b"\0"):
            return False
        start += len(data)
    return True
