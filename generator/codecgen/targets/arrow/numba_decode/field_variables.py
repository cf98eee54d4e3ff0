"""The variables of a kernel: one for each field that it reads, and what values mean in terms of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from codecgen.plan import LayoutPlan, Plan, nodes
from codecgen.plan.columns import CasePlan
from codecgen.plan.constant_folding import Known, fold, known_fields
from codecgen.plan.nodes import Value
from codecgen.schema.lookup import null_as_read
from codecgen.schema.model import Field
from codecgen.schema.scalars import SCALARS
from codecgen.schema.types import ArrayType, BitsType, BytesType, ScalarType
from codecgen.targets.arrow.arithmetic import (
    NOT_DIRECT,
    OTHER_ARRAY,
    Arithmetic,
    Refused,
    Term,
    refuse_end,
)
from codecgen.targets.arrow.checks import Unsupported, loading
from codecgen.targets.arrow.code_tree import Expr, Num, Var, call, invert

ENTRY, ITEM = "entry", "item"
"""Where fields lie: in the entry, in the element that is a row."""

NO_ELEMENTS = ("no", "elements")
"""The variable that is true while the array of rows is empty."""

RAW = {"u64": "uint64", "f32": "float", "f64": "double"}
"""Numbers that kernels copy and do not work with, and the columns that hold them."""

_RAW_INTEGERS = {"u64": "i64", "f32": "u32", "f64": "i64"}
"""The integers that their bits are loaded as."""


def part_of(part: str, name: str) -> str:
    """Return the part name for the layout or the array elements in the field ``name`` of ``part``."""
    return f"{part}/{name}"


def is_number(f: Field) -> bool:
    """Return True if a field is an integer that fits into int64, or a boolean."""
    return isinstance(f.type, ScalarType) and SCALARS[f.type.name].fits_int64


def is_raw(f: Field) -> bool:
    """Return True if a field is a number whose raw bits kernels copy."""
    return isinstance(f.type, ScalarType) and f.type.name in RAW


def may_be_missing(value: nodes.EndValue) -> bool:
    """Return True if an expression may ask an empty array for its first or last element, which is
    null then. An array with ``at_least`` is rejected if it is empty.
    """
    type_ = value.array.field.type
    return value.type.nullable and isinstance(type_, ArrayType) and not type_.at_least


def null_of(type_: ArrayType | BytesType, f: Field) -> int | None:
    """Return the number that means null, as kernels read it, or None if the type has no null. Raise
    Unsupported if that number is not negative, since it may also be a length or count.
    """
    null = null_as_read(type_)
    if null is not None and null >= 0:
        raise Unsupported(f"nullable, with a length of null ({type_.null}) that is not negative", f)
    return null


def field_of(layout: LayoutPlan, name: str) -> Field:
    """Return the field of a layout by its name, which the layout has."""
    fp = layout.field(name)
    assert fp is not None
    return fp.field


def check_number(f: Field) -> None:
    """Raise Unsupported if a length or a count is no integer that 64 bits hold with a sign."""
    if not is_number(f):
        raise Unsupported(f"a number of the type {getattr(f.type, 'name', '')}", f)


def load(name: str, place: Expr, f: Field) -> Expr:
    """Return the expression that loads a number of fixed size from the address ``place``. Raise Unsupported if no primitive does."""
    order = "_le" if f.endian == "little" and SCALARS[name].width > 1 else ""
    return call(loading(name, order, f), place)


def load_raw(name: str, place: Expr, f: Field) -> Expr:
    """Return the expression that loads the bits of a number of the type ``name``, a key of RAW."""
    return load(_RAW_INTEGERS[name], place, f)


@dataclass(slots=True)
class Variables:
    """Variables of one generated function, by part (the entry, a row, or a nested layout) and
    field.
    """

    found: dict[tuple[str, str], Var] = field(default_factory=dict)

    def get(self, part: str, name: str) -> Var:
        """Return the variable of a field, or of a named property of it, in ``part`` (the entry, a
        row, or a nested layout). Repeated calls return the same variable.
        """
        key = (part, name)
        if key not in self.found:
            self.found[key] = Var(f"{'part' if '/' in part else part}_{name}")
        return self.found[key]


@dataclass(slots=True)
class Fields:
    """Resolves values of schema expressions to the variables of a kernel, for one part (the entry,
    a row, or a nested layout). A Term is an expression with the condition under which it is null.
    ``used``, ``ends`` and ``places`` collect the fields, array ends and places that the values use.

    ``part`` is where the fields lie that expressions of ``layout`` name, ``case`` is given for expressions of a view.
    """

    plan: Plan
    layout: LayoutPlan
    part: str
    variables: Variables
    case: CasePlan | None = None
    used: set[tuple[str, str]] = field(default_factory=set)
    ends: dict[str, nodes.EndValue] = field(default_factory=dict)
    places: set[str] = field(default_factory=set)

    def arithmetic(self) -> Arithmetic:
        """Return the arithmetic for values of these fields."""
        return Arithmetic(self.leaf)

    def constant_finder(self) -> Known:
        """Return a function that maps a value to a Literal if the schema fixes it: a field that is
        not nullable and has an integer constant, or a known version of the layout or its elements.
        The function returns None for others, also for fields of the entry in a header-only case,
        since kernels do not check them there.
        """
        is_header_only = self.case is not None and self.case.rows.header_only
        element = None if self.case is None or self.case.array is None else self.case.element

        def find_constant(value: Value) -> Value | None:
            if isinstance(value, nodes.FieldValue) and not value.type.nullable:
                f = value.field
                if value.owner in ("item", "end") and element is not None and not value.holders:
                    if f.is_version and element.version is not None:
                        return nodes.Literal(element.version)
                    return nodes.Literal(int(f.const)) if isinstance(f.const, int) else None
                if is_header_only and value.owner == "own":
                    return None
            return known_fields(value)

        return find_constant

    def folded(self, value: Value) -> Value:
        """Return ``value`` with all constants folded."""
        return fold(value, self.constant_finder())

    def leaf(self, value: Value) -> Term:
        """Return the Term of a value that is a name: a layout version that is known, a place (such
        as the entry's position), a numeric field, bits, or the size of bytes, or a field of an
        array end. Raise Refused for other values, and for fields that :meth:`field` or :meth:`end`
        refuses, such as ``u64``, floats, arrays, and fields in nested layouts.
        """
        match value:
            case nodes.VersionValue(version) if version is not None:
                return Term(Num(version))
            case nodes.PlaceValue(name):
                self.places.add(name)
                return Term(self.variables.get("place", name))
            case nodes.FieldValue():
                return self.field(value)
            case nodes.BitValue(word, m):
                inner = self.field(word)
                bits = inner.value >> m.low & (1 << m.width) - 1
                return Term(bits, inner.null)
            case nodes.EndValue():
                return self.end(value)
            case nodes.ElementValue():
                raise Refused("rows from an array of numbers")
        raise TypeError(type(value).__name__)

    def end(self, value: nodes.EndValue) -> Term:
        """Return an integer field of the first or last element of the array of rows as a Term, and
        note it in ``ends``. It is null if the array is empty, unless that is not possible where the
        value is used. Raise Refused outside a view's case, for another array, and for fields that
        are nested, nullable or no integers.
        """
        inner = value.value
        if (
            self.case is None
            or self.case.array is None
            or value.array.names != (self.case.array.name,)
        ):
            raise refuse_end(value, OTHER_ARRAY)
        if not isinstance(inner, nodes.FieldValue) or inner.holders or not is_number(inner.field):
            raise refuse_end(value, NOT_DIRECT)
        if inner.type.nullable:
            raise refuse_end(value, "a field of its elements that may be null")
        key = f"{value.end} {inner.field.name}"
        self.ends[key] = value
        empty = self.variables.get(*NO_ELEMENTS) if may_be_missing(value) else None
        return Term(self.variables.get(value.end, inner.field.name), empty)

    def locate_owner(self, owner: str) -> tuple[str, LayoutPlan]:
        """Return the part name and the layout that hold the fields of ``owner``. If this object has
        a case of a view, these are the row's for ``item`` and ``end``, the entry's for ``entry``;
        in all other cases this object's own part and layout.
        """
        if owner in ("item", "end") and self.case is not None:
            return ITEM, self.case.element
        if owner == "entry" and self.case is not None:
            return ENTRY, self.case.entry
        return self.part, self.layout

    def field(self, value: nodes.FieldValue) -> Term:
        """Return the Term of a field, with the condition under which it is null, and note it in
        ``used``: a number or bits, or the size of bytes, null if negative. Raise Refused for fields
        in nested layouts, fields that the layout lacks (but for values given from outside), arrays,
        types that do not fit int64, and conditions that kernels cannot express.
        """
        f = value.field
        part, layout = self.locate_owner(value.owner)
        if value.holders or (layout.field(f.name) is None and not f.is_given):
            raise Refused("a layout with a field that a column or condition uses")
        variable = self.variables.get(part, f.name)
        match f.type:
            case ScalarType(name) if not is_number(f):
                raise Refused(f"a value of type {name}")
            case ScalarType() | BitsType():
                self.used.add((part, f.name))
                return Term(variable, self.absence(value, part, layout))
            case BytesType():
                self.used.add((part, f.name))
                return Term(variable, variable < 0 if value.type.nullable else None)
        raise Refused(f"{value.type} in the place of a number")

    def raw(self, value: nodes.FieldValue, column: str) -> Term | None:
        """Return the Term of a ``u64``, ``f32`` or ``f64`` field whose bits a column of the
        matching type ``column`` stores unchanged, and note it in ``used``. Return None for other
        types or columns, and for fields in nested layouts or that the layout lacks. Raise Refused
        if kernels cannot express when the field is absent.
        """
        f = value.field
        part, layout = self.locate_owner(value.owner)
        if value.holders or layout.field(f.name) is None or not isinstance(f.type, ScalarType):
            return None
        if RAW.get(f.type.name) != column:
            return None
        self.used.add((part, f.name))
        return Term(self.variables.get(part, f.name), self.absence(value, part, layout))

    def absence(self, value: nodes.FieldValue, part: str, layout: LayoutPlan) -> Expr | None:
        """Return the condition that an optional field is absent, and note the fields that it reads
        in ``used``; None if the field has no ``when`` or ``value`` is not nullable. Raise Refused
        if kernels cannot express the condition.
        """
        fp = layout.field(value.field.name)
        if not value.type.nullable or fp is None or fp.when is None:
            return None
        inside = Fields(self.plan, layout, part, self.variables, used=self.used)
        return invert(inside.arithmetic().condition(inside.folded(fp.when)))
