"""The description of a view, as the generator writes it: columns, kinds of rows, codecs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from codecgen.runtime.sensitive import Sensitive


class NoKernelsError(ImportError):
    """Kernels cannot read a view: it was generated without any."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``index`` is its place among the buffers of the kernels; ``members`` are those of structs, and of the structs
    in a list; ``element`` is what other lists hold. ``sensitive`` says that values, and all that is inside of them, are secrets."""

    name: str
    type: str
    index: int
    members: tuple[Column, ...] = ()
    nullable: bool = False
    on_request: bool = False
    doc: str = ""
    element: Column | None = None
    sensitive: Sensitive | None = None

    @property
    def parts(self) -> tuple[Column, ...]:
        """What is inside of a struct or a list."""
        return self.members if self.element is None else (self.element,)

    def leaves(self) -> Iterator[Column]:
        """The column, and all that is inside of it, in the order of their buffers."""
        yield self
        for part in self.parts:
            yield from part.leaves()


@dataclass(frozen=True, slots=True)
class Codec:
    """How a section is decompressed."""

    name: str
    variant: str | None
    limit: int


@dataclass(frozen=True, slots=True)
class Case:
    """Rows of one layout. ``codecs`` by number; None is for no compression. Either every entry is a row (``each_entry``),
    or its elements are. A row takes at least ``least`` bytes."""

    name: str
    codecs: Mapping[int, Codec | None] = field(default_factory=dict)
    each_entry: bool = False
    least: int = 1


@dataclass(frozen=True, slots=True)
class Kind:
    """Where the number lies that tells entries apart."""

    offset: int
    size: int
    signed: bool
    endian: Literal["big", "little"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where YAML has the field, or the rule, that kernels check."""

    name: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a view."""

    name: str
    columns: tuple[Column, ...]

    def column(self, name: str) -> Column:
        """Return a column by its name.

        Raises:
            ValueError: if there is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        known = ", ".join(c.name for c in self.columns)
        raise ValueError(f"no column is called {name!r}; known: {known}")


@dataclass(frozen=True, slots=True)
class View(Columns):
    """A view. ``kind`` tells its entries apart (None: all are of one layout); they are ``framed`` where their first bytes tell
    how long they are, and otherwise end where their fields end. ``kernels`` is the module that has them (None: only the reference
    codecs read the view), ``numpy`` the one that does the same without a compiler.
    ``checks`` has what the kernels check, by the numbers that they give, from 1 on."""

    kernels: str | None
    cases: tuple[Case, ...]
    row_size: int
    kind: Kind | None = None
    checks: tuple[Place, ...] = ()
    numpy: str | None = None
    framed: bool = True

    @property
    def head(self) -> int:
        """The bytes up to the end of the number that tells entries apart."""
        return 0 if self.kind is None else self.kind.offset + self.kind.size

    def place(self, check: int) -> Place | None:
        """What the check of a number is about; None for a number that no check has."""
        return self.checks[check - 1] if 0 < check <= len(self.checks) else None


@dataclass(frozen=True, slots=True)
class PayloadView(Columns):
    """A view into payloads.

    Attributes:
        parts: Names of the byte strings that a payload consists of.
        rows: Module with the functions that make rows of what the reference codecs parse.
        kernels: Module with compiled kernels, which target arrow generates. None if the view asks for none in YAML.
    """

    parts: tuple[str, ...]
    rows: str
    kernels: str | None = None
