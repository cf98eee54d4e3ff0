"""Freedoms: each has something to free."""

from __future__ import annotations

from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic
from codecgen.plan import LayoutPlan, Plan, make_plan
from codecgen.schema.lookup import bytes_of, choice_of, number_types, reference_of, references_of
from codecgen.schema.model import FREEDOMS, Field, Layout, Model
from codecgen.schema.scalars import COMPACT, VARINTS, is_varint
from codecgen.schema.types import ArrayType, BytesType, ScalarType, StructType, TagsType
from codecgen.spans import place


def check(model: Model) -> Iterator[Diagnostic]:
    plan = make_plan(model)
    for layout in model.layouts.values():
        fields = tuple(_with_local(layout, model))
        for freedom in () if layout.is_local else sorted(layout.accepts):
            if freedom != "trailing_bytes" and not any(_applies(freedom, f, plan) for f in fields):
                yield _nothing(freedom, f'"{layout.name}"', layout)
        for f in layout.fields:
            inside = tuple(_inside(f, model))
            for freedom in sorted(f.accepts - layout.accepts):
                if not any(_applies(freedom, g, plan) for g in (f, *inside)):
                    yield _nothing(freedom, f'"{f.name}"', f)


def _with_local(layout: Layout, model: Model) -> Iterator[Field]:
    """The fields of a layout, and those of layouts that are written in the place of one."""
    for f in layout.fields:
        yield f
        yield from _inside(f, model)


def _inside(f: Field, model: Model) -> Iterator[Field]:
    ref = reference_of(f)
    held = None if ref is None else model.layouts.get(ref.layout)
    if held is not None and held.is_local:
        yield from _with_local(held, model)


def _nothing(freedom: str, what: str, thing: Layout | Field) -> Diagnostic:
    message = f'{what} has nothing that "{freedom}" could be about'
    help = f"it allows {FREEDOMS[freedom]}"
    if freedom == "truncated_tail":
        help += "; the array reaches to the end, and the first bytes of an element tell its length"
    return Diagnostic("C029", message, place(thing, "accepts"), help=help)


def _applies(freedom: str, f: Field, plan: Plan) -> bool:
    return any(_fits(freedom, one, plan) for one in f.variants())


def _fits(freedom: str, f: Field, plan: Plan) -> bool:
    match freedom:
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
            return isinstance(f.type, ArrayType) and _may_say_none(f.type)
        case "truncated_tail":
            return isinstance(f.type, ArrayType) and _ends_open(f.type) and _tells_its_end(f, plan)
        case "mixed_versions" | "unchecked_elements":
            return isinstance(f.type, ArrayType) and _element_can(freedom, f, plan.model)
        case _:
            return f.measures is not None or bool(references_of(f))


def _may_say_none(array: ArrayType) -> bool:
    """Whether a number says how many elements there are, and can be 0."""
    return array.count is not None or array.counted_by is not None


def _ends_open(array: ArrayType) -> bool:
    """Whether only the end of the bytes says how many elements there are."""
    return not array.has_count and array.until is None


def _tells_its_end(f: Field, plan: Plan) -> bool:
    """Whether the first bytes of an element tell its length, so that one that is cut off is known from a broken one."""
    ref = reference_of(f)
    if ref is None:
        element = f.type.element if isinstance(f.type, ArrayType) else None
        if isinstance(element, BytesType):
            return isinstance(element.length, int)
        return isinstance(element, ScalarType) and not is_varint(element.name)
    return all(p.size is not None or _is_measured(p) for p in plan.of(ref))


def _is_measured(plan: LayoutPlan) -> bool:
    """Whether a field at a fixed place measures the layout to its end, from a fixed place on."""
    for fp in plan.fields:
        field_range = fp.measures
        if field_range is None or fp.offset is None or fp.size is None or fp.field.when is not None:
            continue
        first = plan.field(field_range.first)
        to_end = field_range.last in (None, plan.fields[-1].name)
        if to_end and first is not None and first.offset is not None:
            return True
    return False


def _element_can(freedom: str, f: Field, model: Model) -> bool:
    ref = reference_of(f)
    held = model.layouts.get(ref.layout) if ref is not None else None
    if held is None:
        return ref is not None
    if freedom == "mixed_versions":
        return held.version_is is not None
    return any(inner.checksum is not None for inner in held.fields)
