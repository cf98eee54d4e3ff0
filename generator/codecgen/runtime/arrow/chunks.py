"""Chunks of a file, and what decoders return for the entries in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.view import Place

MAX_BYTES = (1 << 31) - 1
"""Max bytes of a column in a record batch: 32-bit offsets count no more."""


class Chunk:
    """Memory for bytes of a file. Kernels may read the 64 bytes of slack after them.

    Attributes:
        buffer: The memory, with the slack, as Arrow arrays refer to it.
        array: The memory, with the slack.
        capacity: Bytes that fit in, without the slack.
        size: Bytes of the file that are in the memory. Whoever fills the memory sets it.
        is_referenced: Whether Arrow arrays refer to the memory, which must not be written to then.
    """

    def __init__(self, capacity: int) -> None:
        self.grow(capacity)

    def grow(self, capacity: int) -> None:
        """Replace the memory by a new one of ``capacity`` bytes, which are not initialized, and 64
        bytes of slack, which are zero. The former bytes are lost, and ``size`` is 0, even if
        ``capacity`` is smaller than before. Addresses and views of the former memory are not those
        of the new one.
        """
        slack = 64
        self.buffer = pa.allocate_buffer(capacity + slack)
        self.array = np.frombuffer(self.buffer, np.uint8)
        self.array[-slack:] = 0
        self.capacity = capacity
        self.size = 0
        self.is_referenced = False

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return int(self.array.ctypes.data)

    def view(self) -> memoryview:
        """Return the memory, slack included, as a writable memoryview."""
        return self.array.data


@dataclass(frozen=True, slots=True)
class SectionSizes:
    """Sizes of the sections of entries, as arrays with one element per entry. Entries that are rows themselves have none.

    Attributes:
        start: Byte of the file at which the entry begins.
        stored: Bytes of its section in the file.
        plain: Bytes of its section without compression.
    """

    start: Any
    stored: Any
    plain: Any


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of some entries.

    Attributes:
        batch: The rows.
        start: Byte of the file at which the first entry begins.
        last: Byte at which the last entry begins.
        end: Byte after the last entry.
        entries: Number of entries.
        sections: Sizes of their sections, if the decoder was asked for them.
    """

    batch: pa.RecordBatch
    start: int
    last: int
    end: int
    entries: int
    sections: SectionSizes | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """An entry that the kernels reject, for the reference codecs to read.

    Attributes:
        start: Byte of the file at which the entry begins.
        end: Byte after the entry, None if its end is not known.
        place: Place in YAML of the rule that the entry breaks, None if there is no rule or it is not known.
        at: Byte at which that was noticed, None if the byte lies in decompressed bytes.
    """

    start: int
    end: int | None
    place: Place | None = None
    at: int | None = None


def split_by_flag(flags: Any) -> Iterator[tuple[int, int, bool]]:
    """Yield the runs of equal elements of a boolean array, in order, as (first index, index after
    the last, flag). Yield nothing for an empty array.
    """
    cuts = [0, *(np.flatnonzero(np.diff(flags)) + 1).tolist(), len(flags)]
    for start, stop in pairwise(cuts):
        if start < stop:
            yield start, stop, bool(flags[start])
