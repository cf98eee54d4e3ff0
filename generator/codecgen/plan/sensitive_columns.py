"""Which columns of views are secrets: those that are made of fields that are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from codecgen.plan.columns import Leaf, ViewPlan
from codecgen.plan.nodes import Comparison, FieldValue, Membership, Negation, Value
from codecgen.plan.payloads import PayloadPlan
from codecgen.runtime.sensitive import Sensitive


def sensitivity(view: ViewPlan | PayloadPlan, leaf: Leaf) -> Sensitive | None:
    """Return why a column is secret, by the fields that its values show, or None if no value is a
    secret. Secret fields inside the layout of a struct or list are not looked at: such a column,
    and its parts, give None. If only names with certain endings are secret, it names the column
    with the field's name. Without such a column, or if cases differ, all values are secret.
    """
    found = {
        secret
        for values in _values(view)
        if leaf.name in values
        for secret in _secrets(values, values[leaf.name])
    }
    if not found:
        return None
    return found.pop() if len(found) == 1 else Sensitive()


def _values(view: ViewPlan | PayloadPlan) -> Iterator[Mapping[str, Value]]:
    """Yield the column values, by column name, of each case of the view; for payloads, of each case
    of each combination.
    """
    if isinstance(view, ViewPlan):
        yield from (case.values for case in view.cases)
        return
    for combination in view.combinations:
        yield from (case.values for case in combination.cases)


def _secrets(values: Mapping[str, Value], value: Value) -> Iterator[Sensitive]:
    """Yield the reason for each secret field that ``value`` shows: with naming column and endings
    if the value is the field itself and a column shows the field that names it, else without, which
    means always secret. Yield nothing if no field is secret.
    """
    for field in _fields(value):
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
