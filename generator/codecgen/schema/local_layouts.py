"""Layouts that are written in the place of a field: they become layouts like any other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from codecgen.schema.lookup import choice_of, members, references_of
from codecgen.schema.model import Field, Layout
from codecgen.schema.reader import Record
from codecgen.schema.types import ArrayType, Since, Span, Versions


def local_layout(
    name: str, fields: tuple[Field, ...], span: Span, around: Record, accepts: frozenset[str]
) -> Layout:
    """A layout of the fields that stand inside ``around``: with its order of bytes and its versions."""
    return Layout(
        name=name,
        doc="",
        span=span,
        fields=fields,
        endian=cast(Any, around["endian"] or "big"),
        versions=cast(Versions | None, around["versions"]),
        since=cast(Since | None, around["since"]),
        draft=cast(Since | None, around["draft"]),
        accepts=accepts,
        flexible=cast(Any, around["flexible"]),
        is_local=True,
    )


def settled(layouts: Mapping[str, Layout], names: Iterable[str]) -> dict[str, Layout]:
    """The layouts, those of the ``names`` without versions where they are the same in all; inner ones come first."""
    out = dict(layouts)
    for name in names:
        if not any(_has_versions(f, out) for f in out[name].fields):
            out[name] = replace(out[name], versions=None)
    return out


def _has_versions(f: Field, layouts: Mapping[str, Layout]) -> bool:
    """Whether a field differs between versions of the layout around it."""
    refs = (ref for ref in references_of(f) if ref.version is None)
    held = (layouts[ref.layout] for ref in refs if ref.layout in layouts)
    inside = any(one.versions is not None and one.version_is is None for one in held)
    inside = inside or choice_of(f) is not None  # its cases are found later, and may have versions
    told_apart = f.versions is not None or bool(f.types)
    return told_apart or inside or any(m.versions is not None for m in members(f))


def with_counts(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """The fields, with arrays that know which field counts them."""
    counted = {f.counts: f.name for f in fields if f.counts}
    return tuple(
        f.with_types(counted_by=counted[f.name])
        if f.name in counted and isinstance(f.type, ArrayType)
        else f
        for f in fields
    )
