"""Choices, from what the reader gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from codecgen.schema import forms, grammar
from codecgen.schema.model import Choice
from codecgen.schema.number_ranges import MOST, numbers_of
from codecgen.schema.reader import Reader, Record, Value, integer
from codecgen.schema.types import Reference, Since, Span


def choice(reader: Reader, r: Record) -> Choice:
    """The choice that a document is. What is wrong with its cases is reported."""
    given = cast(str | None, r["given"])
    cases: list[tuple[int | str, Reference]] = []
    places = r.places()
    for key, entry in cast(dict[str, Value], r["cases"]).items():
        inner = cast(Any, entry.value)[1]
        ref = forms.reference(inner.value, inner.span)
        for case in _keys(reader, key, entry.span):
            cases.append((case, ref))
            places[f"cases.{case}"] = entry.span
        if len(cases) > MOST:
            reader.report("C006", f"more than {MOST} cases", entry.span)
            break
    return Choice(
        name=str(r["choice"]),
        doc=r.text("doc"),
        span=r.at("choice"),
        by=cast(str | None, r["by"]),
        given=None if given in grammar.NUMBERS else given,
        cases=tuple(cases),
        named=tuple(cases),
        given_type=given if given in grammar.NUMBERS else None,
        since=cast(Since | None, r["since"]),
        places=places,
    )


def _keys(reader: Reader, key: str, span: Span) -> Sequence[int | str]:
    """The values of a case: a word, a number, or all numbers of a range."""
    number = integer(key)
    if number is not None or not key[:1].isdecimal():
        return [key if number is None else number]
    numbers = numbers_of(key)
    if numbers is None:
        message = f'"{key}" is no range of at most {MOST} numbers'
        reader.report("C006", message, span, help="write the lower number first")
    return numbers or ()
