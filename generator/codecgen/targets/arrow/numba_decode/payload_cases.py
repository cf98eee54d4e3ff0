"""Prints what reads the cases of choices in the parts of a payload: those that somebody asks for, and no other."""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import nullcontext
from dataclasses import dataclass, field

from codecgen.plan import LayoutPlan, Plan, nodes, read_ops
from codecgen.plan.constant_folding import fold
from codecgen.plan.nodes import Value
from codecgen.plan.read_program import read_program
from codecgen.schema.model import Field
from codecgen.schema.types import BitsType, BytesType, ChoiceType, ScalarType, StructType
from codecgen.targets.arrow.arithmetic import Refused, Term, is_member
from codecgen.targets.arrow.beyond import see_layout
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import Expr, Num, Var, all_of, any_of, invert
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.field_variables import (
    RAW,
    Fields,
    Variables,
    is_number,
    is_raw,
    part_of,
)
from codecgen.targets.arrow.numba_decode.layout_reader import Reader


@dataclass(slots=True)
class Case:
    """A case that somebody asks for: the layout in its versions, where its fields lie, and those of them that are wanted."""

    part: str
    plans: list[LayoutPlan]
    fields: dict[str, ScalarType | BitsType | BytesType | None] = field(default_factory=dict)

    def which(self, variables: Variables) -> Var:
        """Says which of the versions has been read, from 1 on; 0 is none."""
        return about(variables, self.part, "which one")


@dataclass(slots=True)
class Cases:
    """The cases that somebody asks for, by the part that the choice lies in and its name, and by their layouts."""

    plan: Plan
    found: dict[tuple[str, str], dict[str, Case]] = field(default_factory=dict)

    def ask(self, part: str, layout: LayoutPlan, read: nodes.FieldValue) -> None:
        """Note that somebody asks for a case, or for a field in it."""
        choice, case = (*read.holders, read.field)[:2]
        if len(read.holders) > 2:
            raise Unsupported("a layout in the place of a field of a case", read.holders[2])
        known = self.found.setdefault((part, choice.name), {})
        name = layout_of(case)
        if name not in known:
            plans = self.plans(layout, choice.name, name)
            for plan in plans:
                see_layout(self.plan, plan)
            known[name] = Case(part_of(part_of(part, choice.name), case.name), plans)
        if len(read.holders) == 2:
            type_ = read.field.type
            plain = isinstance(type_, ScalarType | BitsType | BytesType)
            known[name].fields[read.field.name] = type_ if plain else None  # type: ignore[assignment]

    def plans(self, layout: LayoutPlan, choice: str, case: str) -> list[LayoutPlan]:
        """The versions of a case."""
        out: list[LayoutPlan] = []
        for op in choices(self.plan, layout):
            if op.field.name == choice:
                for _, plan in op.cases:
                    if plan.name == case and not any(plan is known for known in out):
                        out.append(plan)
        return out

    def of(self, part: str) -> Case | None:
        """The case whose fields lie there."""
        every = (case for cases in self.found.values() for case in cases.values())
        return next((case for case in every if case.part == part), None)

    def begin(self, code: Builder, variables: Variables, part: str | None = None) -> None:
        """Nothing has been read yet (``part``: of that alone)."""
        for (around, _), cases in self.found.items():
            if part not in (None, around):
                continue
            for case in cases.values():
                code.assign(case.which(variables), 0)
                for name, type_ in case.fields.items():
                    if isinstance(type_, BytesType):
                        code.assign(variables.of(case.part, name), -1)
                    elif type_ is not None:
                        code.assign(variables.of(case.part, name), 0)
                        code.assign(is_there(variables, case, name), 0)

    def term(self, read: nodes.FieldValue, part: str, variables: Variables) -> Term:
        """What a case, or a field in it, is as a number."""
        choice, held = (*read.holders, read.field)[:2]
        case = self.found[part, choice.name][layout_of(held)]
        if len(read.holders) == 1:
            return Term(Num(1), case.which(variables).eq(0))
        f = read.field
        if isinstance(f.type, BytesType):
            n = variables.of(case.part, f.name)
            return Term(n, n < 0)
        if not isinstance(f.type, BitsType) and not is_number(f):
            raise Refused(f"a value of type {getattr(f.type, 'name', 'array')}")
        return self.number(read, case, variables)

    def raw(
        self, read: nodes.FieldValue, part: str, variables: Variables, column: str
    ) -> Term | None:
        """A field in a case whose bits a column has as they are."""
        if len(read.holders) != 2 or not is_raw(read.field):
            return None
        if RAW.get(getattr(read.field.type, "name", "")) != column:
            return None
        choice, held = read.holders
        return self.number(read, self.found[part, choice.name][layout_of(held)], variables)

    def number(self, read: nodes.FieldValue, case: Case, variables: Variables) -> Term:
        null = is_there(variables, case, read.field.name).eq(0) if read.type.nullable else None
        return Term(variables.of(case.part, read.field.name), null)


def layout_of(case: Field) -> str:
    """The name of the layout that a case is."""
    assert isinstance(case.type, StructType)
    return case.type.layout.layout


def about(variables: Variables, part: str, what: str) -> Var:
    """The variable of something about a part."""
    return variables.found.setdefault((part, what), Var(what.replace(" ", "_")))


def is_there(variables: Variables, case: Case, name: str) -> Var:
    """Says whether a number in a case is there."""
    return about(variables, case.part, f"{name} is there")


def _is_one_of(value: Expr, numbers: Set[int]) -> Expr:
    if len(numbers) == 1:
        return value.eq(next(iter(numbers)))
    return is_member(value, tuple(sorted(numbers)))


def choices(plan: Plan, layout: LayoutPlan) -> list[read_ops.Choose]:
    """The operations of a layout that read one of several layouts."""
    ops = list(read_program(plan, layout).ops)
    for op in ops:
        if isinstance(op, read_ops.When):
            ops += op.then
    return [op for op in ops if isinstance(op, read_ops.Choose)]


class CaseReader(Reader):
    """Prints programs with choices. Of a choice it reads the ``cases`` that somebody asks for. Another one is passed over where it is
    known where that ends (``unread`` says then that nobody has looked at it), and is left to the reference codecs otherwise."""

    cases: Cases
    unread: Var

    def choose(self, op: read_ops.Choose, fields: Fields, end: Expr) -> None:
        """Print what reads one of several layouts in the place of a field."""
        code, f, type_ = self.code, op.field.field, op.type
        if not isinstance(type_, ChoiceType):
            raise Unsupported("a layout whose version another field says", f)
        if op.field.given is None:
            raise Unsupported("one of several layouts, by what is in them", f)
        self.tighten(end, f)
        self.covered = 0
        if type_.length is None:
            self.one_of(op, type_, fields, end, self.is_last(op, fields))
        else:
            n = about(self.variables, fields.part, f"length of {f.name}")
            self.number(type_.length, fields.layout, n, end, f)
            self.tighten(end, f)
            inner = Var(f"end_of_{f.name}")
            with nullcontext() if type_.null is None else code.when(n.ne(type_.null)):
                self.fail(any_of([n < 0, n > end - self.p]), f)
                code.assign(inner, self.p + n)
                self.one_of(op, type_, fields, inner, True)
                self.fail(self.p.ne(inner), f)
        self.loose = self.covered = 0

    def is_last(self, op: read_ops.Choose, fields: Fields) -> bool:
        """Whether what is chosen reaches to an end that is known."""
        inside = self.windows[-1].last if self.windows else None
        if inside is not None:
            return inside == op.field.name
        last = fields.layout.in_order[-1].name == op.field.name
        return last and (bool(self.windows) or len(self.held) == 1)

    def one_of(
        self, op: read_ops.Choose, type_: ChoiceType, fields: Fields, end: Expr, to_end: bool
    ) -> None:
        """Read the case that is there (``to_end``: it reaches to the end)."""
        code, f = self.code, op.field.field
        wanted = self.cases.found.get((fields.part, f.name), {})
        begun = False
        for plan, test in self.tests(op, fields, set(wanted)):
            if plan is None and type_.unknown and to_end:
                continue  # passed over as what has no case is
            with code.otherwise(test) if begun else code.when(test):
                if plan is not None:
                    self.case(plan, wanted[plan.name], end)
                elif to_end:
                    code.assign(self.p, end)
                    code.assign(self.unread, 1)
                else:
                    self.never(f)
            begun = True
        with code.otherwise() if begun else nullcontext():
            if type_.unknown:
                code.assign(self.p, end)
                code.assign(self.unread, 1)
            else:
                self.never(f)
        self.loose = 0

    def tests(
        self, op: read_ops.Choose, fields: Fields, wanted: set[str]
    ) -> Iterator[tuple[LayoutPlan | None, Expr]]:
        """The conditions of the cases that are wanted, in each version, and then of all others (None)."""
        if any(op.steps):
            raise Unsupported("a choice whose cases are choices", op.field.field)
        given = self.told(op.field.given, fields, op)
        version = self.told(op.field.held_version, fields, op)
        assert given is not None
        read: dict[int, tuple[LayoutPlan, list[int]]] = {}
        passed: dict[int, set[int | None]] = {}
        for key, plan in op.cases:
            number = key or 0
            if plan.name in wanted:
                read.setdefault(id(plan), (plan, []))[1].append(number)
            else:
                passed.setdefault(number, set()).add(plan.version)
        numbers = [number for _, known in read.values() for number in known]
        if version is None and len(numbers) > len(set(numbers)):
            raise Unsupported("one of several versions, by what is in them", op.field.field)
        for plan, known in read.values():
            yield plan, self.is_case(given, version, known, {plan.version})
        alike: dict[frozenset[int | None], list[int]] = {}
        for number, versions in passed.items():
            alike.setdefault(frozenset(versions), []).append(number)
        for versions_, known in alike.items():
            yield None, self.is_case(given, version, known, versions_)

    def is_case(
        self, given: Term, version: Term | None, numbers: list[int], versions: Set[int | None]
    ) -> Expr:
        """Whether it is a case of one of the numbers, in one of the versions (None: in any)."""
        tests = [_is_one_of(given.value, set(numbers))]
        told = [v for v in versions if v is not None]
        if version is not None and len(told) == len(versions):
            tests.append(_is_one_of(version.value, set(told)))
            tests += [] if version.null is None else [invert(version.null)]
        return all_of([*([] if given.null is None else [invert(given.null)]), *tests])

    def told(self, value: Value | None, fields: Fields, op: read_ops.Choose) -> Term | None:
        """What says which case it is, or which version."""
        try:
            return None if value is None else fields.arithmetic().term(fields.folded(value))
        except Refused as error:
            raise Unsupported(error.reason, op.field.field) from None

    def case(self, plan: LayoutPlan, case: Case, end: Expr) -> None:
        """Read a case, and note which fields are there."""
        code = self.code
        if plan.name in self.held:
            raise Unsupported("a layout that holds itself", plan.layout.fields[0])
        kept = self.windows, self.ends
        self.ends = {}
        if plan.in_order:
            self.layout(plan, case.part, end, set(case.fields))
        self.windows, self.ends = kept
        self.covered = 0
        code.assign(case.which(self.variables), 1 + [id(p) for p in case.plans].index(id(plan)))
        for name, type_ in case.fields.items():
            fp = plan.field(name)
            if fp is None or type_ is None or isinstance(type_, BytesType):
                continue
            there = is_there(self.variables, case, name)
            if fp.when is None:
                code.assign(there, 1)
                continue
            inside = Fields(self.plan, plan, case.part, self.variables)
            with code.when(self.condition(fold(fp.when), inside, fp.field)):
                code.assign(there, 1)


__all__ = ["Case", "CaseReader", "Cases"]
