"""Values as the arithmetic of kernels: 64-bit integers, and beside them whether they are null."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codecgen.plan import nodes
from codecgen.plan.nodes import Value
from codecgen.plan.value_ranges import I64, exact_range
from codecgen.targets.arrow.code_tree import (
    FALSE,
    TRUE,
    Expr,
    Num,
    Op,
    Pick,
    all_of,
    any_of,
    call,
    invert,
)


class Refused(Exception):
    """Error for a value or a condition that a target cannot express."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"a value is {reason}, which target arrow cannot express; codecgen explain C023 says what to do"
        )
        self.reason = reason


LOOKED_UP = "looked up in an array"
OTHER_ARRAY = "an array that does not give the rows"
NOT_DIRECT = "a value that is not an integer directly in the elements"
NOT_WRITTEN = "a value that is not written as an integer"


def refuse_end(value: nodes.EndValue, what: str) -> Refused:
    """Return, without raising it, the error that a target cannot express a value of the first,
    last, largest or smallest element of an array. ``what`` describes the value or the array.
    """
    return Refused(f"used with {value.end}({'.'.join(value.array.names)}) of {what}")


@dataclass(frozen=True, slots=True)
class Term:
    """A number or a condition of generated code.

    Attributes:
        value: The expression. It may have any value if the term is null.
        null: Condition under which the term is null, None if it never is.
        truth: The value is a condition.
    """

    value: Expr
    null: Expr | None = None
    truth: bool = False

    @property
    def constant(self) -> int | None:
        """Number of a constant term, None for other terms."""
        return self.value.value if isinstance(self.value, Num) else None


Leaf = Callable[[Value], Term]
"""What a field, bits, an end of an array, a column or a place is in the function at hand. Raises :class:`Refused`."""


class Arithmetic:
    """Turns values of schema expressions into expressions of generated kernels. ``leaf`` returns
    the Term (number or condition, with a null condition) of a field, column or place, or raises
    Refused. Sums wrap to ``bits`` bits; if ``bits`` is None, to 64, and sums that are compared are
    exact.

    A sum wraps as a whole, which is the same as wrapping each step. Subclasses decide how conditions are joined and how one of
    two values is picked.
    """

    def __init__(self, leaf: Leaf, bits: int | None = None) -> None:
        self.leaf = leaf
        self.bits = bits

    # ------------------------------------------------------------ how a target writes it

    def opposite(self, condition: Expr) -> Expr:
        """Return the negation of ``condition``."""
        return invert(condition)

    def both(self, conditions: list[Expr]) -> Expr:
        """Return the test that all ``conditions`` hold."""
        return all_of(conditions)

    def either(self, conditions: list[Expr]) -> Expr:
        """Return the test that at least one of ``conditions`` holds."""
        return any_of(conditions)

    def pick(self, test: Expr, one: Expr, other: Expr) -> Expr:
        """Return the expression ``one if test else other``."""
        return Pick(test, one, other)

    def wrapped(self, total: Expr) -> Expr:
        """Return ``total`` wrapped to the bits of this arithmetic, 64 by default."""
        return call(f"wrap_{self.bits or 64}", total)

    def as_condition(self, term: Term) -> Expr:
        """Return the test that a number or a truth value that is no comparison is not 0."""
        return term.value

    def member(self, value: Expr, allowed: tuple[int, ...]) -> Expr:
        """Return the test that ``value`` is in ``allowed``, which is sorted."""
        return is_member(value, allowed)

    # ------------------------------------------------------------ values

    def term(self, value: Value) -> Term:
        """Return ``value`` as a Term. A sum wraps as a whole, and is null if an operand is; a
        condition gets ``truth``; null becomes 0 with the null condition TRUE; a derived value is
        computed in its own width; other values come from ``leaf``. Raise Refused for bytes, text
        and elements looked up in an array, for a comparison that :meth:`comparison` refuses, or if
        ``leaf`` does.
        """
        match value:
            case nodes.Literal(number) | nodes.Word(value=number):
                return Term(Num(number))
            case nodes.NullValue():
                return Term(Num(0), TRUE)
            case nodes.Data():
                raise Refused("compared with bytes or text")
            case nodes.LookUpValue():
                raise Refused(LOOKED_UP)
            case nodes.DerivedValue(_, inner, width):
                return type(self)(self.leaf, width).term(inner)
            case nodes.Sum():
                nulls: list[Expr] = []
                total = self.wrapped(self.sum(value, nulls))
                return Term(total, self.either(nulls) if nulls else None)
            case nodes.Conditional(condition, then, otherwise):
                return self.conditional(condition, then, otherwise)
            case nodes.Comparison() | nodes.Logical() | nodes.Negation() | nodes.Membership():
                return Term(self.condition(value), truth=True)
        return self.leaf(value)

    def number(self, value: Value) -> Expr:
        """Return ``value`` as a numeric expression; conditions become 1 and 0."""
        term = self.term(value)
        return call("int", term.value) if term.truth and term.constant is None else term.value

    def sum(self, value: Value, nulls: list[Expr]) -> Expr:
        """Return a sum, or its single operand, as an expression that does not wrap. Append the null
        condition of each operand that may be null to ``nulls``. Raise Refused if kernels cannot
        express an operand.
        """
        if isinstance(value, nodes.Sum):
            left, right = self.sum(value.left, nulls), self.sum(value.right, nulls)
            return Op(value.operator, left, right)
        term = self.term(value)
        if term.null is not None and value.type.nullable:
            nulls.append(term.null)
        return term.value

    def conditional(self, condition: Value, then: Value, otherwise: Value) -> Term:
        """Return ``then if condition else otherwise`` as a Term. A condition that is null selects
        ``otherwise``. The Term is null if the selected side is null, and has ``truth`` if both
        sides have. Raise Refused if kernels cannot express a part.
        """
        test = self.condition(condition)
        one, other = self.term(then), self.term(otherwise)
        truth = one.truth and other.truth
        null: Expr | None = None
        if one.null is not None or other.null is not None:
            sides = (one.null or FALSE, other.null or FALSE)
            if sides == (FALSE, TRUE):
                null = self.opposite(test)
            elif sides == (TRUE, FALSE):
                null = test
            else:
                null = self.pick(test, *sides)
        return Term(self.pick(test, one.value, other.value), null, truth)

    # ------------------------------------------------------------ conditions

    def condition(self, value: Value) -> Expr:
        """Return ``value`` as a condition. A number is true unless it is 0, and false if it is
        null; a membership does not consider null. Raise Refused if kernels cannot express the
        value, or if ``bits`` is None and a sum that is compared may exceed 64 bits.
        """
        match value:
            case nodes.Literal(number):
                return TRUE if number else FALSE
            case nodes.Negation(operand):
                return self.opposite(self.condition(operand))
            case nodes.Logical("and", left, right):
                return self.both([self.condition(left), self.condition(right)])
            case nodes.Logical(_, left, right):
                return self.either([self.condition(left), self.condition(right)])
            case nodes.Comparison():
                return self.comparison(value)
            case nodes.Membership(of, allowed):
                return self.member(self.term(of).value, allowed)
        term = self.term(value)
        if term.null is None or not value.type.nullable:
            return self.as_condition(term)
        return self.both([self.opposite(term.null), self.as_condition(term)])

    def comparison(self, value: nodes.Comparison) -> Expr:
        """Return a comparison as a condition. An order comparison is false if a side is null;
        ``==`` and ``!=`` treat null as a value of its own. Raise Refused if kernels cannot express
        a side, or, without ``bits``, if a side may exceed 64 bits.
        """
        operator = value.operator
        if isinstance(value.right, nodes.NullValue):
            null = self.term(value.left).null or FALSE
            return null if operator == "==" else self.opposite(null)
        for side in (value.left, value.right) if self.bits is None else ():
            low, high = exact_range(side)
            if low < I64[0] or high > I64[1]:
                raise Refused("checked by a sum that 64 bits may not hold")
        other, one = self.term(value.right), self.term(value.left)
        found = Op(operator, one.value, other.value)
        nulls = [
            term.null
            for term, side in ((one, value.left), (other, value.right))
            if term.null is not None and side.type.nullable
        ]
        if not nulls:
            return found
        if operator != "!=":
            all_there = self.both([*(self.opposite(null) for null in nulls), found])
            if operator == "==" and len(nulls) == 2:
                return self.either([self.both(nulls), all_there])
            return all_there
        if len(nulls) == 1:
            return self.either([nulls[0], found])
        differ = self.either([self.opposite(nulls[0]), self.opposite(nulls[1])])
        return self.both([differ, self.either([*nulls, found])])


def is_member(value: Expr, allowed: tuple[int, ...], *, unsigned: bool = False) -> Expr:
    """Return the test that ``value`` is in ``allowed``, which is sorted. ``unsigned``: ``value`` is never negative."""
    return invert_member(value, allowed, inside=True, unsigned=unsigned)


def invert_member(
    value: Expr, allowed: tuple[int, ...], *, inside: bool = False, unsigned: bool = False
) -> Expr:
    """Return the test that ``value`` is in none of the numbers ``allowed`` (sorted, not empty), or
    with ``inside`` that it is in them. Numbers without gaps become a comparison with both limits,
    others with each number. With ``unsigned``, ``value`` is never negative, so that a lower limit
    of 0 is not compared.
    """
    low, high = allowed[0], allowed[-1]
    if len(allowed) == high - low + 1:
        tests = [value < low] if low or not unsigned else []
        outside = any_of([*tests, value > high])
        if not inside:
            return outside
        return all_of([*(invert(test) for test in tests), value <= high])
    if inside:
        return any_of([value.eq(number) for number in allowed])
    return all_of([value.ne(number) for number in allowed])


def negated_condition(arithmetic: Arithmetic, value: Value) -> Expr:
    """Return the test that the condition ``value`` is false; membership in a list becomes
    comparisons instead of ``not``. Raise Refused if kernels cannot express the condition.
    """
    match value:
        case nodes.Membership(of, allowed):
            bits = isinstance(of, nodes.BitValue)
            return invert_member(arithmetic.term(of).value, allowed, unsigned=bits)
    return invert(arithmetic.condition(value))
