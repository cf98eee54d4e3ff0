"""One pass over a segment: the headers of its batches, and what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from codecgen.runtime.errors import RuleBroken
from kafka_log.inspect.header_pass import HeaderPass, Piece, pays
from kafka_log.logs.partitions import Segment
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.header_arrays import WANTED, Headers
from kafka_log.segment.header_columns import Arrays, Wanted
from kafka_log.segment.kernels import Engine
from kafka_log.segment.model import Batch, Lost, Policy, Problem
from kafka_log.segment.placement import in_order, outside
from kafka_log.segment.reader import SegmentReader

LEAST, LATEST = "least_timestamp", "timestamp_bound"
RULES = "rules"
OF_PRODUCER = ("producer_epoch", "base_sequence", "last_sequence")

NOBODY_SAYS: Mapping[Segment, int | None] = MappingProxyType({})

Count = Callable[[int], None]
"""Is told of so many more."""


def ignore(count: int) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A batch whose checksum is right, but whose records cannot all be read, or which breaks a rule of its format (the
    problem is at :data:`RULES`). ``read`` is how many records can be read."""

    position: int
    first: int
    last: int
    count: int | None
    read: int
    problem: Problem


@dataclass(frozen=True, slots=True)
class Walked:
    """A segment that was read. ``lost`` are runs of bytes that are no whole batches; ``size`` is how many bytes were read.

    ``next_base`` is what the name of the next segment says, None for the active one. For each batch ``outside`` says whether its
    offsets belong to another segment, ``placed`` whether it lies where it belongs, ``sequences`` by :data:`OF_PRODUCER` what its producer
    said. ``least_timestamp`` and ``timestamp_bound`` are None unless they are asked for: the least timestamp, and the one that no record exceeds
    (UNBOUNDED where the header contradicts itself), by the header or by the records if these were read.
    """

    segment: Segment
    size: int
    headers: Headers
    lost: tuple[Lost, ...]
    refused: tuple[Refused, ...]
    next_base: int | None
    outside: Any
    placed: Any
    sequences: Mapping[str, Any]
    least_timestamp: Any = None
    timestamp_bound: Any = None

    @property
    def is_active(self) -> bool:
        """Whether it is the last segment, to which a broker appends."""
        return self.next_base is None and not self.segment.rolled


@dataclass(frozen=True, slots=True)
class Reading:
    """How segments are read. With ``deep`` records are read too, not checksums only; with ``timed`` it is asked for the bounds of
    timestamps. ``advance`` is told of bytes that are done, ``judged`` of batches that were judged."""

    deep: bool
    engine: Engine
    advance: Count = ignore
    judged: Count = ignore
    timed: bool = False

    @property
    def wanted(self) -> Wanted:
        """The columns of headers."""
        return Wanted((*WANTED.names, *OF_PRODUCER, *((LEAST, LATEST) if self.timed else ())))

    def pieces(
        self, segments: Sequence[Segment], following: Mapping[Segment, int | None] = NOBODY_SAYS
    ) -> Iterator[Piece]:
        """One pass over segments, which goes on after damage. ``following`` has the first offsets of the next ones."""
        fast = pays(segments, self.engine, self.deep)

        def opened(segment: Segment) -> SegmentReader | BlockReader:
            options: dict[str, Any] = {"policy": Policy.SALVAGE, "records": self.deep}
            options |= {"rescue": False, "next_base": following.get(segment)}
            options |= {"check_rules": self.deep}
            if fast:
                return BlockReader(segment.path, engine=self.engine, **options)
            return SegmentReader(segment.path, **options)

        return HeaderPass(self.wanted, opened, _refused)(segments)


def walk(
    segment: Segment, next_base: int | None, pieces: Iterator[Piece], reading: Reading
) -> Walked:
    """What the next pieces say of a segment. Raises OSError."""
    parts: list[Arrays] = []
    refused: list[Refused] = []
    for piece in pieces:
        parts.append(piece.arrays)
        refused += piece.noted
        reading.advance(piece.done)
        if piece.is_last:
            break
    if piece.error is not None:
        raise piece.error
    bad = {batch.position for batch in refused}
    lost = () if piece.end is None else tuple(run.up_to(next_base) for run in piece.end.lost)
    runs = tuple(run for run in lost if run.start not in bad)
    columns = dict(reading.wanted.joined(parts))
    times = columns.pop(LEAST, None), columns.pop(LATEST, None)
    sequences = {name: columns.pop(name) for name in OF_PRODUCER}
    headers = Headers(**columns)
    end_of_last = int(headers.position[-1] + headers.size[-1]) if len(headers) else 0
    end_of_file = max([end_of_last, *(run.end for run in lost)])
    base = segment.base_offset if segment.has_canonical_name else None
    out = outside(headers.first, headers.last, base, next_base)
    placed = in_order(headers.first, headers.last, out)
    found = tuple(refused), next_base, out, placed, sequences, *times
    return Walked(segment, end_of_file, headers, runs, *found)


def _refused(batch: Batch) -> list[Refused]:
    problems = list(batch.problems)
    problems += [Problem("crc", r.crc_error) for r in batch.records if r.crc_error is not None][:1]
    problems = problems[-1:] or [
        Problem(RULES, error) for error in batch.findings if isinstance(error, RuleBroken)
    ]
    first = batch.last_offset if batch.base_offset is None else batch.base_offset
    read = sum(record.crc_error is None for record in batch.records)
    return [
        Refused(batch.position, first, batch.last_offset, batch.record_count, read, problem)
        for problem in problems[:1]
    ]
