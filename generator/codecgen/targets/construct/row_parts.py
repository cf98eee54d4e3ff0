"""What rows show of structs, lists and uuids: tuples, and bytes."""

from __future__ import annotations

from collections.abc import Callable

from codecgen.plan import LayoutPlan, Plan
from codecgen.schema.model import Column
from codecgen.schema.types import (
    ArrayType,
    BitsType,
    BytesType,
    FieldType,
    Reference,
    ScalarType,
    StructType,
)


class RowParts:
    """Prints what is inside of columns. ``bits`` is the text of the number that a field of bits was parsed from, by the layout
    and the text of what holds the field."""

    def __init__(self, plan: Plan, bits: Callable[[LayoutPlan, str, str], str]) -> None:
        self.plan = plan
        self.bits = bits

    def shown(
        self,
        column: Column,
        type_: FieldType | Reference,
        text: str,
        around: LayoutPlan,
        *,
        nullable: bool,
        depth: int = 0,
    ) -> str:
        """The text of what a column shows of a field, or of an element, whose value is ``text``."""
        part = "part" + (str(depth + 1) if depth else "")
        match type_:
            case StructType(ref) | (Reference() as ref):
                made = self.members(column, ref, text, around, depth)
            case ArrayType(element) if column.element is not None:
                one = self.shown(
                    column.element, element, part, around, nullable=False, depth=depth + 1
                )
                made = f"tuple({text})" if one == part else f"tuple([{one} for {part} in {text}])"
            case ArrayType(Reference() as ref):
                inside = self.members(column, ref, part, around, depth + 1)
                made = f"tuple([{inside} for {part} in {text}])"
            case ScalarType("uuid"):
                made = f"{text}.bytes"
            case ScalarType(name, enum) if column.type != "bool" and (enum or name == "bool"):
                made = f"int({text})"
            case BytesType(text=True) if column.type == "binary":
                made = f"{text}.encode()"
            case _:
                return text
        return f"None if {text} is None else {made}" if nullable and made != text else made

    def members(
        self, column: Column, ref: Reference, text: str, around: LayoutPlan, depth: int
    ) -> str:
        """A tuple of the members."""
        layout = self.plan.expected(ref, around)
        several = len(self.plan.held(ref, around)) > 1
        found = [self.member(m, layout, text, several, depth) for m in column.members]
        return f"({found[0]},)" if len(found) == 1 else f"({', '.join(found)})"

    def member(
        self, column: Column, layout: LayoutPlan, text: str, several: bool, depth: int
    ) -> str:
        fp = layout.field(column.name)
        if fp is None and not several:
            return "None"  # not in this version
        value = f'{text}.get("{column.name}")' if several else f"{text}.{column.name}"
        f = (
            next(f for f in layout.layout.fields if f.name == column.name)
            if fp is None
            else fp.field
        )
        nullable = f.when is not None or f.nullable or several
        if isinstance(f.type, BitsType):
            made = self.bits(layout, text, column.name)
            return f"None if {value} is None else {made}" if nullable else made
        return self.shown(column, f.type, value, layout, nullable=nullable, depth=depth)
