"""Expressions of the schema language as the arithmetic of kernels: 64-bit integers, null beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codecgen.schema.expression import Binary, EndOf, If, Node, Not, Null, Number, Path


class Refused(Exception):
    """Something that the target cannot express."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Operand:
    """A value as text. ``null`` is the condition that it is null (None: it never is), ``constant`` its value where
    that is known, ``words`` the numbers that names stand for beside it."""

    text: str
    null: str | None = None
    constant: int | None = None
    words: tuple[tuple[str, int], ...] = ()
    plain: bool = True
    opposite: str | None = None
    branches: tuple[tuple[str, str], ...] = ()
    """``if``, ``elif``, ...: conditions and values; the last condition is empty."""


Resolve = Callable[[Path | EndOf], Operand | None]
"""What a path means. None: nothing (then it may be the name of an enum's value)."""


def constant(value: int) -> Operand:
    return Operand(str(value), constant=value)


_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def negated(operand: Operand) -> str:
    """The condition that another one does not hold."""
    return operand.opposite or f"not ({operand.text})"


class KernelExpressions:
    """Writes expressions. ``bits`` is the width in which sums wrap."""

    def __init__(self, resolve: Resolve) -> None:
        self.resolve = resolve

    def value(self, node: Node, bits: int = 64) -> Operand:
        match node:
            case Number(value):
                return constant(value)
            case Null():
                return Operand("0", null="True")
            case Path() | EndOf():
                found = self.resolve(node)
                if found is None:
                    raise Refused(f"used as a number ({node})")
                return found
            case Not(operand):
                inner = self.value(operand, bits)
                if inner.constant is not None:
                    return constant(int(not inner.constant))
                return Operand(f"not {self.wrapped(inner)}", plain=False)
            case If(condition, then, otherwise):
                return self.choice(condition, then, otherwise, bits)
            case Binary("and" | "or" as operator, left, right):
                return self.logical(operator, left, right, bits)
            case Binary("+" | "-"):
                text = self.sum(node)
                return Operand(f"wrap_{bits}({text})")
            case Binary(operator, left, right):
                return self.comparison(operator, left, right, bits)
        raise Refused("in an expression")

    def sum(self, node: Node) -> str:
        """A sum without wrapping: that of the whole is that of each step."""
        if isinstance(node, Binary) and node.operator in ("+", "-"):
            right = self.sum(node.right)
            if isinstance(node.right, Binary):
                right = f"({right})"
            return f"{self.sum(node.left)} {node.operator} {right}"
        return self.wrapped(self.value(node))

    def choice(self, condition: Node, then: Node, otherwise: Node, bits: int) -> Operand:
        test = self.value(condition, bits)
        if test.constant is not None:
            return self.value(then if test.constant else otherwise, bits)
        one, other = self.value(then, bits), self.value(otherwise, bits)
        null: str | None = None
        if one.null is not None or other.null is not None:
            sides = f"{one.null or 'False'} if {test.text} else {other.null or 'False'}"
            simple = {
                ("False", "True"): negated(test),
                ("True", "False"): test.text,
            }
            null = simple.get((one.null or "False", other.null or "False"), sides)
        text = f"{self.wrapped(one)} if {test.text} else {self.wrapped(other)}"
        branches = ((test.text, one.text), *(other.branches or (("", other.text),)))
        return Operand(text, null, plain=False, branches=branches)

    def logical(self, operator: str, left: Node, right: Node, bits: int) -> Operand:
        one = self.value(left, bits)
        decides = operator == "or"
        if one.constant is not None:
            return (
                constant(int(decides)) if bool(one.constant) == decides else self.value(right, bits)
            )
        other = self.value(right, bits)
        if other.constant is not None and bool(other.constant) != decides:
            return one
        return Operand(f"{self.wrapped(one)} {operator} {self.wrapped(other)}", plain=False)

    def comparison(self, operator: str, left: Node, right: Node, bits: int) -> Operand:
        if isinstance(right, Null):
            null = self.value(left, bits).null
            if null is None:
                return constant(int(operator == "!="))
            return Operand(null if operator == "==" else f"not ({null})", plain=False)
        one, other = self.pair(left, right, bits)
        if one.constant is not None and other.constant is not None:
            a, b = one.constant, other.constant
            results = {
                "==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b
            }  # fmt: skip
            return constant(int(results[operator]))
        text = f"{self.wrapped(one)} {operator} {self.wrapped(other)}"
        if one.null is not None:
            return Operand(f"not ({one.null}) and {text}", plain=False)
        opposite = f"{self.wrapped(one)} {_OPPOSITE[operator]} {self.wrapped(other)}"
        return Operand(text, plain=False, opposite=opposite)

    def pair(self, left: Node, right: Node, bits: int) -> tuple[Operand, Operand]:
        """Two sides of a comparison, of which one may be the name of a value of the other's enum."""
        for first, second in ((left, right), (right, left)):
            if isinstance(second, Path) and len(second.names) == 1 and isinstance(first, Path):
                known = self.resolve(first)
                words = dict(known.words) if known is not None else {}
                if known is not None and second.names[0] in words:
                    word = constant(words[second.names[0]])
                    return (known, word) if first is left else (word, known)
        return self.value(left, bits), self.value(right, bits)

    def wrapped(self, operand: Operand) -> str:
        return operand.text if operand.plain else f"({operand.text})"
