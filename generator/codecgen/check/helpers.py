"""What the passes share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codecgen.diagnostics import Diagnostic
from codecgen.schema.lookup import members
from codecgen.schema.model import Enum, Field, Layout
from codecgen.schema.types import BitMember, ScalarType


def enum_uses(
    layout: Layout,
) -> Iterator[tuple[Field | BitMember, str, tuple[str, ...] | None]]:
    """The fields and bits that stand for values of an enum: (which, enum, the values that may stand there)."""
    for f in layout.fields:
        if isinstance(f.type, ScalarType) and f.type.enum is not None:
            yield f, f.type.enum, f.type.only
        for m in members(f):
            if m.enum is not None:
                yield m, m.enum, m.only


def enum_values(enum: Enum, only: tuple[str, ...] | None) -> Iterator[tuple[str, int]]:
    """The values that may stand in a place: all, or those that are listed."""
    for value in enum.values:
        if only is None or value.name in only:
            yield value.name, value.value


def once(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Without repetitions: at most one of a number for a place."""
    seen = set()
    for d in diagnostics:
        if (d.code, d.span) not in seen:
            seen.add((d.code, d.span))
            yield d
