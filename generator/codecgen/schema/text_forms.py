"""Texts, from what the reader gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from codecgen.schema import forms
from codecgen.schema.expression import Expression
from codecgen.schema.reader import Record
from codecgen.schema.texts import EachLine, Kind, Text, TextExample, TextValue
from codecgen.schema.types import Since, Span

_KINDS: tuple[Kind, ...] = ("decimal", "string", "uuid")


def text(r: Record) -> Text:
    """A text."""
    accepts = frozenset(forms.words(r["accepts"]))
    lines = tuple(_line(name, line, span, accepts) for name, line, span in _each(r["lines"]))
    counted = {line.counts: line.name for line in lines if isinstance(line, TextValue)}
    lines = tuple(
        replace(line, counted_by=counted.get(line.name)) if isinstance(line, EachLine) else line
        for line in lines
    )
    return Text(
        name=str(r["text"]),
        doc=r.text("doc"),
        span=r.at("text"),
        lines=lines,
        properties=tuple(
            _value(name, value, span, accepts) for name, value, span in _each(r["properties"])
        ),
        since=cast(Since | None, r["since"]),
        accepts=accepts,
        may_be_empty=bool(r["may_be_empty"]),
        final_newline=r["final_newline"] is not False,
        keep_unknown=r["unknown"] == "keep",
        examples=tuple(_example(v.value) for v in cast(tuple[Any, ...], r["examples"] or ())),
        places=r.places(),
    )


def _each(value: object) -> list[tuple[str, Record, Span]]:
    spans: Mapping[str, Span] = forms.key_spans(value)
    return [(name, entry, spans[name]) for name, entry in forms.entries(value)]


def _line(name: str, r: Record, span: Span, accepts: frozenset[str]) -> TextValue | EachLine:
    if "each" not in r:
        return _value(name, r, span, accepts)
    return EachLine(
        name=name,
        values=tuple(_value(n, v, s, frozenset()) for n, v, s in _each(r["each"])),
        separator=str(r["separator"] or ""),
        span=span,
        doc=r.text("doc"),
        accepts=accepts | frozenset(forms.words(r["accepts"])),
        places=r.places(),
    )


def _value(name: str, r: Record, span: Span, accepts: frozenset[str]) -> TextValue:
    kind = next(kind for kind in _KINDS if kind in r)
    return TextValue(
        name=name,
        kind=kind,
        of=str(r[kind]),
        span=span,
        doc=r.text("doc"),
        key=str(r["spelled"] or name),
        label=cast(str | None, r["label"]),
        separator=str(r["separator"] or ""),
        const=cast(int | None, r["const"]),
        counts=cast(str | None, r["counts"]),
        default=cast(Expression | None, r["default"]),
        valid=cast(Expression | None, r["valid"]),
        refuse=cast(Expression | None, r["refuse"]),
        accepts=accepts | frozenset(forms.words(r["accepts"])),
        unit=cast(str | None, r["unit"]),
        since=cast(Since | None, r["since"]),
        places=r.places(),
    )


def _example(r: Record) -> TextExample:
    node = cast(Any, r["values"])
    places = {"values": r.at("values"), **dict(forms.value_places(node, "values"))}
    data = cast(str | None, r["text"])
    return TextExample(
        name=r.text("name"),
        doc=r.text("doc"),
        data=None if data is None else data.encode("utf-8"),
        value=forms.plain(node),
        span=r.at("name"),
        since=cast(Since | None, r["since"]),
        places=places,
    )
