"""Texts as templates see them."""

from __future__ import annotations

from codecgen.plan import Plan
from codecgen.schema import texts
from codecgen.schema import types as field_types
from codecgen.targets.template.schema_text import Words
from codecgen.targets.template.text_views import Text, TextLine, TextValue
from codecgen.targets.template.types import expression, since
from codecgen.targets.template.view_types import Place


def text_view(plan: Plan, text: texts.Text, module: str) -> Text:
    """A text as templates see it."""
    return Text(
        name=text.name,
        doc=Words(text.doc),
        module=module,
        lines=tuple(_line(plan, line) for line in text.lines),
        properties=tuple(_value(plan, value) for value in text.properties),
        accepts=tuple(sorted(text.accepts)),
        may_be_empty=text.may_be_empty,
        final_newline=text.final_newline,
        keep_unknown=text.keep_unknown,
        since=since(plan, text.since),
        place=_place(text.span),
    )


def _line(plan: Plan, line: texts.TextValue | texts.EachLine) -> TextLine:
    each = line if isinstance(line, texts.EachLine) else None
    return TextLine(
        name=line.name,
        doc=Words(line.doc),
        value=None if isinstance(line, texts.EachLine) else _value(plan, line),
        each=() if each is None else tuple(_value(plan, value) for value in each.values),
        separator=Words("" if each is None else each.separator),
        counted_by=None if each is None else each.counted_by,
        accepts=tuple(sorted(line.accepts)),
        place=_place(line.span),
    )


def _value(plan: Plan, value: texts.TextValue) -> TextValue:
    return TextValue(
        name=value.name,
        doc=Words(value.doc),
        kind=value.kind,
        of=value.of,
        key=Words(value.key),
        label=Words(value.label or ""),
        separator=Words(value.separator),
        const=value.const,
        counts=value.counts,
        default=expression(value.default),
        valid=expression(value.valid),
        refuse=expression(value.refuse),
        accepts=tuple(sorted(value.accepts)),
        unit=Words(value.unit or ""),
        since=since(plan, value.since),
        place=_place(value.span),
    )


def _place(span: field_types.Span) -> Place:
    return Place(Words(span.file), span.line)
