"""Derive facts from conditions: fields that are not null, and versions that remain possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from codecgen.plan import nodes
from codecgen.plan.nodes import Value
from codecgen.schema.expression import source
from codecgen.schema.model import Field

_OPERATORS: Mapping[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def compare(operator: str, a: int, b: int) -> bool:
    """Return whether the comparison ``a operator b`` holds. Raise KeyError for other operators."""
    return _OPERATORS[operator](a, b)


Key = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that hold at one place of an expression.

    Attributes:
        present: Fields and columns that are not null.
        holding: Conditions that hold, as source text.
        left: Tests for the versions that an element can still have, by owner.
    """

    present: frozenset[Key] = frozenset()
    holding: frozenset[str] = frozenset()
    left: Mapping[str, Callable[[int | None], bool]] = field(default_factory=dict)

    def is_present(self, value: nodes.FieldValue) -> bool:
        """Return whether a field is known not to be null: a comparison has shown it, or the field's
        own ``when`` is known to hold and the field is of the layout itself and not nullable
        otherwise. False for all other fields, also those that are never null.
        """
        if _fact_key(value) in self.present:
            return True
        when = value.field.when
        if when is None or value.holders or value.owner != "own" or value.field.nullable:
            return False
        return source(when.node) in self.holding

    def is_column_present(self, value: nodes.ColumnValue) -> bool:
        """Return whether a comparison has shown that a column is not null. False for all other
        columns, also those that are never null.
        """
        return _fact_key(value) in self.present

    def filter_versions(self, owner: str, every: frozenset[int | None]) -> frozenset[int | None]:
        """Return those versions in ``every`` that the element of ``owner`` can still have; all of
        them if no comparison of its version is known.
        """
        test = self.left.get(owner)
        return every if test is None else frozenset(v for v in every if test(v))


def _fact_key(value: nodes.FieldValue | nodes.ColumnValue) -> Key:
    """Return the key of a field or column in ``Facts.present``: its owner and its names."""
    if isinstance(value, nodes.ColumnValue):
        return value.which, (value.column.name,)
    return value.owner, value.names


def condition_text(value: Value) -> str:
    """Return a condition on fields of the layout itself as source text (``a.b == 1``, ``not a.b``).
    Return ``""`` if it uses anything else, such as fields of elements, the literals true and false,
    sums, ``and``, or ``not`` of a comparison.
    """
    match value:
        case nodes.FieldValue() | nodes.BitValue() if _owner_of(value) == "own":
            return ".".join(value.names)
        case nodes.Literal(number, type_):
            return str(number) if type_.kind != "bool" else ""
        case nodes.Word():
            return value.name
        case nodes.NullValue():
            return "null"
        case nodes.VersionValue():
            return value.field
        case nodes.Comparison(operator, left, right):
            sides = condition_text(left), condition_text(right)
            return f"{sides[0]} {operator} {sides[1]}" if all(sides) else ""
        case nodes.Negation(nodes.FieldValue() | nodes.BitValue() as operand):
            return f"not {condition_text(operand)}" if condition_text(operand) else ""
        case _:
            return ""


def _owner_of(value: nodes.FieldValue | nodes.BitValue) -> str:
    """Return the owner of a field, or of the field that contains the bits."""
    return value.owner if isinstance(value, nodes.FieldValue) else value.word.owner


def decide(value: Value) -> bool | None:
    """Return True or False if a condition is decided by literals and comparisons of a known version
    with a number, through ``not``, ``and`` and ``or``; None for all other conditions.
    """
    match value:
        case nodes.Literal(number, type_) if type_.kind == "bool":
            return bool(number)
        case nodes.Negation(operand):
            inner = decide(operand)
            return None if inner is None else not inner
        case nodes.Logical(operator, left, right):
            sides = (decide(left), decide(right))
            decisive = operator == "or"
            if decisive in sides:
                return decisive
            return None if None in sides else not decisive
        case nodes.Comparison(operator, nodes.VersionValue(version), nodes.Literal(number)):
            return None if version is None else compare(operator, version, number)
    return None


def learn(facts: Facts, condition: Value, holds: bool) -> Facts:
    """Return ``facts`` extended by what follows if ``condition`` holds (``holds`` True) or does not
    hold. An ``or`` that holds, an ``and`` that does not, and other conditions that say nothing
    leave them unchanged.
    """
    match condition:
        case nodes.Negation(operand):
            return learn(facts, operand, not holds)
        case nodes.Logical(operator, left, right) if holds == (operator == "and"):
            return learn(learn(facts, left, holds), right, holds)
        case nodes.Comparison(operator, left, right):
            return _learn_comparison(facts, operator, left, right, holds)
        case nodes.FieldValue() | nodes.BitValue() if condition_text(condition):
            known = condition_text(condition if holds else nodes.Negation(condition))
            return Facts(facts.present, facts.holding | {known}, facts.left)
    return facts


def _learn_comparison(facts: Facts, operator: str, left: Value, right: Value, holds: bool) -> Facts:
    """Return ``facts`` extended by what follows if the comparison is true (``holds``) or false.
    That is the comparison or its opposite, if no side uses anything but the layout's own fields and
    constants; no opposite of an order comparison of which a side may be null. Add fields or columns
    that are then not null, and the versions that are left to an element if its version, on the
    left, is compared with a number.
    """
    present, holding, left_versions = facts.present, facts.holding, dict(facts.left)
    actual = operator if holds else nodes.OPPOSITE[operator]
    written = condition_text(nodes.Comparison(actual, left, right))  # type: ignore[arg-type]
    may_be_null = left.type.nullable or right.type.nullable
    if written and (holds or operator in ("==", "!=") or not may_be_null):
        holding |= {written}
    if isinstance(right, nodes.NullValue):
        if actual == "!=" and isinstance(left, nodes.FieldValue | nodes.ColumnValue):
            present |= {_fact_key(left)}
    elif holds and operator != "!=":
        # Null is neither smaller nor larger than a number, nor equal to one.
        for one, other in ((left, right), (right, left)):
            named = isinstance(one, nodes.FieldValue | nodes.ColumnValue)
            if named and (operator != "==" or not other.type.nullable):
                present |= {_fact_key(one)}  # type: ignore[arg-type]
    match left, right:
        case nodes.FieldValue(f, _, owner, ()), nodes.Literal(number) if _is_element_version(
            f, owner
        ):
            earlier = left_versions.get(owner)

            def test(version: int | None) -> bool:
                known = version is not None and compare(actual, version, number)
                return known and (earlier is None or earlier(version))

            left_versions[owner] = test
    return Facts(present, holding, left_versions)


def _is_element_version(f: Field, owner: str) -> bool:
    """Return whether a field is the version field of the current element: ``owner`` is ``item``
    then.
    """
    return f.is_version and owner in ("item",)
