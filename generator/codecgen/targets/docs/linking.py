"""Fields that phrases name become links, and each field learns where it is named."""

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
    """A place that names a field: its page and anchor, and what it is called in its layout."""

    page: str
    anchor: str
    layout: str
    label: str


Uses = dict[str, dict[Use, None]]
"""Anchor of a field, a bit or a derived value -> where it is named, in the order of the pages."""


def linked(site: Site, pages: Iterable[Page]) -> tuple[tuple[Page, ...], Uses]:
    """The pages with links where fields are named, and where each is."""
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
    """Links what is said of a layout, and in ``array`` of the elements of an array of it."""

    site: Site
    page: str
    layout: str
    uses: Uses
    array: str | None = None

    def section(self, thing: LayoutSection) -> LayoutSection:
        said = _mapped(replace(thing, derived=()), self._plain)
        return replace(said, derived=tuple(self._derived(part) for part in thing.derived))

    def _derived(self, part: DerivedSection) -> DerivedSection:
        return _mapped(part, replace(self, array=part.array)._plain)

    def _plain(self, value: Any) -> Any:
        """A row with what it names counted as uses; a phrase with links."""
        if isinstance(value, FieldRow | BitRow | DerivedRow) and value.anchor:
            use = Use(self.page, value.anchor, self.layout, self._label(value.anchor))
            if isinstance(value, FieldRow):  # that it comes after another is no use of that
                value = replace(value, byte=self._phrase(value.byte, None))
            return _mapped(value, lambda inner: self._phrase(inner, use), inside=True)
        return self._phrase(value, None)

    def _label(self, anchor: str) -> str:
        name = anchor.removesuffix("-derived").removeprefix(f"{self.layout}-")
        return name.replace("-", ".")

    def _phrase(self, value: Any, use: Use | None) -> Any:
        if not isinstance(value, Phrase):
            return None
        return Phrase(tuple(self._piece(piece, use) for piece in value.pieces))

    def _piece(self, piece: Piece, use: Use | None) -> Piece:
        if not isinstance(piece, Code):
            return piece
        return Code(tuple(self._part(part, use) for part in piece.parts))

    def _part(self, part: str | Path | Link, use: Use | None) -> str | Path | Link:
        if not isinstance(part, Path):
            return part
        found = target(self.site, self.layout, part.names, self.array)
        if found is None:
            return str(part)
        anchor = "-".join(found)
        if use is not None and use.anchor != anchor:
            self.uses.setdefault(anchor, {})[use] = None
        return Link(str(part), self.site.href(self.page, found[0], *found[1:]))


def target(
    site: Site, name: str, names: tuple[str, ...], array: str | None = None
) -> tuple[str, ...] | None:
    """Where a path of a layout leads: the layout, the field, perhaps the bit; None when it names no field."""
    if is_used(name):
        return None
    layout = site.plan.model.layouts[name]
    if names[0] == "item" and array is not None and len(names) > 1:
        element = held(layout, array)
        return None if element is None else target(site, element, names[1:])
    field = next((f for f in layout.fields if f.name == names[0]), None)
    if field is None:
        derived = any(d.name == names[0] and d.array is None for d in layout.derived)
        return (name, names[0], "derived") if derived and len(names) == 1 else None
    if isinstance(field.type, BitsType) and len(names) > 1:
        known = any(m.name == names[1] for m in field.type.members)
        return (name, *names[:2]) if known else (name, names[0])
    inner = held(layout, names[0])
    if len(names) > 1 and inner is not None and not is_used(inner):
        return target(site, inner, names[1:])
    return name, names[0]


def held(layout: Layout, name: str) -> str | None:
    """The layout that a field holds, or whose elements it does."""
    for f in layout.fields:
        if f.name == name:
            match f.type:
                case StructType(ref) | ArrayType(Reference() as ref):
                    return ref.layout
    return None


def _mapped(value: T, change: Callable[[Any], Any], *, inside: bool = False) -> T:
    """A dataclass with what is in it changed, where ``change`` gives something."""
    found = None if inside else change(value)
    if found is not None:
        return found  # type: ignore[no-any-return]
    if isinstance(value, tuple):
        return tuple(_mapped(item, change) for item in value)  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type | Stream | Picture):
        return replace(value, **dict(_changes(value, change)))
    return value


def _changes(value: Any, change: Callable[[Any], Any]) -> Iterator[tuple[str, Any]]:
    for field in fields(value):
        before = getattr(value, field.name)
        if isinstance(before, tuple | Phrase) or is_dataclass(before):
            after = _mapped(before, change)
            if after is not before:
                yield field.name, after
