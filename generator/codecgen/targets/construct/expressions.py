"""Expressions of the schema language as Python."""

from __future__ import annotations

from collections.abc import Callable

from codecgen.plan.names import element_layout, enum_of
from codecgen.schema.expression import Binary, EndOf, Expression, If, Node, Not, Null, Number, Path
from codecgen.schema.model import Layout, Model

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class PythonExpressions:
    """Writes expressions of one layout. ``symbol`` gives the Python name of an enum; the enums that were used
    gather in ``used``. With ``bits`` sums wrap like two's complement numbers of that width."""

    def __init__(
        self,
        layout: Layout,
        model: Model,
        symbol: Callable[[str], str],
        *,
        this: str = "this",
        array: str | None = None,
        bits: int | None = None,
    ) -> None:
        self.layout = layout
        self.model = model
        self.symbol = symbol
        self.this = this
        self.item = element_layout(layout, array, model)
        self.bits = bits
        self.used: set[str] = set()
        self.helpers: set[str] = set()

    def function(self, expression: Expression) -> str:
        """The expression as a lambda of the fields."""
        text = self.text(expression.node)
        return f"lambda {self.this if self.this in text else '_'}: {text}"

    def statements(self, expression: Expression) -> list[str]:
        """The expression as the lines of a function body; if/else chains become statements."""
        lines: list[str] = []
        node = expression.node
        while isinstance(node, If):
            lines.append(f"if {self.text(node.condition)}:")
            lines.append(f"    return {self.text(node.then)}")
            node = node.otherwise
        lines.append(f"return {self.text(node)}")
        return lines

    def text(self, node: Node) -> str:
        match node:
            case Number(value):
                return str(value)
            case Null():
                return "None"
            case Path():
                return self.path(node)
            case EndOf(end, array, path):
                self.helpers.add("end_of")
                names = "".join(f', "{name}"' for name in (path.names if path else ()))
                return f"end_of({self.path(array)}, {0 if end == 'first' else -1}{names})"
            case Not(operand):
                return f"not {self.wrapped(operand)}"
            case If(condition, then, otherwise):
                parts = [self.wrapped(part) for part in (then, condition, otherwise)]
                return f"{parts[0]} if {parts[1]} else {parts[2]}"
            case Binary(operator, left, right):
                return self.binary(operator, left, right)

    def binary(self, operator: str, left: Node, right: Node) -> str:
        if operator in COMPARISONS:
            return self.comparison(operator, left, right)
        if operator in ("+", "-"):
            # Modular sums: wrapping the whole is wrapping each step.
            bits, self.bits = self.bits, None
            text = f"{self.wrapped(left, sums=False)} {operator} {self.wrapped(right)}"
            self.bits = bits
            if bits is None:
                return text
            self.helpers.add("wrap")
            return f"wrap({text}, {bits})"
        return f"{self.logical(operator, left)} {operator} {self.logical(operator, right)}"

    def comparison(self, operator: str, left: Node, right: Node) -> str:
        if isinstance(right, Null) and operator in ("==", "!="):
            return f"{self.wrapped(left)} {'is' if operator == '==' else 'is not'} None"
        for path, word in ((left, right), (right, left)):
            if isinstance(path, Path) and isinstance(word, Path) and len(word.names) == 1:
                enum = enum_of(path, self.layout, self.model, self.item)
                if enum is not None and self.is_value(enum, word.names[0]):
                    self.used.add(enum)
                    value = f"{self.symbol(enum)}.{word.names[0].upper()}"
                    sides = (self.path(path), value) if path is left else (value, self.path(path))
                    return f"{sides[0]} {operator} {sides[1]}"
        return f"{self.wrapped(left)} {operator} {self.wrapped(right)}"

    def is_value(self, enum: str, name: str) -> bool:
        return any(v.name == name for v in self.model.enums[enum].values)

    def path(self, path: Path) -> str:
        if path.names[0] == "item" and self.item is not None:
            return str(path)
        if path.names == ("version",) and not any(f.name == "version" for f in self.layout.fields):
            return f"{self.this}.{self.layout.version_is}"
        return f"{self.this}.{path}"

    def wrapped(self, node: Node, sums: bool = True) -> str:
        """The text, in parentheses where Python would read it otherwise; ``sums`` need them too."""
        text = self.text(node)
        plain = isinstance(node, Number | Null | Path | EndOf)
        is_sum = isinstance(node, Binary) and node.operator in ("+", "-")
        return text if plain or (is_sum and (self.bits is not None or not sums)) else f"({text})"

    def logical(self, operator: str, node: Node) -> str:
        text = self.text(node)
        mixed = isinstance(node, If) or (
            isinstance(node, Binary)
            and node.operator in ("and", "or")
            and node.operator != operator
        )
        return f"({text})" if mixed else text
