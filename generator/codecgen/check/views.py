"""Views: their rows are in layouts of their choice, and every column has values of its type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codecgen.check import view_columns
from codecgen.diagnostics import Diagnostic, once
from codecgen.plan.nodes import FieldValue, Value, walk
from codecgen.plan.resolve_rows import NUMBERS, RowsResolver, rows_scope
from codecgen.plan.scope import Scope
from codecgen.plan.types import Type
from codecgen.plan.value_ranges import column_range, exact_range, range_of
from codecgen.schema.expression import Expression
from codecgen.schema.lookup import field_of, versions_of
from codecgen.schema.model import Column, Model, Rows, View
from codecgen.schema.types import ArrayType
from codecgen.spans import expression_span, hint, place, unknown

_KINDS = {
    "binary": ("bytes", "text"),
    "string": ("text",),
    "list": ("array",),
    "struct": ("layout",),
    "uuid": ("uuid",),
    "float": ("float",),
    "double": ("float",),
    "bool": ("bool", "int"),
}


def check(model: Model) -> Iterator[Diagnostic]:
    for view in model.views.values():
        found = list(view_columns.names(view))
        choice = model.choices.get(view.of)
        if choice is None:
            if not model.is_broken(view.of):
                message = f'unknown choice "{view.of}"'
                help = unknown(view.of, model.choices)
                found.append(Diagnostic("C012", message, place(view, "of"), help=help))
        elif choice.by is None:
            message = (
                f'"{view.of}" is no choice by a field: its layouts do not stand one after the other'
            )
            found.append(Diagnostic("C032", message, place(view, "of")))
        else:
            layouts = {ref.layout for _, ref in choice.cases}
            for rows in view.rows:
                found += _rows(rows, view, layouts, model)
        yield from once(found)


def _rows(rows: Rows, view: View, layouts: set[str], model: Model) -> Iterator[Diagnostic]:
    layout = model.layouts.get(rows.layout)
    if layout is None or rows.layout not in layouts:
        if not model.is_broken(rows.layout):
            message = f'"{rows.layout}" is no layout of the choice "{view.of}"'
            help = f"its layouts are {', '.join(sorted(layouts))}"
            yield Diagnostic("C032", message, place(rows, "of"), help=help)
        return
    if rows.each is not None and rows.header_only:
        message = "rows are the elements of an array, or the head of the layout: not both"
        yield Diagnostic("C032", message, place(rows, "header_only"))
    if rows.each is not None:
        array = field_of(layout, rows.each)
        if array is None or not isinstance(array.type, ArrayType):
            message = f'"{rows.each}" is no array of "{rows.layout}"'
            yield Diagnostic("C032", message, place(rows, "each"))
            return
    known = {c.name: c.span for c in view.columns}
    for name in rows.values:
        if name not in known:
            message = f'the view has no column "{name}"'
            yield Diagnostic(
                "C032", message, rows.places[f"columns.{name}"], help=hint(name, known)
            )
    for version in versions_of(layout, None):
        scope = rows_scope(model, layout, version, rows)
        for what, condition in (("`when`", rows.when), ("`full_check`", rows.full_check)):
            if condition is not None:
                yield from _typed(condition, replace(scope, holds=()), what, ("bool",), False)
        for column in view.columns:
            value = rows.values.get(column.name)
            if value is not None:
                kinds = _KINDS.get(column.type, NUMBERS)
                what = f'the column "{column.name}"'
                yield from _typed(value, scope, what, kinds, column.nullable)
                yield from _wide_enough(column, value, scope)
                yield from view_columns.inside(column, RowsResolver(value, scope).value(), model)
            elif not column.nullable and column.type != "list":
                message = f'"{column.name}" has no value here, and cannot be null'
                help = f"give it a value, or say `nullable: true` at {column.span}"
                yield Diagnostic("C032", message, rows.span, help=help)


def _typed(
    expression: Expression, scope: Scope, what: str, kinds: tuple[str, ...], nullable: bool
) -> Iterator[Diagnostic]:
    resolver = RowsResolver(expression, scope)
    value = resolver.value()
    yield from resolver.found
    if value is None:
        return
    span = expression_span(scope.model, expression)
    found = value.type
    if found.kind == "null" and nullable:
        return
    if found.kind not in kinds:
        wanted = " or ".join(str(Type(kind)) for kind in kinds if kind != "enum")
        yield Diagnostic("C032", f"{what} is {wanted}, not {found}", span)
    elif found.nullable and not nullable:
        yield Diagnostic("C032", f"{what} cannot be null, but its value can", span)


def _wide_enough(column: Column, expression: Expression, scope: Scope) -> Iterator[Diagnostic]:
    """A number of any size that the value can have fits its column."""
    value = RowsResolver(expression, scope).value()
    if value is None:
        return
    if column.type in view_columns.FLOATS:
        yield from _exact(column, expression, value, scope)
    if not view_columns.is_integer(column):
        return
    known = exact_range if isinstance(value, FieldValue) else range_of
    (low, high), (least, most) = known(value), column_range(column.type)
    if low < least or high > most:
        message = f'"{column.name}" is {column.type}, but its value can be from {low} to {high}'
        yield Diagnostic("C032", message, expression_span(scope.model, expression))


def _exact(
    column: Column, expression: Expression, value: Value, scope: Scope
) -> Iterator[Diagnostic]:
    """A number with a fraction is in a column of its own size."""
    wanted = view_columns.FLOATS[column.type]
    for part in walk(value):
        name = getattr(part.field.type, "name", "") if isinstance(part, FieldValue) else wanted
        if name in view_columns.FLOATS.values() and name != wanted:
            message = f'"{column.name}" is {column.type}, which is for {wanted}, not for {name}'
            yield Diagnostic("C032", message, expression_span(scope.model, expression))
