"""Read plans: which bytes of which segments are read, how, and in which row format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from codecgen.runtime.located_bytes import Limits
from kafka_log.logs.partitions import Segment
from kafka_log.segment.kernels import Engine
from kafka_log.segment.model import Lost, OnDamage, Policy
from kafka_log.segment.ranges import MAX_OFFSET
from kafka_log.segment.row_selection import RowSelection

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_log.segment.scanner import Unread


@dataclass(frozen=True, slots=True)
class Split:
    """Bytes of a segment that one pass reads, from the first byte of a batch (``start``) to ``stop`` (None: the end of the file).

    ``rows`` selects among their records.
    """

    segment: Segment
    start: int = 0
    stop: int | None = None
    rows: RowSelection = field(default_factory=lambda: RowSelection(control_records=False))
    next_offset: int | None = None
    """The first offset of the next segment; None if it is unknown."""

    @property
    def size(self) -> int:
        """Number of bytes to read, at most."""
        return (self.segment.size if self.stop is None else self.stop) - self.start

    @property
    def reaches(self) -> int | None:
        """The offset before which the file must not end: the lowest known one of the selected rows'
        end, the segment's end and the next base offset; MAX_OFFSET + 1 if none is known. If the
        file ends earlier and is shorter than when it was listed, rows are missing. None if ``stop``
        and the segment's end are None: then the end of the file is not fixed.
        """
        ends = self.rows.offsets[1], self.segment.offsets[1], self.next_offset
        known = (end for end in ends if end is not None)
        if self.stop is None and self.segment.offsets[1] is None:
            return None
        return min(known, default=MAX_OFFSET + 1)


class RowFormat(Protocol):
    """Converts decoded rows of segments into the rows that a caller wants."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns to decode: of the view that is read, and damage columns."""

    def convert(
        self, item: pa.RecordBatch | Unread, segment: Segment
    ) -> Iterable[pa.RecordBatch | Lost]:
        """Yield record batches in the caller's form for the next decoded rows of a segment, or for
        an Unread, a place where no record could be read. Yield a Lost for each record that is left
        out because the format cannot hold it; raise CodecError in its place if damage is an error,
        after the rows before it.
        """


OnError = Literal["raise", "next_file", "lose_rest"]
"""What to do when an error ends the pass over a file: raise it, go on with the next file, or report the rest of a corrupt
file as lost. Under ``lose_rest`` errors of other kinds, such as a missing file, are raised."""


@dataclass(frozen=True)
class ReadPlan:
    """The splits to read in this order, the format of their rows, and how they are read.

    ``policy``, ``on_damage``, ``limits``, ``engine``, ``chunk_bytes`` and ``zero_copy`` are as in :class:`~kafka_log.segment.scanner.Scanner`,
    ``mmap`` as in :func:`~kafka_log.segment.scanner.header_scanner`.
    """

    splits: Iterable[Split]
    rows: RowFormat
    policy: Policy = Policy.KAFKA
    on_damage: OnDamage | None = None
    on_error: OnError = "raise"
    limits: Limits | None = None
    engine: Engine = "auto"
    chunk_bytes: int | None = None
    """None: the default of a scanner."""
    max_batch_bytes: int | None = None
    """Maximum bytes of a record batch made of records that the reference codecs read. None: the default of a scanner."""
    of_batches: bool = False
    """Whether a row is a batch header, not a record."""
    mmap: bool = False
    zero_copy: bool = False
    expects_removal: bool = False
    """Whether a segment that retention removed after it was listed counts as empty. Else its bytes are an error, or lost."""
