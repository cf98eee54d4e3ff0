"""What values mean in a reader: its own variables, or the fields of rows and of the entries around them.

Kernels come first, and refuse a view with a value that they cannot express. Nothing here refuses one again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from codecgen.plan import LayoutPlan, Plan, nodes
from codecgen.plan.columns import CasePlan
from codecgen.plan.constant_folding import fold
from codecgen.plan.nodes import Value
from codecgen.schema.types import BitsType, BytesType
from codecgen.targets.arrow.arithmetic import Term
from codecgen.targets.arrow.code_tree import Attribute, Expr, Num, Var
from codecgen.targets.arrow.numba_decode.field_variables import Fields as KernelFields
from codecgen.targets.arrow.numba_decode.field_variables import Variables, is_number, may_be_missing
from codecgen.targets.arrow.numpy_decode.arithmetic import NumpyArithmetic, opposite

RAW_INTEGER = "u64"
"""The type of integers whose bits columns of uint64 and checksums take. Nothing computes with them."""


@dataclass(slots=True)
class Locals:
    """Variables of a reader, by the fields that they hold."""

    found: dict[str, Var] = field(default_factory=dict)

    def get(self, name: str) -> Var:
        """Return the variable ``name``; repeated calls return the same one."""
        return self.found.setdefault(name, Var(name))


@dataclass(slots=True)
class NumpyFields:
    """Resolves values of schema expressions to NumPy vectors: variables of a reader if ``case`` is
    None, otherwise attributes of ``row`` (entry, item, first, last). A Term is a vector with the
    mask of where it is null. ``used`` collects the fields.
    """

    plan: Plan
    layout: LayoutPlan
    local: Locals
    case: CasePlan | None = None
    row: Var | None = None
    used: set[tuple[str, str]] = field(default_factory=set)

    def arithmetic(self) -> NumpyArithmetic:
        """Return the arithmetic for values of these fields."""
        return NumpyArithmetic(self.leaf)

    def folded(self, value: Value) -> Value:
        """Return ``value`` with all constants folded."""
        known = KernelFields(self.plan, self.layout, "", Variables(), self.case).constant_finder()
        return fold(value, known)

    def leaf(self, value: Value) -> Term:
        """Return a known version, place, field, bits, or field of an array end as a Term, and note
        fields in ``used``. An end is an integer of the first or last row.
        """
        match value:
            case nodes.VersionValue(version) if version is not None:
                return Term(Num(version))
            case nodes.PlaceValue(name) if self.row is not None:
                return Term(Attribute(self.row, name))
            case nodes.FieldValue():
                return self.field(value)
            case nodes.BitValue(word, m):
                inner = self.field(word)
                return Term((inner.value >> m.low) & (1 << m.width) - 1, inner.null)
            case nodes.EndValue(end, _, nodes.FieldValue() as inner, _):
                self.used |= {("item", inner.field.name), ("ends", inner.field.name)}
                assert self.row is not None
                empty = Attribute(self.row, "empty") if may_be_missing(value) else None
                return Term(self.of_row(end, inner.field.name), empty)
        raise TypeError(type(value).__name__)

    def of_row(self, part: str, name: str) -> Expr:
        """Return the attribute ``name`` of a part of the row object."""
        assert self.row is not None
        return Attribute(Attribute(self.row, part), name)

    def locate_owner(self, owner: str) -> tuple[str, LayoutPlan]:
        """Return ``"entry"`` or ``"item"`` and the layout that hold the fields of ``owner``.
        Without a case it is always ``"entry"`` and this object's layout; where entries are rows
        themselves, always ``"item"``.
        """
        if self.case is None:
            return "entry", self.layout
        if owner == "item" or self.case.array is None:
            return "item", self.case.element
        return "entry", self.case.entry

    def field(self, value: nodes.FieldValue) -> Term:
        """Return a number, bits, or bytes field of the layout itself as a Term with its null mask,
        and note it in ``used``.
        """
        f = value.field
        part, layout = self.locate_owner(value.owner)
        assert not value.holders and layout.field(f.name) is not None
        self.used.add((part, f.name))
        found = self.local.get(f.name) if self.case is None else self.of_row(part, f.name)
        if isinstance(f.type, BytesType):
            return Term(found, Attribute(found, "null") if value.type.nullable else None)
        assert is_number(f) or isinstance(f.type, BitsType)
        return Term(found, self.absence(value, layout))

    def raw(self, value: Value, column: str) -> Term | None:
        """Return the Term of a ``u64`` field whose bits a ``uint64`` column stores, and note it in
        ``used``. Return None for other values and columns, and for fields in nested layouts or that
        the layout lacks.
        """
        if not isinstance(value, nodes.FieldValue) or value.holders or column != "uint64":
            return None
        f = value.field
        part, layout = self.locate_owner(value.owner)
        if layout.field(f.name) is None or getattr(f.type, "name", "") != RAW_INTEGER:
            return None
        self.used.add((part, f.name))
        return Term(self.of_row(part, f.name), self.absence(value, layout))

    def absence(self, value: nodes.FieldValue, layout: LayoutPlan) -> Expr | None:
        """Return the mask of rows in which an optional field is absent; None if it has no ``when``
        or is not nullable.
        """
        fp = layout.field(value.field.name)
        if not value.type.nullable or fp is None or fp.when is None:
            return None
        when = fold(fp.when)
        if self.case is not None and value.owner == "item":
            when = _owned_by_item(when)
        return opposite(self.arithmetic().condition(when))


def _owned_by_item(value: Value) -> Value:
    """Return ``value`` with the owner of each field and of each field with bits replaced by
    ``item``, the array element.
    """
    match value:
        case nodes.FieldValue():
            return nodes.FieldValue(value.field, value.type, "item", value.holders)
        case nodes.BitValue(word, m, type_):
            inner = nodes.FieldValue(word.field, word.type, "item", word.holders)
            return nodes.BitValue(inner, m, type_)
    return nodes.map_children(value, _owned_by_item)
