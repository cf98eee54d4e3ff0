"""What the columns of a view are made of in each of its cases: fields as they are, and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codecgen.plan import nodes
from codecgen.plan.columns import CasePlan, Leaf, ViewPlan
from codecgen.plan.layouts import FieldPlan
from codecgen.plan.nodes import Value
from codecgen.schema.model import Field
from codecgen.schema.types import BytesType

BYTES_LIKE = ("binary", "string")


class SourceError(Exception):
    """A column that is made of something that no reader of columns can give, and the field to name."""

    def __init__(self, reason: str, field: Field) -> None:
        super().__init__(reason)
        self.reason = reason
        self.field = field


@dataclass(frozen=True, slots=True)
class Sources:
    """``bytes`` and ``lists`` are columns that are fields of the row, by the field's name, lists with their members by the
    names of the element's fields. ``numbers`` are worked out; ``missing`` have no value here."""

    bytes: Mapping[str, Leaf]
    lists: Mapping[str, tuple[Leaf, Mapping[str, Leaf]]]
    numbers: tuple[tuple[Leaf, Value], ...]
    missing: tuple[Leaf, ...]

    def is_missing(self, leaf: Leaf) -> bool:
        """Whether a column, or the list that it is in, has no value here."""
        name = leaf.column.name if leaf.inside is None else leaf.inside.name
        return any(other.column.name == name for other in self.missing)


def sources(view: ViewPlan, case: CasePlan) -> Sources:
    """What the columns of a case are made of. Raises :class:`SourceError`."""
    as_bytes: dict[str, Leaf] = {}
    lists: dict[str, tuple[Leaf, Mapping[str, Leaf]]] = {}
    numbers: list[tuple[Leaf, Value]] = []
    missing = []
    for leaf in view.leaves:
        if leaf.inside is not None:
            continue
        value = case.values.get(leaf.column.name)
        nothing = value is None or isinstance(value, nodes.NullValue)
        if value is None or (nothing and leaf.column.type in (*BYTES_LIKE, "list")):
            missing.append(leaf)
        elif leaf.column.type in BYTES_LIKE:
            field = _field_of_row(case, value)
            _check_bytes(case, leaf, field.field)
            if field.name in as_bytes:
                raise SourceError("two columns of the same bytes", field.field)
            as_bytes[field.name] = leaf
        elif leaf.column.type == "list":
            field = _field_of_row(case, value)
            if field.name in lists:
                raise SourceError("two columns of the same list", field.field)
            members = {m.column.name: m for m in view.leaves if m.inside is leaf.column}
            lists[field.name] = (leaf, members)
        else:
            numbers.append((leaf, value))
    return Sources(as_bytes, lists, tuple(numbers), tuple(missing))


def _check_bytes(case: CasePlan, leaf: Leaf, f: Field) -> None:
    if not isinstance(f.type, BytesType):
        raise SourceError("a column of bytes from something else", f)
    if leaf.column.type == "string" and not f.type.text:
        raise SourceError("a string that is not text in UTF-8", f)
    if case.rows.header_only:
        raise SourceError("in a view of heads, but at no fixed place", f)


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
    raise SourceError("bytes or a list that are no field of the row", blamed(case, value))


def blamed(case: CasePlan, value: Value) -> Field:
    """The field to name when a value cannot be expressed."""
    for read in nodes.fields_read(value):
        if read.holders:
            return read.holders[0]
        if read.owner != "entry" or case.entry.field(read.field.name):
            return read.field
    return (case.array or case.entry.fields[0]).field
