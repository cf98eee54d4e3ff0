"""Views: their rows are in layouts of their choice, and every column has values of its type."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator
from dataclasses import replace

from codecgen.diagnostics import Diagnostic, once
from codecgen.plan.nodes import FieldValue, Value
from codecgen.plan.resolve_rows import NUMBERS, RowsResolver, rows_scope
from codecgen.plan.scope import Scope
from codecgen.plan.types import Type
from codecgen.plan.value_ranges import column_range, range_of
from codecgen.schema.expression import Expression
from codecgen.schema.lookup import field_of, versions_of
from codecgen.schema.model import Column, Layout, Model, Rows, View
from codecgen.schema.types import ArrayType, BytesType, Reference
from codecgen.spans import expression_span, hint, place, unknown

_KINDS = {
    "binary": ("bytes", "text"),
    "string": ("text",),
    "list": ("array",),
    "bool": ("bool", "int"),
}
_WIDTHS = ("int8", "int16", "int32", "int64", "timestamp_ms")


_MODULES = ("_kernels", "_numpy", "_writer", "_encoders")
"""How the modules end that a view has beside the one of its own name."""


def check(model: Model) -> Iterator[Diagnostic]:
    for view in model.views.values():
        if view.parts:
            continue
        found = list(columns_of(view))
        if any(rows.parts for rows in view.rows):
            message = "the rows are of parts, but the view is of no payloads"
            found.append(Diagnostic("C032", message, view.span, help="`of: {key: .., value: ..}`"))
            yield from found
            continue
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


def columns_of(view: View) -> Iterator[Diagnostic]:
    """What is wrong with the columns of a view by themselves."""
    if keyword.iskeyword(view.name) or view.name.endswith(_MODULES):
        message = f'"{view.name}" cannot be the name of a view: modules are called after it'
        yield Diagnostic("C027", message, view.span)
    names: set[str] = set()
    for column in view.columns:
        inner = [(f"{column.name}_{m.name}", m) for m in column.members]
        for name, c in [(column.name, column), *inner]:
            if name in names:
                message = f'"{name}" has a meaning of its own in the generated code'
                yield Diagnostic("C027", message, c.span, help="give the column another name")
            names.add(name)
        for m in column.members:
            if m.type not in ("binary", "string"):
                message = f'"{m.name}" is of type {m.type}: lists hold binary and string'
                yield Diagnostic("C032", message, m.span)
            if m.on_request:
                message = f'"{m.name}" is there when its list is: `on_request` is for whole columns'
                yield Diagnostic("C032", message, place(m, "on_request"))


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
        bare = replace(scope, holds=())
        for what, condition in (("`when`", rows.when), ("`full_check`", rows.full_check)):
            if condition is not None:
                yield from typed(RowsResolver(condition, bare), what, ("bool",), False)
        yield from values_of(view, rows, lambda e, known=scope: RowsResolver(e, known))  # type: ignore[misc]


Resolve = Callable[[Expression], RowsResolver]
"""What settles an expression where it stands."""


def values_of(view: View, rows: Rows, resolve: Resolve) -> Iterator[Diagnostic]:
    """What is wrong with the values of columns in some rows."""
    for column in view.columns:
        value = rows.values.get(column.name)
        if value is not None:
            kinds = _KINDS.get(column.type, NUMBERS)
            yield from typed(resolve(value), f'the column "{column.name}"', kinds, column.nullable)
            yield from _wide_enough(column, resolve(value))
            yield from _members(column, resolve(value))
        elif not column.nullable and column.type != "list":
            message = f'"{column.name}" has no value here, and cannot be null'
            help = f"give it a value, or say `nullable: true` at {column.span}"
            yield Diagnostic("C032", message, rows.span, help=help)


def typed(
    resolver: RowsResolver, what: str, kinds: tuple[str, ...], nullable: bool
) -> Iterator[Diagnostic]:
    """What is wrong with the type of a value that may be of some kinds."""
    value = resolver.value()
    yield from resolver.found
    if value is None:
        return
    span = expression_span(resolver.scope.model, resolver.expression)
    found = value.type
    if found.kind == "null" and nullable:
        return
    if found.kind not in kinds:
        wanted = " or ".join(str(Type(kind)) for kind in kinds if kind != "enum")
        yield Diagnostic("C032", f"{what} is {wanted}, not {found}", span)
    elif found.nullable and not nullable:
        yield Diagnostic("C032", f"{what} cannot be null, but its value can", span)


def _wide_enough(column: Column, resolver: RowsResolver) -> Iterator[Diagnostic]:
    """A number of any size that the value can have fits its column."""
    if column.type not in _WIDTHS:
        return
    value = resolver.value()
    if value is None:
        return
    (low, high), (least, most) = range_of(value), column_range(column.type)
    if low < least or high > most:
        message = f'"{column.name}" is {column.type}, but its value can be from {low} to {high}'
        span = expression_span(resolver.scope.model, resolver.expression)
        yield Diagnostic("C032", message, span)


def _members(column: Column, resolver: RowsResolver) -> Iterator[Diagnostic]:
    """The members of a list are bytes of the elements, by their names."""
    if not column.members:
        return
    element = _element(resolver.value(), resolver.scope)
    for m in column.members if element is not None else ():
        assert element is not None
        f = field_of(element, m.name)
        kind = "" if f is None or not isinstance(f.type, BytesType) else "bytes"
        if f is not None and isinstance(f.type, BytesType) and f.type.text:
            kind = "text"
        if f is None or kind not in _KINDS.get(m.type, ()):
            message = f'"{element.name}" has no field "{m.name}" of type {m.type}'
            yield Diagnostic(
                "C032", message, m.span, help=f"the elements are declared at {element.span}"
            )
        elif (f.when is not None or f.nullable) and not m.nullable:
            message = f'"{m.name}" can be null in "{element.name}"'
            yield Diagnostic("C032", message, m.span, help="say `nullable: true`")


def _element(value: Value | None, scope: Scope) -> Layout | None:
    """The layout of the elements of an array of a row."""
    if not isinstance(value, FieldValue) or not isinstance(value.field.type, ArrayType):
        return None
    element = value.field.type.element
    return scope.model.layouts.get(element.layout) if isinstance(element, Reference) else None
