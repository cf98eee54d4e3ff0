"""Find fields that neither kernels nor NumPy readers support, in the layouts of a view."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.plan import FieldPlan, LayoutPlan, Plan, nodes
from codecgen.plan.columns import ViewPlan
from codecgen.schema.lookup import bytes_of, choice_of
from codecgen.schema.model import Field
from codecgen.schema.types import FROM_OUTSIDE, ZERO_TERMINATED, ArrayType, ChoiceType, PaddingType
from codecgen.targets.arrow.checks import Unsupported


def refuse_unsupported_view(plan: Plan, view: ViewPlan) -> None:
    """Raise Unsupported for rows that are made of several arrays, for columns that look elements
    up, and for the first field, in the layouts of a view or inside of them, that
    :func:`refuse_unsupported_layout` refuses. Do nothing if there is none.
    """
    for case in view.cases:
        if case.other_arrays and case.array is not None:
            raise Unsupported("rows made of several arrays", case.array.field)
        for value in case.values.values():
            for look_up in nodes.look_ups_in(value):
                raise Unsupported("an array in which elements are looked up", look_up.array.field)
        refuse_unsupported_layout(plan, case.entry)


def refuse_unsupported_layout(plan: Plan, entry: LayoutPlan) -> None:
    """Raise Unsupported for the first field, in ``entry`` or in layouts inside of it, with a
    feature that kernels and NumPy readers lack: padding, ``until`` arrays, zero-terminated or
    zero-padded bytes, some lengths, counts and checksums, arrays from outside and look-ups. Do
    nothing if there is none. Cases of a field that is a choice are not examined.
    """
    for layout in _layouts(plan, entry):
        for fp in layout.given_arrays:
            raise Unsupported("an array that the layout gets from outside (`given`)", fp.field)
        for value in layout.look_ups:
            for look_up in nodes.look_ups_in(value):
                raise Unsupported("an array in which elements are looked up", look_up.array.field)
        given = [fp.name for fp in layout.given]
        for fp in layout.fields:
            reason = _unsupported_feature(fp)
            if isinstance(fp.field.type, ArrayType) and fp.field.type.counted_by in given:
                reason = "a count from outside"
            if reason:
                raise Unsupported(reason, fp.field)


def find_choice(plan: Plan, entry: LayoutPlan) -> Field | None:
    """Return a field that is a choice, or an array of a choice: the first of the layout, otherwise
    one of the layouts inside of it, in no particular order; None if there is none.
    """
    for layout in _layouts(plan, entry):
        for fp in layout.fields:
            if choice_of(fp.field) is not None:
                return fp.field
    return None


def _layouts(plan: Plan, entry: LayoutPlan) -> Iterator[LayoutPlan]:
    """Yield the layout ``entry``, then all layouts inside of it, at any depth and each version
    once, in no particular order. The cases of a field that is a choice are left out; those of an
    array of a choice are included.
    """
    todo, seen = [entry], {(entry.name, entry.version)}
    while todo:
        layout = todo.pop()
        yield layout
        for fp in layout.fields:
            if isinstance(fp.field.type, ChoiceType):
                continue  # who reads cases looks at them
            for held in plan.held_by(fp.field.type, layout):
                if (held.name, held.version) not in seen:
                    seen.add((held.name, held.version))
                    todo.append(held)


def _unsupported_feature(fp: FieldPlan) -> str:
    """Return the feature of a field that kernels and NumPy readers lack, in words for a message;
    ``""`` if there is none. Features: padding, ``until`` arrays, zero-terminated or zero-padded
    bytes, a count plus or minus a number; lengths from outside, with an excess, or that count bytes
    before them; checksums of several ranges, or for which fields count as zeros.
    """
    f = fp.field
    if isinstance(f.type, PaddingType):
        return "padding"
    if isinstance(f.type, ArrayType) and f.type.plus:
        return "a count that is a field plus or minus a number"
    if fp.until is not None:
        return "an array whose elements say which one is the last"
    content = bytes_of(f)
    if f.excess:
        return "a length that is more or less than the bytes that it measures"
    if content is not None and content.length == FROM_OUTSIDE:
        return "of a length from outside"
    if content is not None and content.length == ZERO_TERMINATED:
        return "ended by a zero byte"
    if content is not None and content.padded:
        return "filled up with zero bytes"
    if fp.own_bytes > (fp.size or 0):
        return "a length that counts bytes before it"
    if len(f.covers) > 1:
        return "a checksum of several ranges"
    if f.zero:
        return "a checksum for which fields count as zero bytes"
    return ""


__all__ = ["find_choice", "refuse_unsupported_layout", "refuse_unsupported_view"]
