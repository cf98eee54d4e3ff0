"""The description of readers, as the generator writes it: where entries begin, which cases there are, what columns hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from codecgen.runtime.arrow.numpy_fields import StructureReader
from codecgen.runtime.arrow.numpy_memory import Fields, Vector


@dataclass(frozen=True, slots=True)
class LengthPrefix:
    """A length at the front. ``kind`` is a NumPy type; the bytes that it counts begin ``after`` bytes from the first of
    the structure. Or ``kind`` is ``zigzag`` or ``uvarint``, and they begin after it.
    """

    kind: str
    offset: int = 0
    after: int = 0

    @property
    def is_varint(self) -> bool:
        """True if the length is a varint."""
        return self.kind in ("zigzag", "uvarint")

    @property
    def end(self) -> int:
        """The bytes up to the end of a length of fixed size."""
        return self.offset + int(self.kind[-1])

    def format(self) -> str:
        """Return the ``struct`` format character of a fixed-size length, without the byte order."""
        letter = {"1": "b", "2": "h", "4": "i", "8": "q"}[self.kind[-1]]
        return letter if self.kind[-2] == "i" else letter.upper()

    @property
    def order(self) -> str:
        """Character for the byte order in a ``struct`` format."""
        return "<" if self.kind[0] == "<" else ">"


@dataclass(frozen=True, slots=True)
class Section:
    """Sections of entries (the parts with their elements, perhaps compressed), as arrays with a
    value for each entry.

    Attributes:
        start: Start of each section.
        end: End of each section.
        codec: Number of its codec.
        count: Number of its elements, -1 if it is not stated.
        fields: Fields of the entries.
    """

    start: Vector
    end: Vector
    codec: Vector
    count: Vector
    fields: Fields

    def select(self, rows: slice) -> Section:
        """Return the sections of the entries in the slice ``rows``, with their fields."""
        fields = {name: value[rows] for name, value in vars(self.fields).items()}
        return Section(
            self.start[rows], self.end[rows], self.codec[rows], self.count[rows], Fields(**fields)
        )


Columns = Mapping[str, Callable[[Any], Any]]


@dataclass(frozen=True, slots=True)
class Case:
    """How rows of one kind are read. ``open`` reads entries up to their elements (None: entries are rows themselves),
    ``read`` reads what becomes rows. ``shared`` columns are worked out once for each entry, the others for each row.
    ``ends``: some need fields of an entry's first or last element. ``refuse`` says of which entries there are to be no rows.

    In a full check each of ``rules`` says in which entries it holds, each of ``row_rules`` in which of those that have rows, and
    the numbers ``ascending`` of the rows ascend in each entry.
    """

    name: str
    read: Callable[[StructureReader], Fields]
    columns: Columns
    shared: Columns = field(default_factory=dict)
    open: Callable[[StructureReader], Section] | None = None
    prefix: LengthPrefix | None = None
    at_least: int = 0
    ends: bool = False
    refuse: Callable[[Any], Vector] | None = None
    rules: tuple[Callable[[Any], Vector], ...] = ()
    row_rules: tuple[Callable[[Any], Vector], ...] = ()
    ascending: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """How entries with some ``keys``, values of the discriminator, are found. ``prefix`` is their length and ``refuse`` says which lengths no entry has, or all
    have the same ``size``; ``min_size`` bytes are there of each; ``choose`` says which case each is, -1 for none.
    """

    keys: tuple[int, ...]
    min_size: int
    choose: Callable[[StructureReader, bool], Vector]
    prefix: LengthPrefix | None = None
    refuse: Callable[[Vector], Vector] | None = None
    size: int = 0
