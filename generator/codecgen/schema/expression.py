"""The expression language of schemas: fields, numbers, + and -, comparisons, if/then/else. Nothing else.

    expression := "if" expression "then" expression "else" expression | or
    or         := and ("or" and)*
    and        := not ("and" not)*
    not        := "not" not | comparison
    comparison := sum (("==" | "!=" | "<" | "<=" | ">" | ">=") sum)?
    sum        := atom (("+" | "-") atom)*
    atom       := number | "-" number | "true" | "false" | "null" | path | "(" expression ")"
                | ("first"|"last") "(" path ")" ("." path)? | ("max"|"min") "(" path ")"
                | path "[" expression "]" ("." path)?
    path       := name ("." name)*
    number     := digits | "0x" hexadecimal digits

An expression is data: it is parsed here, checked against the layout, and written out again by the targets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from codecgen.schema import other_words


@dataclass(frozen=True, slots=True)
class Number:
    """A number."""

    value: int


@dataclass(frozen=True, slots=True)
class Truth:
    """``true`` or ``false``."""

    value: bool


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes or text that a default consists of. It is never part of an expression."""

    value: bytes | str


@dataclass(frozen=True, slots=True)
class Null:
    """The value null."""


@dataclass(frozen=True, slots=True)
class Path:
    """``attributes.compression``; ``column`` is where it stands in the expression's text."""

    names: tuple[str, ...]
    column: int = 0

    def __str__(self) -> str:
        return ".".join(self.names)


@dataclass(frozen=True, slots=True)
class EndOf:
    """``first(array).path``, ``last(array).path``, ``max(array).path`` or ``min(array).path``.
    Where rows are written, ``array`` names a column and ``path`` is None.
    """

    end: str
    array: Path
    path: Path | None


@dataclass(frozen=True, slots=True)
class LookUp:
    """``array[index].path``: the element of an array with this number, from 0, or a value in it."""

    array: Path
    index: Node
    path: Path | None


@dataclass(frozen=True, slots=True)
class Binary:
    """``+``, ``-``, a comparison, ``and``, ``or``."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Not:
    """``not`` of a condition."""

    operand: Node


@dataclass(frozen=True, slots=True)
class If:
    """``if condition then .. else ..``."""

    condition: Node
    then: Node
    otherwise: Node


Node = Number | Truth | Data | Null | Path | EndOf | LookUp | Binary | Not | If


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression, its text, and the line of YAML where it stands."""

    node: Node
    text: str
    file: str
    line: int
    column: int

    def paths(self) -> Iterator[Path]:
        """Yield the field paths in the expression from left to right, repeats included. Of
        ``first(array).x`` and the like, only the array; of ``array[index].x``, the array and the
        paths of the index.
        """
        yield from _iterate_paths(self.node)

    @property
    def looks_up(self) -> bool:
        """Return whether the expression contains ``array[index]``. ``first(array)`` and the like do
        not count.
        """
        return _contains_look_up(self.node)

    def __str__(self) -> str:
        return " ".join(self.text.split())


class ExpressionError(ValueError):
    """The text is not a valid expression.

    Attributes:
        column: Position in the text, from 0.
        width: Length of the offending token.
        help: What to write instead, or ``""``.
    """

    def __init__(self, reason: str, column: int, width: int = 1, help: str = "") -> None:
        super().__init__(reason)
        self.help = help
        self.reason = reason
        self.column = column
        self.width = width


MAX_DEPTH = 40
MAX_TOKENS = 400
MAX_DIGITS = 20
_TOKEN = re.compile(
    r"\s*(?:(0x[0-9a-fA-F]+|[0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|(==|!=|<=|>=|[-+().<>\[\]]))"
)
_EXTREMES = ("max", "min")
_KEYWORDS = {"if", "then", "else", "and", "or", "not", "null", "true", "false", "first", "last"}
_COMPARISONS = {"==", "!=", "<", "<=", ">", ">="}


def parse(text: str, file: str = "", line: int = 1, column: int = 1) -> Expression:
    """Parse ``text``, which stands at ``line`` and ``column`` of ``file``. Raise ExpressionError if
    it is empty, not valid, too long (``MAX_TOKENS``) or nested too deep (``MAX_DEPTH``). Names are
    not looked up.
    """
    return Expression(_Parser(text).parse(), text, file, line, column)


class _Parser:
    """Recursive descent parser of one expression. Raises ExpressionError."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, int]] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            bad = at + len(text[at:]) - len(text[at:].lstrip())
            other = other_words.find_foreign_operator(text, bad)
            if match is None or other is not None:
                word, help = other or (text[bad], "")
                reason = f"{word!r} has no meaning in an expression"
                raise ExpressionError(reason, bad, len(word), help)
            token = match.group(1) or match.group(2) or match.group(3)
            if match.group(1) and len(token) > MAX_DIGITS:
                start = match.end() - len(token)
                message = f"a number has at most {MAX_DIGITS} digits, and this one {len(token)}"
                raise ExpressionError(message, start, len(token))
            self.tokens.append((token, match.end() - len(token)))
            at = match.end()
            if len(self.tokens) > MAX_TOKENS:
                message = f"the expression has more than {MAX_TOKENS} words"
                raise ExpressionError(message, at, help="split it: let a derived value hold a part")
        self.at = 0
        self.depth = 0

    def parse(self) -> Node:
        """Return the node of the whole text. Raise ExpressionError at the first token that does not
        fit, if text remains after the expression, or if it is nested too deep.
        """
        node = self.parse_expression()
        if self.at < len(self.tokens):
            token, column = self.tokens[self.at]
            help = f"write {token.lower()}" if token.lower() in _KEYWORDS - {token} else ""
            raise ExpressionError(f"{token!r} does not belong here", column, len(token), help)
        return node

    def peek(self) -> str:
        """Return the next token without consuming it, or ``""`` at the end."""
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self) -> tuple[str, int]:
        """Consume the next token and return it with its column (from 0). Raise ExpressionError if
        no token is left.
        """
        if self.at >= len(self.tokens):
            raise ExpressionError("the expression ends too early", max(len(self.text) - 1, 0))
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, wanted: str) -> None:
        """Consume the token ``wanted``. Raise ExpressionError if another token is next."""
        token, column = self.take()
        if token != wanted:
            raise ExpressionError(f"{wanted!r} is expected, not {token!r}", column, len(token))

    def parse_expression(self) -> Node:
        """Parse ``if .. then .. else ..`` or a disjunction, and return its node. Raise
        ExpressionError at the first token that does not fit, or if expressions nest more than
        ``MAX_DEPTH`` deep.
        """
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(
                f"the expression is nested more than {MAX_DEPTH} deep: split it into derived values",
                0,
            )
        try:
            if self.peek() != "if":
                return self.parse_disjunction()
            self.take()
            condition = self.parse_expression()
            self.expect("then")
            then = self.parse_expression()
            self.expect("else")
            return If(condition, then, self.parse_expression())
        finally:
            self.depth -= 1

    def parse_disjunction(self) -> Node:
        """Parse one operand, or several joined with ``or`` (left-associative), and return the node.
        Raise ExpressionError at the first token that does not fit.
        """
        node = self.parse_conjunction()
        while self.peek() == "or":
            self.take()
            node = Binary("or", node, self.parse_conjunction())
        return node

    def parse_conjunction(self) -> Node:
        """Parse one operand, or several joined with ``and`` (left-associative), and return the
        node. Raise ExpressionError at the first token that does not fit.
        """
        node = self.parse_negation()
        while self.peek() == "and":
            self.take()
            node = Binary("and", node, self.parse_negation())
        return node

    def parse_negation(self) -> Node:
        """Parse a comparison, after any number of ``not``, and return its node. Raise
        ExpressionError at the first token that does not fit, or if it nests more than ``MAX_DEPTH``
        deep.
        """
        if self.peek() != "not":
            return self.parse_comparison()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(
                f"the expression is nested more than {MAX_DEPTH} deep: split it into derived values",
                0,
            )
        self.take()
        node = Not(self.parse_negation())
        self.depth -= 1
        return node

    def parse_comparison(self) -> Node:
        """Parse a sum, or one comparison of two sums, and return its node; comparisons do not
        chain. Raise ExpressionError at the first token that does not fit.
        """
        node = self.parse_sum()
        if self.peek() in _COMPARISONS:
            operator, _ = self.take()
            node = Binary(operator, node, self.parse_sum())
        return node

    def parse_sum(self) -> Node:
        """Parse one operand, or several joined with ``+`` and ``-`` (left-associative), and return
        the node. Raise ExpressionError at the first token that does not fit.
        """
        node = self.parse_atom()
        while self.peek() in ("+", "-"):
            operator, _ = self.take()
            node = Binary(operator, node, self.parse_atom())
        return node

    def parse_atom(self) -> Node:
        """Parse a number (perhaps after ``-``), ``true``, ``false``, ``null``, a path,
        ``first(..)`` and the like, a look-up ``array[index]``, or an expression in parentheses, and
        return its node. Raise ExpressionError at the first token that does not fit, at the end, or
        if expressions nest more than ``MAX_DEPTH`` deep.
        """
        token, column = self.take()
        if token == "(":
            node = self.parse_expression()
            self.expect(")")
            return node
        if token == "-":
            digits, at = self.take()
            if not digits[0].isdigit():
                raise ExpressionError("a number is expected after '-'", at, len(digits))
            return Number(-number(digits))
        if token[0].isdigit():
            return Number(number(token))
        if token in ("true", "false"):
            return Truth(token == "true")
        if token == "null":
            return Null()
        if token in ("first", "last") or (token in _EXTREMES and self.peek() == "("):
            self.expect("(")
            array = self.parse_path(*self.take())
            self.expect(")")
            return EndOf(token, array, self.parse_inner_path())
        path = self.parse_path(token, column)
        if self.peek() != "[":
            return path
        _, opened = self.take()
        index = self.parse_expression()
        if not self.peek():
            raise ExpressionError("']' is missing", opened, help=f"write `{path}[{source(index)}]`")
        self.expect("]")
        return LookUp(path, index, self.parse_inner_path())

    def parse_inner_path(self) -> Path | None:
        """Parse a dot and the path after it, and return the path. Return None without a dot. Raise
        ExpressionError if what follows the dot is no path.
        """
        if self.peek() != ".":
            return None
        self.take()
        return self.parse_path(*self.take())

    def parse_path(self, token: str, column: int) -> Path:
        """Parse a path whose first name is ``token``, at ``column`` (from 0), and return it. Raise
        ExpressionError if ``token`` or what follows a dot is no name.
        """
        names = [self.require_name(token, column)]
        while self.peek() == ".":
            self.take()
            names.append(self.require_name(*self.take()))
        return Path(tuple(names), column)

    def require_name(self, token: str, column: int) -> str:
        """Return ``token`` if it can be the name of a field. Raise ExpressionError at ``column`` if
        it is a keyword, or begins with neither a letter nor ``_``.
        """
        if token in _KEYWORDS or not (token[0].isalpha() or token[0] == "_"):
            raise ExpressionError(f"a field is expected, not {token!r}", column, len(token))
        return token


def number(digits: str) -> int:
    """Return the number that decimal digits, or hexadecimal digits after ``0x``, stand for. Raise
    ValueError for other text.
    """
    return int(digits, 16) if digits.startswith("0x") else int(digits)


def data_text(value: bytes | str) -> str:
    """Return bytes or text on one line: ``hex 4f62``, ``"text"``."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else f"hex {value.hex()}"


def source(node: Node) -> str:
    """Return a node as text that parses to the same node (columns of paths aside), with as few
    parentheses as possible. Only the literal of a ``Data`` node, such as ``hex 4f62``, does not
    parse.
    """
    return "".join(map(str, pieces(node)))


def pieces(node: Node) -> Iterator[str | Path]:
    """Yield the text of a node in pieces, in order: field paths as Path, everything else as str.
    The path inside an element (``first(array).path``, ``array[index].path``) is part of a str.
    Parentheses are added only where they are needed.
    """
    match node:
        case Number(value):
            yield str(value)
        case Truth(value):
            yield "true" if value else "false"
        case Data(value):
            yield data_text(value)
        case Null():
            yield "null"
        case Path():
            yield node
        case EndOf(end, array, path):
            yield f"{end}("
            yield array
            yield f").{path}" if path is not None else ")"
        case LookUp(array, index, path):
            yield array
            yield "["
            yield from pieces(index)
            yield f"].{path}" if path is not None else "]"
        case Not(operand):
            yield "not "
            yield from _pieces_in_parentheses(operand, _precedence(node))
        case If(condition, then, otherwise):
            for word, part in (("if ", condition), (" then ", then), (" else ", otherwise)):
                yield word
                yield from pieces(part)
        case Binary(operator, left, right):
            own = _precedence(node)
            # Sums and conditions go on to the right; a comparison has two sides and no more.
            yield from _pieces_in_parentheses(
                left, own if operator not in _COMPARISONS else own + 1
            )
            yield f" {operator} "
            yield from _pieces_in_parentheses(right, own + 1)


def _precedence(node: Node) -> int:
    """Return the precedence of a node, from 0 (``if``) over ``or``, ``and``, ``not``, comparisons
    and sums to 6 for all others. A higher number binds more tightly.
    """
    match node:
        case If():
            return 0
        case Binary("or"):
            return 1
        case Binary("and"):
            return 2
        case Not():
            return 3
        case Binary("+" | "-"):
            return 5
        case Binary():
            return 4
        case _:
            return 6


def _pieces_in_parentheses(node: Node, min_precedence: int) -> Iterator[str | Path]:
    """Yield the pieces of a node, in parentheses if its precedence is below ``min_precedence``."""
    if _precedence(node) >= min_precedence:
        yield from pieces(node)
    else:
        yield "("
        yield from pieces(node)
        yield ")"


def _contains_look_up(node: Node) -> bool:
    """Return whether a node or a node below it is ``array[index]``. ``first(array)`` does not
    count.
    """
    match node:
        case LookUp():
            return True
        case Binary(_, left, right):
            return _contains_look_up(left) or _contains_look_up(right)
        case Not(operand):
            return _contains_look_up(operand)
        case If(condition, then, otherwise):
            return any(map(_contains_look_up, (condition, then, otherwise)))
    return False


def _iterate_paths(node: Node) -> Iterator[Path]:
    """Yield the field paths in a node from left to right, repeats included. Of ``first(array).x``
    and the like, only the array; of ``array[index].x``, the array and the paths of the index.
    """
    match node:
        case Path():
            yield node
        case EndOf(_, array, _):
            yield array
        case LookUp(array, index, _):
            yield array
            yield from _iterate_paths(index)
        case Binary(_, left, right):
            yield from _iterate_paths(left)
            yield from _iterate_paths(right)
        case Not(operand):
            yield from _iterate_paths(operand)
        case If(condition, then, otherwise):
            yield from _iterate_paths(condition)
            yield from _iterate_paths(then)
            yield from _iterate_paths(otherwise)
        case _:
            return
