"""Scopes: the names that an expression can use."""

from __future__ import annotations

from dataclasses import dataclass, field

from codecgen.plan.nodes import Value
from codecgen.schema.model import Field, Layout, Model
from codecgen.schema.types import (
    ChoiceType,
    Element,
    FieldType,
    Reference,
    Since,
    StructType,
)


@dataclass(frozen=True, slots=True)
class Scope:
    """Names that an expression can use: the fields of ``layout`` in ``version`` with an index below ``before``
    (None: all).

    ``version`` None stands for all versions. ``owner`` is the name of the field that the expression belongs to,
    ``item`` what stands in the array ``array`` whose element is at hand: there is a first and a last one then.
    ``other_arrays`` are those whose elements are at hand too. ``since`` is when the owner began to exist. With ``built`` the expression is worked out by the builder, which knows
    all arrays from the start; with ``whole`` the arrays are there as a whole, so that there is a largest element.
    With ``ruled`` it is a rule, which is not applied to arrays without elements. ``values_of`` is the name of the text or of its repeated lines if the fields are their values, else ``""``.
    ``holds`` are conditions that are known to hold where the expression is worked out. With ``looks_up`` it may look
    elements up by their number.
    """

    model: Model
    layout: Layout
    version: int | None
    before: int | None = None
    owner: str = ""
    item: Element | None = None
    array: str | None = None
    other_arrays: tuple[str, ...] = ()
    built: bool = False
    whole: bool = False
    ruled: bool = False
    since: Since | None = None
    values_of: str = ""
    looks_up: bool = False
    holds: tuple[Value, ...] = field(default=(), compare=False)

    def versions_of(self, ref: Reference) -> frozenset[int | None]:
        """Return the versions that the layout of ``ref`` can have where this layout holds it: the
        one that ``ref`` names; the version of this layout, unless the held layout lacks it or has a
        version field; otherwise all. A rule sees only elements of this layout's own version where
        a layout holds itself: strict readers and builders refuse mixed versions. For a layout
        without versions, or whose versions have no upper end, None stands for all, and ``{None}``
        is returned. Raise KeyError if the model has no such layout.
        """
        held = self.model.layouts[ref.layout]
        if ref.version is not None:
            return frozenset({ref.version})
        every = held.all_versions()
        is_own = held.version_is is None or (self.ruled and held.name == self.layout.name)
        if is_own and self.version in every:
            return frozenset({self.version})
        return frozenset(every)

    def versions_in(self, type_: FieldType, ref: Reference) -> frozenset[int | None]:
        """Return the versions that the layout of ``ref`` can have in a field of type ``type_``: all
        of them if the type takes the version from a value, otherwise those of :meth:`versions_of`.
        Return ``{None}`` for a layout without versions, or whose versions have no upper end. Raise
        KeyError if the model has no such layout.
        """
        if isinstance(type_, StructType | ChoiceType) and type_.version is not None:
            return frozenset(self.model.layouts[ref.layout].all_versions())
        return self.versions_of(ref)


def layout_containing(type_: FieldType, name: str) -> Reference | None:
    """Return the reference to the layout in which the next name of a path is looked up: that of a
    struct, or of a choice's first case if ``name`` is its discriminator. Return None for all other
    types and names.
    """
    if isinstance(type_, ChoiceType):
        return type_.layouts[0] if name == type_.by and type_.cases else None
    return type_.layout if isinstance(type_, StructType) else None


def can_be_null(f: Field, *, inside: bool) -> bool:
    """Return whether a field can be null or absent (by ``when``), or, with ``inside``, a value
    inside the field: then also for a choice that accepts unknown cases.
    """
    bare = isinstance(f.type, ChoiceType) and f.type.unknown
    return f.when is not None or f.nullable or (inside and bare)


def element_kind(element: Element) -> str:
    """Return words for elements other than layouts, for messages: ``layouts of a choice``, the
    scalar type such as ``i32``, or ``bytes or text``.
    """
    if isinstance(element, ChoiceType):
        return "layouts of a choice"
    return getattr(element, "name", "bytes or text")
