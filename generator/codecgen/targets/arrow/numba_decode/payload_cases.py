"""Emits code that reads the cases of choices in the parts of a payload: only those that columns or conditions use."""

from __future__ import annotations

from dataclasses import dataclass, field

from codecgen.plan import LayoutPlan, Plan, nodes, read_ops
from codecgen.plan.read_program import read_program
from codecgen.schema.model import Field
from codecgen.schema.types import BitsType, BytesType, ScalarType, StructType
from codecgen.targets.arrow.arithmetic import Refused, Term
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import Num, Var
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.field_variables import (
    RAW,
    Variables,
    is_number,
    is_raw,
    part_of,
)
from codecgen.targets.arrow.unsupported_fields import refuse_unsupported_layout


@dataclass(slots=True)
class Case:
    """A case of a choice that columns or conditions ask for.

    Attributes:
        part: Name of the place where its fields lie.
        plans: The layout in its versions.
        fields: Types of the fields that are asked for, None for one that is read again for its column.
    """

    part: str
    plans: list[LayoutPlan]
    fields: dict[str, ScalarType | BitsType | BytesType | None] = field(default_factory=dict)

    def version_number(self, variables: Variables) -> Var:
        """Return the variable with the number of the version that was read: 1 for the first of ``plans``, 0 if none."""
        return about(variables, self.part, "which one")


@dataclass(slots=True)
class Cases:
    """Cases of choices (layouts that a discriminator selects) whose fields columns or conditions
    use, so that the kernel reads them. ``part`` is the place of the layout that holds the choice;
    ``read`` is a field in a case, or the case itself.

    Attributes:
        found: Cases by the part and the name of the choice, then by the name of the layout.
    """

    plan: Plan
    found: dict[tuple[str, str], dict[str, Case]] = field(default_factory=dict)

    def ask(self, part: str, layout: LayoutPlan, read: nodes.FieldValue) -> None:
        """Note that columns or conditions use a case of a choice, and the field in it that ``read``
        names, if it names one. Raise Unsupported if the field lies in a layout inside the case, if
        :func:`refuse_unsupported_layout` refuses a layout of the case, or if that layout is given
        values.
        """
        choice, case = (*read.holders, read.field)[:2]
        if len(read.holders) > 2:
            raise Unsupported(
                "a layout inside a case with a field that a column or condition uses",
                read.holders[2],
            )
        known = self.found.setdefault((part, choice.name), {})
        name = layout_of(case)
        if name not in known:
            plans = self.plans(layout, choice.name, name)
            for plan in plans:
                refuse_unsupported_layout(self.plan, plan)
                for given in plan.given:
                    raise Unsupported(
                        "a value that the layout of a case gets from outside (`given`)", given.field
                    )
            known[name] = Case(part_of(part_of(part, choice.name), case.name), plans)
        if len(read.holders) == 2:
            type_ = read.field.type
            plain = isinstance(type_, ScalarType | BitsType | BytesType)
            known[name].fields[read.field.name] = type_ if plain else None  # type: ignore[assignment]

    def plans(self, layout: LayoutPlan, choice: str, case: str) -> list[LayoutPlan]:
        """Return the layout versions that the choice field ``choice`` of ``layout`` can hold for
        the case layout ``case``, both by name, each once; ``[]`` if there are none.
        """
        out: list[LayoutPlan] = []
        for op in choices(self.plan, layout):
            if op.field.name == choice:
                for _, plan in op.cases:
                    if plan.name == case and not any(plan is known for known in out):
                        out.append(plan)
        return out

    def find_case(self, part: str) -> Case | None:
        """Return the case whose fields lie in ``part``, None if there is none."""
        every = (case for cases in self.found.values() for case in cases.values())
        return next((case for case in every if case.part == part), None)

    def begin(self, code: Builder, variables: Variables, part: str | None = None) -> None:
        """Emit the reset of the variables of all cases, or with ``part`` of the choices in that
        part: no case was read, bytes are null (-1), numbers are 0 and absent.
        """
        for (around, _), cases in self.found.items():
            if part not in (None, around):
                continue
            for case in cases.values():
                code.assign(case.version_number(variables), 0)
                for name, type_ in case.fields.items():
                    if isinstance(type_, BytesType):
                        code.assign(variables.get(case.part, name), -1)
                    elif type_ is not None:
                        code.assign(variables.get(case.part, name), 0)
                        code.assign(is_there(variables, case, name), 0)

    def term(self, read: nodes.FieldValue, part: str, variables: Variables) -> Term:
        """Return a field in a case as a Term: a number, or the size of bytes, null if it is absent.
        A case itself is 1, null unless it was read. Raise Refused for anything but bytes, bits,
        bools and integers that fit int64; KeyError if :meth:`ask` did not note the case. ``part``
        holds the choice.
        """
        choice, held = (*read.holders, read.field)[:2]
        case = self.found[part, choice.name][layout_of(held)]
        if len(read.holders) == 1:
            return Term(Num(1), case.version_number(variables).eq(0))
        f = read.field
        if isinstance(f.type, BytesType):
            n = variables.get(case.part, f.name)
            return Term(n, n < 0)
        if not isinstance(f.type, BitsType) and not is_number(f):
            if isinstance(f.type, ScalarType):
                raise Refused(f"a value of type {f.type.name}")
            raise Refused(f"{read.type} in the place of a number")
        return self.number(read, case, variables)

    def raw(
        self, read: nodes.FieldValue, part: str, variables: Variables, column: str
    ) -> Term | None:
        """Return the Term of a ``u64``, ``f32`` or ``f64`` field in a case whose bits a column of
        the matching type ``column`` stores unchanged, null if the field is absent. Return None for
        other types, and for a case itself. Raise KeyError if :meth:`ask` did not note the case.
        """
        if len(read.holders) != 2 or not is_raw(read.field):
            return None
        if RAW.get(getattr(read.field.type, "name", "")) != column:
            return None
        choice, held = read.holders
        return self.number(read, self.found[part, choice.name][layout_of(held)], variables)

    def number(self, read: nodes.FieldValue, case: Case, variables: Variables) -> Term:
        """Return the variable of a field in a case, null if the field is not there."""
        null = is_there(variables, case, read.field.name).eq(0) if read.type.nullable else None
        return Term(variables.get(case.part, read.field.name), null)


def layout_of(case: Field) -> str:
    """Return the name of the layout that a case is."""
    assert isinstance(case.type, StructType)
    return case.type.layout.layout


def about(variables: Variables, part: str, what: str) -> Var:
    """Return the variable for ``what`` in a part. It is always the same one."""
    return variables.found.setdefault((part, what), Var(what.replace(" ", "_")))


def is_there(variables: Variables, case: Case, name: str) -> Var:
    """Return the variable that is 1 if a number in a case is there, otherwise 0."""
    return about(variables, case.part, f"{name} is there")


def choices(plan: Plan, layout: LayoutPlan) -> list[read_ops.Choose]:
    """Return the operations of a layout's read program that read a choice, or a layout whose
    version another field gives; conditional ones come last, those of tagged fields are left out.
    """
    ops = list(read_program(plan, layout).ops)
    for op in ops:
        if isinstance(op, read_ops.When):
            ops += op.then
    return [op for op in ops if isinstance(op, read_ops.Choose)]
