"""Functions as text: names for their variables, without what they do not use, in lines that are not too long."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable
from dataclasses import replace

from codecgen.targets.arrow.code_tree import (
    Add,
    Assign,
    Attribute,
    Branch,
    Call,
    Do,
    Expr,
    For,
    Function,
    Global,
    Lambda,
    Leave,
    Num,
    Op,
    Pick,
    Prefix,
    Return,
    Several,
    Statement,
    Table,
    Text,
    Var,
    While,
    all_of,
    blocks,
    is_pure,
    iterate_expressions,
    own_values,
    reads,
)
from codecgen.targets.python_source import WIDTH, Code, docstring, render, string
from codecgen.targets.python_source import Call as Nest

_BUILTINS = frozenset(dir(builtins))
_BINDS = {
    "or": 1, "and": 2, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4,
    "|": 5, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "//": 10,
}  # fmt: skip
_BITS = ("|", "&", "<<", ">>")


class Names:
    """Allocates names for generated code that differ from each other and from those in ``taken``."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)

    def new(self, wanted: str) -> str:
        """Reserve and return ``wanted``; if it is taken, a built-in or a keyword, append the first
        free number from ``_2`` on.
        """
        name, number = wanted, 1
        while name in self.taken or name in _BUILTINS or keyword.iskeyword(name):
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name


# ---------------------------------------------------------------- what is not used

Arms = list[tuple[Expr | None, list[Statement]]]


def pruned(body: list[Statement]) -> list[Statement]:
    """Return ``body`` without assignments whose targets are never read and whose value has no side
    effects. Drop empty arms at the end of a branch, whatever their conditions do, and branches
    without arms; empty loops stay. Repeat both until nothing changes. An ``if`` that holds only
    another ``if``, both without further arms, becomes one with both conditions. The statements of
    ``body`` are not changed.
    """
    while True:
        used = set(_all_reads(body))
        kept = _prune_once(body, used)
        if _count(kept) == _count(body):
            return kept
        body = kept


def _all_reads(body: list[Statement]) -> Iterable[Var]:
    """Yield the variables that statements and their nested blocks read, with repetitions. An
    augmented assignment reads only its value, not its target.
    """
    for statement in body:
        if not isinstance(statement, Add):
            yield from reads(statement)
        else:
            yield from (v for value in own_values(statement) for v in _vars(value))
        for block in blocks(statement):
            yield from _all_reads(block)


def _vars(value: Expr) -> Iterable[Var]:
    """Yield the variables in an expression, with repetitions."""
    return (part for part in iterate_expressions(value) if isinstance(part, Var))


def _merge_arms(arms: Arms) -> Arms:
    """Return the arms of a branch. If the only arm holds only another branch with one condition,
    return one arm that joins both conditions by ``and``.
    """
    match arms:
        case [(Expr() as outer, [Branch([(Expr() as inner, block)])])]:
            return [(all_of([outer, inner]), block)]
    return arms


def _prune_once(body: list[Statement], used: set[Var]) -> list[Statement]:
    """Return ``body``, in one pass, without assignments to variables outside ``used`` whose value
    has no side effects, without empty arms at the end of a branch, and without branches that have
    no arm left. Join an ``if`` that holds only another ``if`` with it.
    """
    out: list[Statement] = []
    for statement in body:
        match statement:
            case Assign(targets, value) if is_pure(value) and not used.intersection(targets):
                continue
            case Add(target, value) if is_pure(value) and target not in used:
                continue
            case Branch(arms):
                arms = [(test, _prune_once(block, used)) for test, block in arms]
                while arms and not arms[-1][1]:
                    arms.pop()
                if not arms:
                    continue
                out.append(Branch(_merge_arms(arms)))
            case While(condition, block):
                out.append(While(condition, _prune_once(block, used)))
            case For(variable, bounds, block):
                out.append(For(variable, bounds, _prune_once(block, used)))
            case _:
                out.append(statement)
    return out


def _count(body: list[Statement]) -> int:
    """Return the number of statements, including those in blocks."""
    return sum(1 + sum(_count(block) for block in blocks(s)) for s in body)


# ---------------------------------------------------------------- text


def function_text(function: Function, taken: Iterable[str]) -> str:
    """Return the source of ``function``. Its variables get names that differ from those in ``taken``."""
    printer = Printer(Names(taken))
    return printer.function(function)


class Printer:
    """Prints one generated function as Python source, in lines of at most 100 characters where
    possible.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.given: dict[Var, str] = {}
        self.lines: list[str] = []

    def name(self, variable: Var) -> str:
        """Return the name of a variable, which is given on first use."""
        if variable not in self.given:
            self.given[variable] = self.names.new(variable.name)
        return self.given[variable]

    def function(self, function: Function) -> str:
        """Return the source of a function with its decorator (if any), signature and docstring. An
        empty body becomes ``return``.
        """
        parameters = [f"{self.name(v)}: {type_}" for v, type_ in function.parameters]
        if function.decorator:
            self.lines.append(f"@{function.decorator}")
        head = f"def {function.name}("
        tail = f") -> {function.result}:"
        self.broken(0, head, parameters, tail)
        self.lines.append(docstring(function.doc, indent=4))
        self.block(function.body, 1)
        if not function.body:
            self.lines.append("    return")
        return "\n".join(self.lines)

    # ------------------------------------------------------------ statements

    def block(self, body: list[Statement], depth: int) -> None:
        """Append the lines of statements at an indentation depth."""
        for statement in body:
            self.statement(statement, depth)

    def statement(self, statement: Statement, depth: int) -> None:
        """Append the lines of one statement, indented by 4 spaces for each ``depth``: an
        assignment, call, ``return``, ``break`` or ``continue``, or a compound statement with its
        blocks. Statements longer than 100 characters are broken. Remarks become comments, except
        that of a ``return`` without a value.
        """
        match statement:
            case Assign(targets, value, remark):
                names = ", ".join(self.name(target) for target in targets)
                self.line(depth, f"{names} = ", value, "", remark)
            case Add(target, value, operator, remark):
                self.line(depth, f"{self.name(target)} {operator} ", value, "", remark)
            case Do(value, remark):
                self.line(depth, "", value, "", remark)
            case Return(None):
                self.lines.append("    " * depth + "return")
            case Return(value, remark):
                assert value is not None
                self.line(depth, "return ", value, "", remark)
            case Leave(word):
                self.lines.append("    " * depth + word)
            case Branch(arms):
                word = "if"
                for test, body in arms:
                    if test is None:
                        self.lines.append("    " * depth + "else:")
                    else:
                        self.line(depth, f"{word} ", test, ":")
                    self.inner(body, depth)
                    word = "elif"
            case While(condition, body):
                self.line(depth, "while ", condition, ":")
                self.inner(body, depth)
            case For(variable, bounds, body):
                name = "_" if variable is None else self.name(variable)
                range_ = Call(Global("range"), bounds)
                self.line(depth, f"for {name} in ", range_, ":")
                self.inner(body, depth)

    def inner(self, body: list[Statement], depth: int) -> None:
        """Append the lines of a block one level deeper, ``pass`` if it is empty."""
        self.block(body, depth + 1)
        if not body:
            self.lines.append("    " * (depth + 1) + "pass")

    def line(self, depth: int, head: str, value: Expr, tail: str, remark: str = "") -> None:
        """Append the statement ``head value tail`` with ``remark`` as a comment. If it exceeds 100
        characters (other statements than calls without the comment), break it at the arguments of a call, at the operators of a
        chain, or at a comparison, else put the value in parentheses on its own line; a conditional
        expression stays on one line with ``# fmt: skip``.
        """
        indent = "    " * depth
        comment = f"  # {remark}" if remark else ""
        text = self.text(value, -1 if head else 12)
        one = f"{indent}{head}{text}{tail}"
        can_break = isinstance(value, Call) and bool(value.arguments)
        if len(one + comment if can_break else one) <= WIDTH:
            self.lines.append(one + comment)
            return
        if isinstance(value, Pick):
            self.lines.append(f"{one}{comment}  # fmt: skip")
            return
        if isinstance(value, Call) and _is_nested(value):
            nested = render(self.code(value), 4 * depth, len(indent + head), len(tail))
            self.lines += f"{indent}{head}{nested}{tail}{comment}".split("\n")
            return
        if isinstance(value, Prefix) and isinstance(value.operand, Call):
            head += "not " if value.operator == "not" else value.operator
            value = value.operand
        if isinstance(value, Call):
            head += self.text(value.function, 12) + "("
            items = [self.text(argument) for argument in value.arguments]
            between = f"\n{indent}    "
            rows = [
                between.join(self.sum(argument, "", WIDTH - len(between)))
                for argument in value.arguments
            ]
            self.broken(depth, head, items, f"){tail}{comment}", rows)
            return
        operator = value.operator if isinstance(value, Op) else ""
        room = WIDTH - len(indent) - 4
        if operator in ("or", "and", "|", "+"):
            items = self.chain(value, operator, room)
        else:
            items = self.comparison(value, "", -1 if head else 12, room)
        self.lines.append(f"{indent}{head}(")
        self.lines += [f"{indent}    {item}" for item in items]
        self.lines.append(f"{indent}){tail}{comment}")

    def broken(
        self, depth: int, head: str, items: list[str], tail: str, alone: list[str] | None = None
    ) -> None:
        """Append ``head``, comma-separated ``items`` and ``tail``: on one line if that fits in 100
        characters, otherwise with all items on one line between, otherwise with
        one item per line. ``alone`` replaces ``items`` in the last form, if given.
        """
        indent = "    " * depth
        one = f"{indent}{head}{', '.join(items)}{tail}"
        if len(one) <= WIDTH:
            self.lines.append(one)
            return
        inner = f"{indent}    {', '.join(items)}"
        each = [f"{indent}    {item}," for item in alone or items]
        rows = [inner] if len(inner) <= WIDTH else each
        self.lines += [f"{indent}{head}", *rows, f"{indent}{tail}"]

    def chain(self, value: Expr, operator: str, room: int) -> list[str]:
        """Return the operands of a chain of ``operator``, such as ``and``, as lines; all but the
        first begin with the operator. A comparison longer than ``room`` characters takes several
        lines. Without such a chain, return the value as one operand.
        """
        if not isinstance(value, Op) or value.operator != operator:
            return self.comparison(value, "", _BINDS[operator] + 1, room)
        left = self.chain(value.left, operator, room)
        return [*left, *self.comparison(value.right, f"{operator} ", _BINDS[operator] + 1, room)]

    def comparison(self, value: Expr, head: str, min_precedence: int, room: int) -> list[str]:
        """Return ``head`` and an operand as a list of lines: one line if it fits in ``room``
        characters or is no comparison, otherwise split before the comparison operator, and a long
        right side as :meth:`sum` does. An operand of lower precedence than ``min_precedence`` gets
        parentheses.
        """
        one = head + self.text(value, min_precedence)
        if len(one) <= room or not isinstance(value, Op) or _BINDS[value.operator] != _BINDS["=="]:
            return [one]
        own = _BINDS["=="]
        left = self.operand(own, value.left, 0, value.operator)
        right = self.operand(own, value.right, 1, value.operator)
        if len(right) + len(value.operator) < room or right.startswith("("):
            return [head + left, f"{value.operator} {right}"]
        return [head + left, *self.sum(value.right, f"{value.operator} ", room)]

    def sum(self, value: Expr, head: str, room: int) -> list[str]:
        """Return ``head`` and ``value`` as a list of lines: one line if it fits in ``room``
        characters or is no sum or difference, otherwise one line per operand. All lines but the
        first begin with ``+`` or ``-``.
        """
        one = head + self.text(value)
        if len(one) <= room or not isinstance(value, Op) or value.operator not in ("+", "-"):
            return [one]
        right = self.operand(_BINDS[value.operator], value.right, 1, value.operator)
        return [*self.sum(value.left, head, 0), f"{value.operator} {right}"]

    # ------------------------------------------------------------ expressions

    def code(self, value: Expr) -> Code:
        """Return ``value`` as a tree that :func:`render` can break between arguments: calls,
        lambdas, dict and tuple displays. Return the text of other expressions.
        """
        match value:
            case Call(function, arguments, named):
                items = [("", self.code(argument)) for argument in arguments]
                items += [(f"{name}=", self.code(item)) for name, item in named]
                return Nest(self.text(function, 12), tuple(items))
            case Lambda(parameter, inner):
                used = any(part is parameter for part in iterate_expressions(inner))
                head = f"lambda {self.name(parameter) if used else '_'}: "
                code = self.code(inner)
                if isinstance(code, Nest):
                    return replace(code, head=head + code.head)
                return head + (code if isinstance(code, str) else self.text(inner))
            case Table(pairs):
                return Nest("", tuple((f"{string(k)}: ", self.code(v)) for k, v in pairs), "{}")
            case Several(parts):
                return Nest("", tuple(("", self.code(part)) for part in parts))
        return self.text(value)

    def text(self, value: Expr, min_precedence: int = 0) -> str:
        """Return the text of ``value``, in parentheses if its precedence is below ``min_precedence``."""
        text, binds = self._text(value)
        return text if binds >= min_precedence else f"({text})"

    def _text(self, value: Expr) -> tuple[str, int]:
        """Return the Python text of an expression and its precedence: 12 for the strongest, -1 for
        a tuple without parentheses. Raise TypeError for an unknown kind of expression, such as a
        dict display.
        """
        match value:
            case Var():
                return self.name(value), 12
            case Global(name):
                return name, 12
            case Num(number):
                return str(number), 12 if number >= 0 else 11
            case Text(text):
                return string(text), 12
            case Op(operator, left, right):
                own = _BINDS[operator]
                sides = [
                    self.operand(own, left, 0, operator),
                    self.operand(own, right, 1, operator),
                ]
                return f"{sides[0]} {operator} {sides[1]}", own
            case Prefix("not", operand):
                return f"not {self.text(operand, 5)}", 3
            case Prefix(operator, operand):
                return f"{operator}{self.text(operand, 11)}", 11
            case Pick(condition, then, otherwise):
                sides = [self.text(then, 1), self.text(condition, 1), self.text(otherwise, 1)]
                return f"{sides[0]} if {sides[1]} else {sides[2]}", 0
            case Call(function, arguments, named):
                items = [self.text(argument) for argument in arguments]
                items += [f"{name}={self.text(item)}" for name, item in named]
                return f"{self.text(function, 12)}({', '.join(items)})", 12
            case Attribute(owner, name):
                return f"{self.text(owner, 12)}.{name}", 12
            case Lambda(parameter, inner):
                used = any(part is parameter for part in iterate_expressions(inner))
                name = self.name(parameter) if used else "_"
                return f"lambda {name}: {self.text(inner)}", 0
            case Several(items):
                row = ", ".join(self.text(item, 1) for item in items)
                return (f"({row},)", 12) if len(items) == 1 else (row, -1)
        raise TypeError(type(value).__name__)

    def operand(self, own: int, value: Expr, right: int, operator: str) -> str:
        """Return the text of ``value`` as an operand of ``operator``, whose precedence is ``own``,
        in parentheses if precedence requires them. ``right`` is 1 for the right side, 0 for the
        left. Bit operations inside arithmetic or comparisons, and ``and`` inside ``or``, always get
        parentheses.
        """
        min_precedence = own + (right or own == _BINDS["=="])
        inner = value.operator if isinstance(value, Op) else ""
        mixed = inner in _BITS and operator not in _BITS and operator not in ("and", "or")
        mixed = mixed or (operator == "or" and inner == "and")
        return self.text(value, 12 if mixed else min_precedence)


def _is_nested(value: Call) -> bool:
    """Return True if a call is printed with one argument per line: it or one of its arguments has keywords."""
    return bool(value.named) or any(isinstance(a, Call) and a.named for a in value.arguments)
