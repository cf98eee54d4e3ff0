"""Check views: their rows lie in layouts of their choice, and every column has values of its type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from codecgen.check import view_columns
from codecgen.check.open_ended import Ends
from codecgen.diagnostics import Diagnostic, Span, unique
from codecgen.plan import LayoutPlan, make_plan
from codecgen.plan.nodes import (
    Conditional,
    FieldValue,
    NullValue,
    Sum,
    Value,
    fields_read,
    iterate_nodes,
    look_ups_in,
)
from codecgen.plan.resolve_views import NUMBERS, ViewResolver, rows_scope
from codecgen.plan.scope import Scope
from codecgen.plan.types import Type
from codecgen.plan.value_ranges import Range, column_range, exact_range, range_of
from codecgen.schema.expression import Expression
from codecgen.schema.lookup import field_of, versions_of
from codecgen.schema.model import Column, Layout, Model, Rows, View
from codecgen.schema.nested_choices import inner_choices
from codecgen.schema.types import ArrayType, Reference
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
    """Yield diagnostics about views over entries: bad names, ``kernels``, rows of payload parts,
    layouts whose end or version the bytes do not give, and rows with wrong layouts, arrays, columns
    or conditions. Views over payloads are skipped. Raise ValueError if an expression of a layout is
    invalid, which passes before this one report.
    """
    for view in model.views.values():
        if view.parts:
            continue
        found = list(view_columns.check_names(view))
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
        layouts = _find_layouts(view, model, found)
        for rows in view.rows if layouts else ():
            found += _check_rows(rows, view, layouts, model)
        yield from unique(found)


def _find_layouts(view: View, model: Model, found: list[Diagnostic]) -> set[str]:
    """Return the names of the layouts that the entries of a view can have: the cases of a choice by
    a field, or one layout. Return an empty set, and append a diagnostic to ``found``, if it is
    another choice, nests choices, has no clear end or version, or is unknown. An unknown name that
    another diagnostic covers gets none.
    """
    where = place(view, "of")
    choice = model.choices.get(view.of)
    nested = inner_choices(choice)
    if choice is not None and choice.by is not None and nested:
        message = f'"{nested[0]}" is a choice in "{view.of}": rows are of layouts that one field tells apart'
        help = f'write `of: {nested[0]}` for a view of these layouts only, or replace "{nested[0]}" by one layout in "{view.of}" ({choice.span})'
        found.append(Diagnostic("C032", message, where, help=help))
    elif choice is not None and choice.by is not None:
        return {ref.layout for _, ref in choice.cases}
    elif choice is not None:
        message = f'"{view.of}" is not a choice by a field: its layouts do not follow each other in a file'
        help = "name a layout, or a choice `by` a field of its cases; rows can also be elements of an array: `each`"
        found.append(Diagnostic("C032", message, where, help=help))
    elif view.of in model.layouts:
        wrong = list(_check_entries(model.layouts[view.of], model, where))
        found += wrong
        return set() if wrong else {view.of}
    elif not model.is_broken(view.of):
        spans = {name: choice.span for name, choice in model.choices.items()}
        spans |= {name: layout.span for name, layout in model.layouts.items()}
        help = unknown(view.of, model.choices) if "." in view.of else hint(view.of, spans)
        found.append(Diagnostic("C012", f'unknown choice or layout "{view.of}"', where, help=help))
    return set()


def _check_entries(layout: Layout, model: Model, where: Span) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a layout has several versions and no version field, takes the rest of
    the input, or can be empty: entries that follow each other need an end and a version.
    """
    help = f"it is declared at {layout.span}"
    plans = make_plan(model).versions[layout.name]
    ends = Ends(make_plan(model))
    if len(plans) > 1 and layout.version_is is None:
        message = (
            f'"{layout.name}" has several versions, and its bytes do not say which one they are'
        )
        named = f"say `is: version` at the field that holds its version; {help}"
        yield Diagnostic("C032", message, where, help=named)
    if any(ends.layout_open(plan) for plan in plans):
        message = (
            f'"{layout.name}" takes all remaining bytes, so an input could hold only one entry'
        )
        sized = f"begin it with its length, such as `size: {{type: u16, measures: rest}}`; {help}"
        yield Diagnostic("C032", message, where, help=sized)
    elif any(ends.min_size(plan) == 0 for plan in plans):
        message = f'"{layout.name}" can have 0 bytes, but an entry must have at least one byte'
        longer = f"give it a field that always has bytes, such as a length; {help}"
        yield Diagnostic("C032", message, where, help=longer)


def _check_rows(rows: Rows, view: View, layouts: set[str], model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each fault of rows, in all versions. Two faults end the check: a
    layout that the view lacks, and an array in ``each`` that is unknown, named twice, or one of
    several and not of layouts. The others are ``each`` together with ``header_only``, an unknown
    column, a column that has no value and cannot be null, a condition that is not boolean, a value
    of the wrong type or size, and (with ``header_only``) a field outside the fixed header. A layout
    that has diagnostics itself yields nothing.
    """
    layout = model.layouts.get(rows.layout)
    if layout is None or rows.layout not in layouts:
        if not model.is_broken(rows.layout):
            message = f'"{rows.layout}" is not a layout of "{view.of}"'
            help = f"its layouts are {', '.join(sorted(layouts))}"
            yield Diagnostic("C032", message, place(rows, "of"), help=help)
        return
    if rows.each is not None and rows.header_only:
        message = "rows are the elements of an array, or the head of the layout: not both"
        help = "leave out `header_only` or `each`"
        yield Diagnostic("C032", message, place(rows, "header_only"), help=help)
    arrays = () if rows.each is None else (rows.each, *rows.other_arrays)
    for i, name in enumerate(arrays):
        array = field_of(layout, name)
        where = rows.places.get(f"each.{i}", place(rows, "each"))
        if array is None or not isinstance(array.type, ArrayType):
            message = f'"{name}" is not an array of "{rows.layout}"'
            arrays_here = {f.name: f.span for f in layout.fields if isinstance(f.type, ArrayType)}
            help = hint(name, arrays_here, "arrays here") if arrays_here else ""
            help = help or f'leave out `each`: "{rows.layout}" has no array'
            yield Diagnostic("C032", message, where, help=help)
            return
        if name in arrays[:i]:
            yield Diagnostic("C032", f'"{name}" stands here twice', where)
            return
        if rows.other_arrays and not isinstance(array.type.element, Reference):
            message = f'"{name}" is no array of layouts, which rows of several arrays are made of'
            yield Diagnostic("C032", message, where, help=f"it is declared at {array.span}")
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
        bare = replace(scope, looks_up=False, holds=())
        for what, condition in (("`when`", rows.when), ("`full_check`", rows.full_check)):
            if condition is not None:
                yield from check_value_type(ViewResolver(condition, bare), what, ("bool",), False)
        yield from check_values(view, rows, lambda e, known=scope: ViewResolver(e, known))  # type: ignore[misc]
        if rows.header_only:
            plans = make_plan(model).versions[layout.name]
            yield from _check_header_only(
                rows, next(p for p in plans if p.version == version), scope
            )


def _check_header_only(rows: Rows, layout: LayoutPlan, scope: Scope) -> Iterator[Diagnostic]:
    """Yield a diagnostic each time that a condition or column of ``header_only`` rows reads a field
    that has no fixed position or size, or does not always exist. It points to that condition or
    column. ``scope`` is where their names are looked up; what does not resolve yields nothing. Call
    it for ``header_only`` rows only.
    """
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


def check_values(view: View, rows: Rows, resolve: Resolve) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each column whose value is invalid, has the wrong type, can be null
    although the column cannot, or does not fit the column or its members. The same if the value
    looks up elements of the array that gives the rows. Also yield one for each column without a
    value that is neither nullable nor a list. ``resolve`` returns a resolver for an expression.
    """
    for column in view.columns:
        value = rows.values.get(column.name)
        if value is not None:
            kinds = _KINDS.get(column.type, NUMBERS)
            yield from check_value_type(
                resolve(value),
                f'the column "{column.name}"',
                kinds,
                column.nullable,
                declared=f" ({column.span})",
            )
            yield from _check_width(column, resolve(value))
            resolver = resolve(value)
            found = resolver.resolve()
            yield from view_columns.check_content(column, found, resolver.scope.model)
            for look_up in () if found is None else look_ups_in(found):
                name = look_up.array.field.name
                if look_up.array.owner == "own" and name in (rows.each, *rows.other_arrays):
                    message = f'the elements of "{name}" become rows one by one, so that none can be looked up'
                    help = "look up another array, or name the element of the row: `item`"
                    where = rows.places[f"columns.{column.name}"]
                    yield Diagnostic("C032", message, where, help=help)
        elif not column.nullable and column.type != "list":
            message = f'"{column.name}" has no value here, and cannot be null'
            help = f"give it a value, or say `nullable: true` at {column.span}"
            yield Diagnostic("C032", message, rows.span, help=help)


def check_value_type(
    resolver: ViewResolver, what: str, kinds: tuple[str, ...], nullable: bool, declared: str = ""
) -> Iterator[Diagnostic]:
    """Yield the diagnostics of an expression that does not resolve (none if another diagnostic
    covers the cause), and one if its value is not of one of ``kinds``, or can be null although
    ``nullable`` is False. A null literal passes if ``nullable``. ``what`` names the expression in
    messages; ``declared`` is the place of the column in parentheses, or ``""`` for a condition.
    """
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
        help = (
            f"give it another value, or change the type of the column{declared}" if declared else ""
        )
        if found.kind in ("int", "enum") and kinds == ("bool",):
            help = "compare it with something: `x != 0`"
        message = f"{what} needs {wanted}, but its value is {found}"
        yield Diagnostic("C032", message, span, help=help)
    elif found.nullable and not nullable:
        help = f"say `nullable: true` at the column{declared}" if declared else ""
        yield Diagnostic("C032", f"{what} cannot be null, but its value can", span, help=help)


def _check_width(column: Column, resolver: ViewResolver) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the smallest or largest number that the value can have does not fit an
    integer column, or if a floating-point column has another size than a field in its value. Other
    columns, and a value that does not resolve, yield nothing.
    """
    value = resolver.resolve()
    if value is None:
        return
    span = expression_span(resolver.scope.model, resolver.expression)
    if column.type in view_columns.FLOATS:
        yield from _check_float_width(column, value, span)
    if not view_columns.is_integer_column(column):
        return
    branches = [_printed_range(branch) for branch in _branches(value)] or [(0, 0)]
    known = [(min(low for low, _ in branches), max(high for _, high in branches))]
    known += [] if isinstance(value, FieldValue) else [range_of(value)]
    minimum, maximum = column_range(column.type)
    for low, high in known:
        if low < minimum or high > maximum:
            message = f'"{column.name}" is {column.type}, but its value can be from {low} to {high}'
            help = f"give the column a type that holds these numbers ({column.span}), or change its value"
            yield Diagnostic("C032", message, span, help=help)
            return


def _branches(value: Value) -> Iterator[Value]:
    """Yield the values of all branches of a conditional, nested ones included, in order; for any
    other value yield the value itself. Null values are left out.
    """
    if isinstance(value, Conditional):
        yield from _branches(value.then)
        yield from _branches(value.otherwise)
    elif not isinstance(value, NullValue):
        yield value


def _printed_range(value: Value) -> Range:
    """Return the range of a value in a column. Only sums wrap in 64 bits there."""
    return range_of(value) if isinstance(value, Sum) else exact_range(value)


def _check_float_width(column: Column, value: Value, span: Span) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each floating-point field in ``value`` whose type (``f32``, ``f64``)
    is not that of the column. Raise KeyError for a column that is not ``float`` or ``double``,
    which the caller excludes.
    """
    wanted = view_columns.FLOATS[column.type]
    for part in iterate_nodes(value):
        name = getattr(part.field.type, "name", "") if isinstance(part, FieldValue) else wanted
        if name in view_columns.FLOATS.values() and name != wanted:
            message = f'"{column.name}" is {column.type}, which is for {wanted}, not for {name}'
            fitting = next(known for known, held in view_columns.FLOATS.items() if held == name)
            help = f"write `type: {fitting}` at the column ({column.span})"
            yield Diagnostic("C032", message, span, help=help)
