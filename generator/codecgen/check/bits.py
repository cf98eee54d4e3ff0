"""Check bits: each belongs to exactly one member, and members are wide enough for their enums."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic, unique
from codecgen.plan.as_of import exists_at
from codecgen.runtime.nouns import count_noun
from codecgen.schema.lookup import all_versions, enum_values, exists_in
from codecgen.schema.model import Field, Layout, Model
from codecgen.schema.scalars import SCALARS
from codecgen.schema.types import BitMember, BitsType
from codecgen.spans import place


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield the diagnostics of every bit field (``BitsType``): no members, a bit beyond the width,
    overlapping or missing bits, enum values that do not fit. Reserved members are reported if they
    have keys that they cannot have, are several in a version, or have no bits or bits that are not
    adjacent. Each id is reported once per place in a field.
    """
    for layout in model.layouts.values():
        for f in layout.fields:
            if isinstance(f.type, BitsType):
                yield from unique(_check_field(f, f.type, layout, model))


def _check_field(f: Field, type_: BitsType, layout: Layout, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a bit field has no members, a member exceeds the base type, an enum
    value does not fit its member, or a reserved member has ``enum`` or ``default``. Then check
    overlaps in each version of the layout, and leftover bits if all members lie within the base
    type.
    """
    width = SCALARS[type_.base].bits
    if not type_.members:
        help = f"name all bits in one member: `all: {{at: 0-{width - 1}}}`"
        yield Diagnostic("C015", f'"{f.name}" has no members', place(f, "members"), help=help)
    fitting = []
    for m in type_.members:
        if m.reserved:
            fitting.append(m)
            yield from _check_reserved(m)
        elif m.high >= width:
            message = f"bit {m.high} is beyond the {width} bits of {type_.base}"
            yield Diagnostic("C015", message, place(m, "at"), help=f"they are 0 to {width - 1}")
        else:
            fitting.append(m)
            yield from _check_enum_fits(m, model)
    for version in all_versions(layout):
        there = [m for m in fitting if exists_in(m, version)]
        whole = len(fitting) == len(type_.members)
        yield from _check_version(f, there, width, whole, model.manifest.releases)


def _check_reserved(m: BitMember) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each of the keys ``enum`` and ``default`` that a reserved member (bits
    that nobody uses) has.
    """
    for key in ("enum", "default"):
        if key in m.places:
            message = f'"{key}" has no meaning for reserved bits'
            yield Diagnostic("C011", message, place(m, key))


def _check_enum_fits(m: BitMember, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for the first enum value, among those that the member's ``only`` allows,
    that is negative or needs more bits than the member has. Yield nothing if the member has no enum
    or the enum is not declared.
    """
    enum = model.enums.get(m.enum or "")
    if enum is None:
        return
    for name, value in enum_values(enum, m.only):
        if not 0 <= value < 1 << m.width:
            bits = count_noun(m.width, "bit")
            message = f'"{name}" is {value}, which does not fit {bits}'
            yield Diagnostic(
                "C015",
                message,
                place(m, "at"),
                help=f"use more bits, or list the values that can occur under `only`; the enum is at {enum.span}",
            )
            return


def _check_version(
    f: Field, there: list[BitMember], width: int, whole: bool, releases: tuple[str, ...]
) -> Iterator[Diagnostic]:
    """Yield diagnostics about the bit members ``there`` in one version: two overlap, or there are
    several reserved members. If ``whole`` (no member was dropped as invalid), also report bits that
    belong to no member, a reserved member without bits, and reserved bits that are not adjacent
    (now or as of one of ``releases``). A version without members has no diagnostics.
    """
    taken: dict[int, BitMember] = {}
    for m in there:
        if m.reserved:
            continue
        for bit in range(m.low, m.high + 1):
            if bit in taken:
                other = taken[bit]
                message = f'"{m.name}" and "{other.name}" overlap in bit {bit}'
                help = f'"{other.name}" is at {place(other, "at")}'
                yield Diagnostic("C015", message, place(m, "at"), help=help)
                break
            taken[bit] = m
    reserved = [m for m in there if m.reserved]
    for m in reserved[1:]:
        message = f'"{reserved[0].name}" already reserves all remaining bits'
        help = f'take "{m.name}" out, or give it bits of its own: `at: 3-7`'
        yield Diagnostic("C015", message, place(m, "reserved"), help=help)
    if not whole:
        return
    free = [bit for bit in range(width) if bit not in taken]
    if reserved and not free:
        message = f'no bits are left for "{reserved[0].name}"'
        yield Diagnostic("C015", message, place(reserved[0], "reserved"), help="take it out")
    elif not reserved and free and there:
        message = f'{_format_bits(free)} of "{f.name}" belong to no member'
        help = "add `unused: {reserved: keep}`"
        yield Diagnostic("C015", message, place(f, "members"), help=help)
    if reserved:
        yield from _check_contiguous(f, there, reserved[0], width, releases)


def _check_contiguous(
    f: Field,
    there: list[BitMember],
    reserved: BitMember,
    width: int,
    releases: tuple[str, ...],
) -> Iterator[Diagnostic]:
    """Yield one diagnostic if the bits that no named member takes have gaps between them, in the
    current schema or as of one of ``releases``; the first such release only. Yield nothing if named
    members take all bits.
    """
    for release in (None, *releases):
        taken = {
            bit
            for m in there
            if not m.reserved and (release is None or exists_at(m.since, release))
            for bit in range(m.low, m.high + 1)
        }
        free = [bit for bit in range(width) if bit not in taken]
        if free and free[-1] - free[0] + 1 != len(free):
            when = f" as of {release}" if release else ""
            message = f'reserved bits must be adjacent, but {_format_bits(free)} of "{f.name}" are left{when}'
            help = "give all of them but the last ones in a row members of their own, with `at`"
            if release:
                late = [
                    f'"{m.name}"'
                    for m in there
                    if not m.reserved and not exists_at(m.since, release)
                ]
                help = f"take `since` out at {' and '.join(late)}: reserved bits must be adjacent in each release"
            yield Diagnostic("C015", message, place(reserved, "reserved"), help=help)
            return


def _format_bits(bits: list[int]) -> str:
    """Return ascending bit numbers, at least one, as text: ``bit 3``, ``bits 3 to 5`` if they are
    consecutive, else ``bits 1, 3`` with at most the first ten.
    """
    if len(bits) == 1:
        return f"bit {bits[0]}"
    if bits[-1] - bits[0] + 1 == len(bits):
        return f"bits {bits[0]} to {bits[-1]}"
    return "bits " + ", ".join(str(bit) for bit in bits[:10])
