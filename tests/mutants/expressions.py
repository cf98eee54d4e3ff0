"""Changes of expressions: an operator, a number, a name, ``first`` and ``last``, one at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

TOKEN = re.compile(r"-?\d+|[A-Za-z_][\w.]*|==|!=|<=|>=|[<>+\-]")
OPERATORS: Mapping[str, str] = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">",
    "+": "-", "-": "+", "and": "or", "or": "and", "not": "",
    "first": "last", "last": "first", "max": "first",
}  # fmt: skip
KEYWORDS = {"if", "then", "else", "null", "and", "or", "not", "first", "last", "max", "version"}


def changes(raw: str, words: Sequence[Sequence[str]]) -> Iterator[tuple[int, int, str]]:
    """(start, end, new) of every change of an expression's YAML text.

    ``words`` has groups of names; a name of a group is replaced by the next one of it.
    """
    begin = raw.index("\n") if raw[:1] in (">", "|") and "\n" in raw else 0
    for match in TOKEN.finditer(raw, begin):
        token, (start, end) = match.group(), match.span()
        if token in OPERATORS:
            yield start, end, OPERATORS[token]
        elif token.lstrip("-").isdecimal():
            number = token
            if number.startswith("-") and _is_operand(raw[:start]):
                start, number = start + 1, token[1:]  # a minus between two operands
                yield start - 1, start, "+"
            yield start, end, str(int(number) + 1)
        elif token not in KEYWORDS:
            yield from ((start, end, new) for new in _others(token, words))


def _is_operand(before: str) -> bool:
    """Whether what stands before a minus is something to subtract from."""
    last = re.search(r"[\w.)]+\s*$", before)
    return last is not None and last.group().strip() not in KEYWORDS


def _others(token: str, groups: Sequence[Sequence[str]]) -> Iterator[str]:
    head, dot, rest = token.partition(".")
    for group in groups:
        for name, tail in ((token, ""), (head, dot + rest)):
            if name in group and len(group) > 1:
                yield group[(group.index(name) + 1) % len(group)] + tail
                return
