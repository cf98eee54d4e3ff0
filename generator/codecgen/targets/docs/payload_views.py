"""What a page says of a view into payloads: its columns, and what they are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from codecgen.plan.payloads import part_kinds
from codecgen.schema.model import Column, Rows, View
from codecgen.targets.docs.expression_phrases import condition, value
from codecgen.targets.docs.site import Site
from codecgen.targets.docs.text import Phrase, code, join, listed, phrase, said
from codecgen.targets.docs.things import anchor_of


@dataclass(frozen=True, slots=True)
class ColumnRow:
    column: Phrase
    type: Phrase
    null: Phrase
    doc: Phrase


@dataclass(frozen=True, slots=True)
class ValueOfColumn:
    column: Phrase
    value: Phrase


@dataclass(frozen=True, slots=True)
class RowsSection:
    """``words`` say what the rows are of, ``values`` what their columns hold."""

    words: Phrase
    values: tuple[ValueOfColumn, ...]


@dataclass(frozen=True, slots=True)
class ViewSection:
    kind: ClassVar[str] = "view"
    name: str
    title: str
    doc: Phrase
    facts: tuple[Phrase, ...]
    columns: tuple[ColumnRow, ...]
    rows: tuple[RowsSection, ...]


def view_section(site: Site, page: str, view: View) -> ViewSection:
    """Everything about a view into payloads, as a page shows it."""
    return ViewSection(
        name=anchor_of(view),
        title=site.title(view.name),
        doc=said(view.doc),
        facts=tuple(_facts(site, page, view)),
        columns=tuple(_column(column) for column in view.columns),
        rows=tuple(_rows(site, page, rows) for rows in view.rows),
    )


def _facts(site: Site, page: str, view: View) -> Iterator[Phrase]:
    yield phrase("Name: ", code(view.name), ".")
    parts = [
        phrase(code(name), ", which is ", site.link(page, of)) for name, of in view.parts.items()
    ]
    yield phrase("A view into payloads of ", listed(parts), ".")
    for kind in part_kinds(site.plan.model, view):
        if kind.decides and kind.choice is not None:
            by = code(f"{kind.name}.{kind.choice.by}")
            yield phrase("Decided by: ", by, ".")


def _column(column: Column) -> ColumnRow:
    type_ = code(column.type)
    if column.members:
        members = [phrase(code(m.name), " (", code(m.type), ")") for m in column.members]
        type_ = phrase("list of ", listed(members))
    unit = said(f"In {column.unit}." if column.unit else "")
    asked = said("Left out unless it is asked for." if column.on_request else "")
    return ColumnRow(
        code(column.name),
        type_,
        said("yes" if column.nullable else ""),
        join((said(column.doc), unit, asked)),
    )


def _rows(site: Site, page: str, rows: Rows) -> RowsSection:
    of = [
        phrase(code(name), " is ", site.link(page, layout)) for name, layout in rows.parts.items()
    ]
    what = phrase("a row for each of ", code(rows.each)) if rows.each else said("a row")
    when = Phrase() if rows.when is None else phrase(", if ", condition(rows.when.node))
    return RowsSection(
        phrase("Where ", listed(of), ": ", what, when, "."),
        tuple(ValueOfColumn(code(n), value(e.node)) for n, e in rows.values.items()),
    )
