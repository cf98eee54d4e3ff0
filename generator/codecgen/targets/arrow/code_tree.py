"""Python as a tree: what kernels are made of before they are text.

Variables are objects, not names: two of them never meet, whatever a schema calls its fields. Names are given when a
function is printed (:mod:`codecgen.targets.arrow.function_printer`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field


class Expr:
    """Expression of generated code. Operators build larger expressions; ``eq`` and ``ne`` compare."""

    __slots__ = ()

    def __add__(self, other: Expr | int) -> Expr:
        return Op("+", self, expr(other))

    def __radd__(self, other: int) -> Expr:
        return Op("+", expr(other), self)

    def __sub__(self, other: Expr | int) -> Expr:
        return Op("-", self, expr(other))

    def __mul__(self, other: Expr | int) -> Expr:
        return Op("*", self, expr(other))

    def __rmul__(self, other: int) -> Expr:
        return Op("*", expr(other), self)

    def __floordiv__(self, other: Expr | int) -> Expr:
        return Op("//", self, expr(other))

    def __and__(self, other: Expr | int) -> Expr:
        return Op("&", self, expr(other))

    def __or__(self, other: Expr | int) -> Expr:
        return Op("|", self, expr(other))

    def __lshift__(self, other: int) -> Expr:
        return Op("<<", self, expr(other)) if other else self

    def __rshift__(self, other: int) -> Expr:
        return Op(">>", self, expr(other)) if other else self

    def __lt__(self, other: Expr | int) -> Expr:
        return Op("<", self, expr(other))

    def __le__(self, other: Expr | int) -> Expr:
        return Op("<=", self, expr(other))

    def __gt__(self, other: Expr | int) -> Expr:
        return Op(">", self, expr(other))

    def __ge__(self, other: Expr | int) -> Expr:
        return Op(">=", self, expr(other))

    def eq(self, other: Expr | int) -> Expr:
        """Return the expression ``self == other``."""
        return Op("==", self, expr(other))

    def ne(self, other: Expr | int) -> Expr:
        """Return the expression ``self != other``."""
        return Op("!=", self, expr(other))


@dataclass(frozen=True, slots=True, eq=False)
class Var(Expr):
    """Variable of a function. ``name`` is its preferred name; a number is appended if the name is taken."""

    name: str


@dataclass(frozen=True, slots=True)
class Global(Expr):
    """Module-level constant or function, or a primitive, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Num(Expr):
    """Integer literal."""

    value: int


@dataclass(frozen=True, slots=True)
class Text(Expr):
    """String literal."""

    value: str


@dataclass(frozen=True, slots=True)
class Op(Expr):
    """Binary operator with its operands."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Prefix(Expr):
    """Unary operator: ``not``, ``-`` or ``~``."""

    operator: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Pick(Expr):
    """Conditional expression ``then if condition else otherwise``."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """Function call. ``pure``: it has no side effects."""

    function: Expr
    arguments: tuple[Expr, ...]
    named: tuple[tuple[str, Expr], ...] = ()
    pure: bool = True


@dataclass(frozen=True, slots=True)
class Attribute(Expr):
    """Attribute ``owner.name``."""

    owner: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Lambda(Expr):
    """``lambda parameter: value``."""

    parameter: Var
    value: Expr


@dataclass(frozen=True, slots=True)
class Table(Expr):
    """Dict display with string keys."""

    items: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Several(Expr):
    """Tuple display."""

    items: tuple[Expr, ...]


TRUE, FALSE, NONE = Global("True"), Global("False"), Global("None")

NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def expr(value: Expr | int) -> Expr:
    """Return ``value`` as an expression: an int becomes a number, an expression stays as it is."""
    return Num(value) if isinstance(value, int) else value


def call(name: str, *arguments: Expr | int, **named: Expr | int) -> Call:
    """Return a call of the pure module-level function ``name``."""
    keywords = tuple((key, expr(value)) for key, value in named.items())
    return Call(Global(name), tuple(map(expr, arguments)), keywords)


def effect(name: str, *arguments: Expr | int) -> Call:
    """Return a call of the module-level function ``name``, which has side effects."""
    return Call(Global(name), tuple(map(expr, arguments)), (), False)


def any_of(conditions: Iterable[Expr]) -> Expr:
    """Return ``a or b or c`` of the conditions, FALSE if there are none."""
    return _join_operands("or", list(conditions), FALSE)


def all_of(conditions: Iterable[Expr]) -> Expr:
    """Return ``a and b and c`` of the conditions, TRUE if there are none."""
    return _join_operands("and", list(conditions), TRUE)


def _join_operands(operator: str, items: Sequence[Expr], empty: Expr) -> Expr:
    """Return ``items`` joined with a binary operator, grouped from the left; a single item as it
    is; ``empty`` if there are none.
    """
    if not items:
        return empty
    out = items[0]
    for item in items[1:]:
        out = Op(operator, out, item)
    return out


def invert(condition: Expr) -> Expr:
    """Return the negation of ``condition``: the opposite comparison, the operand of ``not``, the
    other constant for True and False, otherwise ``not condition``.
    """
    match condition:
        case Op(operator, left, right) if operator in NEGATED:
            return Op(NEGATED[operator], left, right)
        case Prefix("not", operand):
            return operand
        case Global("True"):
            return FALSE
        case Global("False"):
            return TRUE
    return Prefix("not", condition)


def subexpressions(value: Expr) -> tuple[Expr, ...]:
    """Return the direct subexpressions of ``value`` as a tuple, in order of the text, but the
    condition of a conditional expression first; ``()`` for variables, names, numbers and strings.
    Parameters of lambdas and keys of dict displays are not included.
    """
    match value:
        case Var() | Global() | Num():  # most of them
            return ()
        case Op(_, left, right):
            return (left, right)
        case Prefix(_, operand):
            return (operand,)
        case Pick(condition, then, otherwise):
            return (condition, then, otherwise)
        case Call(function, arguments, named):
            return (function, *arguments, *(item for _, item in named))
        case Attribute(owner):
            return (owner,)
        case Lambda(_, inner):
            return (inner,)
        case Several(items):
            return items
        case Table(pairs):
            return tuple(item for _, item in pairs)
    return ()


def iterate_expressions(value: Expr) -> Iterator[Expr]:
    """Yield ``value`` and all its subexpressions, depth first: each one before its own parts, in
    the order of :func:`subexpressions`, with repetitions. Parameters of lambdas are not included.
    """
    todo = [value]
    while todo:
        part = todo.pop()
        yield part
        todo += reversed(subexpressions(part))


def variables(value: Expr) -> set[Var]:
    """Return the variables that an expression reads."""
    return {part for part in iterate_expressions(value) if isinstance(part, Var)}


def replaced(value: Expr, new: dict[Var, Var]) -> Expr:
    """Return ``value`` with each variable that ``new`` maps replaced, inside operators, conditional
    expressions and arguments of calls. Attributes, lambdas, tuples and dict displays are returned
    unchanged, with the variables in them.
    """
    match value:
        case Var():
            return new.get(value, value)
        case Op(operator, left, right):
            return Op(operator, replaced(left, new), replaced(right, new))
        case Prefix(operator, operand):
            return Prefix(operator, replaced(operand, new))
        case Pick(condition, then, otherwise):
            return Pick(*(replaced(part, new) for part in (condition, then, otherwise)))
        case Call(function, arguments, named, pure):
            keywords = tuple((key, replaced(item, new)) for key, item in named)
            return Call(function, tuple(replaced(a, new) for a in arguments), keywords, pure)
    return value


# ---------------------------------------------------------------- statements


class Statement:
    """Statement of generated code: a line, or a compound statement with blocks."""

    __slots__ = ()


@dataclass(slots=True)
class Assign(Statement):
    """Assignment ``a, b = value``; ``remark`` is its comment."""

    targets: tuple[Var, ...]
    value: Expr
    remark: str = ""


@dataclass(slots=True)
class Add(Statement):
    """Augmented assignment ``a += value`` or ``a -= value``."""

    target: Var
    value: Expr
    operator: str = "+="
    remark: str = ""


@dataclass(slots=True)
class Do(Statement):
    """Expression statement: a call for its side effects."""

    call: Expr
    remark: str = ""


@dataclass(slots=True)
class Return(Statement):
    """``return value``, or ``return`` alone."""

    value: Expr | None
    remark: str = ""


@dataclass(slots=True)
class Leave(Statement):
    """``break`` or ``continue``."""

    word: str


@dataclass(slots=True)
class Branch(Statement):
    """``if``/``elif``/``else``: the last condition may be None."""

    arms: list[tuple[Expr | None, list[Statement]]]


@dataclass(slots=True)
class While(Statement):
    """``while condition`` with its body."""

    condition: Expr
    body: list[Statement]


@dataclass(slots=True)
class For(Statement):
    """``for variable in range(...)``. Without a variable the loop variable is ``_``."""

    variable: Var | None
    bounds: tuple[Expr, ...]
    body: list[Statement]


@dataclass(slots=True)
class Function:
    """Function of a generated module. ``decorator`` may be empty; ``parameters`` are variables with their types."""

    name: str
    parameters: list[tuple[Var, str]]
    result: str
    doc: str
    body: list[Statement] = field(default_factory=list)
    decorator: str = ""


def reads(statement: Statement) -> Iterator[Var]:
    """Yield the variables that a statement itself reads, with the target of an augmented
    assignment, without the variables that its nested blocks read. Repetitions are possible; the
    order within one expression is not fixed.
    """
    for value in own_values(statement):
        yield from variables(value)
    if isinstance(statement, Add):
        yield statement.target


def own_values(statement: Statement) -> Iterator[Expr]:
    """Yield the expressions of a statement itself: assigned or returned values, calls, conditions
    and loop bounds, without those in its nested blocks. Yield nothing for ``break``, ``continue``
    and a bare ``return``.
    """
    match statement:
        case Assign(_, value) | Add(_, value):
            yield value
        case Do(value):
            yield value
        case Return(value):
            if value is not None:
                yield value
        case Branch(arms):
            yield from (test for test, _ in arms if test is not None)
        case While(condition):
            yield condition
        case For(_, bounds):
            yield from bounds


def blocks(statement: Statement) -> list[list[Statement]]:
    """Return the blocks that a statement contains, as lists of statements: one for each arm of a
    branch, one for a loop, ``[]`` for other statements.
    """
    match statement:
        case Branch(arms):
            return [body for _, body in arms]
        case While(body=body) | For(body=body):
            return [body]
    return []


def is_pure(value: Expr) -> bool:
    """Return True if evaluating ``value`` has no side effects."""
    return all(not isinstance(part, Call) or part.pure for part in iterate_expressions(value))


def all_values(body: list[Statement]) -> Iterator[Expr]:
    """Yield the expressions of statements and of their nested blocks, in order, but the conditions
    of all arms of a branch before the arms' blocks. Each is yielded as a whole, without its
    subexpressions.
    """
    for statement in body:
        yield from own_values(statement)
        for block in blocks(statement):
            yield from all_values(block)


def globals_of(body: list[Statement]) -> Iterator[str]:
    """Yield the module-level names that statements use, with repetitions."""
    for value in all_values(body):
        yield from (part.name for part in iterate_expressions(value) if isinstance(part, Global))
