"""Options of ``stat``: how logs are read, and which batches are selected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

import numpy as np

from codecgen.runtime.located_bytes import Limits
from codecgen.runtime.nouns import count_noun
from kafka_log.inspect.control_batches import read_control_batches
from kafka_log.inspect.header_pass import HeaderPass, Piece, Read, use_kernels_for
from kafka_log.inspect.statistics.columns import PERIODS, By
from kafka_log.logs.partitions import Segment
from kafka_log.logs.removed_segments import read_options
from kafka_log.read.arguments import one_of
from kafka_log.read.selection import Selection
from kafka_log.segment.block_reader import BlockReader
from kafka_log.segment.header_columns import HOUR, UNBOUNDED, Arrays, BatchColumns
from kafka_log.segment.kernels import ENGINES, Engine
from kafka_log.segment.model import Batch, End, Policy, describe_lost, is_own_checksum
from kafka_log.segment.ranges import Range
from kafka_log.segment.reader import SegmentReader
from kafka_log.segment.times import Times

OnProblem = Callable[[str], None]
"""Called with a line of text, with the file, for each problem."""


_CHOOSING = ("offsets", "timestamps", "producers", "deleted_records", "policy")

_OFFSETS = ("first", "offset_bound")
_TIMESTAMPS = ("least_timestamp", "timestamp_bound")
_PRODUCER = "producer_id"
_CHOSEN_BY = (*_OFFSETS, *_TIMESTAMPS, _PRODUCER)
"""Header columns that select batches: smallest value of a batch, and upper bound of its values."""


class StatOptions(TypedDict, total=False):
    """Keyword arguments of :meth:`~kafka_log.log_directory.LogDirectory.stat` that select batches and set how they are read."""

    deep: bool
    policy: Policy | str
    offsets: Range | None
    timestamps: Times | None
    producers: int | Iterable[int] | None
    deleted_records: bool
    engine: Engine
    limits: Limits | None
    on_problem: OnProblem
    advance: Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of ``stat`` after parsing.

    Attributes:
        deep: Decode every record, not only headers and checksums.
        now: Time in milliseconds since 1970; later timestamps are in the future.
        selection: Selects batches by offsets, timestamps, producers and the log start offset; has the policy for damage.
        engine: The decoder to use.
        limits: Limits for decompression and element counts.
        on_problem: Called with a line for each problem.
        advance: Called with numbers of bytes that have been read.
    """

    deep: bool = False
    now: int = (1 << 63) - 1
    selection: Selection = field(default_factory=Selection)
    engine: Engine = "auto"
    limits: Limits | None = None
    on_problem: OnProblem = lambda _: None
    advance: Callable[[int], None] = lambda _: None

    @classmethod
    def from_keywords(cls, now: int, **options: Unpack[StatOptions]) -> Asked:
        """Build the options from keyword arguments; ``now`` is the time in milliseconds after which
        timestamps lie in the future. Raise ValueError for an unknown engine or policy and an
        impossible filter, TypeError for an unknown keyword. All other values are not checked.
        """
        rest: dict[str, Any] = dict(options)
        one_of(ENGINES)("engine", rest.get("engine"))
        chosen = {name: rest.pop(name) for name in _CHOOSING if name in rest}
        return cls(now=now, selection=Selection(**chosen), **rest)

    def make_opener(self, segments: Sequence[Segment]) -> Read:
        """Return a function that opens one of ``segments``. Compiled kernels read with the engine
        ``arrow``, and with ``auto`` if the segments are large enough together.
        """
        fast = use_kernels_for(segments, self.engine, self.deep)

        def open_reader(segment: Segment) -> SegmentReader | BlockReader:
            """Open a segment with the options."""
            options: dict[str, Any] = {"policy": self.selection.policy, "limits": self.limits}
            options |= {"records": self.deep, **read_options(segment)}
            if not fast:
                return SegmentReader(segment.path, **options)
            return BlockReader(segment.path, engine=self.engine, **options)

        return open_reader

    def header_pass(
        self, segments: Sequence[Segment], names: tuple[str, ...], by: Sequence[By] = ()
    ) -> HeaderPass:
        """Return the header pass for ``segments`` with the columns ``names`` and those that
        :meth:`select_batches` needs. The notes of its pieces are the lines about problems of a
        batch. The column ``periods`` has the shortest period of the keys ``by``, hours if none is a
        period.
        """
        period = min((PERIODS[name] for name in by if name in PERIODS), default=HOUR)
        columns = tuple(dict.fromkeys((*names, *_CHOSEN_BY)))
        return HeaderPass(
            BatchColumns(columns, self.deep, self.now, period),
            self.make_opener(segments),
            describe_batch,
        )

    def select_batches(self, arrays: Arrays, wanted: Selection) -> Arrays:
        """Return the columns of the batches that may have selected records, judged by their
        headers; ``arrays`` itself without filters. A contradictory header excludes no offset or
        timestamp. ``wanted`` is the selection for their partition, whose offsets are absolute.
        """
        mask = None
        for (low, high), first, bound in (
            (wanted.offsets, *_OFFSETS),
            (wanted.timestamps, *_TIMESTAMPS),
        ):
            if low is not None:
                mask = _and_masks(mask, arrays[bound] >= low)
            if high is not None:
                mask = _and_masks(mask, (arrays[first] < high) | (arrays[bound] == UNBOUNDED))
        if wanted.producers is not None:
            mask = _and_masks(mask, np.isin(arrays[_PRODUCER], wanted.producers))
        if mask is None:
            return arrays
        return {name: array[mask] for name, array in arrays.items()}


def _and_masks(mask: Any, other: Any) -> Any:
    """Combine two masks with AND; ``mask`` None is all True."""
    return other if mask is None else mask & other


def describe_end(end: End, file: str) -> Iterator[str]:
    """Yield one line for each lost range of a pass over a file, then one for the error that ended
    it, or without an error for an incomplete tail. A tail that is normal, as in an active segment,
    has no line.
    """
    for lost in end.lost:
        yield describe_lost(file, lost)
    if end.error is not None:
        yield str(end.error)
    elif end.trailing_bytes and end.note is None:
        yield f"{file}: {count_noun(end.trailing_bytes, 'byte at the end is', 'bytes at the end are')} not a complete batch"


def describe_batch(batch: Batch) -> Iterator[str]:
    """Yield a line for each problem of a batch, and for its own checksum if that is wrong; nothing
    for a valid batch without problems.
    """
    for problem in batch.problems:
        yield f"batch at byte {batch.position}: {problem.at}: {problem.error}"
    if not batch.is_valid:
        yield from map(str, filter(is_own_checksum, batch.findings))


def describe_control_records(piece: Piece) -> Iterator[str]:
    """Yield a line for each control record of a piece whose key or value cannot be read, and one if
    the file cannot be opened or read. Ignore batches whose checksum is wrong.
    """
    path = piece.segment.path
    columns = {name: piece.arrays[name] for name in ("position", "size", "first")}
    columns["is_control"] = piece.arrays["is_control"] & ~piece.arrays["is_invalid"]
    try:
        for _, records in read_control_batches(path, columns):
            for record in records:
                if record.control.error is not None:
                    yield f"control record at offset {record.offset}: {record.control.error}"
    except OSError as error:
        yield f"{path}: {error.strerror or error}"
