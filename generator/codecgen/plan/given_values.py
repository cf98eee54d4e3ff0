"""Values from outside, in terms of the layout that gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codecgen.plan import nodes
from codecgen.plan.nodes import Owner, Value


def replace_given(
    value: Value, gives: Mapping[str, Value], owners: tuple[Owner, ...], of: Owner
) -> Value:
    """Return ``value`` with what is given to the fields of ``owners`` replaced by the values of ``gives``, whose own fields are
    those of ``of``.
    """
    if not gives:
        return value
    match value:
        case nodes.FieldValue(field, _, owner, ()) if owner in owners and field.is_given:
            return with_owner(gives[field.name], of)
        case nodes.EndValue():
            return value
        case nodes.LookUpValue():
            found = replace_given(value.array, gives, owners, of)
            assert isinstance(found, nodes.FieldValue)
            value = replace(value, array=found)
    return nodes.map_children(value, lambda one: replace_given(one, gives, owners, of))


def with_owner(value: Value, owner: Owner) -> Value:
    """Return a value whose own fields are those of ``owner``."""
    match value:
        case nodes.FieldValue(owner="own"):
            return replace(value, owner=owner)
        case nodes.BitValue(word) if word.owner == "own":
            return replace(value, word=replace(word, owner=owner))
        case nodes.LookUpValue():
            array = with_owner(value.array, owner)
            assert isinstance(array, nodes.FieldValue)
            value = replace(value, array=array)
    return nodes.map_children(value, lambda one: with_owner(one, owner))
