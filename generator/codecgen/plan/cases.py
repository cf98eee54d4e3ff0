"""Find the layout of a value in a field that can hold one of several layouts."""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.plan.encoded_sizes import SizeError, evaluate
from codecgen.plan.layouts import FieldPlan, LayoutPlan, Plan
from codecgen.plan.nodes import Value
from codecgen.schema.lookup import choice_of, field_of
from codecgen.schema.types import ChoiceType, Reference, ScalarType, StructType


def find_held_plan(
    plan: Plan, around: LayoutPlan, fp: FieldPlan, fields: Mapping[str, object], value: object
) -> LayoutPlan | None:
    """Return the layout plan, in its version, of ``value``, which the field ``fp`` holds, directly
    or as a case of a choice. ``value`` may be an element of ``fp`` if the elements are a choice.
    ``fields`` are the values of the surrounding layout ``around``. Return None if no case or
    version matches or can be worked out, and for other fields, arrays of one layout included.
    """
    choice = choice_of(fp.field)
    ref: Reference | None
    if choice is not None:
        ref = _find_case(plan, around, fp, choice, fields, value)
    else:
        ref = fp.field.type.layout if isinstance(fp.field.type, StructType) else None
    if ref is None:
        return None
    return _find_version(plan, around, fp, ref, fields, value)


def _find_case(
    plan: Plan,
    around: LayoutPlan,
    fp: FieldPlan,
    choice: ChoiceType,
    fields: Mapping[str, object],
    value: object,
) -> Reference | None:
    """Return the first case of ``choice`` that the discriminator selects, or None if none matches.
    The discriminator is the field's ``given``, evaluated with ``fields`` of the layout ``around``,
    or the field ``by`` in ``value``, as a number or enum name. Discriminators of nested choices in
    ``value`` must match too.
    """
    if choice.by is None:
        number = _evaluate(plan, around, fields, fp, fp.given)
    else:
        number = value.get(choice.by) if isinstance(value, Mapping) else None
    for key, ref in choice.cases:
        named = number
        if isinstance(number, str) and choice.by is not None:
            named = _find_enum_number(plan, ref, choice.by, number)
        if named is not None and named == key and _matches_steps(plan, ref, value):
            return ref
    return None


def _matches_steps(plan: Plan, ref: Reference, value: object) -> bool:
    """Return whether ``value`` has the discriminators, as numbers or enum names, by which nested
    choices lead to ``ref``. True if there are no nested choices; otherwise False if ``value`` is no
    mapping.
    """
    if not ref.steps or not isinstance(value, Mapping):
        return not ref.steps
    discriminators = {step.by: value.get(step.by) for step in ref.steps}
    words = {
        by: _find_enum_number(plan, ref, by, word)
        for by, word in discriminators.items()
        if isinstance(word, str)
    }
    return ref.matches(discriminators | words)


def _find_enum_number(plan: Plan, ref: Reference, by: str, word: str) -> int | None:
    """Return the number of the enum value with the name or spelling ``word`` in the field ``by`` of
    the layout ``ref``. Return None if the layout has no such field, or it has no enum with that
    value.
    """
    f = field_of(plan.model.layouts[ref.layout], by)
    enum = f.type.enum if f is not None and isinstance(f.type, ScalarType) else None
    values = plan.model.enums[enum].values if enum is not None else ()
    return next((v.value for v in values if word in (v.name, v.spelled)), None)


def _find_version(
    plan: Plan,
    around: LayoutPlan,
    fp: FieldPlan,
    ref: Reference,
    fields: Mapping[str, object],
    value: object,
) -> LayoutPlan | None:
    """Return the plan of ``ref`` in the version of its version field in ``value``, or for a layout
    without such a field in that of the field's ``held_version``. With neither, or if only one
    version is possible, return the first version that the surrounding layout allows. Return None if
    no version matches, or ``value`` lacks the version field.
    """
    by = plan.model.layouts[ref.layout].version_is
    if fp.held_version is None:
        plans = plan.held(ref, around)
        if len(plans) == 1 or by is None:
            return plans[0]
    else:
        plans = plan.of(ref)
        version = _evaluate(plan, around, fields, fp, fp.held_version)
        if by is None:
            return next((p for p in plans if p.version in (version, None)), None)
    wanted = value.get(by) if isinstance(value, Mapping) and by is not None else None
    return next((p for p in plans if p.version in (wanted, None)), None)


def _evaluate(
    plan: Plan, layout: LayoutPlan, fields: Mapping[str, object], at: FieldPlan, value: Value | None
) -> object:
    """Return the result of ``value``, an expression of the field ``at`` of a layout, for the values
    in ``fields`` and those that a builder works out. Return None if ``value`` is None, or its
    evaluation raises SizeError, for example for an unknown enum name.
    """
    try:
        return None if value is None else evaluate(plan, layout, fields, at, value)
    except SizeError:  # a word that is no value of its enum
        return None


__all__ = ["find_held_plan"]
