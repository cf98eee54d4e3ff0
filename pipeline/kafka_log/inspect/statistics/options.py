"""What is asked of logs that are summed up: how they are read, and which batches are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

import numpy as np

from codecgen.runtime.located_bytes import Limits
from kafka_log.inspect.header_pass import HeaderPass, Read, pays
from kafka_log.logs.partitions import Segment
from kafka_log.logs.removed_segments import read_options
from kafka_log.read.arguments import one_of
from kafka_log.read.selection import Selection
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.header_columns import UNBOUNDED, Arrays, BatchColumns
from kafka_log.segment.kernels import ENGINES, Engine
from kafka_log.segment.model import Batch, End, Policy, is_own_checksum
from kafka_log.segment.ranges import Range
from kafka_log.segment.reader import SegmentReader

OnProblem = Callable[[str], None]
"""What is told of each problem: a line with the file."""


_CHOOSING = ("offsets", "timestamps", "producers", "policy")

_OFFSETS = ("first", "offset_bound")
_TIMESTAMPS = ("least_timestamp", "timestamp_bound")
_PRODUCER = "producer_id"
_CHOSEN_BY = (*_OFFSETS, *_TIMESTAMPS, _PRODUCER)
"""Columns of headers that choose batches: the smallest value of a batch and the bound of its values."""


class StatOptions(TypedDict, total=False):
    """The keywords of :meth:`~kafka_log.log_directory.LogDirectory.stat` that say what is read, and how."""

    deep: bool
    policy: Policy | str
    offsets: Range | None
    timestamps: Range | None
    producers: int | Iterable[int] | None
    engine: Engine
    limits: Limits | None
    on_problem: OnProblem
    advance: Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for. ``deep``: every record is decoded, not headers and checksums only. ``now`` is in milliseconds since 1970.
    ``selection`` chooses batches by offsets, timestamps and producers, and has the policy. ``on_problem`` is told of problems,
    ``advance`` of bytes that are done."""

    deep: bool = False
    now: int = (1 << 63) - 1
    selection: Selection = field(default_factory=Selection)
    engine: Engine = "auto"
    limits: Limits | None = None
    on_problem: OnProblem = lambda _: None
    advance: Callable[[int], None] = lambda _: None

    @classmethod
    def of(cls, now: int, **options: Unpack[StatOptions]) -> Asked:
        """What such keywords ask for. Raises ValueError for what cannot be."""
        rest: dict[str, Any] = dict(options)
        one_of(ENGINES)("engine", rest.get("engine"))
        chosen = {name: rest.pop(name) for name in _CHOOSING if name in rest}
        return cls(now=now, selection=Selection(**chosen), **rest)

    def read(self, segments: Sequence[Segment]) -> Read:
        """What opens each of them."""
        fast = pays(segments, self.engine, self.deep)

        def opened(segment: Segment) -> SegmentReader | BlockReader:
            options: dict[str, Any] = {"policy": self.selection.policy, "limits": self.limits}
            options |= {"records": self.deep, **read_options(segment)}
            if not fast:
                return SegmentReader(segment.path, **options)
            return BlockReader(segment.path, engine=self.engine, **options)

        return opened

    def pass_over(self, segments: Sequence[Segment], names: tuple[str, ...]) -> HeaderPass:
        """Return what reads these columns of their batches, and those that :meth:`chosen` looks at. It notes what is wrong."""
        columns = tuple(dict.fromkeys((*names, *_CHOSEN_BY)))
        return HeaderPass(
            BatchColumns(columns, self.deep, self.now), self.read(segments), _problems
        )

    def chosen(self, arrays: Arrays, wanted: Selection) -> Arrays:
        """The batches that may have records that are chosen, by their headers. ``wanted`` is the selection as of their partition."""
        mask = None
        for (low, high), first, bound in (
            (wanted.offsets, *_OFFSETS),
            (wanted.timestamps, *_TIMESTAMPS),
        ):
            if low is not None:
                mask = _and(mask, arrays[bound] >= low)
            if high is not None:
                mask = _and(mask, (arrays[first] < high) | (arrays[bound] == UNBOUNDED))
        if wanted.producers is not None:
            mask = _and(mask, np.isin(arrays[_PRODUCER], wanted.producers))
        if mask is None:
            return arrays
        return {name: array[mask] for name, array in arrays.items()}


def _and(mask: Any, other: Any) -> Any:
    return other if mask is None else mask & other


def problems_of_end(end: End, file: str) -> Iterator[str]:
    """Yield a line for each problem in how a file ended."""
    for lost in end.lost:
        yield f"{file}: bytes {lost.start} to {lost.end} are lost: {lost.reason}"
    if end.error is not None:
        yield str(end.error)
    elif end.trailing_bytes and end.note is None:
        yield f"{file}: {end.trailing_bytes} bytes at the end are no whole batch"


def _problems(batch: Batch) -> Iterator[str]:
    """What is wrong with a batch."""
    for problem in batch.problems:
        yield f"batch at byte {batch.position}: {problem.at}: {problem.error}"
    if not batch.is_valid:
        yield from map(str, filter(is_own_checksum, batch.findings))
