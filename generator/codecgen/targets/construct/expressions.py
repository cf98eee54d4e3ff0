"""Expressions as Python."""

from __future__ import annotations

from collections.abc import Callable

from codecgen.plan import nodes
from codecgen.plan.nodes import Value
from codecgen.targets.python_source import (
    Code,
    Condition,
    call,
    flat,
    literal,
    return_statement,
    string,
)


class PythonExpressions:
    """Prints values of schema expressions as Python expressions on parsed values: the layout's
    value is the variable ``this``, an array element ``item``. Sums wrap to ``bits`` bits (None: not
    at all). ``helpers`` collects the runtime functions that the expressions call.

    ``symbol`` returns the Python name of an enum, ``this`` is the variable that holds the fields. ``helpers``
    collects the functions of the runtime that the expressions call. With ``bits``, sums wrap like two's complement
    numbers of that width.
    """

    def __init__(
        self, symbol: Callable[[str], str], *, this: str = "this", bits: int | None = None
    ) -> None:
        self.symbol = symbol
        self.this = this
        self.bits = bits
        self.helpers: set[str] = set()

    def function(self, value: Value) -> str:
        """Return the source of ``lambda this: ...``, which computes a value from a parsed layout.
        The parameter is named ``_`` if the value needs no field and no version. Raise TypeError if
        ``text`` does not support a part of the value.
        """
        needs = any(True for _ in nodes.fields_read(value)) or any(
            isinstance(node, nodes.VersionValue) for node in nodes.iterate_nodes(value)
        )
        return f"lambda {self.this if needs else '_'}: {self.text(value)}"

    def condition(self, value: Value) -> Code:
        """Return a lambda that tests a condition. For ``and`` and ``or`` it is a Condition, whose
        operands can be printed one per line; otherwise it is the source text of the lambda. Raise
        TypeError if ``text`` does not support a part of the condition.
        """
        if not isinstance(value, nodes.Logical):
            return self.function(value)
        return Condition(self.this, tuple(self.terms(value, value.operator)), value.operator)

    def terms(self, value: Value, operator: str) -> list[str]:
        """Return the operands that an operator joins, flattened."""
        if isinstance(value, nodes.Logical) and value.operator == operator:
            return [*self.terms(value.left, operator), *self.terms(value.right, operator)]
        return [self.logical_operand(operator, value)]

    def body(self, value: Value) -> list[str]:
        """Return the lines of a function body, indented by 4 spaces, that returns a value. A chain
        of if/else expressions becomes ``if`` statements; a call longer than its line is broken.
        Raise TypeError if ``text`` does not support a part of the value.
        """
        lines: list[str] = []
        while isinstance(value, nodes.Conditional):
            lines.append(f"    if {self.text(value.condition)}:")
            lines += return_statement(self.code(value.then), 8)
            value = value.otherwise
        return lines + return_statement(self.code(value), 4)

    def code(self, value: Value) -> Code:
        """Return the expression for a value as Code: a sum, if ``bits`` is set, as a call of
        ``wrap`` with the number of bits, which can be broken into lines, any other value as text.
        Raise TypeError if ``text`` does not support a part of the value.
        """
        if not isinstance(value, nodes.Sum) or self.bits is None:
            return self.text(value)
        bits, self.bits = self.bits, None
        inner = self.sum_text(value)
        self.bits = bits
        return call(self.use_helper("wrap"), inner, str(bits))

    def text(self, value: Value) -> str:
        """Return the Python expression for a value, without outer parentheses; a sum becomes a call
        of ``wrap`` if ``bits`` is set. Add the runtime functions that it calls to ``helpers``.
        Raise TypeError for other nodes, such as columns, places, derived values and membership
        tests.
        """
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
                return self.path_text(
                    owner, value.names, type_.nullable and (missing or bool(holders))
                )
            case nodes.BitValue(word):
                return self.path_text(word.owner, value.names, word.type.nullable)
            case nodes.ElementValue():
                return "item"
            case nodes.VersionValue(_, field):
                return f"{self.this}.{field}"
            case nodes.EndValue(end, array, inner):
                return self.end_text(end, array, inner)
            case nodes.LookUpValue():
                return self.look_up_text(value)
            case nodes.Negation(operand):
                return f"not {self.operand_text(operand)}"
            case nodes.Conditional(condition, then, otherwise):
                parts = [self.operand_text(part) for part in (then, condition, otherwise)]
                return f"{parts[0]} if {parts[1]} else {parts[2]}"
            case nodes.Comparison():
                return self.comparison_text(value)
            case nodes.Sum():
                return self.sum_text(value) if self.bits is None else flat(self.code(value))
            case nodes.Logical(operator, left, right):
                return f"{self.logical_operand(operator, left)} {operator} {self.logical_operand(operator, right)}"
        raise TypeError(f"a reference codec has no {type(value).__name__}")

    def use_helper(self, name: str) -> str:
        """Add a function of the runtime to ``helpers``, and return its name."""
        self.helpers.add(name)
        return name

    def path_text(self, owner: str, names: tuple[str, ...], may_end: bool) -> str:
        """Return the expression for a field: the variable of its owner and ``names``, joined by
        dots. With ``may_end``, return a call of the runtime's ``value_at``, which gives None if an
        outer field is absent.
        """
        start = self.holder(owner)
        if not may_end:
            return ".".join((start, *names))
        return f"{self.use_helper('value_at')}({', '.join((start, *map(_quoted, names)))})"

    def end_text(
        self,
        end: str,
        array: nodes.FieldValue,
        inner: nodes.FieldValue | nodes.BitValue | nodes.ElementValue,
    ) -> str:
        """Return the expression for the ``first``, ``last``, ``max`` or ``min`` (``end``) element
        of an array, or of the field ``inner`` of its elements: a call of the runtime's ``end_of``,
        ``max_of`` or ``min_of``. The call gives None for an empty or null array, and for ``max``
        and ``min`` also if one element has no number there. Raise TypeError if ``text`` does not
        support the array.
        """
        names = () if isinstance(inner, nodes.ElementValue) else inner.names
        if end in ("max", "min"):
            arguments: tuple[str, ...] = (self.text(array), *map(_quoted, names))
            return f"{self.use_helper(f'{end}_of')}({', '.join(arguments)})"
        arguments = (self.text(array), "0" if end == "first" else "-1", *map(_quoted, names))
        return f"{self.use_helper('end_of')}({', '.join(arguments)})"

    def look_up_text(self, value: nodes.LookUpValue) -> str:
        """Return the expression for an element that is looked up by its number, or for a value in
        it: a call of the runtime's ``look_up``. The call gives None if the array or the number is
        null, and raises ValueRefused, which names both, if no element has the number. Raise
        TypeError if ``text`` does not support the number.
        """
        inner = () if isinstance(value.value, nodes.ElementValue) else value.value.names
        names = [".".join(value.array.names), value.text, *inner]
        arguments = [self.text(value.array), self.text(value.index), *map(string, names)]
        return f"{self.use_helper('look_up')}({', '.join(arguments)})"

    def sum_text(self, value: nodes.Sum) -> str:
        """Return the expression for a sum or difference without a call of ``wrap``. If it may be
        null, return a call of the runtime's ``plus`` or ``minus``. A right operand that is a sum
        gets parentheses; a left one does not. Raise TypeError if ``text`` does not support an
        operand.
        """
        if value.type.nullable:
            sides = f"{self.text(value.left)}, {self.text(value.right)}"
            return f"{self.use_helper('plus' if value.operator == '+' else 'minus')}({sides})"
        left = self.operand_text(value.left, sums=False)
        return f"{left} {value.operator} {self.operand_text(value.right)}"

    def comparison_text(self, value: nodes.Comparison) -> str:
        """Return the expression for a comparison. Comparison with null becomes ``is None`` or ``is
        not None``. A comparison of order with a side that may be None becomes a call of
        ``ordered``, which is False if a side is None. Raise TypeError if ``text`` does not support
        a side.
        """
        operator, left, right = value.operator, value.left, value.right
        if isinstance(right, nodes.NullValue):
            return f"{self.operand_text(left)} {'is' if operator == '==' else 'is not'} None"
        if operator in nodes.ORDERS and (left.type.nullable or right.type.nullable):
            sides = f'{self.text(left)}, "{operator}", {self.text(right)}'
            return f"{self.use_helper('ordered')}({sides})"
        return f"{self.operand_text(left)} {operator} {self.operand_text(right)}"

    def operand_text(self, value: Value, sums: bool = True) -> str:
        """Return the expression for an operand, in parentheses unless it is a name, number or call.
        A sum that may be null or that wraps is a call and needs none; any other sum gets
        parentheses only if ``sums`` is True. Raise TypeError if ``text`` does not support it.
        """
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
        return isinstance(value, nodes.Leaf | nodes.LookUpValue)

    def logical_operand(self, operator: str, value: Value) -> str:
        """Return the expression for an operand of ``and`` or ``or`` (``operator``), in parentheses
        if it is a conditional or uses the other operator. Raise TypeError if ``text`` does not
        support it.
        """
        mixed = isinstance(value, nodes.Conditional) or (
            isinstance(value, nodes.Logical) and value.operator != operator
        )
        return f"({self.text(value)})" if mixed else self.text(value)


def _quoted(name: str) -> str:
    """Return a name in double quotes."""
    return f'"{name}"'
