"""Names of columns that SQL reserves."""

from __future__ import annotations

import re

import duckdb

_WORD = re.compile(rb"offset\b", re.I)

_BEFORE_OPERAND = frozenset(
    (
        *("select", "where", "and", "or", "not", "by", "on", "having", "distinct", "when", "then"),
        *("else", "case", "between", "in", "like", "ilike", "filter", "using"),
    )
)
"""Words after which an operand follows, so that OFFSET is no clause there."""


def quote_offset(query: str, *, everywhere: bool = False) -> str:
    """Return a query with each unquoted ``offset`` that stands for the column in double quotes. DuckDB reserves the word
    for the clause OFFSET, which follows an operand: there it stays.

    Args:
        query: Text of SQL.
        everywhere: Quote it in all places, as in an expression, which has no clauses.
    """
    data = query.encode()
    starts = [position for position, _ in duckdb.tokenize(query)]
    kinds = [kind for _, kind in duckdb.tokenize(query)]
    out, end = bytearray(), 0
    previous = b""
    for start, kind, after in zip(starts, kinds, [*starts[1:], len(data)], strict=True):
        token = data[start:after].strip()
        if (
            kind == duckdb.token_type.keyword
            and (found := _WORD.match(data, start))
            and (everywhere or _starts_operand(previous))
        ):
            out += data[end:start] + b'"' + found[0] + b'"'
            end = found.end()
        if kind != duckdb.token_type.comment:
            previous = token
    return (bytes(out) + data[end:]).decode()


def _starts_operand(previous: bytes) -> bool:
    """Return whether an operand, such as a column, follows a token; ``b""`` stands for the start of the query."""
    word = previous.decode("utf-8", "replace").lower()
    if word in _BEFORE_OPERAND:
        return True
    # A closing bracket, a name, a number or a text ends an operand.
    return not previous or (word[-1] in "(,[{.=<>+-/%^|&~!:" or word == "*")
