"""Which of several layouts a value is, where a field holds one of them."""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.plan.encoded_sizes import SizeError, evaluated
from codecgen.plan.layouts import FieldPlan, LayoutPlan, Plan
from codecgen.plan.nodes import Value
from codecgen.schema.lookup import choice_of, field_of
from codecgen.schema.types import ChoiceType, Reference, ScalarType, StructType


def held_plan(
    plan: Plan, around: LayoutPlan, fp: FieldPlan, fields: Mapping[str, object], value: object
) -> LayoutPlan | None:
    """The layout that ``value`` is, in the field ``fp`` or as an element of it, by the values of the ``fields`` around it. None
    for what has no case."""
    known = _with_those_left_out(plan, around, fields)
    choice = choice_of(fp.field)
    ref: Reference | None
    if choice is not None:
        ref = _case(plan, around, fp, choice, known, value)
    else:
        ref = fp.field.type.layout if isinstance(fp.field.type, StructType) else None
    if ref is None:
        return None
    return _in_version(plan, around, fp, ref, known, value)


def _case(
    plan: Plan,
    around: LayoutPlan,
    fp: FieldPlan,
    choice: ChoiceType,
    fields: Mapping[str, object],
    value: object,
) -> Reference | None:
    if choice.by is None:
        number = _evaluated(plan, around, fields, fp.given)
    else:
        number = value.get(choice.by) if isinstance(value, Mapping) else None
    for key, ref in choice.cases:
        named = number
        if isinstance(number, str) and choice.by is not None:
            named = _number(plan, ref, choice.by, number)
        if named is not None and named == key and _is_said(plan, ref, value):
            return ref
    return None


def _is_said(plan: Plan, ref: Reference, value: object) -> bool:
    """Whether a value has the numbers, or the names of them, by which choices lead to a layout."""
    if not ref.steps or not isinstance(value, Mapping):
        return not ref.steps
    said = {step.by: value.get(step.by) for step in ref.steps}
    words = {by: _number(plan, ref, by, word) for by, word in said.items() if isinstance(word, str)}
    return ref.is_said(said | words)


def _number(plan: Plan, ref: Reference, by: str, word: str) -> int | None:
    f = field_of(plan.model.layouts[ref.layout], by)
    enum = f.type.enum if f is not None and isinstance(f.type, ScalarType) else None
    values = plan.model.enums[enum].values if enum is not None else ()
    return next((v.value for v in values if word in (v.name, v.spelled)), None)


def _in_version(
    plan: Plan,
    around: LayoutPlan,
    fp: FieldPlan,
    ref: Reference,
    fields: Mapping[str, object],
    value: object,
) -> LayoutPlan | None:
    by = plan.model.layouts[ref.layout].version_is
    if fp.held_version is None:
        plans = plan.held(ref, around)
        if len(plans) == 1 or by is None:
            return plans[0]
    else:
        plans = plan.of(ref)
        version = _evaluated(plan, around, fields, fp.held_version)
        if by is None:
            return next((p for p in plans if p.version in (version, None)), None)
    wanted = value.get(by) if isinstance(value, Mapping) and by is not None else None
    return next((p for p in plans if p.version in (wanted, None)), None)


def _with_those_left_out(
    plan: Plan, layout: LayoutPlan, fields: Mapping[str, object]
) -> Mapping[str, object]:
    """The fields with what builders write for those that are not given."""
    out = dict(fields)
    for fp in layout.fields:
        if fp.name in out:
            continue
        if fp.field.is_version:
            out[fp.name] = layout.version
        elif fp.field.const is not None:
            out[fp.name] = fp.field.const
        elif fp.default is not None:
            out[fp.name] = _evaluated(plan, layout, out, fp.default)
    return out


def _evaluated(
    plan: Plan, layout: LayoutPlan, fields: Mapping[str, object], value: Value | None
) -> object:
    try:
        return None if value is None else evaluated(plan, layout, fields, value)
    except SizeError:  # a word that is no value of its enum
        return None


__all__ = ["held_plan"]
