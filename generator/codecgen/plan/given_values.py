"""Values from outside, in terms of the layout that gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codecgen.plan import nodes
from codecgen.plan.nodes import Owner, Value


def replace_given(
    value: Value, gives: Mapping[str, Value], owners: tuple[Owner, ...], of: Owner
) -> Value:
    """Return ``value`` with each value from outside (``is_given``) that belongs to one of
    ``owners`` replaced by its expression in ``gives``. The own fields of that expression become
    fields of ``of``. Values under ``first``, ``last``, ``max`` and ``min`` stay, as does all if
    ``gives`` is empty. Raise KeyError if ``gives`` lacks a name, and
    AssertionError if it has no field for an array in which elements are looked up.
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
    """Return ``value`` with ``owner`` as the owner of each field, bit and looked-up array in it
    that belongs to ``own``. Other owners, and arrays under ``first``, ``last``, ``max`` and
    ``min``, stay as they are.
    """
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
