"""Check columns of views: their names, and the content of structs and lists."""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from codecgen.diagnostics import Diagnostic
from codecgen.plan.nodes import Conditional, FieldValue, Value
from codecgen.plan.resolve import Resolver
from codecgen.plan.scope import Scope
from codecgen.plan.value_ranges import column_range
from codecgen.schema.lookup import field_of, integer_range, versions_of
from codecgen.schema.model import Column, Derived, Field, Layout, Model, View
from codecgen.schema.types import (
    ArrayType,
    BitsType,
    BytesType,
    ChoiceType,
    Element,
    FieldType,
    Reference,
    ScalarType,
    StructType,
)
from codecgen.spans import hint, place

FLOATS = {"float": "f32", "double": "f64"}
"""The fields that columns of numbers with a fraction are for."""

_MODULES = ("_kernels", "_numpy", "_writer", "_encoders")
"""How the modules end that a view has beside the one of its own name."""


def check_names(view: View) -> Iterator[Diagnostic]:
    """Yield a diagnostic if the view's name is a Python keyword or ends like a generated module,
    for each column or member name that collides in generated code, and for each member (not whole
    column) with ``on_request``.
    """
    if keyword.iskeyword(view.name) or view.name.endswith(_MODULES):
        message = f'"{view.name}" cannot be the name of a view: modules are called after it'
        help = "take a name that is no keyword of Python and does not end in " + ", ".join(_MODULES)
        yield Diagnostic("C027", message, view.span, help=help)
    taken: set[str] = set()
    for column in view.columns:
        for name, c in _iterate_names(column, column.name):
            if name in taken:
                message = f'"{name}" has a meaning of its own in the generated code'
                yield Diagnostic("C027", message, c.span, help="give the column another name")
            taken.add(name)
            if c is not column and c.on_request:
                whole = "struct" if column.type == "struct" else "list"
                message = f'`on_request` is only for whole columns, and "{c.name}" is a part of its {whole}'
                help = f'move it to the column "{column.name}" ({column.span})'
                yield Diagnostic("C032", message, place(c, "on_request"), help=help)


def _iterate_names(column: Column, name: str) -> Iterator[tuple[str, Column]]:
    """Yield the column and all columns inside it, each with its name in generated code."""
    yield name, column
    for part in column.parts:
        yield from _iterate_names(part, f"{name}_{part.name}")


def check_content(column: Column, value: Value | None, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a column of structs or lists cannot hold what the field of its value
    contains: a member has no matching field of the layout, the field is one of several layouts, or
    the elements have another type. Fields without a member are fine. Both branches of a conditional
    are checked; other values yield nothing.
    """
    if isinstance(value, Conditional):
        for part in (value.then, value.otherwise):
            yield from check_content(column, part, model)
    elif isinstance(value, FieldValue) and column.parts:
        for f in value.field.variants():
            yield from _check_parts(column, f.type, f, model)


def _check_parts(column: Column, type_: FieldType, f: Field, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each struct member without a matching field of the layout that the
    field type holds, if the type is a choice of layouts, or if a list of structs is over elements
    that are no layouts. A list of plain values is checked by its element type. ``f`` is the field.
    Yield nothing for an unknown layout, and for other pairs of types, which ``check_value_type``
    reports.
    """
    ref: object = None
    if column.type == "struct" and isinstance(type_, StructType):
        ref = type_.layout
    elif column.type == "list" and isinstance(type_, ArrayType):
        ref = type_.element
        if column.element is not None:
            yield from _check_element(column.element, type_.element, f)
            return
    elif column.type == "struct" and isinstance(type_, ChoiceType):
        message = f'"{column.name}" holds one of several layouts, which is not a struct'
        help = "give fields of its cases columns of their own: `value.body.moved.to`"
        yield Diagnostic("C032", message, column.span, help=help)
        return
    if isinstance(ref, Reference):
        layout = model.layouts.get(ref.layout)
        for member in column.members if layout is not None else ():
            assert layout is not None
            yield from _check_member(member, layout, model)
    elif ref is not None:
        message = f'the elements are not layouts: "{column.name}" cannot hold lists of structs'
        help = f"write `list:` with one type that holds the elements; {_help_for(f)}"
        yield Diagnostic("C032", message, column.span, help=help)


def _check_element(column: Column, element: Element, f: Field) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a list of plain values is over an array of layouts, of a type that its
    element column cannot hold, or of bytes that may be null. ``f`` is the array.
    """
    if isinstance(element, Reference):
        message = f'the elements are of "{element}": lists of these are lists of structs'
        help = "write `list:` with names of its fields and their columns"
        yield Diagnostic("C032", message, column.span, help=help)
    elif not _can_hold(column, element):
        message = f'lists of {column.type} cannot hold the elements of "{f.name}"'
        help = f"write a type that holds them; the array is declared at {f.span}"
        yield Diagnostic("C032", message, column.span, help=help)
    elif isinstance(element, BytesType) and element.null is not None:
        message = f'elements of "{f.name}" may be null, and a list holds no null'
        help = f"leave out the column; the array is declared at {f.span}"
        yield Diagnostic("C032", message, column.span, help=help)


def _check_member(column: Column, layout: Layout, model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic unless a member has the name of a field (or derived value) of the layout and a type that
    holds each of the field's types, and one if the field can be null and the member cannot. Then
    check the member's own members.
    """
    f = field_of(layout, column.name)
    derived = next((d for d in layout.looked_up if d.name == column.name), None)
    if derived is not None:
        yield from _check_derived_member(column, derived, layout, model)
        return
    if f is None or not all(_can_hold(column, one.type) for one in f.variants()):
        kind = column.type if column.element is None else f"list of {column.element.type}"
        message = f'"{layout.name}" has no field "{column.name}"'
        help = hint(column.name, {one.name: one.span for one in layout.fields})
        if f is not None:
            message = f'"{column.name}" is {kind}, which the field "{f.name}" of "{layout.name}" does not fit'
            help = f"write a type that holds it; {_help_for(f)}"
        yield Diagnostic("C032", message, column.span, help=help)
        return
    if can_be_missing(f) and not column.nullable:
        message = f'"{column.name}" can be null in "{layout.name}"'
        yield Diagnostic("C032", message, column.span, help="say `nullable: true`")
    for one in f.variants():
        yield from _check_parts(column, one.type, f, model)


def _check_derived_member(
    column: Column, derived: Derived, layout: Layout, model: Model
) -> Iterator[Diagnostic]:
    """Yield at most one diagnostic about a member whose value the elements' layout derives by
    looking elements up. The member's type cannot hold the value, only some versions have it, or it
    can be null and the member cannot.
    """
    type_ = BytesType("i32", text=derived.type == "string")
    if not _can_hold(column, ScalarType(derived.type) if derived.python == "int" else type_):
        message = f'"{layout.name}" derives "{column.name}" as {derived.type}, which {column.type} cannot hold'
        help = f"write another type; the value is declared at {derived.span}"
        yield Diagnostic("C032", message, column.span, help=help)
    elif derived.versions is not None:
        message = (
            f'"{derived.name}" is derived in some versions only: it cannot be a part of a column'
        )
        help = f"leave it out; it is declared at {derived.span}"
        yield Diagnostic("C032", message, column.span, help=help)
    elif not column.nullable and _can_derive_null(derived, layout, model):
        message = f'"{column.name}" can be null in "{layout.name}"'
        yield Diagnostic("C032", message, column.span, help="say `nullable: true`")


def _can_derive_null(derived: Derived, layout: Layout, model: Model) -> bool:
    """Return whether a derived value of a layout can be null in some version, or is invalid."""
    for version in versions_of(layout, derived.versions):
        scope = Scope(model, layout, version, owner=derived.name, looks_up=True)
        value = Resolver(derived.value, scope).resolve()
        if value is None or value.type.nullable:
            return True
    return False


def _help_for(f: Field | None) -> str:
    """Return help that says where a field is declared, or ``""`` for None."""
    return "" if f is None else f"it is declared at {f.span}"


def can_be_missing(f: Field) -> bool:
    """Return whether a field can lack a value: it can be null, is conditional, or is limited to
    some versions.
    """
    return f.when is not None or f.nullable or f.versions is not None


def _can_hold(column: Column, type_: FieldType | Element) -> bool:
    """Return whether a column's type suits a field's type and has room for all its numbers.
    Booleans also fit integer columns, text also binary ones. Of structs and lists only the column
    type is compared, not the members. False for choices, tags, padding and layouts as array
    elements.
    """
    match type_:
        case ArrayType():
            return column.type == "list"
        case StructType():
            return column.type == "struct"
        case BytesType(text=text):
            return column.type == "binary" or (column.type == "string" and text)
        case ScalarType("uuid"):
            return column.type == "uuid"
        case ScalarType("f32" | "f64" as name):
            return FLOATS.get(column.type) == name
        case ScalarType("bool"):
            return column.type == "bool" or is_integer_column(column)
        case ScalarType(name) | BitsType(name):
            low, high = integer_range(name) or (0, 0)
            minimum, maximum = column_range(column.type)
            return is_integer_column(column) and minimum <= low and high <= maximum
    return False


def is_integer_column(column: Column) -> bool:
    """Return whether the values of a column are whole numbers, which includes timestamps."""
    return column.type.startswith(("int", "uint")) or column.type == "timestamp_ms"
