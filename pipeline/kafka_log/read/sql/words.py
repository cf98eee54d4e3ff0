"""Columns whose names SQL reserves for clauses."""

from __future__ import annotations

import re

import duckdb

_WORD = re.compile(rb"(offset|group)(?![\w$])", re.I)
_BY = re.compile(rb"\s*by(?![\w$])", re.I)

_BEFORE_OPERAND = frozenset(
    (
        *("select", "where", "and", "or", "not", "by", "on", "having", "distinct", "when", "then"),
        *("else", "case", "between", "in", "like", "ilike", "filter", "using", "as"),
    )
)
"""Words after which a column may follow, and no clause."""


def quote_columns(query: str, *, everywhere: bool = False) -> str:
    """Return a query with each unquoted ``offset`` and ``group`` that stands for a column in double
    quotes, as DuckDB reserves both. ``group`` stays before BY, and ``offset`` where it follows an
    operand, as the clause does; with ``everywhere``, as for an expression without clauses, each
    ``offset`` is quoted. Raise UnicodeEncodeError for a lone surrogate.

    Args:
        query: Text of SQL.
        everywhere: Quote ``offset`` in all places, as in an expression, which has no clauses.
    """
    data = query.encode()
    tokens = duckdb.tokenize(query)
    out, end = bytearray(), 0
    previous = b""
    ends = [*(start for start, _ in tokens[1:]), len(data)]
    for (start, kind), after in zip(tokens, ends, strict=False):  # an empty query has no token
        found = _WORD.match(data, start) if kind == duckdb.token_type.keyword else None
        if found and (
            not _BY.match(data, found.end())
            if found[1].lower() == b"group"
            else everywhere or _may_precede_column(previous)
        ):
            out += data[end:start] + b'"' + found[1] + b'"'
            end = found.end()
        if kind != duckdb.token_type.comment:
            previous = data[start:after].strip()
    return (bytes(out) + data[end:]).decode()


def _may_precede_column(token: bytes) -> bool:
    """Return whether a column may follow a token, and no clause; ``b""`` stands for the start of the query."""
    word = token.decode("utf-8", "replace").lower()
    return not word or word in _BEFORE_OPERAND or word[-1] in "(,[{.=<>+-*/%^|&~!:"
