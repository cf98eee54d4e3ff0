"""Prints readers of the parts of a payload: they note where bytes and arrays lie, and give nothing to columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from contextlib import nullcontext
from dataclasses import dataclass, field

from codecgen.plan import LayoutPlan, Plan, read_ops
from codecgen.plan.constant_folding import Known, fold, known_fields
from codecgen.plan.nodes import FieldValue, Literal, Value, case_in, part_of
from codecgen.plan.read_ops import ReadOp
from codecgen.schema.model import Field
from codecgen.schema.types import ArrayType, BytesType, ChoiceType, ScalarType
from codecgen.targets.arrow.arithmetic import Refused, Term, is_member
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import Expr, Var, all_of, any_of, invert
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.column_outputs import ColumnOutputs
from codecgen.targets.arrow.numba_decode.field_variables import ITEM, Fields, Variables
from codecgen.targets.arrow.numba_decode.layout_reader import LayoutReader
from codecgen.targets.arrow.numba_decode.payload_cases import Case, Cases, about, is_there

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


class PayloadReader(LayoutReader):
    """Prints the read programs of the parts of a payload.

    Of a choice it reads the ``cases`` that columns or conditions ask for. Another case is passed over if its end is known, and is
    left to the reference codecs otherwise.

    Attributes:
        unread: Variable that is 1 once a case has been passed over.
        places: What to note for columns.
        needed: Fields that columns and conditions ask for, of elements that are rows.
    """

    leaves_layouts = True

    def __init__(
        self,
        plan: Plan,
        code: Builder,
        variables: Variables,
        p: Var,
        gives: ColumnOutputs,
        *,
        cases: Cases,
        unread: Var,
        places: Places | None = None,
        needed: Collection[str] = (),
    ) -> None:
        super().__init__(plan, code, "rows", variables, p, gives)
        self.cases = cases
        self.unread = unread
        self.places = Places() if places is None else places
        self.values.starts = self.places.bytes
        self.needed = needed

    def read(self, op: ReadOp, fields: Fields, end: Expr, wanted: set[str]) -> None:
        noted = self.places.again.get((fields.part, op.field.name))  # type: ignore[union-attr]
        if noted is not None:
            self.code.assign(noted[0], self.p)
            self.code.assign(noted[1], end)
        if isinstance(op, read_ops.Choose):
            self.values.part = fields.part
            self.choose(op, fields, end)
        else:
            super().read(op, fields, end, wanted)

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
                self.values.fail(n > self.gives.most, f)
        if type_.at_least:
            self.values.fail(n < type_.at_least, f)

    def item(self, element: LayoutPlan, end: Expr) -> None:
        """An element that is a row."""
        self.values.loose = 0
        for (part, _), (start, _) in self.places.again.items():
            if part == ITEM:
                self.code.assign(start, 0)
        self.cases.begin(self.code, self.variables, ITEM)
        windows, covered = self.windows, self.values.covered
        self.layout(element, ITEM, end, self.needed)
        self.windows, self.values.covered = windows, covered
        self.values.tighten(end, element.fields[-1].field)

    # ------------------------------------------------------------ choices

    def choose(self, op: read_ops.Choose, fields: Fields, end: Expr) -> None:
        """Print what reads one of several layouts in the place of a field."""
        code, f, type_ = self.code, op.field.field, op.type
        if not isinstance(type_, ChoiceType):
            raise Unsupported("a layout whose version another field says", f)
        if op.field.given is None:
            raise Unsupported("one of several layouts, by what is in them", f)
        self.values.tighten(end, f)
        self.values.covered = 0
        if type_.length is None:
            self.one_of(op, type_, fields, end, self.is_last(op, fields))
        else:
            n = about(self.variables, fields.part, f"length of {f.name}")
            self.values.number(type_.length, n, end, f)
            self.values.tighten(end, f)
            inner = Var(f"end_of_{f.name}")
            with nullcontext() if type_.null is None else code.when(n.ne(type_.null)):
                self.values.fail(any_of([n < 0, n > end - self.p]), f)
                code.assign(inner, self.p + n)
                self.one_of(op, type_, fields, inner, True)
                self.values.fail(self.p.ne(inner), f)
        self.values.loose = self.values.covered = 0

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
                    self.values.never(f)
            begun = True
        with code.otherwise() if begun else nullcontext():
            if type_.unknown:
                code.assign(self.p, end)
                code.assign(self.unread, 1)
            else:
                self.values.never(f)
        self.values.loose = 0

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
        self.values.covered = 0
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


def _is_one_of(value: Expr, numbers: Set[int]) -> Expr:
    if len(numbers) == 1:
        return value.eq(next(iter(numbers)))
    return is_member(value, tuple(sorted(numbers)))
