"""Entries -> Arrow record batches, by the kernels of a view.

A chunk is indexed, compressed sections are decompressed into a buffer that is used again, and rows are checked and written in
one go into Arrow buffers of about the size that the rows before them took. What does not fit comes with the next ones.
What the kernels do not take is named, and passed over.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.chunks import (
    MAX_BYTES,
    Chunk,
    Rejected,
    Rows,
    SectionSizes,
    split_by_flag,
)
from codecgen.runtime.arrow.decompressor import (
    AT,
    CASE,
    CODEC,
    COUNT,
    END,
    SECTION,
    SECTION_END,
    START,
    STATUS,
    Decompressor,
)
from codecgen.runtime.arrow.output_buffers import (
    CAN_BUILD_VIEWS,
    LEAVES,
    Allocate,
    ColumnBuffers,
    choose,
    schema_of,
)
from codecgen.runtime.arrow.view import Column, NoKernelsError, View
from codecgen.runtime.located_bytes import Limits

__all__ = [
    "MAX_BYTES",
    "Chunk",
    "Decoder",
    "Rejected",
    "Rows",
    "SectionSizes",
    "choose",
    "load_kernels",
    "load_numpy_reader",
    "schema_of",
]

ENTRIES = 8192
"""Entries that are indexed at a time."""

_SECTION_FOLLOWS = 3
"""Why the index stops: from its last row on entries are rows themselves, as many as there are."""

MARGIN = 1.03
SPARE = 1024
PROBE = 64 << 10
"""Buffers are larger than what is expected of them by a factor, and by some bytes. What to expect of the first rows is
measured on so many bytes of them."""

_ROWS, _ENTRIES, _LAST, _NEXT = range(LEAVES)
"""What the kernels say of what they have written: rows, entries, where the last one is, where the next one; and then for
each leaf its bytes or elements, and for each leaf its nulls."""


def load_kernels(view: View) -> ModuleType:
    """Import and return the module with the kernels of a view. Without numba, without the memory to
    load it, or on a big-endian machine, return its NumPy reader instead. Raise NoKernelsError, an
    ImportError, if the view has no kernels (even if it has a NumPy reader), or needs the NumPy
    reader and has none.

    With ``NUMBA_DISABLE_JIT`` they are the kernels nevertheless, as plain Python.
    """
    if view.kernels is None:
        raise NoKernelsError(f"the view {view.name} can only be read by the reference codecs")
    kernels = importlib.import_module(view.kernels)
    numba = sys.modules.get("numba")  # the kernels have tried to import it
    return kernels if numba is not None and sys.byteorder == "little" else load_numpy_reader(view)


def load_numpy_reader(view: View) -> ModuleType:
    """Import and return the module that reads a view with NumPy, without a compiler. Raise
    NoKernelsError, an ImportError, if none was generated.
    """
    if view.numpy is None:
        what = "with numba" if view.kernels is not None else "by the reference codecs"
        raise NoKernelsError(f"the view {view.name} can only be read {what}")
    return importlib.import_module(view.numpy)


class Decoder:
    """Decodes entries (such as record batches) in chunks of a file into Arrow record batches with
    the columns of a view, by kernels. The entry index is a table of integers with a row for each
    entry. Not for several threads or chunks at once.
    """

    def __init__(
        self,
        view: View,
        columns: Sequence[Column],
        *,
        limits: Limits | None = None,
        full_check: bool = False,
        rules: bool = False,
        max_rows: int = 1 << 20,
        kernels: ModuleType | None = None,
        allocate: Allocate = pa.allocate_buffer,
        decompress: bool = True,
        sizes: bool = False,
        zero_copy: bool = False,
    ) -> None:
        """Prepare to decode ``columns`` of a view.

        Args:
            view: The view.
            columns: Columns of it, at least one: a batch without columns has no rows.
            limits: Limits for elements and decompressed bytes of an entry.
            full_check: Reject entries for which the view asks for a full check.
            rules: Reject entries that break a rule of their layout.
            max_rows: Max rows of a batch. One entry alone may have more.
            kernels: Module of the kernels or the NumPy reader. By default :func:`load_kernels` finds it.
            allocate: Function that allocates Arrow buffers.
            decompress: Decompress sections. Otherwise compressed entries that say how many rows they have are only verified, and
                have no rows.
            sizes: Return the sizes of sections with the rows.
            zero_copy: Return bytes and text outside lists and structs as views of the chunk and of decompressed sections. The chunk
                is then marked as referenced. The NumPy reader and pyarrow 18 cannot: bytes and text are copied then, and no views.
        """
        self.view = view
        self.columns = tuple(columns)
        self.limits = limits or Limits()
        self.full_check = int(full_check) | 2 * int(rules)
        self.max_rows = max_rows
        self.kernels = kernels or load_kernels(view)
        self.allocate = allocate
        self.numpy = None
        if hasattr(self.kernels, "LAYOUTS"):
            from codecgen.runtime.arrow.numpy_decoder import NumpyDecoder

            self.numpy = NumpyDecoder(
                view,
                columns,
                self.kernels,
                limits=self.limits,
                full_check=full_check,
                rules=rules,
                decompress=decompress,
                sizes=sizes,
            )
        self.zero_copy = zero_copy and self.numpy is None and CAN_BUILD_VIEWS
        self.schema = schema_of(columns, views=self.zero_copy)
        self.decompress = decompress
        self.sizes = sizes
        self.stored: Any = None  # bytes of the sections in the index, before they are decompressed,
        self.plain: Any = None  # and after that
        self.each = np.array([case.each_entry for case in view.cases] or [False])
        self.leaves = [leaf for column in view.columns for leaf in column.leaves()]
        self.use(
            np.zeros((ENTRIES, view.row_size // 8), np.int64),
            np.zeros(3 * len(self.leaves), np.int64),
            np.zeros(LEAVES + 2 * len(self.leaves), np.int64),
            np.zeros(LEAVES + len(self.leaves), np.int64),
        )
        self.decompressor = Decompressor(
            view, self.limits, getattr(self.kernels, "JIT", False), trims=self.zero_copy
        )
        self.min_row_sizes = np.array([case.min_row_size for case in view.cases] or [1], np.int64)
        self.chunk = Chunk(0)  # what is decoded
        self.viewed = np.zeros(3, np.int64)  # addresses of what views point into
        self.shares: Any = None  # what of a section each leaf takes, as far as is known
        self.rows = -1
        """How many rows the index says there are; -1 where it does not, or sections are compressed."""

    def use(self, table: Any, out: Any, state: Any, room: Any) -> None:
        """Use these arrays as arguments of kernels from now on: ``table`` is the entry index,
        ``out`` the addresses of column buffers, ``state`` the totals that kernels write, ``room``
        the sizes of the buffers.
        """
        self.table, self.out, self.state, self.room = table, out, state, room
        self.table_address = int(table.ctypes.data)
        self.addresses = [int(a.ctypes.data) for a in (out, state, room)]

    def decode(self, chunk: Chunk, position: int) -> Iterator[Rows | Rejected]:
        """Yield, in file order, Rows with the batches of the entries in a chunk, and Rejected for
        each entry that the kernels do not accept. Go on after a rejected entry if its end is known;
        stop if it is not, or if no whole entry is left. ``position`` is where the chunk begins in
        the file. Without numba, raise UnsupportedCodec if the package of a checksum is not
        installed.

        Args:
            chunk: The bytes.
            position: Byte of the file at which the chunk begins.
        """
        if self.numpy is not None:
            yield from self.numpy.decode(chunk, position)
            return
        self.chunk = chunk
        start, end = chunk.address, chunk.address + chunk.size
        bias = position - start
        while (key := self._read_key(chunk, start)) is not None:
            kernels = self.kernels.KERNELS.get(key)
            if kernels is None:
                yield Rejected(start + bias, None)
                return
            count, start, why, self.rows = kernels[0](
                self.table_address, ENTRIES, start, end, self.limits.elements, self.full_check
            )
            yield from self._entries(chunk, int(count), bias, kernels)
            if why == _SECTION_FOLLOWS:
                start = int(self.table[count - 1, SECTION])
            if why < 0:
                yield Rejected(start + bias, None)
            # Too few bytes for an entry of this kind may be enough for one of another kind.
            if why < 0 or (why == 0 and self._read_key(chunk, start) == key):
                return

    def _read_key(self, chunk: Chunk, start: int) -> int | None:
        """Return the discriminator (the number that tells entries apart) of the entry at the
        address ``start``; for a view of one layout, the only one. Return None if the chunk ends
        before it.
        """
        discriminator, at = self.view.discriminator, start - chunk.address
        if discriminator is None:
            return next(iter(self.kernels.KERNELS)) if at < chunk.size else None
        at += discriminator.offset
        if at + discriminator.size > chunk.size:
            return None
        data = bytes(chunk.view()[at : at + discriminator.size])
        return int.from_bytes(data, discriminator.endian, signed=discriminator.signed)

    def _entries(
        self, chunk: Chunk, count: int, bias: int, kernels: tuple[Any, Any]
    ) -> Iterator[Rows | Rejected]:
        """Yield the rows of the first ``count`` entries of the index as Rows, and the rejected ones
        as Rejected, in order. Each range of skipped compressed entries yields Rows with an empty
        batch. ``bias`` is added to an address to get a position in the file; the second of
        ``kernels`` decodes.
        """
        if self.sizes:
            self.stored = self.table[:count, SECTION_END] - self.table[:count, SECTION]
            self.plain = self.stored.copy()
        for first, last, passed in self._split_skipped(count):
            if passed:
                batch = pa.RecordBatch.from_pylist([], schema=self.schema)
                start, at = self.table[[first, last - 1], START].tolist()
                end = int(self.table[last - 1, END])
                yield Rows(batch, start + bias, at + bias, end + bias, last - first)
            else:
                yield from self._decode_entries(chunk, first, last, bias, kernels)

    def _split_skipped(self, count: int) -> Iterator[tuple[int, int, bool]]:
        """Yield (first, end, skipped) for consecutive ranges of the first ``count`` index rows.
        Skipped are compressed entries that are valid and state how many rows they have, but only if
        ``decompress`` is off. Otherwise, and if the index states the rows of all entries together
        (so that none is compressed), yield one range that is not skipped, even for a ``count`` of
        0.
        """
        if self.decompress or self.rows >= 0:
            yield 0, count, False
            return
        part = self.table[:count]
        passed = (part[:, STATUS] == 0) & (part[:, CODEC] != 0) & (part[:, COUNT] >= 0)
        yield from split_by_flag(passed)

    def _decode_entries(
        self, chunk: Chunk, first: int, count: int, bias: int, kernels: tuple[Any, Any]
    ) -> Iterator[Rows | Rejected]:
        """Decompress and decode the entries ``first`` to ``count`` (excluded) of the index. Yield
        Rows for as many at a time as fit the buffers, and Rejected for each entry that is invalid
        or cannot be decompressed, in order. ``bias`` is added to an address to get a position in
        the file; the second of ``kernels`` decodes.
        """
        while first < count:
            last = count
            if self.rows < 0:
                last = self.decompressor.decompress(self.table, chunk, first, count)
                self._bound(first, last)
                if self.sizes:
                    part = self.table[first:last]
                    self.plain[first:last] = part[:, SECTION_END] - part[:, SECTION]
            while first < last:
                if self.table[first, STATUS] == 0:
                    start, before = self._begin(first), first
                    first, batch = self._batch(kernels[1], first, last, bias)
                    state = self.state
                    if batch is not None:
                        at, end = int(state[_LAST]) + bias, int(state[_NEXT]) + bias
                        sizes = self._sizes(before, first, bias) if self.sizes else None
                        yield Rows(batch, start + bias, at, end, int(state[_ENTRIES]), sizes)
                    if batch is not None or first > before:
                        continue
                yield self._make_rejected(first, bias)
                first = self._past(first)

    def _sizes(self, first: int, last: int, bias: int) -> SectionSizes:
        """Return, for each of the entries ``first`` to ``last`` (excluded), where it begins in the
        file (``bias`` is added to its address), and the stored and the decompressed size of its
        section. Rejected entries, and sections whose entries are rows themselves, are left out.
        """
        part, stored, plain = (a[first:last] for a in (self.table, self.stored, self.plain))
        own = (part[:, STATUS] == 0) & ~self.each[part[:, CASE]]
        return SectionSizes(part[own, START] + bias, stored[own], plain[own])

    def _bound(self, first: int, last: int) -> None:
        """Set the status -1 (rejected) in those index rows from ``first`` to ``last`` (excluded)
        that state more rows than their sections have bytes for, so that no memory is allocated for
        them.
        """
        part = self.table[first:last]
        good = part[:, STATUS] == 0
        min_row_sizes = self.min_row_sizes[np.where(good, part[:, CASE], 0)]
        too_many = part[:, COUNT] * min_row_sizes > part[:, SECTION_END] - part[:, SECTION]
        part[good & too_many, STATUS] = -1

    def _begin(self, i: int) -> int:
        """Return the address at which the part of index row ``i`` begins that is not decoded yet."""
        row = self.table[i]
        return int(row[SECTION] if self._is_section(i) else row[START])

    def _is_section(self, i: int) -> bool:
        """Return True if an index row stands for a section whose entries are rows themselves."""
        row = self.table[i]
        return bool(row[SECTION] < row[SECTION_END]) and self.view.cases[row[CASE]].each_entry

    def _make_rejected(self, i: int, bias: int) -> Rejected:
        """Return a Rejected for the entry in index row ``i``: its positions in the file, where
        ``bias`` is added to addresses (no end if the view's entries do not state theirs), the place
        in YAML of the failed check, and the byte where it failed; the latter two are None if
        unknown.
        """
        row = self.table[i]
        start, end = self._begin(i) + bias, int(row[END]) + bias
        at = int(row[AT]) + bias
        place = self.view.place_of_check(int(row[STATUS]))
        noticed = at if start <= at <= end else None
        return Rejected(start, end if self.view.framed else None, place, noticed)

    def _past(self, i: int) -> int:
        """Return the index row to continue with after the entry in row ``i`` was rejected: the next
        one; but ``i`` itself if it stands for a section whose entries are rows: then the section
        now begins after the rejected entry.
        """
        if not self._is_section(i):
            return i + 1
        row = self.table[i]
        row[STATUS] = 0
        row[SECTION] = row[END]
        return i

    def _batch(
        self, decode: Any, first: int, last: int, bias: int
    ) -> tuple[int, pa.RecordBatch | None]:
        """Decode, by the kernel ``decode``, as many of the entries ``first`` to ``last`` (excluded)
        as fit into buffers of the estimated size; if not even the first fits, measure it and decode
        it alone. Return the index row to continue with, and the record batch. The batch is None if
        nothing was decoded: the entry in row ``first`` is rejected if the returned row is
        ``first``, else the caller tries again from the returned row.
        """
        if self.shares is None:
            ends = np.cumsum(self.table[first:last, SECTION_END] - self.table[first:last, SECTION])
            some = min(last, first + 1 + int(np.searchsorted(ends, PROBE)))
            self._measure(decode, first, some, PROBE)
        whole = self._section_bytes(first, last)
        room = self._estimate_buffers(first, last, whole)
        after, batch = self._attempt(decode, first, last, bias, room, whole)
        if batch is None and after == first and self.table[first, STATUS] == 0:
            # The first entry alone takes more than was expected of all of them.
            exact = self._measure(decode, first, first + 1)
            if self._is_section(first):
                exact[_ROWS] = min(exact[_ROWS], self.max_rows)
            if self.table[first, STATUS]:
                return after, None
            if int(exact.max()) <= MAX_BYTES:
                whole = self._section_bytes(first, first + 1)
                after, batch = self._attempt(decode, first, first + 1, bias, exact, whole)
            else:
                self.table[first, STATUS] = -1
        return after, batch

    def _section_bytes(self, first: int, last: int) -> int:
        """Return the size in bytes of the sections of index rows ``first`` to ``last`` (excluded),
        0 if there are none. For uncompressed entries that are read as one span, the headers between
        the sections count too.
        """
        if first == last:
            return 0
        if self.rows >= 0:
            return int(self.table[last - 1, SECTION_END]) - int(self.table[first, SECTION])
        part = self.table[first:last]
        return int((part[:, SECTION_END] - part[:, SECTION]).sum())

    def _estimate_buffers(self, first: int, last: int, whole: int) -> Any:
        """Return how many rows, and bytes or elements of each column, to allocate buffers for, to
        decode index rows ``first`` to ``last`` (excluded): what earlier entries took per byte,
        times ``whole`` bytes of input, plus a margin; never more than ``whole``, and at most
        ``max_rows`` rows.
        """
        room = (self.shares * (whole * MARGIN)).astype(np.int64) + SPARE
        room = np.minimum(room, min(whole, MAX_BYTES))
        room[_ROWS] = min(self._rows(first, last, int(room[_ROWS])), self.max_rows, MAX_BYTES)
        return room

    def _rows(self, first: int, last: int, expected: int) -> int:
        """Return the number of rows to expect from index rows ``first`` to ``last`` (excluded). If
        the index states the rows of all its entries together, it is what is left of that number.
        Else it is the sum of what the valid entries state; if one states none, an upper limit by
        its section's size, but at most ``expected``.
        """
        if self.rows >= 0:
            return self.rows
        part = self.table[first:last]
        part = part[part[:, STATUS] == 0]
        counts = part[:, COUNT]
        if (counts >= 0).all():
            return int(counts.sum())
        sections = part[:, SECTION_END] - part[:, SECTION]
        upper = int(
            np.where(counts < 0, sections // self.min_row_sizes[part[:, CASE]], counts).sum()
        )
        return min(upper, expected)

    def _measure(self, decode: Any, first: int, last: int, max_bytes: int | None = None) -> Any:
        """Run the kernel on entries ``first`` to ``last`` (excluded) without writing, and return
        the rows and the bytes or elements of each column that they need. Update the estimates, and
        restore the index rows, unless ``max_bytes`` is None and the first entry is rejected. ``max_bytes``
        limits the pass to that many bytes of the last section, if its entries are rows themselves.
        """
        before = self.table[first:last].copy()
        if max_bytes is not None and self._is_section(last - 1):
            row = self.table[last - 1]
            row[SECTION_END] = min(row[SECTION_END], row[SECTION] + max_bytes)
        self.out[:] = 0
        self.room[:] = MAX_BYTES
        left = self._section_bytes(first, last)
        after = self._section(decode, first, last, 0)
        self._learn(left - self._section_bytes(after, last))
        if (
            self.state[_ENTRIES] or max_bytes is not None
        ):  # if not, the first entry is rejected, and stays so
            self.table[first:last] = before
        return self._used()

    def _used(self) -> Any:
        """Return the number of rows and the bytes or elements that each leaf uses."""
        used = self.state[: len(self.room)].copy()
        used[_ENTRIES:LEAVES] = 0
        return used

    def _learn(self, read: int) -> None:
        """Update, from the last kernel run over ``read`` bytes, how much each column takes per byte
        of input: the larger of the new share and half of the old one. Do nothing for 0 bytes,
        except the first time.
        """
        if self.shares is None:
            self.shares = self._used() / max(read, 1)
        elif read:
            self.shares = np.maximum(self._used() / read, self.shares / 2)

    def _attempt(
        self, decode: Any, first: int, last: int, bias: int, room: Any, whole: int
    ) -> tuple[int, pa.RecordBatch | None]:
        """Decode the entries ``first`` to ``last`` (excluded) into new buffers of the sizes
        ``room``, until one does not fit or is invalid. Return the index row of the next entry, and
        the record batch, or None if no entry was decoded. ``whole`` is the size of all their
        sections; it updates the estimates only.
        """
        sizes = room.tolist()
        viewed = self._find_viewed(first, last) if self.zero_copy else None
        parts = [
            ColumnBuffers(column, sizes[_ROWS], sizes, self.allocate, viewed)
            for column in self.columns
        ]
        addresses = [0] * len(self.out)
        for part in parts:
            part.addresses(addresses)
        self.out[:] = addresses
        self.room[:] = room
        for part in parts:
            if part.viewed is not None:
                self.room[LEAVES + part.column.index] = self.viewed.ctypes.data
        after = self._section(decode, first, last, bias)
        used = self.state.tolist()
        if used[_ENTRIES] == 0:
            return after, None
        self._learn(whole - self._section_bytes(after, last))
        rows, nulls = used[_ROWS], used[len(sizes) :]
        if self.rows >= 0:
            self.rows -= rows
        arrays = [part.array(rows, used, nulls) for part in parts]
        if self.zero_copy and viewed is None:
            arrays = [a.cast(f.type) for a, f in zip(arrays, self.schema, strict=True)]
        return after, pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _find_viewed(self, first: int, last: int) -> list[Any] | None:
        """Return the buffers that the sections of the entries ``first`` to ``last`` (excluded) lie
        in: the chunk, decompressed sections, or both. Mark them as referenced, and note their
        addresses for the kernels. Return None if one has more bytes than a view can point to.
        """
        sections = self.table[first:last, SECTION][self.table[first:last, STATUS] == 0]
        start, end = self.chunk.address, self.chunk.address + self.chunk.size
        is_read = (start <= sections) & (sections <= end)
        chunks = [
            *([self.chunk] if is_read.any() else []),
            *([self.decompressor.scratch] if not is_read.all() else []),
        ]
        if any(chunk.buffer.size > MAX_BYTES for chunk in chunks):
            return None
        for chunk in chunks:
            chunk.is_referenced = True
        places = [(c.buffer.address, c.buffer.address + c.buffer.size) for c in chunks]
        self.viewed[:] = (*places[0], places[-1][0]) if places else 0
        return [chunk.buffer for chunk in chunks]

    def _section(self, decode: Any, first: int, last: int, bias: int) -> int:
        """Run the kernel ``decode`` on entries ``first`` to ``last`` (excluded); it writes into the
        buffers and totals of :meth:`use`. ``bias`` is added to an address to get a position in the
        file. Return the first entry that is not done.
        """
        self.state[:] = 0
        max_elements = self.limits.elements
        return int(decode(self.table_address, first, last, max_elements, bias, *self.addresses))
