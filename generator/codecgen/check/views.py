"""Views: their rows are in layouts of their choice, and every column has values of its type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from codecgen.check import view_columns
from codecgen.check.open_ended import Ends
from codecgen.diagnostics import Diagnostic, once
from codecgen.plan import LayoutPlan, make_plan
from codecgen.plan.nodes import FieldValue, Value, fields_read, iterate_nodes
from codecgen.plan.resolve_views import NUMBERS, ViewResolver, rows_scope
from codecgen.plan.scope import Scope
from codecgen.plan.types import Type
from codecgen.plan.value_ranges import column_range, exact_range, range_of
from codecgen.schema.expression import Expression
from codecgen.schema.lookup import field_of, versions_of
from codecgen.schema.model import Column, Layout, Model, Rows, View
from codecgen.schema.nested_choices import inner_choices
from codecgen.schema.types import ArrayType, Span
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
        if view.parts:
            continue
        found = list(view_columns.names(view))
        if "kernels" in view.places:
            message = (
                "`kernels` is for views into payloads: a view of entries has kernels without asking"
            )
            found.append(Diagnostic("C032", message, place(view, "kernels"), help="leave it out"))
        if any(rows.parts for rows in view.rows):
            message = "the rows are of parts, but the view is of no payloads"
            found.append(Diagnostic("C032", message, view.span, help="`of: {key: .., value: ..}`"))
            yield from found
            continue
        layouts = _layouts(view, model, found)
        for rows in view.rows if layouts else ():
            found += _rows(rows, view, layouts, model)
        yield from once(found)


def _layouts(view: View, model: Model, found: list[Diagnostic]) -> set[str]:
    """The layouts that stand one after the other."""
    where = place(view, "of")
    choice = model.choices.get(view.of)
    nested = inner_choices(choice)
    if choice is not None and choice.by is not None and nested:
        message = f'"{nested[0]}" is a choice in "{view.of}": rows are of layouts that one field tells apart'
        found.append(Diagnostic("C032", message, where, help=f"the choice is at {choice.span}"))
    elif choice is not None and choice.by is not None:
        return {ref.layout for _, ref in choice.cases}
    elif choice is not None:
        message = (
            f'"{view.of}" is no choice by a field: its layouts do not stand one after the other'
        )
        found.append(Diagnostic("C032", message, where))
    elif view.of in model.layouts:
        wrong = list(_entries(model.layouts[view.of], model, where))
        found += wrong
        return set() if wrong else {view.of}
    elif not model.is_broken(view.of):
        spans = {name: choice.span for name, choice in model.choices.items()}
        spans |= {name: layout.span for name, layout in model.layouts.items()}
        help = unknown(view.of, model.choices) if "." in view.of else hint(view.of, spans)
        found.append(Diagnostic("C012", f'unknown choice or layout "{view.of}"', where, help=help))
    return set()


def _entries(layout: Layout, model: Model, where: Span) -> Iterator[Diagnostic]:
    """Findings where one entry of a layout cannot be told from the next."""
    help = f"it is declared at {layout.span}"
    plans = make_plan(model).versions[layout.name]
    ends = Ends(make_plan(model))
    if len(plans) > 1 and layout.version_is is None:
        message = f'which version of "{layout.name}" stands there is open: its bytes do not say'
        yield Diagnostic("C032", message, where, help=help)
    if any(ends.layout_open(plan) for plan in plans):
        message = f'"{layout.name}" takes what is left: nothing would stand after the first of them'
        yield Diagnostic("C032", message, where, help=help)
    elif any(ends.min_size(plan) == 0 for plan in plans):
        message = f'"{layout.name}" can take no bytes at all: there would be no end to them'
        yield Diagnostic("C032", message, where, help=help)


def _rows(rows: Rows, view: View, layouts: set[str], model: Model) -> Iterator[Diagnostic]:
    layout = model.layouts.get(rows.layout)
    if layout is None or rows.layout not in layouts:
        if not model.is_broken(rows.layout):
            message = f'"{rows.layout}" is no layout of "{view.of}"'
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
                yield from typed(ViewResolver(condition, bare), what, ("bool",), False)
        yield from values_of(view, rows, lambda e, known=scope: ViewResolver(e, known))  # type: ignore[misc]
        if rows.header_only:
            plans = make_plan(model).versions[layout.name]
            yield from _heads(rows, next(p for p in plans if p.version == version), scope)


def _heads(rows: Rows, layout: LayoutPlan, scope: Scope) -> Iterator[Diagnostic]:
    """Findings about rows that are made of the head of a layout, but take a field at no fixed place."""
    taken = {"when": rows.when, "full_check": rows.full_check}
    taken |= {f"columns.{name}": expression for name, expression in rows.values.items()}
    for where, expression in taken.items():
        value = None if expression is None else ViewResolver(expression, scope).resolve()
        for read in () if value is None else fields_read(value):
            f = layout.field(read.names[0])
            if f is not None and not f.is_fixed:
                message = f'"{f.name}" is at no fixed place, or not always there: with `header_only` nothing else is read'
                help = f"it is declared at {f.field.span}; leave out `header_only`"
                yield Diagnostic("C032", message, rows.places[where], help=help)


Resolve = Callable[[Expression], ViewResolver]
"""What settles an expression where it stands."""


def values_of(view: View, rows: Rows, resolve: Resolve) -> Iterator[Diagnostic]:
    """What is wrong with the values of columns in some rows."""
    for column in view.columns:
        value = rows.values.get(column.name)
        if value is not None:
            kinds = _KINDS.get(column.type, NUMBERS)
            yield from typed(resolve(value), f'the column "{column.name}"', kinds, column.nullable)
            yield from _wide_enough(column, resolve(value))
            resolver = resolve(value)
            yield from view_columns.inside(column, resolver.resolve(), resolver.scope.model)
        elif not column.nullable and column.type != "list":
            message = f'"{column.name}" has no value here, and cannot be null'
            help = f"give it a value, or say `nullable: true` at {column.span}"
            yield Diagnostic("C032", message, rows.span, help=help)


def typed(
    resolver: ViewResolver, what: str, kinds: tuple[str, ...], nullable: bool
) -> Iterator[Diagnostic]:
    """What is wrong with the type of a value that may be of some kinds."""
    value = resolver.resolve()
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


def _wide_enough(column: Column, resolver: ViewResolver) -> Iterator[Diagnostic]:
    """A number of any size that the value can have fits its column."""
    value = resolver.resolve()
    if value is None:
        return
    span = expression_span(resolver.scope.model, resolver.expression)
    if column.type in view_columns.FLOATS:
        yield from _exact(column, value, span)
    if not view_columns.is_integer(column):
        return
    known = exact_range if isinstance(value, FieldValue) else range_of
    (low, high), (least, most) = known(value), column_range(column.type)
    if low < least or high > most:
        message = f'"{column.name}" is {column.type}, but its value can be from {low} to {high}'
        yield Diagnostic("C032", message, span)


def _exact(column: Column, value: Value, span: Span) -> Iterator[Diagnostic]:
    """A number with a fraction is in a column of its own size."""
    wanted = view_columns.FLOATS[column.type]
    for part in iterate_nodes(value):
        name = getattr(part.field.type, "name", "") if isinstance(part, FieldValue) else wanted
        if name in view_columns.FLOATS.values() and name != wanted:
            message = f'"{column.name}" is {column.type}, which is for {wanted}, not for {name}'
            yield Diagnostic("C032", message, span)
