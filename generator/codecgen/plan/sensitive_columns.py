"""Which columns of views are secrets: those that are made of fields that are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass

from codecgen.plan.columns import CasePlan, Leaf, ViewPlan
from codecgen.plan.layouts import Plan
from codecgen.plan.nodes import Comparison, FieldValue, Membership, Negation, Value
from codecgen.plan.payloads import PayloadCase, PayloadPlan
from codecgen.runtime.sensitive import Sensitive
from codecgen.schema.lookup import field_of
from codecgen.schema.model import Field
from codecgen.schema.types import ArrayType, Reference, StructType


def sensitivity(plan: Plan, view: ViewPlan | PayloadPlan, leaf: Leaf) -> Sensitive | None:
    """Return why a column, or a part of a column of structs or lists, is secret, by the fields that
    its values show, or None if no value is a secret. If only names with certain endings are secret,
    it names the column (or the part beside it) with the field's name; without such a column, or if
    cases differ, all values are secret.
    """
    found = {secret for case in _cases(view) for secret in _secrets_of(plan, view, case, leaf)}
    if not found:
        return None
    return found.pop() if len(found) == 1 else Sensitive()


def _cases(view: ViewPlan | PayloadPlan) -> Iterator[CasePlan | PayloadCase]:
    """Yield each case of the view; for payloads, each case of each combination."""
    if isinstance(view, ViewPlan):
        yield from view.cases
        return
    for combination in view.combinations:
        yield from combination.cases


def _secrets_of(
    plan: Plan, view: ViewPlan | PayloadPlan, case: CasePlan | PayloadCase, leaf: Leaf
) -> Iterator[Sensitive]:
    """Yield the reason for each secret field that a column shows in the rows of a case. Yield
    nothing if the case gives the column no value, or none that is secret.
    """
    value = case.values.get(leaf.root.name)
    if value is None:
        return
    if leaf.inside is None:
        is_secret_array = case.array is not None and case.array.field.sensitive is not None
        if is_secret_array and any(field.owner == "item" for field in _fields(value)):
            yield Sensitive()
        yield from _secrets(case.values, value)
        return
    path = [leaf]
    while path[0].inside is not None and path[0].inside.inside is not None:
        path.insert(0, path[0].inside)
    siblings = {other.column.name for other in view.inside(leaf.inside)}
    for field in _fields(value):
        yield from _secrets_inside(plan, field.field, path, siblings)


def _secrets_inside(
    plan: Plan, holder: Field, path: list[Leaf], siblings: Collection[str]
) -> Iterator[Sensitive]:
    """Yield the reason for each secret among the fields at ``path`` in the layouts that the field
    ``holder`` holds. ``siblings`` are the columns that show fields of the same layout as the last of the path.
    """
    name, rest = path[0].column.name, path[1:]
    for type_ in holder.all_types():
        ref = type_.element if isinstance(type_, ArrayType) else None
        ref = type_.layout if isinstance(type_, StructType) else ref
        if not isinstance(ref, Reference):
            continue
        field = field_of(plan.model.layouts[ref.layout], name)
        if field is None:
            for of in plan.of(ref):
                for derived in of.derived:
                    if derived.derived.name == name and any(_secrets({}, derived)):
                        yield Sensitive()
        elif rest:
            yield from _secrets_inside(plan, field, rest, siblings)
        elif field.sensitive is not None:
            is_named = field.sensitive.named_by is None or field.sensitive.named_by in siblings
            yield field.sensitive if is_named else Sensitive()


def _secrets(values: Mapping[str, Value], value: Value) -> Iterator[Sensitive]:
    """Yield the reason for each secret field that ``value`` shows: with naming column and endings
    if the value is the field itself and a column shows the field that names it, else without, which
    means always secret. ``values`` are those of all columns. A field inside of a secret one is a
    secret. Yield nothing if no field is secret.
    """
    for field in _fields(value):
        if any(holder.sensitive is not None for holder in field.holders):
            yield Sensitive()
        secret = field.field.sensitive
        if secret is None:
            continue
        if secret.named_by is None or field is not value:
            yield Sensitive()
            continue
        name = next(
            (
                column
                for column, other in values.items()
                if isinstance(other, FieldValue)
                and other.field.name == secret.named_by
                and (other.owner, other.holders) == (field.owner, field.holders)
            ),
            None,
        )
        yield Sensitive() if name is None else Sensitive(name, secret.endings)


def _fields(value: object) -> Iterator[FieldValue]:
    """Yield the fields whose content a value shows, nested ones included. Fields that are only
    compared or negated are left out.
    """
    if isinstance(value, FieldValue):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _fields(part)
    elif is_dataclass(value) and not isinstance(value, Comparison | Membership | Negation):
        for part in fields(value):
            yield from _fields(getattr(value, part.name))
