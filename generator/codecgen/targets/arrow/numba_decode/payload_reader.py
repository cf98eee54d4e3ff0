"""Prints readers of the parts of a payload: they note where bytes and arrays lie, and give nothing to columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from codecgen.plan import LayoutPlan, read_ops
from codecgen.plan.constant_folding import Known, known_fields
from codecgen.plan.nodes import FieldValue, Literal, Value, case_in, part_of
from codecgen.plan.read_ops import ReadOp
from codecgen.schema.model import Field
from codecgen.schema.types import ArrayType, BytesType, ScalarType
from codecgen.targets.arrow.arithmetic import Term
from codecgen.targets.arrow.code_tree import Expr, Var
from codecgen.targets.arrow.numba_decode.column_outputs import Target
from codecgen.targets.arrow.numba_decode.field_variables import ITEM, Fields
from codecgen.targets.arrow.numba_decode.payload_cases import CaseReader, Cases

Key = tuple[str, str]
"""A part, or the element at hand, and a field of it."""


@dataclass(slots=True)
class Places:
    """What a reader notes: where ``bytes`` begin, and where the fields that are read ``again`` for their columns and the arrays
    whose elements are rows (``each``) begin, with the end of what they lie in."""

    bytes: dict[Key, Var] = field(default_factory=dict)
    again: dict[Key, tuple[Var, Var]] = field(default_factory=dict)
    each: dict[Key, tuple[Var, Var]] = field(default_factory=dict)

    def note(self, part: str, name: str) -> None:
        """Note where bytes begin."""
        self.bytes.setdefault((part, name), Var(f"start_of_{name}"))

    def note_again(self, part: str, name: str) -> None:
        self.again.setdefault((part, name), _both(name))

    def note_each(self, part: str, name: str) -> None:
        self.each.setdefault((part, name), _both(name))


def _both(name: str) -> tuple[Var, Var]:
    return Var(f"start_of_{name}"), Var(f"end_around_{name}")


class PayloadReader(CaseReader):
    """Prints programs of parts. ``needed`` are the fields of elements that are rows that somebody asks for."""

    leaves_layouts = True
    places = Places()
    needed: frozenset[str] = frozenset()
    part = ""

    def read(self, op: ReadOp, fields: Fields, end: Expr, wanted: set[str]) -> None:
        self.part = fields.part
        noted = self.places.again.get((fields.part, op.field.name))  # type: ignore[union-attr]
        if noted is not None:
            self.code.assign(noted[0], self.p)
            self.code.assign(noted[1], end)
        if isinstance(op, read_ops.Choose):
            self.choose(op, fields, end)
        else:
            super().read(op, fields, end, wanted)

    def present(self, f: Field, type_: BytesType, n: Var, target: Target | None) -> None:
        start = self.places.bytes.get((self.part, f.name))
        if start is not None:
            self.code.assign(start, self.p)
        super().present(f, type_, n, target)

    def elements(
        self,
        f: Field,
        type_: ArrayType,
        element: LayoutPlan | ScalarType | BytesType,
        fields: Fields,
        n: Var,
        end: Expr,
        counted: bool,
    ) -> None:
        noted = self.places.each.get((fields.part, f.name))
        if noted is None or not isinstance(element, LayoutPlan):
            super().elements(f, type_, element, fields, n, end, counted)
            return
        code = self.code
        code.assign(noted[0], self.p)
        code.assign(noted[1], end)
        with code.count(None, n) if counted else code.loop(self.p < end):
            self.item(element, end)
            if not counted:
                code.add(n, 1)
                self.fail(n > self.gives.most, f)
        if type_.at_least:
            self.fail(n < type_.at_least, f)

    def item(self, element: LayoutPlan, end: Expr) -> None:
        """An element that is a row."""
        self.loose = 0
        for (part, _), (start, _) in self.places.again.items():
            if part == ITEM:
                self.code.assign(start, 0)
        self.cases.begin(self.code, self.variables, ITEM)
        windows, covered = self.windows, self.covered
        self.layout(element, ITEM, end, self.needed)
        self.windows, self.covered = windows, covered
        self.tighten(end, element.fields[-1].field)


@dataclass(slots=True)
class PayloadFields(Fields):
    """What values mean of which the fields are those of parts, and of the element at hand."""

    layouts: dict[str, LayoutPlan] = field(default_factory=dict)
    element: LayoutPlan | None = None
    cases: Cases | None = None

    def where(self, owner: str) -> tuple[str, LayoutPlan]:
        if owner == ITEM and self.element is not None:
            return ITEM, self.element
        name = part_of(owner) or ""
        return name, self.layouts[name]

    def field(self, value: FieldValue) -> Term:
        if self.cases is None or case_in(value) is None:
            return Fields.field(self, value)  # no super() with slots
        return self.cases.term(value, self.where(value.owner)[0], self.variables)

    def raw(self, value: FieldValue, column: str) -> Term | None:
        if self.cases is None or case_in(value) is None:
            return Fields.raw(self, value, column)
        return self.cases.raw(value, self.where(value.owner)[0], self.variables, column)

    def known(self) -> Known:
        """Constants are settled before anything is read: kernels take nothing else."""

        def known(value: Value) -> Value | None:
            if isinstance(value, FieldValue) and not value.type.nullable and not value.holders:
                return (
                    Literal(int(value.field.const)) if isinstance(value.field.const, int) else None
                )
            return known_fields(value)

        return known
