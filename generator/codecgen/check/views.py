"""Views: their rows are in layouts of their choice, and every column has values of its type."""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from codecgen.check.common import (
    expression_span,
    field_of,
    hint,
    integer_range,
    once,
    place,
    versions_of,
)
from codecgen.check.infer import INT, Infer, Scope, Type
from codecgen.diagnostics import Diagnostic
from codecgen.schema.expression import Expression, If, Node, Null, Number, Path
from codecgen.schema.model import ArrayType, BitsType, Column, Layout, Model, Rows, ScalarType, View

_KINDS = {
    "binary": ("bytes", "text"),
    "string": ("text",),
    "list": ("array",),
    "bool": ("bool", "int"),
}
_WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "timestamp_ms": 64}
_LONG = (-(1 << 63), (1 << 63) - 1)
_NUMBERS = ("int", "enum", "bool")
_PREFIXES = ("entry_", "item_", "part_")
BUILT_IN = ("position", "size")
"""What an expression of a view may name beside the fields: where the entry lies in its file, and how long it is."""


def check(model: Model) -> Iterator[Diagnostic]:
    for view in model.views.values():
        found = list(_columns(view))
        choice = model.choices.get(view.of)
        if choice is None:
            spans = {name: c.span for name, c in model.choices.items()}
            message = f'unknown choice "{view.of}"'
            found.append(Diagnostic("C012", message, place(view, "of"), help=hint(view.of, spans)))
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


def _columns(view: View) -> Iterator[Diagnostic]:
    if keyword.iskeyword(view.name) or view.name.endswith(("_kernels", "_vectors")):
        message = f'"{view.name}" cannot be the name of a view: modules are called after it'
        yield Diagnostic("C027", message, view.span)
    names: set[str] = set()
    for column in view.columns:
        inner = [(f"{column.name}_{m.name}", m) for m in column.members]
        for name, c in [(column.name, column), *inner]:
            if name in names or name.startswith(_PREFIXES):
                message = f'"{name}" has a meaning of its own in the generated code'
                yield Diagnostic("C027", message, c.span, help="give the column another name")
            names.add(name)
        if column.type == "list" and column.nullable:
            message = f'the list "{column.name}" cannot be null: what is not there is an empty list'
            yield Diagnostic("C032", message, column.span)
        for m in column.members:
            if m.type not in ("binary", "string"):
                message = f'"{m.name}" is of type {m.type}: lists hold binary and string'
                yield Diagnostic("C032", message, m.span)


def _rows(rows: Rows, view: View, layouts: set[str], model: Model) -> Iterator[Diagnostic]:
    layout = model.layouts.get(rows.layout)
    if layout is None or rows.layout not in layouts:
        if rows.layout not in model.broken:
            message = f'"{rows.layout}" is no layout of the choice "{view.of}"'
            help = f"its layouts are {', '.join(sorted(layouts))}"
            yield Diagnostic("C032", message, place(rows, "of"), help=help)
        return
    item = None
    if rows.each is not None and rows.head:
        message = "rows are the elements of an array, or the head of the layout: not both"
        yield Diagnostic("C032", message, place(rows, "head"))
    if rows.each is not None:
        array = field_of(layout, rows.each)
        if array is None or not isinstance(array.type, ArrayType):
            message = f'"{rows.each}" is no array of "{rows.layout}"'
            yield Diagnostic("C032", message, place(rows, "each"))
            return
        item = array.type.element
    known = {c.name: c.span for c in view.columns}
    for name in rows.values:
        if name not in known:
            message = f'the view has no column "{name}"'
            yield Diagnostic(
                "C032", message, rows.places[f"columns.{name}"], help=hint(name, known)
            )
    for version in versions_of(layout, None):
        scope = Scope(model, layout, version, owner=rows.layout, item=item)
        for what, condition in (("`when`", rows.when), ("`careful`", rows.careful)):
            if condition is not None:
                yield from _typed(condition, scope, rows, what, ("bool",), False)
        for column in view.columns:
            value = rows.values.get(column.name)
            if value is not None:
                kinds = _KINDS.get(column.type, _NUMBERS)
                what = f'the column "{column.name}"'
                yield from _typed(value, scope, rows, what, kinds, column.nullable)
                yield from _wide_enough(column, value, scope, rows)
                yield from _members(column, value, scope)
            elif not column.nullable and column.type != "list":
                message = f'"{column.name}" has no value here, and cannot be null'
                help = f"give it a value, or say `nullable: true` at {column.span}"
                yield Diagnostic("C032", message, rows.span, help=help)


def _typed(
    value: Expression, scope: Scope, rows: Rows, what: str, kinds: tuple[str, ...], nullable: bool
) -> Iterator[Diagnostic]:
    infer = _Infer(value, scope, rows)
    found = infer.type()
    yield from infer.found
    if found is None:
        return
    span = expression_span(scope.model, value)
    if found.kind == "null" and nullable:
        return
    if found.kind not in kinds:
        wanted = " or ".join(str(Type(kind)) for kind in kinds if kind != "enum")
        yield Diagnostic("C032", f"{what} is {wanted}, not {found}", span)
    elif found.nullable and not nullable and not value.text.lstrip().startswith("if"):
        # What lies behind a condition may be there whenever it is asked for.
        yield Diagnostic("C032", f"{what} cannot be null, but its value can", span)


def _wide_enough(
    column: Column, value: Expression, scope: Scope, rows: Rows
) -> Iterator[Diagnostic]:
    """A number of any size that the value can have fits its column."""
    if column.type not in _WIDTHS:
        return
    bits = _WIDTHS[column.type]
    low, high = _range(value.node, scope, rows)
    if low < -(1 << bits - 1) or high >= 1 << bits - 1:
        message = f'"{column.name}" is {column.type}, but its value can be from {low} to {high}'
        yield Diagnostic("C032", message, expression_span(scope.model, value))


def _range(node: Node, scope: Scope, rows: Rows) -> tuple[int, int]:
    """The smallest and the largest number that an expression can give; those of 64 bits where it is a sum."""
    infer = _Infer(Expression(node, "", "", 1, 1), scope, rows)
    match node:
        case Number(value):
            return value, value
        case Null():
            return 0, 0
        case If(condition, then, otherwise):
            decided = infer.decided(condition)
            branches = (then, otherwise) if decided is None else (then if decided else otherwise,)
            ranges = [_range(branch, scope, rows) for branch in branches]
            return min(low for low, _ in ranges), max(high for _, high in ranges)
        case Path(names):
            return _range_of(names, scope, rows)
        case _:
            return _LONG


def _range_of(names: tuple[str, ...], scope: Scope, rows: Rows) -> tuple[int, int]:
    layout: Layout | None = scope.layout
    assert layout is not None
    if rows.each is not None and len(names) > 1:
        if names[0] == rows.each:
            derived = (d for d in layout.derived if d.array == rows.each and d.name == names[1])
            return next((integer_range(d.type) or _LONG for d in derived), _LONG)
        if names[0] == "item":
            layout = scope.model.layouts.get(getattr(scope.item, "layout", ""))
            names = names[1:]
    f = None if layout is None else field_of(layout, names[0])
    if f is None:
        own = (d for d in scope.layout.derived if d.array is None and d.name == names[0])
        return next((integer_range(d.type) or _LONG for d in own), _LONG)
    if f.is_version and scope.version is not None:
        return scope.version, scope.version
    if isinstance(f.type, BitsType) and len(names) == 1:
        return integer_range(f.type.base) or _LONG
    if isinstance(f.type, BitsType) and len(names) == 2:
        widths = [m.width for m in f.type.members if m.name == names[1]]
        return (0, (1 << widths[0]) - 1) if widths else _LONG
    if isinstance(f.type, ScalarType):
        return integer_range(f.type.name) or (0, 1)
    return _LONG


def _members(column: Column, value: Expression, scope: Scope) -> Iterator[Diagnostic]:
    """The members of a list are bytes of the elements, by their names."""
    element = _element(value, scope)
    for m in column.members if element is not None else ():
        assert element is not None
        f = field_of(element, m.name)
        kind = None if f is None else Infer(value, scope).inside(
            f, (), element, scope.version, Path((m.name,))
        )  # fmt: skip
        if kind is None or kind.kind not in _KINDS.get(m.type, ()):
            message = f'"{element.name}" has no field "{m.name}" of type {m.type}'
            yield Diagnostic(
                "C032", message, m.span, help=f"the elements are declared at {element.span}"
            )
        elif kind.nullable and not m.nullable:
            message = f'"{m.name}" can be null in "{element.name}"'
            yield Diagnostic("C032", message, m.span, help="say `nullable: true`")


def _element(value: Expression, scope: Scope) -> Layout | None:
    """The layout of the elements of an array of a row."""
    node = value.node
    layout = scope.layout
    names = node.names if isinstance(node, Path) else ()
    item = str(getattr(scope.item, "layout", ""))
    if names[:1] == ("item",) and item in scope.model.layouts:
        layout, names = scope.model.layouts[item], names[1:]
    f = field_of(layout, names[0]) if len(names) == 1 else None
    element = f.type.element if f is not None and isinstance(f.type, ArrayType) else None
    return scope.model.layouts.get(getattr(element, "layout", ""))


class _Infer(Infer):
    """What a path names in the rows of a view: also derived values, the position and the size of an entry, and the bits of
    a field as one number."""

    def __init__(self, expression: Expression, scope: Scope, rows: Rows) -> None:
        super().__init__(expression, scope)
        self.rows = rows

    def path(self, path: Path) -> Type:
        layout, each = self.scope.layout, self.rows.each
        names = path.names
        if len(names) == 2 and names[0] == each:
            return self.derived(names[1], each, path)
        if len(names) == 1 and field_of(layout, names[0]) is None:
            if names[0] in BUILT_IN:
                return INT
            if any(d.name == names[0] and d.array is None for d in layout.derived):
                return self.derived(names[0], None, path)
        found = super().path(path)
        return Type("int", nullable=found.nullable) if found.kind == "bits" else found

    def derived(self, name: str, array: str | None, path: Path) -> Type:
        layout = self.scope.layout
        spans = {d.name: d.span for d in layout.derived if d.array == array}
        if name not in spans:
            message = f'nothing called "{name}" is derived for "{array}"'
            raise self.fail("C014", message, path, hint(name, spans))
        value = next(d.value for d in layout.derived if d.name == name and d.array == array)
        return Type("int", nullable="null" in value.text.split())

    def end_of(self, node: object) -> Type:
        # The rows of a view are there: there is a first and a last one.
        found = super().end_of(node)  # type: ignore[arg-type]
        return Type(found.kind, found.enum)
