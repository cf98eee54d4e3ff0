"""Rows of a view from parsed entries: the classes and functions that generated modules of rows use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, repeat
from typing import Any, NamedTuple

import construct

from codecgen.runtime.bits import Bits
from codecgen.runtime.chosen import Chosen
from codecgen.runtime.declared import Declared
from codecgen.runtime.errors import LengthError, TruncatedError, ValueRefused
from codecgen.runtime.fields import Field
from codecgen.runtime.layout import Choice, Layout
from codecgen.runtime.leading_fields import LeadingFields, PlainBits
from codecgen.runtime.located_bytes import Condition, Source
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.parsing import Opened

__all__ = ["Case", "Column", "Header", "Place", "RowView", "bits_of", "case_of"]


class Place(NamedTuple):
    """The place of an entry: the position of its first byte in the file, and its size in bytes."""

    position: int
    size: int


Value = Callable[[Any, Any, Place], Any]
"""A value of a row: from the fields of an entry, those of one of its elements, and the place of the entry."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a case: the function of its value, and the ``paths`` of the entry's fields on which it depends
    (``flags.codec``).
    """

    value: Value
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Rows of one layout if ``when`` holds: one for each element of the array ``each``, or one for the entry if that
    is None. With ``other_arrays``, a row is made of one element of each array, and columns get a tuple of them.

    ``writes`` has the paths of the fields that the view writes from its columns (``items.headers.key``); it is empty if
    the view cannot write the rows. With ``header_only`` the fields at fixed places are enough. With ``whole`` a column or ``when`` takes the first or
    last element, so all elements must be parsed before the first row.
    """

    layout: Layout
    columns: Mapping[str, Column]
    each: str | None = None
    other_arrays: tuple[str, ...] = ()
    when: Condition | None = None
    header_only: bool = False
    whole: bool = False
    writes: tuple[str, ...] = ()

    def values(self, names: Sequence[str]) -> tuple[Value, ...]:
        """Return the function that computes each column in ``names``, in that order. Raise KeyError
        for an unknown column.
        """
        return tuple(self.columns[name].value for name in names)

    def item_of(self, element: Any) -> Any:
        """Return what the functions of columns take as ``item`` for an element of the array ``each``:
        the element, or a tuple with None for the elements of ``other_arrays``.
        """
        return (element, *(None for _ in self.other_arrays)) if self.other_arrays else element

    def fields(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the entry's fields on which columns depend, in the order of the bytes."""
        wanted = {path.partition(".")[0] for name in names for path in self.columns[name].paths}
        return tuple(f.name for f in self.layout.fields if f.name in wanted)


class RowView(Declared):
    """Makes the rows of a view from parsed entries, such as record batches; ``columns`` has the
    names of the columns in order.

    Values are plain: timestamps are milliseconds, structs are tuples.
    """

    def __init__(
        self, name: str, *, of: Choice | Layout, columns: tuple[str, ...], cases: tuple[Case, ...]
    ) -> None:
        super().__init__()
        self.name = name
        self.of = of
        self.columns = columns
        self.cases = cases
        self._of_layout: dict[int, list[Case]] = {}
        for case in cases:
            self._of_layout.setdefault(id(case.layout), []).append(case)

    def __repr__(self) -> str:
        return f"<RowView {self.name}: {', '.join(self.columns)}>"

    def case(self, layout: Layout, fields: Any) -> Case | None:
        """Return the first case for the layout of an entry whose condition, if it has one, holds
        for its ``fields``. Return None if there is none: the entry has no rows.
        """
        for case in self._of_layout.get(id(layout), ()):
            if case.when is None or case.when(fields):
                return case
        return None

    def rows(
        self, layout: Layout, opened: Opened, place: Place, columns: Sequence[str] | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of an opened entry as tuples of ``columns`` (None: all), one for each
        element or one for the entry, as the first case whose condition holds says. ``place`` is the
        entry's position and size in the file, which columns may show. Elements that are not parsed
        yet are used up. Yield nothing if no case applies. Raise CodecError if an element does not
        parse, arrays that are read together differ in length, or a column looks up an element that
        an array does not have; KeyError for an unknown column. ``opened.error`` is not raised here.
        """
        cases = self._of_layout.get(id(layout), ())
        if any(case.when is not None and case.whole for case in cases):
            parse_rest(opened)
        case = self.case(layout, opened.fields)
        if case is None:
            return
        values = case.values(self.columns if columns is None else columns)
        entry = opened.fields
        names = self.columns if columns is None else columns
        for item in row_items(case, opened, names):
            try:
                row = tuple([value(entry, item, place) for value in values])
            except ValueRefused as error:
                raise error.located(position=place.position) from None
            yield row

    def header(self, columns: Sequence[str]) -> Header:
        """Return a maker of rows, tuples of ``columns``, from the fields at fixed places alone, for
        the view's header-only cases. Other fields are not read, and nothing is verified.
        """
        return Header(self.cases, columns)


class Header:
    """Makes rows of entries from their fields at fixed places alone, without verification."""

    def __init__(self, cases: Sequence[Case], columns: Sequence[str]) -> None:
        self._of_layout: dict[int, list[_HeaderCase]] = {}
        for case in cases:
            if case.header_only:
                known = self._of_layout.setdefault(id(case.layout), [])
                known.append(_HeaderCase(case, columns))

    def row(self, layout: Layout, source: Source, place: Place) -> tuple[Any, ...] | None:
        """Return the row of the entry at the head of ``source`` as a tuple, from the first
        header-only case whose condition holds, or None if there is none. ``place`` is the entry's
        position and size, which columns may show. Raise TruncatedError if the entry ends before a
        needed field; CodecError if such a field does not parse.
        """
        for case in self._of_layout.get(id(layout), ()):
            entry = None
            if case.leading_fields is not None:
                entry = case.leading_fields.values(source.data, source.pos, source.end)
            if entry is None:
                entry = case.fields_of(source)
            if case.when is None or case.when(entry):
                return tuple([value(entry, None, place) for value in case.values])
        return None


class _HeaderCase:
    """A case that needs only fields at fixed places."""

    def __init__(self, case: Case, columns: Sequence[str]) -> None:
        self.layout = case.layout
        self.when = case.when
        self.places = _fixed_fields(case, columns)
        self.values = case.values(columns)

    @cached_property
    def leading_fields(self) -> LeadingFields | None:
        """Return the reader of the leading fields, or None if a needed field is not among them."""
        found = self.layout.leading_fields
        return found if found.fields.issuperset(f.name for f, _, _ in self.places) else None

    def fields_of(self, source: Source) -> construct.Container:
        """Return the fields that the row needs, read at their fixed places in the entry at the head
        of ``source``, without moving ``source``. Raise TruncatedError if the entry ends before one;
        CodecError if one does not parse.
        """
        entry = construct.Container()
        start = source.pos
        for f, offset, size in self.places:
            source.pos = start + offset
            if source.pos + size > source.end:
                source.pos = start
                raise TruncatedError("the header is cut off", source.where()).located(
                    path=f.name, schema=f"{self.layout.source_file}:{f.line}"
                )
            entry[f.name] = f.codec.read(source, entry)
        source.pos = start
        return entry


def _fixed_fields(case: Case, columns: Sequence[str]) -> tuple[tuple[Field, int, int], ...]:
    """Return the fields that ``columns`` need, each with its offset and size in bytes; if the case
    has a condition, all fields at fixed places instead. Raise KeyError for an unknown column and,
    without a condition, if a needed field has no fixed place or size.
    """
    layout = case.layout
    names = case.fields(columns)
    if case.when is not None:  # it may ask for any
        names = tuple(f.name for f in layout.fields if layout.is_fixed(f.name))
    return tuple((layout.by_name[n], layout.offset_of(n), layout.size_of(n)) for n in names)


def row_items(case: Case, opened: Opened, columns: Sequence[str]) -> Iterator[Any]:
    """Return an iterator over what becomes rows: the elements of the array ``case.each`` (tuples of
    elements if there are ``other_arrays``), or the fields of the entry, once, if the case has
    none. Parse the rest of the entry first if there is no such array or ``case.whole`` is set. A
    null array gives none. The iterator raises CodecError if an element does not parse, or arrays
    have different numbers of elements.

    An array that none of ``columns`` needs is not read if it ends the entry: None stands for its elements.
    """
    if case.each is None or case.whole:
        parse_rest(opened)
    if case.each is None:
        return iter((opened.fields,))
    if case.other_arrays:
        return _items_side_by_side(case, opened, columns)
    return _elements(opened, case.each)


def _elements(opened: Opened, array: str) -> Iterator[Any]:
    """Return an iterator over the elements of an array of an entry; it parses those of the last one."""
    return iter(opened.fields[array] or ()) if array in opened.fields else opened.items


def _items_side_by_side(case: Case, opened: Opened, columns: Sequence[str]) -> Iterator[Any]:
    """Yield tuples of one element of each array of a case, None for arrays that no column needs.
    Raise CodecError if an element does not parse; LengthError after the last whole row if an array
    has fewer elements than another.
    """
    assert case.each is not None
    needed = {path for name in columns for path in case.columns[name].paths}
    names = (case.each, *case.other_arrays)
    arrays = [
        _elements(opened, name) if i == 0 or name in needed else repeat(None)
        for i, name in enumerate(names)
    ]
    missing = object()
    for number in count():
        items = [next(array, missing) for array in arrays]
        short = [name for name, item in zip(names, items, strict=True) if item is missing]
        if not short:
            yield tuple(items)
            continue
        longer = [
            name
            for name, item in zip(names, items, strict=True)
            if item is not missing and (name == case.each or name in needed)
        ]
        if longer:
            reason = f"{short[0]} has {count_noun(number, 'element')}, and {longer[0]} has more"
            raise LengthError(reason).located(path=short[0])
        return


def parse_rest(opened: Opened) -> None:
    """Parse the elements that are left of an entry, and store them as the array that ends it, None
    if that is null or absent. Do nothing if that was done before. Raise CodecError if an element
    does not parse.
    """
    if opened.array is not None and opened.array.name in opened.fields:
        return
    items = construct.ListContainer(opened.items)
    if opened.array is not None:
        opened.fields[opened.array.name] = items if opened.array.there else None


def bits_of(layout: Layout, fields: Any, name: str) -> int:
    """Return the number from which a field of bits was parsed, from parsed ``fields`` or a named
    tuple of them. Raise TypeError if ``name`` is no field of bits.
    """
    codec = layout.by_name[name].codec
    if not isinstance(codec, Bits):
        raise TypeError(f"{name} is not a field of bits")
    value = getattr(fields, name) if isinstance(fields, tuple) else fields[name]
    return PlainBits.number_of(value) if isinstance(value, PlainBits) else codec.raw(value)


def case_of(layout: Layout, fields: Any, name: str, case: str) -> Any:
    """Return the value of the field ``name`` if it was parsed by the layout or choice called
    ``case``. Return None if it is another case, bytes or absent, or ``fields`` is None. Raise
    TypeError if the field holds a mapping but is no choice.
    """
    value = None if fields is None else fields.get(name)
    if not isinstance(value, dict):
        return None
    codec: Any = layout.by_name[name].codec
    if not isinstance(codec, Chosen):
        raise TypeError(f"{name} is not a choice")
    found = codec.case(fields, lambda choice: int(value[choice.by]))
    while isinstance(found, Choice):
        if found.choice_name == case:
            return value
        found = found.cases[int(value[found.by])]
    return value if isinstance(found, Layout) and found.layout_name == case else None
