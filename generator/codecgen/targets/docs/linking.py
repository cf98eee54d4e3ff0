"""Links from names of fields to their descriptions, and the places where each field is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from codecgen.schema.declarations import is_used
from codecgen.schema.expression import Path
from codecgen.schema.model import Layout
from codecgen.schema.types import ArrayType, BitsType, Reference, StructType
from codecgen.targets.docs.fields import BitRow, DerivedRow, FieldRow
from codecgen.targets.docs.hexdump import Stream
from codecgen.targets.docs.pages import Page
from codecgen.targets.docs.sections import DerivedSection, LayoutSection
from codecgen.targets.docs.site import Site
from codecgen.targets.docs.svg import Picture
from codecgen.targets.docs.text import Code, Link, Phrase, Piece

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Use:
    """A place that names a field: its page, its anchor, and its name in its layout."""

    page: str
    anchor: str
    layout: str
    label: str


Uses = dict[str, dict[Use, None]]
"""Anchor of a field, a bit or a derived value -> where it is named, in the order of the pages."""


def link_fields(site: Site, pages: Iterable[Page]) -> tuple[tuple[Page, ...], Uses]:
    """Return the pages with field names in layout sections replaced by links, and where each field
    is named: uses by the anchor of the field, in page order.
    """
    uses: Uses = {}
    out = []
    for page in pages:
        sections = tuple(
            _Linker(site, page.path, thing.name, uses).section(thing)
            if isinstance(thing, LayoutSection)
            else thing
            for thing in page.sections
        )
        out.append(replace(page, sections=sections))
    return tuple(out), uses


@dataclass(frozen=True, slots=True)
class _Linker:
    """Replaces field names in the section of a layout by links relative to ``page``, and notes in
    ``uses`` which row uses which field. If ``array`` is set, the name ``item`` in a path means an
    element of this array.
    """

    site: Site
    page: str
    layout: str
    uses: Uses
    array: str | None = None

    def section(self, thing: LayoutSection) -> LayoutSection:
        """Return the section with its field names linked."""
        linked = _map_values(replace(thing, derived=()), self._link_value)
        return replace(linked, derived=tuple(self._derived(part) for part in thing.derived))

    def _derived(self, part: DerivedSection) -> DerivedSection:
        """Return the part about derived values with its field names linked."""
        return _map_values(part, replace(self, array=part.array)._link_value)

    def _link_value(self, value: Any) -> Any:
        """Return a row or Phrase with links, or None for any other value. Fields that a row with an
        anchor names are noted as used by that row, except the field that it follows.
        """
        if isinstance(value, FieldRow | BitRow | DerivedRow) and value.anchor:
            use = Use(self.page, value.anchor, self.layout, self._label(value.anchor))
            if isinstance(value, FieldRow):  # that it comes after another is no use of that
                value = replace(value, byte=self._link_phrase(value.byte, None))
            return _map_values(value, lambda inner: self._link_phrase(inner, use), inside=True)
        return self._link_phrase(value, None)

    def _label(self, anchor: str) -> str:
        """Return the name of a row in its layout."""
        name = anchor.removesuffix("-derived").removeprefix(f"{self.layout}-")
        return name.replace("-", ".")

    def _link_phrase(self, value: Any, use: Use | None) -> Any:
        """Return a phrase with links, or None for another value."""
        if not isinstance(value, Phrase):
            return None
        return Phrase(tuple(self._link_piece(piece, use) for piece in value.pieces))

    def _link_piece(self, piece: Piece, use: Use | None) -> Piece:
        """Return a piece of a phrase with links."""
        if not isinstance(piece, Code):
            return piece
        return Code(tuple(self._link_part(part, use) for part in piece.parts))

    def _link_part(self, part: str | Path | Link, use: Use | None) -> str | Path | Link:
        """Return a path as a Link to the field that it names, or as text if it names none; text and
        links are returned unchanged. Note the field as used by ``use``, unless that is None or the
        field itself.
        """
        if not isinstance(part, Path):
            return part
        found = field_target(self.site, self.layout, part.names, self.array)
        if found is None:
            return str(part)
        anchor = "-".join(found)
        if use is not None and use.anchor != anchor:
            self.uses.setdefault(anchor, {})[use] = None
        return Link(str(part), self.site.href(self.page, found[0], *found[1:]))


def field_target(
    site: Site, name: str, names: tuple[str, ...], array: str | None = None
) -> tuple[str, ...] | None:
    """Return the anchor parts of the field that the path ``names`` in the layout ``name`` leads to,
    through held layouts: layout, field, and perhaps the bit or "derived". The name ``item`` means
    an element of ``array``. A path that leaves the known layouts and bits gives the last field
    before. Return None if the path names no field, or if ``name`` is of another directory. Raise
    KeyError if ``name`` is unknown.
    """
    if is_used(name):
        return None
    layout = site.plan.model.layouts[name]
    if names[0] == "item" and array is not None and len(names) > 1:
        element = held_layout(layout, array)
        return None if element is None else field_target(site, element, names[1:])
    field = next((f for f in layout.fields if f.name == names[0]), None)
    if field is None:
        derived = any(d.name == names[0] and d.array is None for d in layout.derived)
        return (name, names[0], "derived") if derived and len(names) == 1 else None
    if isinstance(field.type, BitsType) and len(names) > 1:
        known = any(m.name == names[1] for m in field.type.members)
        return (name, *names[:2]) if known else (name, names[0])
    inner = held_layout(layout, names[0])
    if len(names) > 1 and inner is not None and not is_used(inner):
        return field_target(site, inner, names[1:])
    return name, names[0]


def held_layout(layout: Layout, name: str) -> str | None:
    """Return the name of the layout that the field ``name``, or its elements, hold; None if the
    field holds no layout or a choice, or does not exist.
    """
    for f in layout.fields:
        if f.name == name:
            match f.type:
                case StructType(ref) | ArrayType(Reference() as ref):
                    return ref.layout
    return None


def _map_values(value: T, change: Callable[[Any], Any], *, inside: bool = False) -> T:
    """Return ``value`` with values replaced, recursively in tuples and dataclasses, by what
    ``change`` returns for them, unless that is None. With ``inside``, ``change`` is not applied to
    ``value`` itself. Streams, pictures and other values stay as they are.
    """
    found = None if inside else change(value)
    if found is not None:
        return found  # type: ignore[no-any-return]
    if isinstance(value, tuple):
        return tuple(_map_values(item, change) for item in value)  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type | Stream | Picture):
        return replace(value, **dict(_changes(value, change)))
    return value


def _changes(value: Any, change: Callable[[Any], Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and new value of each field of the dataclass instance ``value`` that holds a
    tuple, Phrase or dataclass, with the replacements of ``change`` in it. Skip a value that
    :func:`_map_values` returns unchanged, the same object, and all other fields.
    """
    for field in fields(value):
        before = getattr(value, field.name)
        if isinstance(before, tuple | Phrase) or is_dataclass(before):
            after = _map_values(before, change)
            if after is not before:
                yield field.name, after
