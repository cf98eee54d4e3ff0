"""The key ``none`` of a field: what stands in the bytes if there is no value.

It is a number (the value of a number, a length or a count), a number in front of a layout, or ``true`` where a flexible
layout says how. Each can be given by version.
"""

from __future__ import annotations

from codecgen.diagnostics import Span
from codecgen.schema.reader import Ranged, Reader, Record
from codecgen.schema.types import Versions


def settled_versions(r: Record) -> tuple[Versions, ...]:
    """Return the versions in which a field has ``none: true``. Return ``()`` if it has no ``none``,
    or another value in a version that ``none`` names.
    """
    parts = _parts_of_none(r)
    return tuple(part for part, value, _ in parts) if all(v is True for _, v, _ in parts) else ()


def values_of_none(reader: Reader, r: Record, name: str, *, encodes_null: bool) -> Record:
    """Return the record of the field ``name`` unchanged, or, after a diagnostic, without a ``none``
    that it cannot have: ``false``, anything but ``true`` if the layout says how the field encodes
    null (``encodes_null``), ``true`` if it does not, a number for a layout or the reverse, or numbers by
    version for a number field.

    Args:
        reader: Collects the diagnostics.
        r: Record of the field.
        name: Name of the field.
        encodes_null: Whether the layout says how the field encodes that there is no value.
    """
    good = True
    for _, value, span in _parts_of_none(r):
        found = _find_mistake(r, value, name, encodes_null=encodes_null)
        if found is not None:
            reader.report(found[0], found[1], span, help=found[2])
            good = False
    if good and "type" in r and isinstance(r["none"], Ranged):
        message = f'the number that means null must be the same in all versions of "{name}"'
        reader.report("C011", message, r.at("none"), help="write `none: -1`")
        good = False
    return r if good else Record(r.form, {k: v for k, v in r.values.items() if k != "none"}, r.span)


def _parts_of_none(r: Record) -> tuple[tuple[Versions, object, Span], ...]:
    """Return each value of ``none`` with its versions and its place, or ``()`` if the key is missing."""
    if "none" not in r:
        return ()
    value = r["none"]
    if isinstance(value, Ranged):
        return tuple((versions, one.value, one.span) for versions, one, _ in value.parts)
    return ((Versions(0, None), value, r.at("none")),)


def _find_mistake(
    r: Record, value: object, name: str, *, encodes_null: bool
) -> tuple[str, str, str] | None:
    """Return (diagnostic id, message, help) for a value of ``none`` that the field ``name`` cannot
    have, or None. ``true`` goes with a field whose null the layout encodes (``encodes_null``), which
    takes nothing else; ``false`` is never right.
    """
    held = "layout" in r or "fields" in r
    number = "`none: {type: i8, value: -1}`" if held else "`none: -1`"
    if value is False:
        return (
            "C006",
            "true is expected, not false",
            "remove `none`: a field without it always has a value",
        )
    if encodes_null and value is not True:
        return (
            "C051",
            f'the layout is flexible and decides how the null of "{name}" is written',
            "write `none: true`",
        )
    if value is True and not encodes_null:
        message = (
            f'`true` is only for a length that a flexible layout decides, and "{name}" has none'
        )
        return "C051", message, f"write {number}"
    if value is not True and held is not isinstance(value, Record):
        what = "a layout" if held else "a number, a length or a count"
        return "C011", f'"{name}" is {what}, which takes another form of "none"', f"write {number}"
    return None
