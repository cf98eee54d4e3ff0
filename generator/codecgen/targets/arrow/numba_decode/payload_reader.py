"""Emits readers of the parts of a payload: they note where bytes and arrays lie, and give nothing to columns."""

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
    """Variables that a reader sets for columns, by part and field.

    Attributes:
        bytes: Where bytes begin.
        again: Where fields begin that are read again for their columns, and the end of the bytes around them.
        each: The same for arrays whose elements are rows.
    """

    bytes: dict[Key, Var] = field(default_factory=dict)
    again: dict[Key, tuple[Var, Var]] = field(default_factory=dict)
    each: dict[Key, tuple[Var, Var]] = field(default_factory=dict)

    def note(self, part: str, name: str) -> None:
        """Note where the bytes of a field begin."""
        self.bytes.setdefault((part, name), Var(f"start_of_{name}"))

    def note_again(self, part: str, name: str) -> None:
        """Note where a field begins that is read again for its column."""
        self.again.setdefault((part, name), _both(name))

    def note_each(self, part: str, name: str) -> None:
        """Note where an array begins whose elements are rows."""
        self.each.setdefault((part, name), _both(name))


def _both(name: str) -> tuple[Var, Var]:
    """Return variables for the start of a field and for the end of the bytes around it."""
    return Var(f"start_of_{name}"), Var(f"end_around_{name}")


class PayloadReader(LayoutReader):
    """Emits kernel code that reads and checks the parts of a payload. It reads the cases of choices
    that columns or conditions use. Another case is skipped if its end is known; otherwise the
    kernel fails, and the reference codecs read the payload.

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
        outputs: ColumnOutputs,
        *,
        cases: Cases,
        unread: Var,
        places: Places | None = None,
        needed: Collection[str] = (),
    ) -> None:
        super().__init__(plan, code, "rows", variables, p, outputs)
        self.cases = cases
        self.unread = unread
        self.places = Places() if places is None else places
        self.values.starts = self.places.bytes
        self.needed = needed

    def read_field(self, op: ReadOp, fields: Fields, end: Expr, wanted: set[str]) -> None:
        """Emit the operation that reads a field or a choice. If a column reads the field again
        later, first note the address of the field and the end of the bytes. Raise Unsupported if
        kernels cannot read it.
        """
        noted = self.places.again.get((fields.part, op.field.name))  # type: ignore[union-attr]
        if noted is not None:
            self.code.assign(noted[0], self.p)
            self.code.assign(noted[1], end)
        if isinstance(op, read_ops.Choose):
            self.values.part = fields.part
            self.read_choice(op, fields, end)
        else:
            super().read_field(op, fields, end, wanted)

    def read_elements(
        self,
        f: Field,
        type_: ArrayType,
        element: LayoutPlan | ScalarType | BytesType,
        fields: Fields,
        n: Var,
        end: Expr,
        counted: bool,
    ) -> None:
        """Emit the loop over the elements of an array: ``n`` of them if ``counted``, otherwise up
        to ``end`` with ``n`` counting them. If the elements are rows, first note where they begin
        and the end of the bytes around them, and only read and check them; rows are written later.
        The kernel fails below ``at_least`` elements and above its limit. Raise Unsupported if
        kernels cannot read an element.
        """
        noted = self.places.each.get((fields.part, f.name))
        if noted is None or not isinstance(element, LayoutPlan):
            super().read_elements(f, type_, element, fields, n, end, counted)
            return
        code = self.code
        code.assign(noted[0], self.p)
        code.assign(noted[1], end)
        with code.count(None, n) if counted else code.loop(self.p < end):
            self.read_item(element, end)
            if not counted:
                code.add(n, 1)
                self.values.fail_if(n > self.outputs.max_elements, f)
        if type_.at_least:
            self.values.fail_if(n < type_.at_least, f)

    def part_of_elements(self, part: str, f: Field) -> str:
        """Return the part name for the elements of the array ``f`` of ``part``, which is ITEM if
        they are rows.
        """
        return ITEM if (part, f.name) in self.places.each else super().part_of_elements(part, f)

    def read_item(self, element: LayoutPlan, end: Expr) -> None:
        """Emit code that reads an array element that is a row, into variables, after resetting what
        is noted of the previous element. Raise Unsupported if kernels cannot read a field of it.
        """
        self.values.loose = 0
        for (part, _), (start, _) in self.places.again.items():
            if part == ITEM:
                self.code.assign(start, 0)
        self.cases.begin(self.code, self.variables, ITEM)
        windows, covered = self.windows, self.values.covered
        self.read_layout(element, ITEM, end, self.needed)
        self.windows, self.values.covered = windows, covered
        self.values.check_end(end, element.fields[-1].field)

    # ------------------------------------------------------------ choices

    def read_choice(self, op: read_ops.Choose, fields: Fields, end: Expr) -> None:
        """Emit code that reads a choice up to ``end``, or, after its length, if it has one, exactly
        that many bytes (none if the length means null). Raise Unsupported for a layout whose
        version another field gives, for a discriminator inside the cases, for choices as cases, or
        if kernels cannot tell versions apart.
        """
        code, f, type_ = self.code, op.field.field, op.type
        if not isinstance(type_, ChoiceType):
            raise Unsupported("a layout whose version another field says", f)
        if op.field.given is None:
            raise Unsupported(
                "one of several layouts that are told apart by a field of their own", f
            )
        self.values.check_end(end, f)
        self.values.covered = 0
        if type_.length is None:
            self.read_cases(op, type_, fields, end, self.reaches_known_end(op, fields))
        else:
            n = about(self.variables, fields.part, f"length of {f.name}")
            self.values.read_number(type_.length, n, end, f)
            self.values.check_end(end, f)
            inner = Var(f"end_of_{f.name}")
            with nullcontext() if type_.null is None else code.when(n.ne(type_.null)):
                self.values.fail_if(any_of([n < 0, n > end - self.p]), f)
                code.assign(inner, self.p + n)
                self.read_cases(op, type_, fields, inner, True)
                self.values.fail_if(self.p.ne(inner), f)
        self.values.loose = self.values.covered = 0

    def reaches_known_end(self, op: read_ops.Choose, fields: Fields) -> bool:
        """Return whether the end of a choice without a length is known: it is the last field of the
        innermost window, or, if that window reaches to the end of the layout or there is none, the
        last field of the layout. Without a window, return False in a nested layout, because its end
        is not known. Not for choices with a length.
        """
        inside = self.windows[-1].last if self.windows else None
        if inside is not None:
            return inside == op.field.name
        last = fields.layout.in_order[-1].name == op.field.name
        return last and (bool(self.windows) or len(self.held) == 1)

    def read_cases(
        self, op: read_ops.Choose, type_: ChoiceType, fields: Fields, end: Expr, to_end: bool
    ) -> None:
        """Emit code that reads the case that is present, if columns or conditions use it. Other
        cases are skipped to ``end`` and noted in ``unread`` if ``to_end`` (the case ends there),
        else the kernel fails. A discriminator without a case is also skipped if the choice has
        ``unknown``, else the kernel fails. Raise Unsupported if kernels cannot tell the cases
        apart.
        """
        code, f = self.code, op.field.field
        wanted = self.cases.found.get((fields.part, f.name), {})
        begun = False
        for plan, test in self.list_case_tests(op, fields, set(wanted)):
            if plan is None and type_.unknown and to_end:
                continue  # passed over as what has no case is
            with code.otherwise(test) if begun else code.when(test):
                if plan is not None:
                    self.read_case(plan, wanted[plan.name], end)
                elif to_end:
                    code.assign(self.p, end)
                    code.assign(self.unread, 1)
                else:
                    self.values.fail_always(f)
            begun = True
        with code.otherwise() if begun else nullcontext():
            if type_.unknown:
                code.assign(self.p, end)
                code.assign(self.unread, 1)
            else:
                self.values.fail_always(f)
        self.values.loose = 0

    def list_case_tests(
        self, op: read_ops.Choose, fields: Fields, wanted: set[str]
    ) -> Iterator[tuple[LayoutPlan | None, Expr]]:
        """Yield each layout version of the cases named in ``wanted`` with the condition that it is
        present, then None with such a condition for each group of other cases. The iterator raises
        Unsupported if cases are choices, if only the content tells versions apart, or if kernels
        cannot express the discriminator or version.
        """
        if any(op.steps):
            raise Unsupported("a choice whose cases are choices", op.field.field)
        given = self.resolve_term(op.field.given, fields, op)
        version = self.resolve_term(op.field.held_version, fields, op)
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
            raise Unsupported(
                "one of several versions that are told apart by a field of their own",
                op.field.field,
            )
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
        """Return the condition that the discriminator ``given`` is in ``numbers`` and the version
        is in ``versions``. The version is not tested if ``version`` is None or ``versions``
        contains None. A null discriminator, or a null version that is tested, does not match.
        """
        tests = [_is_one_of(given.value, set(numbers))]
        told = [v for v in versions if v is not None]
        if version is not None and len(told) == len(versions):
            tests.append(_is_one_of(version.value, set(told)))
            tests += [] if version.null is None else [invert(version.null)]
        return all_of([*([] if given.null is None else [invert(given.null)]), *tests])

    def resolve_term(self, value: Value | None, fields: Fields, op: read_ops.Choose) -> Term | None:
        """Return the Term of the number that selects a case or its version; None if ``value`` is
        None. Raise Unsupported if kernels cannot express it.
        """
        try:
            return None if value is None else fields.arithmetic().term(fields.folded(value))
        except Refused as error:
            raise Unsupported(error.reason, op.field.field) from None

    def read_case(self, plan: LayoutPlan, case: Case, end: Expr) -> None:
        """Emit code that reads the layout ``plan`` of a case, up to ``end``, and notes in variables
        which of the case's versions it is and which of the used numbers are present. Raise
        Unsupported if the layout holds itself or kernels cannot read a field.
        """
        code = self.code
        if plan.name in self.held:
            raise Unsupported("a layout that holds itself", plan.layout.fields[0])
        kept = self.windows, self.ends
        self.ends = {}
        if plan.in_order:
            self.read_layout(plan, case.part, end, set(case.fields))
        self.windows, self.ends = kept
        self.values.covered = 0
        code.assign(
            case.version_number(self.variables), 1 + [id(p) for p in case.plans].index(id(plan))
        )
        for name, type_ in case.fields.items():
            fp = plan.field(name)
            if fp is None or type_ is None or isinstance(type_, BytesType):
                continue
            there = is_there(self.variables, case, name)
            if fp.when is None:
                code.assign(there, 1)
                continue
            inside = Fields(self.plan, plan, case.part, self.variables)
            with code.when(self.condition_of(fold(fp.when), inside, fp.field)):
                code.assign(there, 1)


@dataclass(slots=True)
class PayloadFields(Fields):
    """Resolves values in the rows of a payload to the variables of a kernel: fields of its parts,
    of the current array element, and of cases of choices.
    """

    layouts: dict[str, LayoutPlan] = field(default_factory=dict)
    element: LayoutPlan | None = None
    cases: Cases | None = None

    def locate_owner(self, owner: str) -> tuple[str, LayoutPlan]:
        """Return the name and the layout of the part that holds the fields of ``owner``; for
        ``item`` those of the array element. Raise KeyError if ``owner`` names no part of the
        combination.
        """
        if owner == ITEM and self.element is not None:
            return ITEM, self.element
        name = part_of(owner) or ""
        return name, self.layouts[name]

    def field(self, value: FieldValue) -> Term:
        """Return a field, or a field of a case, as a number. Raise Refused if it is none."""
        if self.cases is None or case_in(value) is None:
            return Fields.field(self, value)  # no super() with slots
        return self.cases.term(value, self.locate_owner(value.owner)[0], self.variables)

    def raw(self, value: FieldValue, column: str) -> Term | None:
        """Return a field whose bits the column type ``column`` has as they are, None if the types differ."""
        if self.cases is None or case_in(value) is None:
            return Fields.raw(self, value, column)
        return self.cases.raw(value, self.locate_owner(value.owner)[0], self.variables, column)

    def constant_finder(self) -> Known:
        """Return a function that maps a value to a Literal if the schema fixes it: a field that is
        neither nullable nor nested, with a constant integer, or a known version. It returns None
        for others.
        """

        def find_constant(value: Value) -> Value | None:
            if isinstance(value, FieldValue) and not value.type.nullable and not value.holders:
                return (
                    Literal(int(value.field.const)) if isinstance(value.field.const, int) else None
                )
            return known_fields(value)

        return find_constant


def _is_one_of(value: Expr, numbers: Set[int]) -> Expr:
    """Return the condition that ``value`` is one of ``numbers``."""
    if len(numbers) == 1:
        return value.eq(next(iter(numbers)))
    return is_member(value, tuple(sorted(numbers)))
