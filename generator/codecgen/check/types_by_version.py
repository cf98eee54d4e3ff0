"""Types that differ between versions: each version that has the field has exactly one."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic
from codecgen.plan.types import scalar_type
from codecgen.schema.by_version import may_be_left_out
from codecgen.schema.lookup import versions_of
from codecgen.schema.model import Field, Layout
from codecgen.schema.types import ScalarType, Span, Versions
from codecgen.spans import place


def check(layout: Layout, f: Field) -> Iterator[Diagnostic]:
    """What is wrong with the ranges of one field."""
    for key, ranges in f.ranges.items():
        if layout.versions is None:
            message = f'"{f.name}" has `{key}` by version, but "{layout.name}" has no versions'
            help = f"give the layout `versions` ({layout.span})"
            yield Diagnostic("C020", message, place(f, key), help=help)
            return
        if layout.versions.high is None:
            return
        yield from _ranges(layout, f, key, ranges)
    yield from _kinds(f)


def _ranges(
    layout: Layout, f: Field, key: str, ranges: tuple[tuple[Versions, Span], ...]
) -> Iterator[Diagnostic]:
    own = [v for v in versions_of(layout, f.versions) if v is not None]
    there = f'"{f.name}" is in versions {f.versions or layout.versions}'
    taken: dict[int, Versions] = {}
    for part, span in ranges:
        mine = [v for v in own if v in part]
        high = layout.versions.high if layout.versions is not None else None
        beyond = part.high is not None and high is not None and part.high > high
        if not mine or beyond:
            which = "version" if part.low == part.high else "versions"
            message = f'`{key}` is given for {which} {part}, in which there is no "{f.name}"'
            yield Diagnostic("C050", message, span, help=there)
        twice = next((v for v in mine if v in taken), None)
        if twice is not None:
            message = f"`{key}` is given twice for version {twice}: by {taken[twice]} and by {part}"
            yield Diagnostic("C050", message, span)
        taken |= dict.fromkeys(mine, part)
    missing = next((v for v in own if v not in taken), None)
    if missing is not None and not may_be_left_out(key):
        message = f'"{f.name}" has no `{key}` in version {missing}'
        yield Diagnostic("C050", message, place(f, key), help=there)


def _kinds(f: Field) -> Iterator[Diagnostic]:
    """A number stays a number, so that expressions and columns mean the same in all versions."""
    kinds = {
        scalar_type(t).kind: str(scalar_type(t)) for t in f.all_types() if isinstance(t, ScalarType)
    }
    if len(kinds) > 1:
        message = f'"{f.name}" is {" in some versions, ".join(kinds.values())} in others'
        yield Diagnostic("C050", message, place(f, "type"), help="give each a field of its own")
