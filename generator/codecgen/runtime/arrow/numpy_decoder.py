"""Entries -> Arrow record batches where there is no compiler: what :mod:`.decoder` does, by NumPy.

A plain loop finds the entries of a chunk. Their heads are read all at once, compressed sections are decompressed, the places
of the elements are found, and then the fields of some ten thousand elements are read at once. An entry in which anything
is not as it should be is named, and passed over: whatever a reader refuses is left to the reference codecs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
from codecgen.runtime.arrow.memory_limit import limit_size
from codecgen.runtime.arrow.numpy_cases import Case, Layout, Section
from codecgen.runtime.arrow.numpy_elements import find_elements
from codecgen.runtime.arrow.numpy_fields import StructureReader
from codecgen.runtime.arrow.numpy_index import find
from codecgen.runtime.arrow.numpy_memory import Fields, Memory, Vector, missing, to_arrow
from codecgen.runtime.arrow.numpy_rules import RowRules
from codecgen.runtime.arrow.output_buffers import arrow_type, schema_of
from codecgen.runtime.arrow.view import Codec, Column, View
from codecgen.runtime.compression import decompress
from codecgen.runtime.errors import UnsupportedCodec
from codecgen.runtime.located_bytes import Limits

PART_ROWS = 1 << 15
PART_BYTES = limit_size(8 << 20)
"""Rows, and bytes of sections, that are read at a time: few enough to stay in the cache, enough to be worth it."""

FEW = 16
"""Entries that are looked at after one that was not as it should be: most often what follows is read anew."""

SCRATCH = limit_size(8 << 20)
"""Decompressed bytes after which rows are read. A single entry may have more."""


class _Each:
    """Fields of entries, repeated for each row."""

    def __init__(self, fields: Fields, counts: Vector) -> None:
        self._fields = fields
        self._counts = counts

    def __getattr__(self, name: str) -> Vector:
        value = np.repeat(getattr(self._fields, name), self._counts)
        self.__dict__[name] = value
        return value


def _expand_to_entries(fields: Fields, some: Vector) -> Fields:
    """Return a copy of ``fields`` whose vectors have one number for each entry, instead of one for
    each entry in the mask ``some``: 0 for entries that are not in the mask. Fields that are no
    vectors are dropped.
    """
    out = {}
    for name, value in vars(fields).items():
        if isinstance(value, np.ndarray):
            out[name] = np.zeros(len(some), value.dtype)
            out[name][some] = value
    return Fields(**out)


@dataclass(slots=True)
class _Entries:
    """Entries of one case: bytes ``start`` to ``end`` of the chunk at ``bias`` in the file. The rows of entry i begin
    at ``rows[first[i]:first[i + 1]]`` in the memory.
    """

    case: Case
    memory: Memory
    bias: int
    start: Vector
    end: Vector
    section: Section
    rows: Vector
    first: Vector
    stored: Vector | None = None
    """Bytes of the sections in the file."""

    def __len__(self) -> int:
        return len(self.start)

    def select(self, at: int, after: int) -> _Entries:
        """Return the entries ``at`` to ``after`` (excluded), with their sections and rows; the row
        index ``first`` begins at 0 again.
        """
        own = slice(at, after)
        first = self.first[at : after + 1]
        rows = self.rows[first[0] : first[-1]]
        ends = self.start[own], self.end[own]
        section = self.section.select(own)
        stored = None if self.stored is None else self.stored[own]
        where = self.case, self.memory, self.bias
        return _Entries(*where, *ends, section, rows, first - first[0], stored)

    def sizes(self) -> SectionSizes | None:
        """Return, for each entry, the byte of the file where it begins, and the stored and the
        decompressed size of its section. Return None if sizes were not asked for, or the entries
        are rows themselves.
        """
        if self.stored is None:
            return None
        start = self.start + self.bias
        return SectionSizes(start, self.stored, self.section.end - self.section.start)

    def rejected(self, i: int) -> Rejected:
        """Return a Rejected for entry ``i``, with its start and end in the file, and without the
        place of the failed check.
        """
        return Rejected(int(self.start[i]) + self.bias, int(self.end[i]) + self.bias)

    def row_slices(self) -> Iterator[slice]:
        """Yield slices of rows to read at once, in order. Several entries have one slice of all
        their rows. A single entry has slices of at most 32768 rows and about 8 MiB (one row if it
        is larger). Without rows there is one empty slice, in both cases.
        """
        at = 0
        while at < len(self.rows) or not at:
            after = len(self.rows)
            if len(self) == 1 and after:
                near = int(np.searchsorted(self.rows, self.rows[at] + PART_BYTES))
                after = min(max(near, at + 1), at + PART_ROWS, after)
            yield slice(at, after)
            at = max(after, 1)

    def row_ends(self) -> Vector:
        """Return, for each row, the position where the bytes that it may use end: the end of its
        entry's section, or the start of the next row if rows have no length prefix.
        """
        ends = np.repeat(self.section.end, np.diff(self.first))
        if self.case.open is not None and self.case.prefix is None and len(ends):
            # Elements that have no length end where the next one begins. (An entry without rows marks the last row of
            # the one before, which is marked anyway.)
            inside = np.ones(len(ends), np.bool_)
            inside[self.first[1:] - 1] = False
            after = np.append(self.rows[1:], 0)
            return np.where(inside, after, ends)
        return ends


class NumpyDecoder:
    """Decodes entries (such as record batches) in chunks of a file into Arrow record batches with
    the columns of a view, by NumPy. Not for several threads at once. ``readers`` is the generated
    module.
    """

    def __init__(
        self,
        view: View,
        columns: Sequence[Column],
        readers: Any,
        *,
        limits: Limits | None = None,
        full_check: bool = False,
        rules: bool = False,
        decompress: bool = True,
        sizes: bool = False,
    ) -> None:
        self.decompress = decompress
        self.sizes = sizes
        self.view = view
        self.columns = tuple(columns)
        self.schema = schema_of(columns)
        self.limits = limits or Limits()
        self.full_check = full_check
        self.rules = rules
        self.layouts = {key: layout for layout in readers.LAYOUTS for key in layout.keys}
        self.cases: Sequence[Case] = readers.CASES
        self.scratch = Chunk(0)
        self.max_entries = PART_ROWS

    def decode(self, chunk: Chunk, position: int) -> Iterator[Rows | Rejected]:
        """Yield, in file order, Rows with the batches of the entries in a chunk, and Rejected for
        each entry that is invalid or unusual. Go on after a rejected entry if its end is known;
        stop if it is not, or if no whole entry is left. ``position`` is where the chunk begins in
        the file. Raise UnsupportedCodec if the package of a checksum is not installed.
        """
        memory = Memory(chunk.array)
        discriminator = self.view.discriminator
        at = 0
        while (found := self._read_key(memory, at, chunk.size)) is not None:
            layout = self.layouts.get(found)
            if layout is None:
                yield Rejected(at + position, None)
                return
            edges, why = find(discriminator, layout, memory, at, chunk.size, self.max_entries)
            at = int(edges[-1])
            self.max_entries = min(2 * self.max_entries, PART_ROWS)
            for item in self._entries(layout, memory, edges, position):
                if isinstance(item, Rejected):
                    self.max_entries = FEW
                yield item
            if why < 0:
                yield Rejected(at + position, None)
            # Too few bytes for an entry of this kind may be enough for one of another kind.
            if why < 0 or (why == 0 and self._read_key(memory, at, chunk.size) == found):
                return

    def _read_key(self, memory: Memory, at: int, size: int) -> int | None:
        """Return the discriminator (the number that tells entries apart) of the entry at ``at``;
        for a view of one layout, the only one. Return None if the chunk of ``size`` bytes ends
        before it.
        """
        discriminator = self.view.discriminator
        if discriminator is None:
            return next(iter(self.layouts)) if at < size else None
        first = at + discriminator.offset
        if first + discriminator.size > size:
            return None
        found = bytes(memory.view[first : first + discriminator.size])
        return int.from_bytes(found, discriminator.endian, signed=discriminator.signed)

    def _entries(
        self, layout: Layout, memory: Memory, edges: Vector, bias: int
    ) -> Iterator[Rows | Rejected]:
        """Yield Rows for the entries between ``edges`` (start of each, and the end of the last
        one), in runs of the same case, and Rejected for each entry that has no case or is too
        short. ``bias`` is added to a position to get that in the file.
        """
        start, end = edges[:-1], edges[1:]
        cases = layout.choose(StructureReader(memory, start, end, 0), self.full_check)
        cases[end - start < layout.min_size] = -1
        changes = np.flatnonzero(np.diff(cases)) + 1
        for at, after in pairwise([0, *changes.tolist(), len(cases)]):
            if at == after:
                continue
            number, own = int(cases[at]), slice(at, after)
            if number < 0:
                for first, last in zip(start[own].tolist(), end[own].tolist(), strict=True):
                    yield Rejected(first + bias, last + bias)
            elif self.cases[number].open is None:
                none = np.zeros(after - at, np.int64)
                section = Section(start[own], end[own], none, none + 1, Fields())
                case, first = self.cases[number], np.arange(after - at + 1)
                yield from self._decode_batches(
                    _Entries(case, memory, bias, start[own], end[own], section, start[own], first)
                )
            else:
                yield from self._sections(number, memory, start[own], end[own], bias)

    # ------------------------------------------------------------ entries that hold rows

    def _sections(
        self, number: int, memory: Memory, start: Vector, end: Vector, bias: int
    ) -> Iterator[Rows | Rejected]:
        """Find the sections of entries (from ``start`` to ``end`` each) of the case ``number``, and
        yield Rows with their rows and Rejected for invalid ones. If ``decompress`` is off,
        compressed entries that state how many rows they have yield Rows with an empty batch.
        ``bias`` is added to a position to get that in the file.
        """
        case = self.cases[number]
        assert case.open is not None
        reader = StructureReader(memory, start, end, self.limits.elements)
        whole = case.open(reader)
        for holds in case.rules if self.rules else ():
            reader.refuse(~holds(Fields(entry=whole.fields)))
        passed = ~reader.bad & (whole.codec != 0) & (whole.count >= 0)
        if self.decompress:
            passed[:] = False
        for at, after, is_passed in split_by_flag(passed):
            if not is_passed:
                yield from self._decode_opened(
                    number, memory, start, end, whole, reader.bad, bias, at, after
                )
                continue
            batch = pa.RecordBatch.from_pylist([], schema=self.schema)
            first, last = int(start[at]) + bias, int(start[after - 1]) + bias
            yield Rows(batch, first, last, int(end[after - 1]) + bias, after - at)

    def _decode_opened(
        self,
        number: int,
        memory: Memory,
        start: Vector,
        end: Vector,
        whole: Section,
        wrong: Vector,
        bias: int,
        at: int,
        after: int,
    ) -> Iterator[Rows | Rejected]:
        """Decompress the sections (``whole``) of entries ``at`` to ``after`` (excluded) of the case
        ``number``, find their elements, and yield Rows with the rows, in order. Yield Rejected for
        each entry that is invalid, as ``wrong`` says or as is found here. ``bias`` is added to a
        position to get that in the file.
        """
        case = self.cases[number]
        codecs = self.view.cases[number].codecs
        while at < after:
            rest = slice(at, after)
            inside, section, bad = self._decompress_sections(
                memory, codecs, whole.select(rest), wrong[rest]
            )
            rows, counts, bad = find_elements(
                case, inside, section.start, section.end, section.count, bad, self.limits.elements
            )
            first = np.zeros(len(bad) + 1, np.int64)
            np.cumsum(counts, out=first[1:])
            own = slice(at, at + len(bad))
            stored = whole.end[own] - whole.start[own] if self.sizes else None
            yield from self._without(
                _Entries(case, inside, bias, start[own], end[own], section, rows, first, stored),
                bad,
            )
            at += len(bad)

    def _decompress_sections(
        self, memory: Memory, codecs: Mapping[int, Codec | None], section: Section, bad: Vector
    ) -> tuple[Memory, Section, Vector]:
        """Decompress leading sections into the scratch buffer, and copy uncompressed ones there,
        until 8 MiB are reached or the next one does not fit. The buffer grows for a single large
        one. Return the memory, the sections in it (maybe fewer), and a mask of those that cannot be
        decoded, by ``bad`` or as found here: they are empty. If none is compressed, return the
        arguments unchanged. ``codecs`` has the codecs by number.
        """
        if not ((section.codec != 0) & ~bad).any():
            return memory, section, bad
        bad = bad.copy()
        edges = [0]
        lines = zip(
            section.start.tolist(), section.end.tolist(), section.codec.tolist(), strict=True
        )
        for i, (start, end, codec) in enumerate(lines):
            used = edges[-1]
            data: bytes | memoryview | None = None
            if not bad[i]:
                data = memory.view[start:end]
                if codec:
                    data = self._decompress_section(codecs.get(codec), data)
            if data is None:
                bad[i] = True
                data = b""
            if used + len(data) > self.scratch.capacity:
                if used:
                    break
                self.scratch.grow(max(len(data), 2 * SCRATCH))
            edges.append(used + len(data))
            self.scratch.view()[used : edges[-1]] = data
            if edges[-1] >= SCRATCH:
                break
        done = len(edges) - 1
        places = np.array(edges, np.int64)
        part = section.select(slice(0, done))
        section = Section(places[:-1], places[1:], part.codec, part.count, part.fields)
        return Memory(self.scratch.array), section, bad[:done]

    def _decompress_section(self, codec: Codec | None, section: memoryview) -> bytes | None:
        """Return the decompressed bytes of a section. Return None if it is damaged, has notes or
        unused bytes, more than the limit or 2 GiB, or its codec is None or not installed.
        """
        if codec is None:
            return None
        limit = codec.limit if self.limits.decompressed is None else self.limits.decompressed
        try:
            result = decompress(codec.name, section, limit=limit, variant=codec.variant)
        except UnsupportedCodec:
            return None
        rejected = result.error is not None or result.notes or result.unused
        return None if rejected or len(result.data) > MAX_BYTES else result.data

    # ------------------------------------------------------------ rows

    def _without(self, entries: _Entries, bad: Vector) -> Iterator[Rows | Rejected]:
        """Yield Rows with the rows of the entries that are not in the mask ``bad``, and a Rejected
        for each one that is, in order.
        """
        at = 0
        for i in [*np.flatnonzero(bad).tolist(), len(bad)]:
            if at < i:
                yield from self._decode_batches(entries.select(at, i))
            if i < len(bad):
                yield entries.rejected(i)
            at = i + 1

    def _decode_batches(self, entries: _Entries) -> Iterator[Rows | Rejected]:
        """Yield Rows with the rows of entries, in batches of about 32768 rows or 8 MiB of sections,
        and at least one entry. Yield Rejected for each entry that turns out to be invalid.
        """
        at = 0
        first, section = entries.first, entries.section
        while at < len(entries):
            left = int(first[-1] - first[at])
            rows = left // max(1, round(left / PART_ROWS)) + 1  # no part is to be a small rest
            few = int(np.searchsorted(first, first[at] + rows, "right")) - 1
            small = int(np.searchsorted(section.end, section.start[at] + PART_BYTES, "right"))
            after = max(min(few, small), at + 1)
            part = entries.select(at, after)
            batch, bad = self._batch(part)
            if batch is not None:
                start, last = part.rejected(0), part.rejected(-1)
                assert last.end is not None
                yield Rows(batch, start.start, last.start, last.end, len(part), part.sizes())
            elif len(part) == 1:
                yield part.rejected(0)
            else:
                yield from self._without(part, bad)
            at = after

    def _batch(self, entries: _Entries) -> tuple[pa.RecordBatch | None, Vector]:
        """Return the rows of entries as one record batch, and the number of rows of each entry (of
        a single entry that is read in several slices: those of the last slice). If any entry is
        invalid or breaks a rule, return None and a mask of the invalid entries found so far.

        A single entry may have more rows than are read at once.
        """
        case, counts = entries.case, np.diff(entries.first)
        ends = self._ends(entries, counts) if case.ends else Fields()
        refused = self._find_refused(entries, ends, counts)
        if refused.any():
            return None, refused
        owners = np.repeat(np.arange(len(counts)), counts)
        row_ends = entries.row_ends()
        batches = []
        rules = RowRules(entries.section.fields, counts, entries.first) if self.rules else None
        for own in entries.row_slices():
            reader = StructureReader(
                entries.memory, entries.rows[own], row_ends[own], self.limits.elements
            )
            item = case.read(reader)
            if case.open is not None and case.prefix is None:
                reader.refuse(reader.p != reader.end)
            if rules is not None:
                rules.add(item)
                for holds in case.rules if case.open is None else ():
                    reader.refuse(~holds(Fields(item=item)))
            if reader.bad.any():
                bad = np.zeros(len(counts), np.bool_)
                bad[owners[own][reader.bad]] = True
                return None, bad
            if len(counts) == 1:
                counts = np.array([len(reader.p)], np.int64)
            batches.append(self._columns(entries, item, ends, counts))
        if rules is not None:
            broken = rules.find_breaches(case)
            if broken.any():
                return None, broken
        if len(batches) == 1:
            return batches[0], counts
        return pa.Table.from_batches(batches).combine_chunks().to_batches()[0], counts

    def _ends(self, entries: _Entries, counts: Vector) -> Fields:
        """Return, as ``first`` and ``last``, the fields of the first and of the last element of
        each entry that has elements. ``counts`` is the number of elements of each entry.
        """
        some = counts > 0
        end = entries.row_ends()
        found = {}
        for name, at in (
            ("first", entries.first[:-1][some]),
            ("last", entries.first[1:][some] - 1),
        ):
            reader = StructureReader(
                entries.memory, entries.rows[at], end[at], self.limits.elements
            )
            found[name] = entries.case.read(reader)
        return Fields(**found)

    def _find_refused(self, entries: _Entries, ends: Fields, counts: Vector) -> Vector:
        """Return a mask of the entries that the case's condition ``refuse`` rejects, by their
        fields and those of their first and last element (``ends``, of the entries that have
        elements: those whose number in ``counts`` is not 0). It is all False if there is no such
        condition.
        """
        bad = np.zeros(len(counts), np.bool_)
        if entries.case.refuse is not None:
            some = counts > 0
            spread = {name: _expand_to_entries(fields, some) for name, fields in vars(ends).items()}
            own = Fields(entry=entries.section.fields, empty=~some, **spread)
            bad |= entries.case.refuse(own)
        return bad

    def _columns(
        self, entries: _Entries, item: Fields, ends: Fields, counts: Vector
    ) -> pa.RecordBatch:
        """Return a record batch with the columns of the rows of entries: ``item`` has the fields of
        all elements, ``ends`` those of the first and last of each entry, ``counts`` how many each
        has. Values that are the same for all rows of an entry are computed once and repeated; a
        column that the case lacks is null, or has empty lists if it is not nullable.
        """
        case = entries.case
        rows = int(counts.sum())
        position, size = entries.start + entries.bias, entries.end - entries.start
        once = Fields(entry=entries.section.fields, position=position, size=size)
        each: Any = _Each(Fields(position=position, size=size), counts)
        each.entry, each.item = _Each(entries.section.fields, counts), item
        for name, fields in vars(ends).items():
            setattr(each, name, _Each(fields, counts[counts > 0]))
        if case.open is None:
            each.position, each.size = position, size
        arrays = []
        for column in self.columns:
            kind = arrow_type(column)
            if column.name in case.shared:
                value = case.shared[column.name](once)
                arrays.append(to_arrow(column, kind, value, len(counts), counts))
            elif column.name in case.columns:
                value = case.columns[column.name](each)
                arrays.append(to_arrow(column, kind, value, rows, None))
            else:
                arrays.append(missing(column, kind, rows))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
