"""Expressions as Python."""

from __future__ import annotations

from collections.abc import Callable

from codecgen.plan import nodes
from codecgen.plan.nodes import Value
from codecgen.targets.python_source import Code, Condition, call, flat, literal, returned


class PythonExpressions:
    """Prints values as Python. ``symbol`` gives the Python name of an enum, ``this`` that of the fields; what it needs of
    the runtime gathers in ``helpers``. With ``bits`` sums wrap like two's complement numbers of that width."""

    def __init__(
        self, symbol: Callable[[str], str], *, this: str = "this", bits: int | None = None
    ) -> None:
        self.symbol = symbol
        self.this = this
        self.bits = bits
        self.helpers: set[str] = set()

    def function(self, value: Value) -> str:
        """The value as a lambda of the fields."""
        needs = any(True for _ in nodes.fields_read(value)) or any(
            isinstance(node, nodes.VersionValue) for node in nodes.walk(value)
        )
        return f"lambda {self.this if needs else '_'}: {self.text(value)}"

    def condition(self, value: Value) -> Code:
        """The same of a condition: what is joined by ``and``, or by ``or``, may stand in lines of their own."""
        if not isinstance(value, nodes.Logical):
            return self.function(value)
        return Condition(self.this, tuple(self.terms(value, value.operator)), value.operator)

    def terms(self, value: Value, operator: str) -> list[str]:
        """Return the operands that an operator joins."""
        if isinstance(value, nodes.Logical) and value.operator == operator:
            return [*self.terms(value.left, operator), *self.terms(value.right, operator)]
        return [self.logical(operator, value)]

    def body(self, value: Value) -> list[str]:
        """The value as the lines of a function body; if/else chains become statements."""
        lines: list[str] = []
        while isinstance(value, nodes.Conditional):
            lines.append(f"    if {self.text(value.condition)}:")
            lines += returned(self.code(value.then), 8)
            value = value.otherwise
        return lines + returned(self.code(value), 4)

    def code(self, value: Value) -> Code:
        """The value as a tree: a sum that wraps is a call."""
        if not isinstance(value, nodes.Sum) or self.bits is None:
            return self.text(value)
        bits, self.bits = self.bits, None
        inner = self.sum(value)
        self.bits = bits
        return call(self.help("wrap"), inner, str(bits))

    def text(self, value: Value) -> str:
        match value:
            case nodes.Literal(number, type_):
                return str(bool(number)) if type_.kind == "bool" else str(number)
            case nodes.Data(data):
                return literal(data)
            case nodes.Word(enum, name):
                return f"{self.symbol(enum)}.{name.upper()}"
            case nodes.NullValue():
                return "None"
            case nodes.FieldValue(_, type_, owner, holders):
                missing = owner in ("item", "end") and value.field.versions is not None
                return self.path(owner, value.names, type_.nullable and (missing or bool(holders)))
            case nodes.BitValue(word):
                return self.path(word.owner, value.names, word.type.nullable)
            case nodes.ElementValue():
                return "item"
            case nodes.VersionValue(_, field):
                return f"{self.this}.{field}"
            case nodes.EndValue(end, array, inner):
                return self.end_of(end, array, inner)
            case nodes.Negation(operand):
                return f"not {self.wrapped(operand)}"
            case nodes.Conditional(condition, then, otherwise):
                parts = [self.wrapped(part) for part in (then, condition, otherwise)]
                return f"{parts[0]} if {parts[1]} else {parts[2]}"
            case nodes.Comparison():
                return self.comparison(value)
            case nodes.Sum():
                return self.sum(value) if self.bits is None else flat(self.code(value))
            case nodes.Logical(operator, left, right):
                return f"{self.logical(operator, left)} {operator} {self.logical(operator, right)}"
        raise TypeError(f"a reference codec has no {type(value).__name__}")

    def help(self, name: str) -> str:
        self.helpers.add(name)
        return name

    def path(self, owner: str, names: tuple[str, ...], may_end: bool) -> str:
        """A field by its names. ``may_end``: what holds it may not be there."""
        start = self.holder(owner)
        if not may_end:
            return ".".join((start, *names))
        return f"{self.help('value_at')}({', '.join((start, *map(_quoted, names)))})"

    def end_of(
        self,
        end: str,
        array: nodes.FieldValue,
        inner: nodes.FieldValue | nodes.BitValue | nodes.ElementValue,
    ) -> str:
        names = () if isinstance(inner, nodes.ElementValue) else inner.names
        if end in ("max", "min"):
            arguments: tuple[str, ...] = (self.text(array), *map(_quoted, names))
            return f"{self.help(f'{end}_of')}({', '.join(arguments)})"
        arguments = (self.text(array), "0" if end == "first" else "-1", *map(_quoted, names))
        return f"{self.help('end_of')}({', '.join(arguments)})"

    def sum(self, value: nodes.Sum) -> str:
        """A sum as it is: wrapping the whole wraps each step."""
        if value.type.nullable:
            sides = f"{self.text(value.left)}, {self.text(value.right)}"
            return f"{self.help('plus' if value.operator == '+' else 'minus')}({sides})"
        left = self.wrapped(value.left, sums=False)
        return f"{left} {value.operator} {self.wrapped(value.right)}"

    def comparison(self, value: nodes.Comparison) -> str:
        operator, left, right = value.operator, value.left, value.right
        if isinstance(right, nodes.NullValue):
            return f"{self.wrapped(left)} {'is' if operator == '==' else 'is not'} None"
        if operator in nodes.ORDERS and (left.type.nullable or right.type.nullable):
            sides = f'{self.text(left)}, "{operator}", {self.text(right)}'
            return f"{self.help('ordered')}({sides})"
        return f"{self.wrapped(left)} {operator} {self.wrapped(right)}"

    def wrapped(self, value: Value, sums: bool = True) -> str:
        """The text, in parentheses where Python would read it otherwise; ``sums`` need them too."""
        text = self.text(value)
        if isinstance(value, nodes.Sum):
            plain = value.type.nullable or self.bits is not None or not sums
        else:
            plain = self.is_atomic(value)
        return text if plain else f"({text})"

    def holder(self, owner: str) -> str:
        """Return the variable that holds the fields of an owner."""
        return "item" if owner == "item" else self.this

    def is_atomic(self, value: Value) -> bool:
        """Return whether the text of a value never needs parentheses."""
        return isinstance(value, nodes.Leaf)

    def logical(self, operator: str, value: Value) -> str:
        mixed = isinstance(value, nodes.Conditional) or (
            isinstance(value, nodes.Logical) and value.operator != operator
        )
        return f"({self.text(value)})" if mixed else self.text(value)


def _quoted(name: str) -> str:
    return f'"{name}"'
