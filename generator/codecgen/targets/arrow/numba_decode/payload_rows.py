"""Emits code that reads one kind of payload, all of whose parts are known, and writes its rows."""

from __future__ import annotations

from contextlib import nullcontext

from codecgen.plan import LayoutPlan, nodes, read_ops
from codecgen.plan.column_sources import BYTES_LIKE, DIRECT, Sources
from codecgen.plan.columns import Leaf
from codecgen.plan.nodes import Value
from codecgen.plan.payloads import Combination, PayloadCase
from codecgen.plan.read_program import read_program
from codecgen.plan.tag_defaults import default_bytes, default_data
from codecgen.schema.model import Field
from codecgen.schema.types import ArrayType, ScalarType
from codecgen.targets.arrow.arithmetic import Refused, Term
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import Expr, Function, Num, Pick, Var, call
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.column_outputs import ColumnOutputs, Target
from codecgen.targets.arrow.numba_decode.field_variables import ITEM, Fields, Variables
from codecgen.targets.arrow.numba_decode.payload_cases import Cases, layout_of
from codecgen.targets.arrow.numba_decode.payload_reader import (
    PayloadFields,
    PayloadReader,
    Places,
)
from codecgen.targets.arrow.numba_decode.payload_view import PayloadKernels
from codecgen.targets.arrow.unsupported_fields import find_choice


class PayloadRowsKernel:
    """Emits the kernel function that reads one combination of part layouts of a payload and writes
    its rows. The function checks all parts before it writes a row; its rows count, all at once,
    when it stores the totals. A case says what rows the combination gives; the first whose
    condition holds is used.
    """

    def __init__(self, kernels: PayloadKernels, combination: Combination) -> None:
        there = {n: p for n, p in combination.layouts.items() if p is not None}
        self.kernels = kernels
        self.layouts = there
        self.code = Builder()
        self.variables = Variables()
        self.places = Places()
        self.cases = Cases(kernels.plan)
        self.unread = Var("unread")
        self.note, self.out, self.state, self.room, self.max_elements = map(
            Var, ("note", "out", "state", "room", "max_elements")
        )
        self.at = Var("at")
        self.outputs = self.make_outputs()
        self.combination = combination
        found = (find_choice(kernels.plan, plan) for plan in there.values())
        self.choice = next((f for f in found if f is not None), None)
        self.p, self.rows_room = Var("p"), Var("rows_room")
        self.starts = {name: Var(f"{name}_start") for name in there}
        self.ends = {name: Var(f"{name}_end") for name in there}
        self.name = kernels.module.name(f"rows_{combination.name}")

    def emit(self) -> str:
        """Add the function to the kernel module and return its name. The function writes the rows
        of the first case whose condition holds and returns 1, also if no case matches, or 0 if the
        payload is invalid or an output is full. Raise Unsupported if a layout has no fields, or
        kernels cannot express a field, condition or column.
        """
        self.prepare()
        code = self.code
        reader = self.make_reader()
        for name, plan in self.layouts.items():
            if not plan.fields:
                raise Unsupported("a layout without fields", plan.layout)
            code.assign(self.p, self.starts[name])
            reader.windows, reader.values.covered, reader.values.loose = [], 0, 0
            reader.read_layout(plan, name, self.ends[name], self.asked_fields(name))
            reader.values.fail_if(self.p.ne(self.ends[name]), plan.fields[-1].field)
        for case in self.combination.cases:
            if case.when is None:
                self.write_rows(case, reader)
                break
            with code.when(self.condition_of(case)):
                self.write_rows(case, reader)
                code.emit_return(1)
        code.emit_return(1)
        parameters = [v for n in self.layouts for v in (self.starts[n], self.ends[n])]
        parameters += [self.variables.get("place", "row")]
        parameters += [self.note, self.out, self.state, self.room, self.max_elements]
        doc = "Check a payload and write its rows. 0 when it is not as it should be, or there is no room."
        typed = [(v, "int") for v in parameters]
        self.kernels.module.functions.append(
            Function(self.name, typed, "int", doc, code.body, "inner")
        )
        return self.name

    def make_reader(self) -> PayloadReader:
        """Return a new PayloadReader that emits into this function and reads at its variable ``p``.
        It notes the addresses of the fields that columns read again, and the cases of choices that
        columns and conditions use.
        """
        return PayloadReader(
            self.kernels.plan,
            self.code,
            self.variables,
            self.p,
            self.outputs,
            cases=self.cases,
            unread=self.unread,
            places=self.places,
            needed=frozenset(self.asked_fields(ITEM)),
        )

    # ------------------------------------------------------------ what is asked for

    def prepare(self) -> None:
        """Find the fields that columns and conditions use, and emit the initial values of their
        variables. Raise Unsupported if kernels cannot express a column or condition, or if rows are
        elements of an array that are no layouts.
        """
        self.used: set[tuple[str, str]] = set()
        for case in self.combination.cases:
            values = [*case.values.values(), *([] if case.when is None else [case.when])]
            for value in values:
                for _, read in nodes.cases_read(value):
                    part, layout = self.fields_of(case, Variables()).locate_owner(read.owner)
                    self.cases.ask(part, layout, read)
        for case in self.combination.cases:
            if case.array is not None:
                if case.element is None:
                    raise Unsupported(
                        "an array of rows whose elements are numbers, bytes or choices, not layouts",
                        case.array.field,
                    )
                self.places.note_each(case.of, case.array.name)
            for leaf in self.kernels.view.leaves:
                if leaf.inside is None:
                    self.prepare_column(leaf, case)
            if case.when is not None:
                fields = self.fields_of(case, Variables())
                self.resolve(fields, case.when, case)
                self.used |= fields.used
        self.cases.begin(self.code, self.variables)
        if self.choice is not None:
            self.code.assign(self.unread, 0)
        for part, name in [*self.places.again, *self.places.each]:
            if part != ITEM:
                self.code.assign(self.variables.get(part, name), 0)
        for start, _ in [*self.places.again.values(), *self.places.each.values()]:
            self.code.assign(start, 0)

    def prepare_column(self, leaf: Leaf, case: PayloadCase) -> None:
        """Note which fields and places a column needs in a case; nothing if its value is missing or
        null. Raise Unsupported if kernels cannot express the value, or if a column of bytes or
        strings shows a tagged field with a default that is not empty.
        """
        value = self.find_value(leaf, case)
        if value is None:
            return
        if leaf.column.type in BYTES_LIKE:
            part, f = self.shown_field(value, case)
            self.prepare_default(part, f, case)
            self.places.note(part, f.name)
        elif leaf.column.type in DIRECT:
            part, f = self.shown_field(value, case)
            self.places.note_again(part, f.name)
        else:
            fields = self.fields_of(case, Variables())
            self.resolve(fields, value, case, leaf)
            self.used |= fields.used

    def find_value(self, leaf: Leaf, case: PayloadCase) -> Value | None:
        """Return the value of a column in a case, or None if it is always missing or null, as that
        of a field that no version of a choice's case has. Raise Unsupported if a column of bytes,
        lists or structs shows anything but a field of a part.
        """
        value = case.values.get(leaf.column.name)
        if value is None or isinstance(value, nodes.NullValue):
            return None
        if leaf.column.type in DIRECT and not self.list_versions(
            *self.shown_field(value, case), case
        ):
            return None
        return value

    def asked_fields(self, part: str) -> set[str]:
        """Return the names of the fields of a part that numbers and conditions ask for."""
        return {name for own, name in self.used if own == part}

    def fields_of(self, case: PayloadCase, variables: Variables) -> PayloadFields:
        """Return a PayloadFields that resolves values of a case's rows to ``variables``: fields of
        parts, of the array element, and of cases of choices.
        """
        layout = next(iter(self.layouts.values()), None) or self.kernels.any_layout
        return PayloadFields(
            self.kernels.plan,
            layout,
            "",
            variables,
            layouts=self.layouts,
            element=case.element,
            cases=self.cases,
        )

    def resolve(
        self,
        fields: PayloadFields,
        value: Value,
        case: PayloadCase,
        leaf: Leaf | None = None,
    ) -> Term:
        """Return ``value`` as a Term: for a column ``leaf`` a number (the raw bits of a ``u64`` or
        float field if the column has the matching type), for None a condition. Raise Unsupported if
        kernels cannot express it.
        """
        try:
            if leaf is not None and isinstance(value, nodes.FieldValue):
                raw = fields.raw(value, leaf.column.type)
                if raw is not None:
                    return raw
            folded = fields.folded(value)
            if leaf is None:
                return Term(fields.arithmetic().condition(folded), truth=True)
            return fields.arithmetic().term(folded)
        except Refused as error:
            raise Unsupported(error.reason, self.field_to_blame(value, case)) from None

    def shown_field(self, value: Value, case: PayloadCase) -> tuple[str, Field]:
        """Return the part and the field that a column of bytes, lists or structs shows; the field
        may lie in a case of a choice. Raise Unsupported for conditional values, fields in nested
        layouts, and others that are no single field of a part.
        """
        if isinstance(value, nodes.FieldValue) and nodes.case_in(value) and len(value.holders) == 2:
            part, _ = self.fields_of(case, Variables()).locate_owner(value.owner)
            choice, held = value.holders
            return self.cases.found[part, choice.name][layout_of(held)].part, value.field
        if isinstance(value, nodes.FieldValue) and not value.holders:
            part, layout = self.fields_of(case, Variables()).locate_owner(value.owner)
            fp = layout.field(value.field.name)
            if fp is not None:
                return part, fp.field
        if isinstance(value, nodes.Conditional):
            reason = "one of several fields that a column may show, by a condition"
            raise Unsupported(reason, self.field_to_blame(value, case))
        raise Unsupported(
            "shown in a column of bytes, lists or structs, but lies deeper in a part of the payload, or is computed",
            self.field_to_blame(value, case),
        )

    def field_to_blame(self, value: Value, case: PayloadCase) -> Field:
        """Return the field to name in an error about a value: the first field that it reads (the
        outermost holder), otherwise the array of the case, otherwise the first field of the view's
        first layout.
        """
        for read in nodes.fields_read(value):
            return read.holders[0] if read.holders else read.field
        if case.array is not None:
            return case.array.field
        return self.kernels.any_layout.fields[0].field

    def condition_of(self, case: PayloadCase) -> Expr:
        """Return the condition under which a payload has rows of ``case``, which has one."""
        assert case.when is not None
        fields = self.fields_of(case, self.variables)
        return self.resolve(fields, case.when, case).value

    # ------------------------------------------------------------ rows

    def write_rows(self, case: PayloadCase, reader: PayloadReader) -> None:
        """Emit code that writes and commits the rows of a payload in ``case``: one row, or one for
        each element of its array; no rows for a case declared empty. The kernel returns 0 if an
        output is full, or if a case of a choice was skipped. Raise Unsupported if kernels cannot
        write a column.
        """
        code = self.code
        self.check_unread(reader)
        if case.empty:
            return
        code.assign(self.at, call("load_i64_le", self.state + self.kernels.state["ROWS"]))
        code.assign(self.rows_room, call("load_i64_le", self.room + self.kernels.state["ROWS"]))
        self.outputs.load_slots(self.out, self.state, self.room, list(self.kernels.view.leaves))
        numbers = Var("numbers")
        code.assign(numbers, call("load_i64_le", self.out + self.kernels.numbers))
        if case.array is None:
            with code.when(self.at >= self.rows_room):
                code.emit_return(0)
            self.write_row(case, numbers)
        else:
            assert case.element is not None
            key = (case.of, case.array.name)
            n = self.variables.get(*key)
            start, end = self.places.each[key]
            with code.when(n > self.rows_room - self.at):
                code.emit_return(0)
            code.assign(self.p, start)
            # Another array of the same payload may have given its elements other values.
            fields = Fields(self.kernels.plan, self.layouts[case.of], case.of, self.variables)
            reader.assign_given(case.array, fields, ITEM)
            with code.count(None, n):
                self.make_reader().read_item(case.element, end)
                self.write_row(case, numbers)
        self.commit_rows()

    def check_unread(self, reader: PayloadReader) -> None:
        """Emit the check that no case of a choice was passed over. The reference codecs read such payloads."""
        if self.choice is not None:
            reader.values.fail_if(self.unread.ne(0), self.choice)

    def write_row(self, case: PayloadCase, numbers: Var) -> None:
        """Emit the write of all columns of one row, whose fields have been read, and of the
        record's number if it is requested. Advance the row position. Raise Unsupported if kernels
        cannot express a column.
        """
        code = self.code
        for leaf in self.kernels.view.leaves:
            if leaf.inside is None:
                self.write_column(leaf, case)
        with code.when(numbers):
            place = numbers + Num(8) * self.at
            code.do("store_64", place, self.variables.get("place", "row"))
        code.add(self.at, 1)

    def commit_rows(self) -> None:
        """Emit stores of the row count, and of the sizes and null counts of columns, into the table
        ``state``. Rows written before count only from then on.
        """
        code = self.code
        code.do("store_64", self.state + self.kernels.state["ROWS"], self.at)
        for leaf in self.kernels.view.leaves:
            target, slots = self.outputs.target_of(leaf), self.kernels.columns[leaf.index]
            if leaf.column.type in (*BYTES_LIKE, "list"):
                code.do("store_64", self.state + slots.at, target.at)
            if leaf.column.nullable:
                code.do("store_64", self.state + slots.nulls, target.nulls)

    def write_column(self, leaf: Leaf, case: PayloadCase) -> None:
        """Emit the write of a column's value in one row: null or empty without a value, a copy of
        bytes, a field read again for structs, lists and uuids, otherwise a number. Raise
        Unsupported if kernels cannot express the value.
        """
        value = self.find_value(leaf, case)
        target = self.outputs.target_of(leaf)
        if value is None:
            self.write_missing(target)
        elif leaf.column.type in BYTES_LIKE:
            part, f = self.shown_field(value, case)
            n, start = self.variables.get(part, f.name), self.places.bytes[part, f.name]
            if value.type.nullable:
                with self.code.when(n < 0):
                    self.outputs.write_null(target)
                with self.code.otherwise():
                    self.outputs.write_bytes(target, start, n)
            else:
                self.outputs.write_bytes(target, start, n)
            self.outputs.end_value(target)
        elif leaf.column.type in DIRECT:
            self.read_again(leaf, target, *self.shown_field(value, case), case)
        else:
            term = self.resolve(self.fields_of(case, self.variables), value, case, leaf)
            self.write_number(leaf, term)

    def write_number(self, leaf: Leaf, term: Term) -> None:
        """Emit the write of a Term into a column of numbers or bools. A condition becomes 0 or 1 in
        a number column. The value is evaluated only if the column is requested. In a nullable
        column, the null condition is evaluated always, and nulls are counted.
        """
        value = term.value
        if term.truth and leaf.column.type != "bool":
            value = call("int", value)
        elif isinstance(value, Pick) and leaf.column.type != "bool":
            made = Var("value")
            with self.code.when(self.outputs.target_of(leaf).data):
                self.code.choose(made, value)
            value = made
        self.outputs.write_number(leaf, value, term.null, term.value)

    # ------------------------------------------------------------ columns that are fields

    def make_outputs(self, sources: Sources | None = None) -> ColumnOutputs:
        """Return ColumnOutputs that emit into this function. With ``sources`` they can also write
        the members of structs and the elements of lists that it names; without, only top-level
        columns.
        """
        return ColumnOutputs(
            self.code,
            sources,
            self.kernels.columns,
            row=self.note,
            max_elements=self.max_elements,
            at=self.at,
            check=self.kernels.module.check,
        )

    def sources_inside(self, leaf: Leaf) -> Sources:
        """Return what the structs and lists inside of a column are made of."""
        leaves = self.kernels.view.leaves
        inside = {x.index: self.kernels.view.inside(x) for x in leaves if x.root is leaf}
        return Sources({}, (), (), inside)

    def list_versions(
        self, part: str, f: Field, case: PayloadCase
    ) -> list[tuple[LayoutPlan, Expr | None]]:
        """Return the layout versions in which the field ``f`` of ``part`` may have been read, each
        with its condition; the condition of the last is None (otherwise). For a part that is no
        case of a choice, return its one layout with None. Return ``[]`` for a case without a
        version that has the field.
        """
        chosen = self.cases.find_case(part)
        if chosen is None:
            layout = case.element if part == ITEM else self.layouts[part]
            assert layout is not None
            return [(layout, None)]
        which = chosen.version_number(self.variables)
        there = [(i, plan) for i, plan in enumerate(chosen.plans, 1) if plan.field(f.name)]
        return [(plan, None if plan is there[-1][1] else which.eq(i)) for i, plan in there]

    def prepare_default(self, part: str, f: Field, case: PayloadCase) -> None:
        """If ``f`` is a tagged field of bytes, which may be absent, note it and emit an initial
        value for the variable of its address, so that an empty default is copied from a valid
        address. Do nothing for other fields. Raise Unsupported for a default that is not empty.
        """
        for layout, _ in self.list_versions(part, f, case):
            for fp in layout.tagged:
                if fp.name == f.name and default_data(fp):
                    reason = "a column of a tagged field with a default that is not empty"
                    raise Unsupported(reason, f)
                if fp.name == f.name and (part, f.name) not in self.places.bytes:
                    self.places.note(part, f.name)
                    self.code.assign(self.places.bytes[part, f.name], self.note)

    def read_again(
        self, leaf: Leaf, target: Target, part: str, f: Field, case: PayloadCase
    ) -> None:
        """Emit a second read of a field, from its noted address, that writes its column (a struct,
        list or uuid). A field that was not read writes its default, null or an empty value. Raise
        Unsupported if the field is a layout or array that is given values, or if kernels cannot
        read it.
        """
        start, end = self.places.again[part, f.name]
        outputs = self.make_outputs(self.sources_inside(leaf))
        outputs.targets = self.outputs.targets
        outputs.named = {(part, f.name): leaf}
        plan = self.kernels.plan
        at = Var("at_again")
        reader = PayloadReader(
            plan, self.code, self.variables, at, outputs, cases=self.cases, unread=self.unread
        )
        with self.code.when(start.eq(0)):
            self.write_unread(target, part, f, case)
        for layout, test in self.list_versions(part, f, case):
            fields = PayloadFields(plan, layout, part, self.variables)
            with self.code.otherwise(test):
                self.code.assign(at, start)
                op = find_operation(self.kernels, layout, f)
                if isinstance(op, read_ops.Elements | read_ops.Struct) and op.field.gives:
                    raise Unsupported("a column of a layout that is given values", f)
                reader.read_field(op, fields, end, {f.name})

    def write_unread(self, target: Target, part: str, f: Field, case: PayloadCase) -> None:
        """Emit the value that a column gets where its field was not read: if the layout version has
        it as a tagged field, the default, which is empty or null; otherwise null, or empty in a
        column that is not nullable.
        """
        chosen = self.cases.find_case(part)
        if chosen is None:
            [(layout, _)] = self.list_versions(part, f, case)
            self.write_left_out(target, layout, f)
            return
        which, begun = chosen.version_number(self.variables), False
        for i, layout in enumerate(chosen.plans, 1):
            if any(fp.name == f.name for fp in layout.tagged):
                test = which.eq(i)
                with self.code.otherwise(test) if begun else self.code.when(test):
                    self.write_left_out(target, layout, f)
                begun = True
        with self.code.otherwise() if begun else nullcontext():
            self.write_missing(target)

    def write_left_out(self, target: Target, layout: LayoutPlan, f: Field) -> None:
        """Emit the value of a column whose field is absent in ``layout``: null, or empty if the
        column is not nullable; for a tagged field its default, null for an array that states one,
        otherwise empty.
        """
        tagged = next((fp for fp in layout.tagged if fp.name == f.name), None)
        if tagged is None or (isinstance(f.type, ArrayType) and tagged.default is not None):
            self.write_missing(target)
            return
        assert not isinstance(f.type, ScalarType) or not any(default_bytes(tagged)), (
            "uuids have none"
        )
        outputs = self.make_outputs(self.sources_inside(target.leaf))
        outputs.targets = self.outputs.targets
        outputs.write_empty(target)

    def write_missing(self, target: Target) -> None:
        """Emit the value that a column gets without a value: null or empty."""
        outputs = self.make_outputs(self.sources_inside(target.leaf))
        outputs.targets = self.outputs.targets
        outputs.write_missing(target)


def find_operation(kernels: PayloadKernels, layout: LayoutPlan, f: Field) -> read_ops.ReadOp:
    """Return the operation in a layout's read program that reads the field, found by name, as a
    number (also bool, uuid or bits), array or nested layout, also inside conditions and tagged
    fields. The layout has one.
    """
    ops = list(read_program(kernels.plan, layout).ops)
    for op in ops:
        if isinstance(op, read_ops.When):
            ops += op.then
        if isinstance(op, read_ops.Tags):
            ops += [inner for _, known in op.known for inner in known]
    reads = read_ops.Number | read_ops.Elements | read_ops.Struct
    return next(op for op in ops if isinstance(op, reads) and op.field.name == f.name)
