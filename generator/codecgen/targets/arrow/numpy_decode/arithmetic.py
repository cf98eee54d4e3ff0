"""Values as arithmetic of NumPy: arrays of 64-bit integers, and beside them where they are null."""

from __future__ import annotations

from codecgen.plan import nodes
from codecgen.plan.nodes import Value
from codecgen.targets.arrow.arithmetic import Arithmetic, Term
from codecgen.targets.arrow.code_tree import FALSE, NEGATED, TRUE, Expr, Op, Prefix, call, variables


def opposite(condition: Expr) -> Expr:
    """Return the elementwise negation of a mask expression: comparisons are reversed, ``~`` is
    removed or added, and constants are exchanged. An expression without variables becomes a call of
    ``np.logical_not``.
    """
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
    """Return the elementwise conjunction of ``conditions``."""
    return _join_conditions("&", conditions, TRUE)


def either(conditions: list[Expr]) -> Expr:
    """Return the elementwise disjunction of ``conditions``."""
    return _join_conditions("|", conditions, FALSE)


def _join_conditions(operator: str, conditions: list[Expr], empty: Expr) -> Expr:
    """Return ``conditions`` joined with an operator, grouped from the left, without those equal to
    ``empty``, the neutral constant. Return ``empty`` if none is left.
    """
    out: Expr | None = None
    for condition in conditions:
        if condition == empty:
            continue
        out = condition if out is None else Op(operator, out, condition)
    return empty if out is None else out


class NumpyArithmetic(Arithmetic):
    """Turns values of schema expressions into expressions on NumPy vectors of int64; conditions
    become masks (vectors of bools). 64-bit sums wrap by themselves, narrower ones by a function.
    """

    def opposite(self, condition: Expr) -> Expr:
        """Return the negation of a mask."""
        return opposite(condition)

    def both(self, conditions: list[Expr]) -> Expr:
        """Return the mask of the rows for which all ``conditions`` hold."""
        return both(conditions)

    def either(self, conditions: list[Expr]) -> Expr:
        """Return the mask of the rows for which at least one of ``conditions`` holds."""
        return either(conditions)

    def pick(self, test: Expr, one: Expr, other: Expr) -> Expr:
        """Return the expression that takes ``one`` in rows of the mask ``test``, else ``other``."""
        return call("np.where", test, one, other)

    def wrapped(self, total: Expr) -> Expr:
        """Return ``total`` wrapped to the bits of this arithmetic; unchanged for 64 bits, where
        NumPy wraps.
        """
        return total if self.bits in (None, 64) else super().wrapped(total)

    def as_condition(self, term: Term) -> Expr:
        """Return ``term`` as a mask: nonzero values become True."""
        return term.value if term.truth else term.value.ne(0)

    def member(self, value: Expr, allowed: tuple[int, ...]) -> Expr:
        """Return the mask of values that are in ``allowed``, which is sorted: a comparison with
        both limits if the numbers have no gaps, otherwise with each number.
        """
        low, high = allowed[0], allowed[-1]
        if len(allowed) == high - low + 1:
            return both([value >= low, value <= high])
        return either([value.eq(number) for number in allowed])

    def broken(self, value: Value) -> Expr:
        """Return the mask of elements for which the condition ``value`` is false; membership
        becomes direct comparisons. Raise Refused if NumPy readers cannot express the condition.
        """
        if isinstance(value, nodes.Membership):
            number, allowed = self.term(value.value).value, value.allowed
            if len(allowed) != allowed[-1] - allowed[0] + 1:
                return both([number.ne(other) for other in allowed])
            unsigned = isinstance(value.value, nodes.BitValue) and allowed[0] == 0
            return either([*([] if unsigned else [number < allowed[0]]), number > allowed[-1]])
        return opposite(self.condition(value))
