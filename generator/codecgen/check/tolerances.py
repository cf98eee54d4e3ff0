"""Check tolerances of layouts: each one has an effect."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic
from codecgen.plan import LayoutPlan, Plan, make_plan
from codecgen.schema.lookup import bytes_of, choice_of, number_types, reference_of, references_of
from codecgen.schema.model import TOLERANCES, Field, Layout, Model
from codecgen.schema.scalars import COMPACT, VARINTS, is_varint
from codecgen.schema.types import ArrayType, BytesType, ScalarType, StructType, TagsType
from codecgen.spans import place


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each tolerance in ``accepts`` of a layout or field that no field of it
    (inline layouts included) can be about. ``trailing_bytes`` of a layout is always allowed.
    Tolerances that a field shares with its layout are not repeated. Raise ValueError if an
    expression is invalid, which passes before this one report.
    """
    plan = make_plan(model)
    for layout in model.layouts.values():
        fields = tuple(_with_inline_fields(layout, model))
        for tolerance in () if layout.is_local else sorted(layout.accepts):
            if tolerance != "trailing_bytes" and not any(
                _applies(tolerance, f, plan) for f in fields
            ):
                yield _no_effect(tolerance, f'"{layout.name}"', layout)
        for f in layout.fields:
            inside = tuple(_inline_fields(f, model))
            for tolerance in sorted(f.accepts - layout.accepts):
                if not any(_applies(tolerance, g, plan) for g in (f, *inside)):
                    yield _no_effect(tolerance, f'"{f.name}"', f)


def _with_inline_fields(layout: Layout, model: Model) -> Iterator[Field]:
    """Yield the fields of a layout, and those of its inline layouts."""
    for f in layout.fields:
        yield f
        yield from _inline_fields(f, model)


def _inline_fields(f: Field, model: Model) -> Iterator[Field]:
    """Yield the fields of the inline (``is_local``) layout that a field holds, and of inline
    layouts inside it. Yield nothing if it holds none or a named one.
    """
    ref = reference_of(f)
    held = None if ref is None else model.layouts.get(ref.layout)
    if held is not None and held.is_local:
        yield from _with_inline_fields(held, model)


def _no_effect(tolerance: str, what: str, thing: Layout | Field) -> Diagnostic:
    """Return the diagnostic C029 that ``thing``, called ``what``, has nothing to which the
    tolerance could apply. Its help says what the tolerance allows.
    """
    message = f'"{tolerance}" has no effect on {what}'
    help = f"take the word out: it allows {TOLERANCES[tolerance]}"
    if tolerance == "truncated_tail":
        help += "; it has an effect if the array reaches to the end (no count, no condition in `until`), and its elements have a fixed size or, at a fixed place, a field that `measures` them to their end"
    return Diagnostic("C029", message, place(thing, "accepts"), help=help)


def _applies(tolerance: str, f: Field, plan: Plan) -> bool:
    """Return whether a tolerance can have an effect on a field, in any of its types."""
    return any(_applies_to_type(tolerance, one, plan) for one in f.variants())


def _applies_to_type(tolerance: str, f: Field, plan: Plan) -> bool:
    """Return whether a tolerance can have an effect on a field of one type, for example
    ``invalid_utf8`` on text. For tolerances not listed (``trailing_bytes``), return whether the
    field measures a range or holds a layout.
    """
    match tolerance:
        case "overlong_varints":
            return any(name in (*VARINTS, COMPACT.name) for name in number_types(f))
        case "negative_null":
            found = bytes_of(f)
            nulls = [getattr(f.type, "null", None), None if found is None else found.null]
            nulls.append(getattr(choice_of(f), "null", None))
            return any(null is not None and null < 0 for null in nulls)
        case "loose_tags":
            return isinstance(f.type, TagsType)
        case "any_present":
            return isinstance(f.type, StructType) and f.type.present is not None
        case "invalid_utf8":
            found = bytes_of(f)
            return found is not None and found.text
        case "bytes_after_none":
            return isinstance(f.type, ArrayType) and _can_count_zero(f.type)
        case "truncated_tail":
            return (
                isinstance(f.type, ArrayType)
                and _is_open_ended(f.type)
                and _has_known_size(f, plan)
            )
        case "mixed_versions" | "unchecked_elements":
            return isinstance(f.type, ArrayType) and _applies_to_elements(tolerance, f, plan.model)
        case _:
            return f.measures is not None or bool(references_of(f))


def _can_count_zero(array: ArrayType) -> bool:
    """Return whether a count, in front of the array or in another field, gives the number of
    elements, so that it can be 0. False for a fixed number.
    """
    return array.count is not None or array.counted_by is not None


def _is_open_ended(array: ArrayType) -> bool:
    """Return whether only the end of the bytes ends an array."""
    return not array.has_count and array.until is None


def _has_known_size(f: Field, plan: Plan) -> bool:
    """Return whether the first bytes of an element give its size, so that a cut-off element is
    recognizable: scalars except varints, bytes of fixed length, and layouts of which every version
    has a fixed size or a length field that measures it to its end. False for all other elements.
    """
    ref = reference_of(f)
    if ref is None:
        element = f.type.element if isinstance(f.type, ArrayType) else None
        if isinstance(element, BytesType):
            return isinstance(element.length, int)
        return isinstance(element, ScalarType) and not is_varint(element.name)
    return all(p.size is not None or _is_measured(p) for p in plan.of(ref))


def _is_measured(plan: LayoutPlan) -> bool:
    """Return whether an unconditional length field at a fixed position measures the layout from a
    fixed position to its last field.
    """
    for fp in plan.fields:
        field_range = fp.measures
        if field_range is None or fp.offset is None or fp.size is None or fp.field.when is not None:
            continue
        first = plan.field(field_range.first)
        to_end = field_range.last in (None, plan.fields[-1].name)
        if to_end and first is not None and first.offset is not None:
            return True
    return False


def _applies_to_elements(tolerance: str, f: Field, model: Model) -> bool:
    """Return whether ``mixed_versions`` or ``unchecked_elements`` can have an effect on the
    elements of an array: their layout has a version field, or a checksum. True for an unknown
    layout; False for elements that are no layouts.
    """
    ref = reference_of(f)
    held = model.layouts.get(ref.layout) if ref is not None else None
    if held is None:
        return ref is not None
    if tolerance == "mixed_versions":
        return held.version_is is not None
    return any(inner.checksum is not None for inner in held.fields)
