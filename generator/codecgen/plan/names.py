"""What the names in an expression mean."""

from __future__ import annotations

from typing import Literal

from codecgen.schema.expression import Path
from codecgen.schema.model import Layout, Model
from codecgen.schema.types import ArrayType, BitsType, Reference, ScalarType

TARGET_PACKAGES = frozenset(["arrow", "rows"])
"""Packages that targets write inside the generated one, beside a module for each YAML file."""

TARGET_DIRECTORIES = frozenset(["docs", "html", "kaitai"])
"""Directories that targets write beside the generated package."""


def enum_of(path: Path, layout: Layout, model: Model, item: Layout | None = None) -> str | None:
    """The enum whose values a path can have. ``item`` is the layout of the elements that ``item`` stands for."""
    names = path.names
    if names[0] == "item" and item is not None and len(names) > 1:
        return enum_of(Path(names[1:]), item, model)
    field = next((f for f in layout.fields if f.name == names[0]), None)
    if field is None:
        return None
    if isinstance(field.type, ScalarType) and len(names) == 1:
        return field.type.enum
    if isinstance(field.type, BitsType) and len(names) == 2:
        return next((m.enum for m in field.type.members if m.name == names[1]), None)
    return None


def element_layout(layout: Layout, array: str | None, model: Model) -> Layout | None:
    """The layout of the elements of an array."""
    field = next((f for f in layout.fields if f.name == array), None)
    if field is None or not isinstance(field.type, ArrayType):
        return None
    element = field.type.element
    return model.layouts.get(element.layout) if isinstance(element, Reference) else None


def spell(name: str, style: Literal["camel", "snake"]) -> str:
    """A snake_case name in the style of a format's own documents."""
    head, *rest = name.split("_")
    return name if style == "snake" else head + "".join(part.capitalize() for part in rest)
