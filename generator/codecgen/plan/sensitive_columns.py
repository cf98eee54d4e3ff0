"""Which columns of views are secrets: those that are made of fields that are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from codecgen.plan.columns import Leaf, ViewPlan
from codecgen.plan.nodes import Comparison, FieldValue, Membership, Negation, Value
from codecgen.plan.payloads import PayloadPlan
from codecgen.runtime.sensitive import Sensitive


def sensitivity(view: ViewPlan | PayloadPlan, leaf: Leaf) -> Sensitive | None:
    """Return why a column of the view is secret, by the fields that its values come from; None if
    no value of it is a secret.

    Where the field is a secret by its name, the name is that of the column beside it which holds the naming field. Without such a column, and where
    cases differ, all values of the column are secrets.
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
    """Yield the values that the columns of each case are computed from."""
    if isinstance(view, ViewPlan):
        yield from (case.values for case in view.cases)
        return
    for combination in view.combinations:
        yield from (case.values for case in combination.cases)


def _secrets(values: Mapping[str, Value], value: Value) -> Iterator[Sensitive]:
    """Yield what makes a column secret: the secrets of the fields in its value, with the column that names
    them.
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
    """Yield the fields whose content a value shows, without fields that it only compares."""
    if isinstance(value, FieldValue):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _fields(part)
    elif is_dataclass(value) and not isinstance(value, Comparison | Membership | Negation):
        for part in fields(value):
            yield from _fields(getattr(value, part.name))
