"""The log of a partition where some of its segments are not live, or lie in other directories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from kafka_log.logs.names import STATES
from kafka_log.logs.partitions import Partition, Segment


def logs_of(partitions: Iterable[Partition]) -> list[Partition]:
    """Each partition once, with the segments that make up its log: the live ones, and before the first of these those in other states,
    in the order of :data:`~kafka_log.logs.names.STATES`. So no offsets come twice: what is not live has often been replaced by
    what is."""
    found: dict[tuple[str, int], list[Partition]] = {}
    for partition in partitions:
        found.setdefault((partition.topic, partition.partition), []).append(partition)
    return [_joined(those) for those in found.values()]


def _joined(those: list[Partition]) -> Partition:
    segments: tuple[Segment, ...] = ()
    for group in _groups(those):
        start = segments[0].base_offset if segments else None
        before = (
            s for s in group if start is None or (s.has_offset_in_name and s.base_offset < start)
        )
        segments = (*before, *segments)
    return replace(those[0], segments=segments)


def _groups(those: list[Partition]) -> Iterator[list[Segment]]:
    """Segments of one state and one directory; live ones first. A snapshot of the metadata is no part of its log."""

    def place(segment: Segment) -> tuple[int, Path]:
        return STATES.index(segment.state), segment.path.parent

    every = [s for partition in those for s in partition.segments if s.state != "snapshot"]
    for _, group in groupby(sorted(every, key=place), place):
        yield list(group)
