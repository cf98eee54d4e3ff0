"""What the columns of a view are made of in each of its cases: fields as they are, and values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from codecgen.plan import nodes
from codecgen.plan.columns import CasePlan, Leaf, ViewPlan
from codecgen.plan.constant_folding import fold, settled_fields
from codecgen.plan.layouts import FieldPlan
from codecgen.plan.nodes import Value
from codecgen.schema.model import Field
from codecgen.schema.types import BytesType

BYTES_LIKE = ("binary", "string")

DIRECT = (*BYTES_LIKE, "uuid", "struct", "list")
"""Types of columns whose values are fields as they are."""


class SourceError(Exception):
    """A column that is made of something that no reader of columns can give, and the field to name."""

    def __init__(self, reason: str, field: Field) -> None:
        super().__init__(reason)
        self.reason = reason
        self.field = field


@dataclass(frozen=True, slots=True)
class Sources:
    """``fields`` are columns that are fields of the row, by the field's name: bytes, uuids, structs and lists. ``numbers`` are
    worked out; ``missing`` have no value here. ``inside`` has what structs and lists are made of, by their index."""

    fields: Mapping[str, Leaf]
    numbers: tuple[tuple[Leaf, Value], ...]
    missing: tuple[Leaf, ...]
    inside: Mapping[int, tuple[Leaf, ...]]

    def is_missing(self, leaf: Leaf) -> bool:
        """Whether a column, or that which it is in, has no value here."""
        return any(other is leaf.root for other in self.missing)


def sources(view: ViewPlan, case: CasePlan) -> Sources:
    """What the columns of a case are made of. Raises :class:`SourceError`."""
    fields: dict[str, Leaf] = {}
    numbers: list[tuple[Leaf, Value]] = []
    missing = []
    for leaf in view.leaves:
        if leaf.inside is not None:
            continue
        value = settled(case, leaf)
        nothing = value is None or isinstance(value, nodes.NullValue)
        if value is None or (nothing and leaf.column.type in DIRECT):
            missing.append(leaf)
        elif leaf.column.type in DIRECT:
            field = _field_of_row(case, value)
            _check_field(case, leaf, field.field)
            if field.name in fields:
                raise SourceError("two columns of the same field", field.field)
            fields[field.name] = leaf
        else:
            numbers.append((leaf, value))
    inside = {leaf.index: view.inside(leaf) for leaf in view.leaves if leaf.column.parts}
    return Sources(fields, tuple(numbers), tuple(missing), inside)


def only_kernels_read(view: ViewPlan, case: CasePlan, others: Collection[str] = ()) -> None:
    """Raise :class:`SourceError` for a column that only kernels can read: neither a plain value nor a list of structs of bytes
    and text. ``others`` are types that cannot be had either."""
    for leaf in view.leaves:
        column, value = leaf.root.column, settled(case, leaf)
        if value is None or isinstance(value, nodes.NullValue):
            continue
        listed = leaf.inside is not None and leaf.column.type not in BYTES_LIKE
        odd = column.element is not None or leaf.column.type in ("struct", "uuid", *others)
        if listed or odd:
            what = "lists" if column.type == "list" else column.type
            raise SourceError(f"in a column of {what}", blamed(case, value))


def settled(case: CasePlan, leaf: Leaf) -> Value | None:
    """What a column is made of, without conditions that the version settles."""
    value = case.values.get(leaf.root.column.name)
    if not isinstance(value, nodes.Conditional) or leaf.root.column.type not in DIRECT:
        return value
    return fold(value, settled_fields)


def _check_field(case: CasePlan, leaf: Leaf, f: Field) -> None:
    if leaf.column.type in BYTES_LIKE and not isinstance(f.type, BytesType):
        raise SourceError("a column of bytes from something else", f)
    if leaf.column.type == "string" and not getattr(f.type, "text", False):
        raise SourceError("a string that is not text in UTF-8", f)
    if case.rows.header_only:
        raise SourceError("in a view of heads, where only numbers are read", f)


def _field_of_row(case: CasePlan, value: Value) -> FieldPlan:
    wanted = "own" if case.array is None else "item"
    if isinstance(value, nodes.FieldValue) and value.owner == wanted and not value.holders:
        fp = case.element.field(value.field.name)
        if fp is not None:
            return fp
    if isinstance(value, nodes.Conditional):
        for part in (value.then, value.otherwise):
            for read in nodes.fields_read(part):
                reason = "one of several fields that a column may show, by a condition"
                raise SourceError(reason, read.field)
    raise SourceError("bytes, a struct or a list that are no field of the row", blamed(case, value))


def blamed(case: CasePlan, value: Value) -> Field:
    """The field to name when a value cannot be expressed."""
    for read in nodes.fields_read(value):
        if read.holders:
            return read.holders[0]
        if read.owner != "entry" or case.entry.field(read.field.name):
            return read.field
    return (case.array or case.entry.fields[0]).field
