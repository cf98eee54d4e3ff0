"""The description of a view, as the generator writes it: columns, kinds of rows, codecs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``index`` is its place among the buffers of the kernels; ``members`` are those of the structs in a list.
    Where it ``varies``, filling it takes a walk over the rows."""

    name: str
    type: str
    index: int
    members: tuple[Column, ...] = ()
    nullable: bool = False
    on_request: bool = False
    varies: bool = False
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Codec:
    """How a run is decompressed."""

    name: str
    variant: str | None
    limit: int


@dataclass(frozen=True, slots=True)
class Case:
    """Rows of one layout. ``codecs`` by number; None is for no compression."""

    name: str
    codecs: Mapping[int, Codec | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sum:
    """What the measuring pass adds up for a column: ``bytes``, ``nulls``, or the ``count`` of a list's elements."""

    index: int
    what: str


@dataclass(frozen=True, slots=True)
class Kind:
    """Where the number lies that tells entries apart."""

    offset: int
    size: int
    signed: bool
    endian: Literal["big", "little"]


@dataclass(frozen=True, slots=True)
class View:
    """A view. ``kernels`` is the module that has them, ``vectors`` the one that does the same without a compiler."""

    name: str
    kernels: str
    columns: tuple[Column, ...]
    cases: tuple[Case, ...]
    sums: tuple[Sum, ...]
    row_size: int
    kind: Kind
    vectors: str | None = None

    def column(self, name: str) -> Column:
        """A column by its name. Raises ValueError."""
        for column in self.columns:
            if column.name == name:
                return column
        known = ", ".join(c.name for c in self.columns)
        raise ValueError(f"no column is called {name!r}; known: {known}")
