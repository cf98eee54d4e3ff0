"""Values as arithmetic of NumPy: arrays of 64-bit integers, and beside them where they are null."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codecgen.plan import nodes
from codecgen.plan.nodes import Value
from codecgen.targets.arrow.arithmetic import Refused
from codecgen.targets.arrow.tree import FALSE, NEGATED, TRUE, Expr, Num, Op, Prefix, call, variables


@dataclass(frozen=True, slots=True)
class Term:
    """Numbers or truth values. ``null`` is where they are null (None: nowhere)."""

    value: Expr
    null: Expr | None = None
    truth: bool = False


Leaf = Callable[[Value], Term]


def opposite(condition: Expr) -> Expr:
    """Where a condition does not hold."""
    match condition:
        case Prefix("~", operand):
            return operand
        case Op(operator, left, right) if operator in NEGATED:
            return Op(NEGATED[operator], left, right)
        case _ if condition == TRUE:
            return FALSE
        case _ if condition == FALSE:
            return TRUE
    if not variables(condition):  # of constants: a bool, of which ~ makes a number
        return call("np.logical_not", condition)
    return Prefix("~", condition)


def both(conditions: list[Expr]) -> Expr:
    """Where all of them hold."""
    return _joined("&", conditions, TRUE)


def either(conditions: list[Expr]) -> Expr:
    """Where one of them holds."""
    return _joined("|", conditions, FALSE)


def _joined(operator: str, conditions: list[Expr], empty: Expr) -> Expr:
    out: Expr | None = None
    for condition in conditions:
        if condition == empty:
            continue
        out = condition if out is None else Op(operator, out, condition)
    return empty if out is None else out


class VectorArithmetic:
    """Prints values as trees. ``leaf`` gives what the names stand for; sums wrap in ``bits``, those of 64 by themselves."""

    def __init__(self, leaf: Leaf, bits: int | None = None) -> None:
        self.leaf = leaf
        self.bits = bits

    def term(self, value: Value) -> Term:
        match value:
            case nodes.Literal(number) | nodes.Word(value=number):
                return Term(Num(number))
            case nodes.NullValue():
                return Term(Num(0), TRUE)
            case nodes.DerivedValue(_, inner, width):
                return VectorArithmetic(self.leaf, width).term(inner)
            case nodes.Sum():
                nulls: list[Expr] = []
                total = self.sum(value, nulls)
                if self.bits not in (None, 64):
                    total = call(f"wrap_{self.bits}", total)
                return Term(total, either(nulls) if nulls else None)
            case nodes.Conditional(condition, then, otherwise):
                return self.conditional(condition, then, otherwise)
            case nodes.Comparison() | nodes.Logical() | nodes.Negation() | nodes.Membership():
                return Term(self.condition(value), truth=True)
        return self.leaf(value)

    def sum(self, value: Value, nulls: list[Expr]) -> Expr:
        if isinstance(value, nodes.Sum):
            left, right = self.sum(value.left, nulls), self.sum(value.right, nulls)
            return Op(value.operator, left, right)
        term = self.term(value)
        if term.truth:
            raise Refused("a truth value in a sum")
        if term.null is not None and value.type.nullable:
            nulls.append(term.null)
        return term.value

    def conditional(self, condition: Value, then: Value, otherwise: Value) -> Term:
        test = self.condition(condition)
        one, other = self.term(then), self.term(otherwise)
        null: Expr | None = None
        if one.null is not None or other.null is not None:
            sides = (one.null or FALSE, other.null or FALSE)
            if sides == (FALSE, TRUE):
                null = opposite(test)
            elif sides == (TRUE, FALSE):
                null = test
            else:
                null = call("np.where", test, *sides)
        return Term(call("np.where", test, one.value, other.value), null, one.truth and other.truth)

    # ------------------------------------------------------------ conditions

    def condition(self, value: Value) -> Expr:
        match value:
            case nodes.Literal(number):
                return TRUE if number else FALSE
            case nodes.Negation(operand):
                return opposite(self.condition(operand))
            case nodes.Logical("and", left, right):
                return both([self.condition(left), self.condition(right)])
            case nodes.Logical(_, left, right):
                return either([self.condition(left), self.condition(right)])
            case nodes.Comparison():
                return self.comparison(value)
            case nodes.Membership(of, allowed):
                return self.member(self.term(of).value, allowed)
        term = self.term(value)
        holds = term.value if term.truth else term.value.ne(0)
        if term.null is None or not value.type.nullable:
            return holds
        return both([opposite(term.null), holds])

    def broken(self, value: Value) -> Expr:
        """Where a condition does not hold."""
        if isinstance(value, nodes.Membership):
            number, allowed = self.term(value.value).value, value.allowed
            if len(allowed) != allowed[-1] - allowed[0] + 1:
                return both([number.ne(other) for other in allowed])
            unsigned = isinstance(value.value, nodes.BitValue) and allowed[0] == 0
            return either([*([] if unsigned else [number < allowed[0]]), number > allowed[-1]])
        return opposite(self.condition(value))

    def member(self, value: Expr, allowed: tuple[int, ...]) -> Expr:
        low, high = allowed[0], allowed[-1]
        if len(allowed) == high - low + 1:
            return both([value >= low, value <= high])
        return either([value.eq(number) for number in allowed])

    def comparison(self, value: nodes.Comparison) -> Expr:
        operator = value.operator
        if isinstance(value.right, nodes.NullValue):
            null = self.term(value.left).null or FALSE
            return null if operator == "==" else opposite(null)
        one, other = self.term(value.left), self.term(value.right)
        found = Op(operator, one.value, other.value)
        nulls = [
            term.null
            for term, side in ((one, value.left), (other, value.right))
            if term.null is not None and side.type.nullable
        ]
        if not nulls:
            return found
        if operator != "!=":
            all_there = both([*(opposite(null) for null in nulls), found])
            if operator == "==" and len(nulls) == 2:
                return either([both(nulls), all_there])
            return all_there
        if len(nulls) == 1:
            return either([nulls[0], found])
        return both([either([opposite(null) for null in nulls]), either([*nulls, found])])
