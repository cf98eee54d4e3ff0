"""Checksums: what each covers, in which order they can be worked out, and what counts as zeros for them."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic
from codecgen.runtime.checksums import CRCS
from codecgen.schema.lookup import bounds, covered_parts, exists_in, field_spans, index_of
from codecgen.schema.model import Field, Layout
from codecgen.schema.types import FieldRange
from codecgen.spans import hint, place


def zero(
    f: Field, field_range: FieldRange, key: str, layout: Layout, first: int, last: int
) -> Iterator[Diagnostic]:
    """What counts as zero bytes for a checksum is a field that it covers."""
    for i, name in enumerate(field_range.zero):
        where = f.places.get(f"{key}.zero.{i}", f.places.get(f"{key}.zero", field_range.span))
        index = index_of(layout, name)
        if index is None:
            message = f'"{layout.name}" has no field "{name}"'
            yield Diagnostic("C014", message, where, "not a field", hint(name, field_spans(layout)))
        elif not first <= index <= last:
            message = f'"{name}" does not lie in the range that "{f.name}" covers here'
            help = f"it is declared at {layout.fields[index].span}"
            yield Diagnostic("C063", message, where, help=help)


def mask(f: Field) -> Iterator[Diagnostic]:
    """Some bits of a checksum are kept, and no others than it has."""
    crc = None if f.checksum is None else CRCS[f.checksum]
    if crc is None or f.mask is None or 0 < f.mask < 1 << crc.width:
        return
    message = f'the mask of "{f.name}" is {f.mask:#x}, but {f.checksum} has {crc.width} bits'
    help = f"write a number from 1 to {(1 << crc.width) - 1:#x}"
    yield Diagnostic("C063", message, place(f, "mask"), help=help)


def overlap(f: Field, layout: Layout) -> Iterator[Diagnostic]:
    """A checksum covers no field twice."""
    seen: dict[int, FieldRange] = {}
    for key, part in covered_parts(f):
        ends = bounds(layout, f, part)
        for i in () if ends is None else range(ends[0], ends[1] + 1):
            if seen.setdefault(i, part) is not part:
                message = f'"{f.name}" covers "{layout.fields[i].name}" twice'
                where = f.places.get(f"{key}.from", part.span)
                yield Diagnostic("C063", message, where)
                return


def cycles(layout: Layout, version: int | None) -> Iterator[Diagnostic]:
    """Checksums over each other: none of them could be worked out first."""
    covers: dict[str, list[Field]] = {}
    checksums = [f for f in layout.fields if f.checksum is not None and exists_in(f, version)]
    for f in checksums:
        all_ends = [(bounds(layout, f, part), part.zero) for part in f.covers]
        covers[f.name] = [
            g
            for ends, zeros in all_ends
            for g in (layout.fields[ends[0] : ends[1] + 1] if ends is not None else ())
            if g in checksums and g.name not in zeros
        ]
    for f in checksums:
        seen: set[str] = set()
        todo = list(covers.get(f.name, ()))
        while todo:
            g = todo.pop()
            if g.name not in seen:
                seen.add(g.name)
                todo += covers.get(g.name, ())
        if f.name in seen:
            others = ", ".join(f'"{name}"' for name in sorted(seen - {f.name}))
            message = f'"{f.name}" covers {others}, which covers it too'
            yield Diagnostic(
                "C016", message, place(f, "covers"), help="one must not cover the other"
            )
            return
