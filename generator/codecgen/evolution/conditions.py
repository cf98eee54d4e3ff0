"""Compare expressions of two states: are they the same, and does one allow all that the other allowed?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from codecgen.plan import nodes
from codecgen.plan.constant_folding import as_truth, fold, is_known
from codecgen.plan.equality import conjuncts, shape
from codecgen.plan.nodes import Value, negate
from codecgen.plan.value_ranges import exact_range

Narrowing = Literal["no", "perhaps", "yes"]

_ENDS = ("first", "last", "max", "min")
_ORDERS = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def named_shape(value: Value | None, names: Mapping[str, str]) -> object:
    """Return a comparable form of an expression, folded, with own fields renamed by ``names`` (old
    -> new). No expression (None) has a form of its own.
    """
    return ("none",) if value is None else _rename(shape(fold(value)), names)


def presence(when: Value | None) -> Literal["always", "never", "sometimes"]:
    """Return whether a field with the condition ``when`` exists ``always``, ``never`` or, depending
    on the data, ``sometimes``. None means ``always``; a condition on the version may be decided.
    """
    if when is None:
        return "always"
    folded = fold(when)
    if not is_known(folded):
        return "sometimes"
    return "always" if as_truth(folded) else "never"


def requirements(valid: Value | None, refuse: Value | None) -> list[Value]:
    """Return the conditions that strict readers require of a field, all of them: first the parts,
    joined by ``and``, of ``refuse`` negated, then those of ``valid``. Those that are always true
    are left out.
    """
    found = [] if refuse is None else conjuncts(negate(fold(refuse)))
    found += [] if valid is None else conjuncts(fold(valid))
    return [one for one in found if not (is_known(one) and as_truth(one))]


def find_narrowing(
    old: Sequence[Value], new: Sequence[Value], names: Mapping[str, str]
) -> Narrowing:
    """Return ``yes`` if values that meet all conditions ``old`` can break one of ``new``, ``no`` if
    they cannot, and ``perhaps`` if that is unknown. Conditions that ``old`` also has, by shape,
    narrow nothing. The others are decided by ranges: one that does not compare a field with a
    number gives ``perhaps``, and such a condition in ``old`` turns ``yes`` into ``perhaps``.
    ``yes`` for one condition wins over ``perhaps`` for another. ``names`` maps old field names to
    new ones.
    """
    known = {named_shape(one, names) for one in old}
    added = [one for one in new if named_shape(one, {}) not in known]
    if not added:
        return "no"
    bounds = [_bounds(one) for one in old]
    found: Narrowing = "no"
    for one in added:
        wanted = _bounds(one)
        if wanted is None:
            found = "perhaps" if found == "no" else found
            continue
        term, low, high = wanted
        before = [
            (first, last)
            for bound in bounds
            if bound is not None and _rename(shape(bound[0]), names) == shape(term)
            for first, last in (bound[1:],)
        ]
        first, last = _intersect([exact_range(term), *before])
        if first < low or last > high:
            found = "yes" if None not in bounds else "perhaps"
    return found


def _bounds(condition: Value) -> tuple[Value, int, int] | None:
    """Return (field or bits, smallest, largest allowed number, both included) for a comparison of a
    number, enum or boolean field with a constant, or for a boolean field alone. Return None for
    nullable fields, ``!=`` and all other conditions.
    """
    match condition:
        case nodes.Comparison(operator, left, nodes.Literal(number) | nodes.Word(value=number)):
            term = left
        case nodes.Comparison(operator, nodes.Literal(number) | nodes.Word(value=number), right):
            term, operator = right, _ORDERS[operator]  # type: ignore[assignment]
        case nodes.FieldValue() | nodes.BitValue() if condition.type.kind == "bool":
            term, operator, number = condition, "==", 1
        case _:
            return None
    if not isinstance(term, nodes.FieldValue | nodes.BitValue) or term.type.nullable:
        return None
    if term.type.kind not in ("int", "enum", "bool") or operator == "!=":
        return None
    lowest, highest = exact_range(term)
    match operator:
        case "==":
            return term, number, number
        case "<":
            return term, lowest, number - 1
        case "<=":
            return term, lowest, number
        case ">":
            return term, number + 1, highest
        case _:
            return term, number, highest


def _intersect(ranges: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the numbers that all ranges contain, as a range. It may be empty."""
    lows, highs = zip(*ranges, strict=True)
    return max(lows), min(highs)


def _rename(form: object, names: Mapping[str, str]) -> object:
    """Return ``form``, a comparable form of an expression, with the names of the layout's own
    fields replaced by those in ``names``. Names that are not in it stay.
    """
    match form:
        case ("field", "own", (str(first), *rest)):
            return ("field", "own", (names.get(first, first), *rest))
        case (str(end), (str(first), *rest), inner) if end in _ENDS:
            return (end, (names.get(first, first), *rest), _rename(inner, names))
        case tuple():
            return tuple(_rename(part, names) for part in form)
        case _:
            return form
