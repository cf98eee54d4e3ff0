"""What conditions say about what is around them: values that are not null, versions that are left."""

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
    """Whether a comparison of two numbers holds."""
    return _OPERATORS[operator](a, b)


Key = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Facts:
    """``present``: fields that are not null, ``holding``: conditions as they are written that hold, ``left``: the versions
    that an element may still be of."""

    present: frozenset[Key] = frozenset()
    holding: frozenset[str] = frozenset()
    left: Mapping[str, Callable[[int | None], bool]] = field(default_factory=dict)

    def there(self, value: nodes.FieldValue) -> bool:
        """Whether a field is known not to be null."""
        if _key(value) in self.present:
            return True
        when = value.field.when
        if when is None or value.holders or value.owner != "own" or value.field.nullable:
            return False
        return source(when.node) in self.holding

    def column_there(self, value: nodes.ColumnValue) -> bool:
        """Whether a column is known not to be null."""
        return _key(value) in self.present

    def versions(self, owner: str, every: frozenset[int | None]) -> frozenset[int | None]:
        """Those of the versions that are left."""
        test = self.left.get(owner)
        return every if test is None else frozenset(v for v in every if test(v))


def _key(value: nodes.FieldValue | nodes.ColumnValue) -> Key:
    if isinstance(value, nodes.ColumnValue):
        return value.which, (value.column.name,)
    return value.owner, value.names


def text(value: Value) -> str:
    """A condition on the fields of a layout as it is written; empty for others."""
    match value:
        case nodes.FieldValue() | nodes.BitValue() if _owner(value) == "own":
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
            sides = text(left), text(right)
            return f"{sides[0]} {operator} {sides[1]}" if all(sides) else ""
        case nodes.Negation(nodes.FieldValue() | nodes.BitValue() as operand):
            return f"not {text(operand)}" if text(operand) else ""
        case _:
            return ""


def _owner(value: nodes.FieldValue | nodes.BitValue) -> str:
    return value.owner if isinstance(value, nodes.FieldValue) else value.word.owner


def decided(value: Value) -> bool | None:
    """What a condition about the version says, where that is known; None for other conditions."""
    match value:
        case nodes.Literal(number, type_) if type_.kind == "bool":
            return bool(number)
        case nodes.Negation(operand):
            inner = decided(operand)
            return None if inner is None else not inner
        case nodes.Logical(operator, left, right):
            sides = (decided(left), decided(right))
            decisive = operator == "or"
            if decisive in sides:
                return decisive
            return None if None in sides else not decisive
        case nodes.Comparison(operator, nodes.VersionValue(version), nodes.Literal(number)):
            return None if version is None else compare(operator, version, number)
    return None


def after(facts: Facts, condition: Value, holds: bool) -> Facts:
    """What is known besides where a condition holds, or does not."""
    match condition:
        case nodes.Negation(operand):
            return after(facts, operand, not holds)
        case nodes.Logical(operator, left, right) if holds == (operator == "and"):
            return after(after(facts, left, holds), right, holds)
        case nodes.Comparison(operator, left, right):
            return _after_comparison(facts, operator, left, right, holds)
        case nodes.FieldValue() | nodes.BitValue() if text(condition):
            known = text(condition if holds else nodes.Negation(condition))
            return Facts(facts.present, facts.holding | {known}, facts.left)
    return facts


def _after_comparison(facts: Facts, operator: str, left: Value, right: Value, holds: bool) -> Facts:
    present, holding, left_versions = facts.present, facts.holding, dict(facts.left)
    actual = operator if holds else nodes.OPPOSITE[operator]
    written = text(nodes.Comparison(actual, left, right))  # type: ignore[arg-type]
    may_be_null = left.type.nullable or right.type.nullable
    if written and (holds or operator in ("==", "!=") or not may_be_null):
        holding |= {written}
    if isinstance(right, nodes.NullValue):
        if actual == "!=" and isinstance(left, nodes.FieldValue | nodes.ColumnValue):
            present |= {_key(left)}
    elif holds and operator != "!=":
        # Null is neither smaller nor larger than a number, nor equal to one.
        for one, other in ((left, right), (right, left)):
            named = isinstance(one, nodes.FieldValue | nodes.ColumnValue)
            if named and (operator != "==" or not other.type.nullable):
                present |= {_key(one)}  # type: ignore[arg-type]
    match left, right:
        case nodes.FieldValue(f, _, owner, ()), nodes.Literal(number) if _is_version(f, owner):
            earlier = left_versions.get(owner)

            def test(version: int | None) -> bool:
                known = version is not None and compare(actual, version, number)
                return known and (earlier is None or earlier(version))

            left_versions[owner] = test
    return Facts(present, holding, left_versions)


def _is_version(f: Field, owner: str) -> bool:
    return f.is_version and owner in ("item",)
