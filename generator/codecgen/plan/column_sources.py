"""Determine where readers of columns take the columns of a view from: fields as stored, or computed values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from codecgen.plan import nodes
from codecgen.plan.columns import CasePlan, Leaf, ViewPlan
from codecgen.plan.constant_folding import fold, known_fields
from codecgen.plan.layouts import FieldPlan
from codecgen.plan.nodes import Value
from codecgen.schema.model import Field

BYTES_LIKE = ("binary", "string")

DIRECT = (*BYTES_LIKE, "uuid", "struct", "list")
"""Types of columns whose values are fields as they are."""


class UnsupportedSource(Exception):
    """Raised for a column that kernels cannot read, so the reference codecs do, or cannot write.
    ``field`` is the field to name in the message.
    """

    def __init__(self, reason: str, field: Field) -> None:
        super().__init__(
            f'"{field.name}" is {reason}, which kernels cannot read into columns; codecgen explain C023 says what to do'
        )
        self.reason = reason
        self.field = field


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of the columns of one case of a view."""

    fields: Mapping[str, Leaf]
    numbers: tuple[tuple[Leaf, Value], ...]
    missing: tuple[Leaf, ...]
    inside: Mapping[int, tuple[Leaf, ...]]

    def is_missing(self, leaf: Leaf) -> bool:
        """Return whether a column, or the column around it, has no value in this case."""
        return any(other is leaf.root for other in self.missing)


def column_sources(view: ViewPlan, case: CasePlan) -> Sources:
    """Return how the top-level columns of a case are filled: from fields (bytes, uuids, structs,
    lists), from computed numbers, or not at all (``missing``). A column of the first kind that is
    always null is missing, too; a number that is always null counts as computed. Raise
    UnsupportedSource if a column of the first kind is no field of the row, or one of ``header_only``
    rows, for which only numbers are read, or if two show one field.
    """
    fields: dict[str, Leaf] = {}
    numbers: list[tuple[Leaf, Value]] = []
    missing = []
    for leaf in view.leaves:
        if leaf.inside is not None:
            continue
        value = resolve_column(case, leaf)
        nothing = value is None or isinstance(value, nodes.NullValue)
        if value is None or (nothing and leaf.column.type in DIRECT):
            missing.append(leaf)
        elif leaf.column.type in DIRECT:
            field = _find_row_field(case, value)
            if case.rows.header_only:
                reason = "shown in `header_only` rows, but not a number"
                raise UnsupportedSource(reason, field.field)
            if field.name in fields:
                raise UnsupportedSource("the source of two columns", field.field)
            fields[field.name] = leaf
        else:
            numbers.append((leaf, value))
    inside = {leaf.index: view.inside(leaf) for leaf in view.leaves if leaf.column.parts}
    return Sources(fields, tuple(numbers), tuple(missing), inside)


def require_simple_columns(view: ViewPlan, case: CasePlan, others: Collection[str] = ()) -> None:
    """Raise UnsupportedSource if a column with a value other than null is or contains a struct, a
    uuid, a type in ``others``, or a list, except lists of structs whose members are bytes or text.
    """
    for leaf in view.leaves:
        column, value = leaf.root.column, resolve_column(case, leaf)
        if value is None or isinstance(value, nodes.NullValue):
            continue
        listed = leaf.inside is not None and leaf.column.type not in BYTES_LIKE
        odd = column.element is not None or leaf.column.type in ("struct", "uuid", *others)
        if listed or odd:
            what = "lists" if column.type == "list" else column.type
            raise UnsupportedSource(f"shown in a column of {what}", field_to_blame(case, value))


def resolve_column(case: CasePlan, leaf: Leaf) -> Value | None:
    """Return the value of a leaf's top-level column, or None if the case gives it none. For columns
    of bytes, text, uuids, structs and lists, conditions decided by the version or a constant are
    replaced by their branch.
    """
    value = case.values.get(leaf.root.column.name)
    if not isinstance(value, nodes.Conditional) or leaf.root.column.type not in DIRECT:
        return value
    return fold(value, known_fields)


def _find_row_field(case: CasePlan, value: Value) -> FieldPlan:
    """Return the field plan of the row (of the array's element, or of the layout without an array)
    that ``value`` names. Raise UnsupportedSource if it is anything else: a field of a held layout,
    of the entry, or one chosen by a condition.
    """
    wanted = "own" if case.array is None else "item"
    if isinstance(value, nodes.FieldValue) and value.owner == wanted and not value.holders:
        fp = case.element.field(value.field.name)
        if fp is not None:
            return fp
    if isinstance(value, nodes.Conditional):
        for part in (value.then, value.otherwise):
            for read in nodes.fields_read(part):
                reason = "one of several fields that a column may show, by a condition"
                raise UnsupportedSource(reason, read.field)
    raise UnsupportedSource(
        "shown in a column of bytes, structs or lists, but not a field of the row itself",
        field_to_blame(case, value),
    )


def field_to_blame(case: CasePlan, value: Value) -> Field:
    """Return the field to name in an error about ``value``: the first field that it reads, or the
    field that holds that one's layout. Without one, return the array of the case, or the first
    field of the entry.
    """
    for read in nodes.fields_read(value):
        if read.holders:
            return read.holders[0]
        if read.owner != "entry" or case.entry.field(read.field.name):
            return read.field
    return (case.array or case.entry.fields[0]).field
