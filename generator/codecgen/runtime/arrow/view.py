"""The description of a view, as the generator writes it: columns, kinds of rows, codecs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from codecgen.runtime.sensitive import REDACTED, Sensitive


class NoKernelsError(ImportError):
    """Error for a view that was generated without kernels, or without a reader by NumPy."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a view.

    Attributes:
        name: Its name.
        type: Type of its values, as in YAML, or ``struct`` or ``list``.
        index: Position of its buffers among those of the kernels.
        members: Members of a struct, or of the structs in a list.
        nullable: Values may be null.
        on_request: The column is read only if it is asked for by name.
        doc: What it holds.
        element: Element of a list whose elements are no structs.
        sensitive: When its values are secrets, with all that is inside of them. None if they never are.
    """

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
    def children(self) -> tuple[Column, ...]:
        """The members of a struct or of the structs in a list, or the element of a list."""
        return self.members if self.element is None else (self.element,)

    def leaves(self) -> Iterator[Column]:
        """Yield the column, then all columns inside of it, in the order of their buffers."""
        yield self
        for part in self.children:
            yield from part.leaves()

    @property
    def has_secrets(self) -> bool:
        """Whether values of the column, or of a column inside of it, may be secrets."""
        return any(column.sensitive is not None for column in self.leaves())

    def hide_secrets(self, value: Any, row: Mapping[str, Any]) -> Any:
        """Return a value of the column with its secrets hidden: text and bytes as
        :data:`~codecgen.runtime.sensitive.REDACTED`, other types as None, structs and lists part by
        part. A null stays None. ``row`` has the values beside it, by column: of its row, or of its
        struct. If one of them names the secret, a missing name makes the value secret too.
        """
        secret = self.sensitive
        if value is None:
            return None
        if secret is not None and secret.covers(
            None if secret.named_by is None else row.get(secret.named_by)
        ):
            return self._redact(value)
        return self._map_inside(value, Column.hide_secrets)

    def make_hidden(self, *, is_secret: bool = False) -> Column:
        """Return the column of the values that :meth:`hide_secrets` returns: parts that it hides as
        null are nullable. ``is_secret`` says that all of its values may be secrets.
        """
        is_secret = is_secret or self.sensitive is not None
        if self.type not in ("struct", "list"):
            is_null = is_secret and self.type not in ("string", "binary")
            return replace(self, nullable=self.nullable or is_null)
        element = self.element and self.element.make_hidden(is_secret=is_secret)
        members = tuple(part.make_hidden(is_secret=is_secret) for part in self.members)
        return replace(self, element=element, members=members)

    def _redact(self, value: Any) -> Any:
        """Return what stands in the place of a secret value: REDACTED for text and bytes, None for
        null and other types. In structs and lists each part is replaced so.
        """
        if self.type in ("struct", "list"):
            return self._map_inside(value, lambda part, value, _: part._redact(value))
        if value is None or self.type not in ("string", "binary"):
            return None
        return REDACTED if self.type == "string" else REDACTED.encode()

    def _map_inside(
        self, value: Any, change: Callable[[Column, Any, Mapping[str, Any]], Any]
    ) -> Any:
        """Return a struct or list with ``change`` applied to its parts, called with (column, value,
        struct around it; ``{}`` for elements that are no structs). Return other values, and None,
        unchanged.
        """
        if value is None or not self.children:
            return value
        if self.element is not None:
            return [change(self.element, item, {}) for item in value]
        structs = value if self.type == "list" else [value]
        made = [
            {part.name: change(part, item[part.name], item) for part in self.members}
            for item in structs
        ]
        return made if self.type == "list" else made[0]


@dataclass(frozen=True, slots=True)
class Codec:
    """How a compressed section is decompressed.

    Attributes:
        name: Name of the codec.
        variant: Variant of its format, None for the usual one.
        limit: Max bytes after decompression.
    """

    name: str
    variant: str | None
    limit: int


@dataclass(frozen=True, slots=True)
class Case:
    """Rows of one layout.

    Attributes:
        name: Name of the layout.
        codecs: Codecs by their numbers, None for a number that means no compression.
        each_entry: Each entry is a row. Otherwise its elements are the rows.
        min_row_size: Min bytes of a row.
    """

    name: str
    codecs: Mapping[int, Codec | None] = field(default_factory=dict)
    each_entry: bool = False
    min_row_size: int = 1


@dataclass(frozen=True, slots=True)
class Discriminator:
    """Position and form of the number that tells entries apart.

    Attributes:
        offset: Byte of the entry at which it begins.
        size: Its bytes.
        signed: It is signed.
        endian: Its byte order.
    """

    offset: int
    size: int
    signed: bool
    endian: Literal["big", "little"]


@dataclass(frozen=True, slots=True)
class Place:
    """Place in YAML of a field or rule that kernels check."""

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
        """Return the column called ``name``. Raise ValueError, whose message lists the known names,
        if there is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        known = ", ".join(c.name for c in self.columns)
        raise ValueError(f"no column is called {name!r}; known: {known}")


@dataclass(frozen=True, slots=True)
class View(Columns):
    """A view of entries.

    Attributes:
        kernels: Module of the kernels, None if only the reference codecs read the view.
        cases: Layouts whose rows the view shows.
        row_size: Bytes of an entry in the index.
        discriminator: Number that tells entries apart, None if all are of one layout.
        checks: What kernels check, in the order of the numbers that they return, from 1 on.
        numpy: Module of the reader by NumPy, None if there is none.
        framed: The first bytes of an entry tell where it ends. Otherwise it ends where its fields end.
    """

    kernels: str | None
    cases: tuple[Case, ...]
    row_size: int
    discriminator: Discriminator | None = None
    checks: tuple[Place, ...] = ()
    numpy: str | None = None
    framed: bool = True

    def place_of_check(self, check: int) -> Place | None:
        """Return the place in YAML of the check number ``check``, None if there is no such check."""
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
