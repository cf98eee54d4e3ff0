"""Check how views are written: each field that the layout does not determine has a value made of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from codecgen.check import view_columns
from codecgen.diagnostics import Diagnostic, unique
from codecgen.plan.columns import running_fields
from codecgen.plan.resolve_views import NUMBERS, WriteResolver
from codecgen.plan.scope import Scope
from codecgen.plan.value_ranges import column_range
from codecgen.schema.expression import Expression, Number, Path
from codecgen.schema.lookup import (
    enum_values,
    field_of,
    field_spans,
    members,
    versions_of,
)
from codecgen.schema.model import Column, Field, Layout, Model, Rows, View, Write
from codecgen.schema.types import ArrayType, BitMember, BitsType, BytesType, Reference, ScalarType
from codecgen.spans import expression_span, hint, place


def check(model: Model) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each invalid default of a column, and for each ``write`` section that
    names wrong fields, gives values of wrong types, or leaves a field without a value. Rows without
    ``write`` are skipped, but the defaults of their view are checked.
    """
    for view in model.views.values():
        found = list(_check_defaults(view))
        written = [rows for rows in view.rows if rows.write is not None]
        for rows in written:
            found += _Rows(model, view, rows).check()
        yield from unique(found)


def _check_defaults(view: View) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each default of a struct or list member, which cannot have one, and
    for each column default that is neither a fitting number nor the name of a suitable column. That
    is another column of the same type, without a column as its own default, and not nullable if
    this one is not.
    """
    columns = {column.name: column for column in view.columns}
    for column in view.columns:
        for member in _iterate_inside(column):
            if member.default is not None:
                message = f'"{member.name}" is a member of a {column.type}, which has no default'
                yield Diagnostic("C032", message, place(member, "default"))
        if column.default is None:
            continue
        wrong = _find_default_mistake(column, columns)
        if wrong:
            help = "a default is a number, or the name of a column of the same type"
            yield Diagnostic("C032", wrong, place(column, "default"), help=help)


def _iterate_inside(column: Column) -> Iterator[Column]:
    """Yield all columns inside a column."""
    for part in column.parts:
        yield part
        yield from _iterate_inside(part)


def _find_default_mistake(column: Column, columns: dict[str, Column]) -> str:
    """Return in words what is wrong with the default of a column, which must have one, or ``""`` if
    it is valid: a number in the column's range (integer and boolean columns), or the name of
    another column of the same type that has no column as its default and is not null where this one
    is not.
    """
    assert column.default is not None
    node = column.default.node
    if isinstance(node, Number) and (
        view_columns.is_integer_column(column) or column.type == "bool"
    ):
        low, high = column_range(column.type)
        if low <= node.value <= high:
            return ""
        return f'"{column.name}" is {column.type}, which {node.value} does not fit'
    if isinstance(node, Path) and len(node.names) == 1:
        other = columns.get(node.names[0])
        if other is None:
            return f'the view has no column "{node}"'
        if other is not column and other.type == column.type and not column.parts:
            if other.nullable and not column.nullable:
                return f'"{column.name}" cannot be null, but "{node}" can'
            return f'"{node}" has a default that is a column' if _is_path_default(other) else ""
        return f'"{node}" is {other.type}, and "{column.name}" is {column.type}'
    return f'"{column.default}" cannot be the default of "{column.name}"'


def _is_path_default(column: Column) -> bool:
    """Return whether the default of a column is the name of another column."""
    return column.default is not None and isinstance(column.default.node, Path)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Checks the ``write`` section of rows of a view: which fields of an entry and of its elements
    are written, and from which expressions of columns.
    """

    model: Model
    view: View
    rows: Rows

    @property
    def write(self) -> Write:
        """Return the write section of the rows, which must have one."""
        assert self.rows.write is not None
        return self.rows.write

    def check(self) -> Iterator[Diagnostic]:
        """Yield one diagnostic and stop if the rows are ``header_only`` or made of several arrays.
        Otherwise yield one if their array holds no layouts, or ``item`` is given without an array.
        Also yield one for each field that is wrongly written or has no value. Yield nothing if the
        layout is unknown.
        """
        rows, write = self.rows, self.write
        layout = self.model.layouts.get(rows.layout)
        if layout is None:
            return
        if rows.header_only:
            message = (
                "rows made of the head of a layout cannot be written: the rest of it is not known"
            )
            yield Diagnostic("C032", message, write.span, help="leave out `write` of these rows")
            return
        element = None
        array = None if rows.each is None else field_of(layout, rows.each)
        if array is not None and isinstance(array.type, ArrayType):
            ref = array.type.element
            element = self.model.layouts.get(ref.layout) if isinstance(ref, Reference) else None
            if element is None:
                message = (
                    f'"{array.name}" is an array of numbers, bytes or text, which cannot be written'
                )
                yield Diagnostic("C032", message, write.span, help="leave out `write`")
        if rows.other_arrays:
            message = "rows made of several arrays cannot be written from columns"
            help = "leave out `write`: batches of this layout are built by its reference codec"
            yield Diagnostic("C032", message, write.span, help=help)
            return
        if rows.each is None and write.item:
            message = "each of these rows is the layout itself, which has no elements"
            span = place(write, f"item.{next(iter(write.item))}")
            yield Diagnostic("C032", message, span, help="write all fields under `entry`")
        where = "row" if rows.each is None else "entry"
        yield from self.check_part("entry", layout, where)
        if element is not None:
            yield from self.check_part("item", element, "item")

    def check_part(self, part: str, layout: Layout, where: str) -> Iterator[Diagnostic]:
        """Yield diagnostics about the section ``part`` (``entry`` or ``item``): for each field of
        ``layout`` that it must not write or writes from a wrong expression; for each number, and
        bytes or text that cannot be null, without value, default or ``when``; and for each bit
        member without value or default whose enum has no 0. Tagged fields are omitted. ``where`` is
        ``part``, but ``row`` if the rows are entries themselves.
        """
        given = self.write.entry if part == "entry" else self.write.item
        named: list[str] = []
        for name, expression in given.items():
            at = self.write.places.get(f"{part}.{name}", self.write.span)
            wrong = self.forbidden_reason(layout, name, part)
            if wrong:
                message, help = wrong
                yield Diagnostic("C032", message, at, help=help)
                continue
            f = field_of(layout, name.partition(".")[0])
            assert f is not None
            for version in versions_of(layout, f.versions):
                scope = Scope(self.model, layout, version, owner=layout.name)
                yield from self.check_value(f, name, expression, scope, where, named)
            named.append(f.name)
        names = {name.partition(".")[0] for name in given}
        for f in layout.fields:
            if f.tag is not None:
                continue  # it is left out
            if f.name not in names and self.lacks_value(f):
                message = f'"{f.name}" has no value when it is written, and no default'
                wanted = "a column" if isinstance(f.type, BytesType) else "a column or a number"
                help = f'add "{f.name}:" with {wanted}, or declare a default at {f.span}'
                yield Diagnostic("C032", message, self.write.span, help=help)
            for m in members(f):
                if f"{f.name}.{m.name}" not in given and self.cannot_be_0(m):
                    message = (
                        f'"{f.name}.{m.name}" has no value when it is written, and cannot be 0'
                    )
                    help = f'add "{f.name}.{m.name}:" with a column or a number, or declare a default at {m.span}'
                    yield Diagnostic("C032", message, self.write.span, help=help)

    def cannot_be_0(self, m: BitMember) -> bool:
        """Return whether a bit member has an enum of which no allowed value is 0, the number that
        builders write if no value is given. False if it has no known enum, a default, or an enum
        that keeps unknown numbers.
        """
        enum = self.model.enums.get(m.enum) if m.enum is not None else None
        if enum is None or m.default is not None or enum.keep_unknown:
            return False
        return all(number != 0 for _, number in enum_values(enum, m.only))

    def forbidden_reason(self, layout: Layout, name: str, part: str) -> tuple[str, str] | None:
        """Return (message, help) if the ``write`` section cannot give a value to ``name``: an
        unknown field, one that the layout sets itself, a bit field without or with an unknown
        member, a member of another field, or a layout. Return None if it can. ``part`` is ``entry``
        or ``item``.
        """
        first, _, member = name.partition(".")
        f = field_of(layout, first)
        if f is None:
            known = hint(first, field_spans(layout))
            return f'"{layout.name}" has no field "{first}"', known
        rows_here = part == "entry" and f.name == self.rows.each
        own = f.const is not None or f.is_version or f.measures is not None or rows_here
        if own or f.counts or f.checksum is not None:
            return (
                f'the layout gives "{f.name}" its value',
                f"remove it here; it is declared at {f.span}",
            )
        if isinstance(f.type, BitsType):
            spans = {m.name: m.span for m in members(f) if not m.reserved}
            if member not in spans:
                what = f'"{f.name}" has no bits "{member}"' if member else f'"{f.name}" are bits'
                return what, hint(member, spans) if member else "give each its value"
        elif member:
            return f'"{f.name}" has no parts', f"it is declared at {f.span}"
        elif not isinstance(f.type, ScalarType | BytesType | ArrayType):
            return f'"{f.name}" is a layout, which cannot be written from columns', ""
        return None

    def lacks_value(self, f: Field) -> bool:
        """Return whether a scalar field, or a bytes or text field that cannot be null, has no
        constant, default, ``when`` or role (version, length, count, checksum) that determines its
        value. False for other types.
        """
        if f.const is not None or f.is_version or f.when is not None or f.default is not None:
            return False
        if f.measures is not None or f.counts or f.checksum is not None:
            return False
        if isinstance(f.type, BytesType):
            return any(getattr(t, "null", None) is None for t in f.all_types())
        return isinstance(f.type, ScalarType)

    def check_value(
        self,
        f: Field,
        name: str,
        expression: Expression,
        scope: Scope,
        where: str,
        named: list[str],
    ) -> Iterator[Diagnostic]:
        """Yield a diagnostic unless a field is written from a valid expression that is a number
        (booleans and enums included), and null only as a literal for fields with ``when``. Bytes
        and arrays must be copied from a column. ``named`` are the fields written before it.
        ``where`` is ``entry``, ``item``, or ``row`` if the rows are entries themselves.
        """
        span = expression_span(self.model, expression)
        if isinstance(f.type, BytesType | ArrayType):
            yield from self.check_copied(f, expression, where)
            return
        own = self.model.layouts[self.rows.layout]
        known = {key.partition(".")[0] for key in self.write.entry} if where == "item" else named
        running = [name for name in known if name in running_fields(self.rows)]
        resolver = WriteResolver(expression, scope, self.view, own, where, known, running)
        value = resolver.resolve()
        yield from resolver.found
        found = None if value is None else value.type
        if found is None or (found.kind == "null" and f.when is not None):
            return
        if found.kind not in NUMBERS:
            yield Diagnostic("C032", f'"{name}" needs a number, but its value is {found}', span)
        elif found.nullable:
            yield Diagnostic("C032", f'"{name}" cannot be null, but its value can', span)

    def check_copied(self, f: Field, expression: Expression, where: str) -> Iterator[Diagnostic]:
        """Yield a diagnostic if bytes or an array belong to an entry (``where``), or are not
        written from one column of the view whose type is list, string or (for bytes) binary, as the
        field requires.
        """
        span = expression_span(self.model, expression)
        node = expression.node
        if where == "entry":
            message = f'"{f.name}" of the entry holds bytes or elements: rows cannot write it from a column'
            help = f"take it out of `entry`, and declare a default at {f.span}"
            yield Diagnostic("C032", message, span, help=help)
            return
        name = node.names[0] if isinstance(node, Path) and len(node.names) == 1 else None
        column = next((c for c in self.view.columns if c.name == name), None)
        if column is None:
            spans = {c.name: c.span for c in self.view.columns}
            message = f'"{f.name}" is written from a column, not from "{expression}"'
            yield Diagnostic("C032", message, span, help=hint(str(name), spans) if name else "")
            return
        wanted: tuple[str, ...] = ("list",)
        if isinstance(f.type, BytesType):
            wanted = ("string",) if f.type.text else ("binary", "string")
        if column.type not in wanted:
            words = " or ".join(wanted)
            message = f'"{f.name}" is written from {words}, and "{column.name}" is {column.type}'
            yield Diagnostic("C032", message, span, help=f"the column is declared at {column.span}")
