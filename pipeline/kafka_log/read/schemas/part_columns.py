"""Columns of the decoded keys or values of a topic: the values, their schema ids, undecoded bytes and problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kafka_log.read.schemas.shapes import Shape, field_of

ADDED = ("schema_id", "undecoded", "problem")
"""Columns that follow the decoded column of a part; their names begin with ``key_`` or ``value_``."""

VALUE_ERRORS = (ArithmeticError, LookupError, TypeError, ValueError, RecursionError)
"""Errors of values that a decoder or a column refuses."""

_MAX_PROBLEM = 500
"""Maximum characters of a problem."""


def list_fields(part: str, shape: Shape | None) -> list[Any]:
    """Return the Arrow fields of what a key or value (``part``) becomes: the decoded column (of type
    null if ``shape`` is None), then its schema id, its undecoded bytes and its problem
    (:data:`ADDED`).
    """
    types = (pa.int64(), pa.binary(), pa.string())
    added = [pa.field(f"{part}_{name}", kind) for name, kind in zip(ADDED, types, strict=True)]
    return [field_of(part, Shape(pa.null()) if shape is None else shape), *added]


def build_column(
    kind: Any, found: list[Any], problems: list[str | None], rows: Sequence[int]
) -> Any:
    """Return an Arrow array of type ``kind`` with one decoded value, ``found[row]``, for each row in
    ``rows``, in this order; other rows have no element. A value that the type cannot hold becomes
    null, also in ``found``, and the reason is set in ``problems``.
    """
    try:
        return pa.array([found[row] for row in rows], kind)
    except (pa.ArrowException, *VALUE_ERRORS):
        for row in rows:
            try:
                pa.array([found[row]], kind)
            except (pa.ArrowException, *VALUE_ERRORS) as error:
                found[row] = None
                problems[row] = shorten(f"the column cannot hold the value: {error}")
        return pa.array([found[row] for row in rows], kind)


def shorten(problem: str) -> str:
    """Return a problem, cut off with `` ...`` after :data:`_MAX_PROBLEM` characters. Lone surrogates are escaped."""
    text = problem if len(problem) <= _MAX_PROBLEM else f"{problem[:_MAX_PROBLEM]} ..."
    return text.encode("utf-8", "backslashreplace").decode()
