"""The second kernel: rows into Arrow buffers."""

from __future__ import annotations

from codecgen.plan import FieldPlan, nodes
from codecgen.plan.column_sources import BYTES_LIKE, DIRECT
from codecgen.plan.columns import CasePlan, Leaf
from codecgen.plan.size_bounds import size_bounds
from codecgen.schema.types import ArrayType
from codecgen.targets.arrow.arithmetic import Term
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import (
    TRUE,
    Call,
    Expr,
    Function,
    Pick,
    Var,
    any_of,
    call,
    invert,
)
from codecgen.targets.arrow.code_tree import variables as variables_of
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.array_opener import base_type
from codecgen.targets.arrow.numba_decode.column_outputs import ColumnOutputs
from codecgen.targets.arrow.numba_decode.field_variables import (
    ENTRY,
    ITEM,
    NO_ELEMENTS,
    Fields,
    Variables,
    is_raw,
    load,
    load_raw,
    may_be_missing,
)
from codecgen.targets.arrow.numba_decode.index_kernel import Index
from codecgen.targets.arrow.numba_decode.layout_reader import LayoutReader
from codecgen.targets.arrow.numba_decode.layout_rules import (
    RULES,
    WITH_RULES,
    check_fields,
    fields_of_rules,
    refuse_rules,
    rules_of_rows,
)
from codecgen.targets.arrow.numba_decode.view import Kernels, deferred


class RowsKernel:
    """Emits the kernel functions that decode the rows of one case of a view into columns (pass 2).
    Rows count once the state table is stored: all rows of an array at once, rows that are entries
    one by one. An index row describes one entry, or the first of a run of entries that are rows.
    """

    def __init__(self, kernels: Kernels, index: Index, case: CasePlan) -> None:
        self.kernels = kernels
        self.index = index
        self.case = case
        self.sources = kernels.sources[case.number]
        self.rows_name = kernels.module.name(f"rows_{case.name}")
        self.same_name = kernels.module.name(f"same_{case.name}")
        self.code = Builder()
        self.variables = Variables()
        self.row, self.out, self.state, self.room, self.max_elements, self.bias = map(
            Var, ("row", "out", "state", "room", "max_elements", "bias")
        )
        self.p, self.end, self.at = Var("p"), Var("end"), Var("at")
        self.outputs = self.make_outputs(self.code)

    def make_outputs(self, code: Builder) -> ColumnOutputs:
        """Return ColumnOutputs for the columns of this case that emit into ``code``."""
        return ColumnOutputs(
            code,
            self.sources,
            self.kernels.columns,
            row=self.row,
            max_elements=self.max_elements,
            at=self.at,
            check=self.kernels.module.check,
        )

    def start(self) -> None:
        """Start a new function with an empty body and new variables."""
        self.code = Builder()
        self.variables = Variables()
        self.outputs = self.make_outputs(self.code)

    def slot(self, table: Var, name: str) -> Expr:
        """Return the expression for the address of the slot ``name`` in ``table``: at the offset
        that the state table gives it if ``table`` is ``state`` or ``room``, otherwise at that of
        the index row. Raise KeyError if that table has no such slot.
        """
        slots = (
            self.kernels.state if table is self.state or table is self.room else self.kernels.slots
        )
        return table + slots[name]

    def loaded(self, table: Var, name: str) -> Expr:
        """Return the load of the slot ``name`` of a table."""
        return call("load_i64_le", self.slot(table, name))

    # ------------------------------------------------------------ rows

    def rows(self) -> None:
        """Emit the function that checks and writes the rows of one index row. It returns 1, or 0 if
        a row is invalid or an output is full. Raise Unsupported if kernels cannot read a field.
        """
        code, case = self.code, self.case
        rows_room = Var("rows_room")
        code.assign(self.p, self.loaded(self.row, "SECTION"))
        code.assign(self.end, self.loaded(self.row, "SECTION_END"))
        code.assign(self.at, self.loaded(self.state, "ROWS"))
        code.assign(rows_room, self.loaded(self.room, "ROWS"))
        there = [leaf for leaf in self.kernels.view.leaves if not self.sources.is_missing(leaf)]
        self.outputs.load_slots(self.out, self.state, self.room, there)
        for (part, name), slot in self.kernels.case_slots(case).items():
            if part == ENTRY:
                variable = self.noted(part, name)
                code.assign(variable, call("load_i64_le", self.row + slot))
        if case.array is None:
            self.rows_that_are_entries(rows_room)
        else:
            self.rows_of_array(case.array, rows_room)
            code.emit_return(1)
        doc = (
            "Check rows and write them. 0 when they are not as they should be, or there is no room."
        )
        tables = (self.row, self.out, self.state, self.room, self.max_elements, self.bias)
        self.kernels.module.functions.append(
            Function(self.rows_name, [(v, "int") for v in tables], "int", doc, code.body, "inner")
        )

    def noted(self, part: str, name: str) -> Var:
        """Return this function's variable for a value that pass 1 stored in the index, such as an
        entry field or ``start of crc``; no load is emitted. Repeated calls return the same
        variable.
        """
        key = (part, name)
        if key not in self.variables.found:
            self.variables.found[key] = Var(f"{part}_{name.replace(' ', '_')}")
        return self.variables.found[key]

    def rows_of_array(self, array: FieldPlan, rows_room: Var) -> None:
        """Emit the checks, decoding and commit of all rows that are elements of the entry's array;
        the kernel returns 0 if one is invalid or they do not fit. Raise Unsupported if kernels
        cannot read a field of an element, or if the element layout has rules that
        :func:`refuse_rules` refuses.
        """
        code, case = self.code, self.case
        type_ = array.field.type
        assert isinstance(type_, ArrayType)
        reader = LayoutReader(self.kernels.plan, code, "rows", self.variables, self.p, self.outputs)
        unchecked = self.loaded(self.row, "CHECKED").eq(0)
        for c in deferred(case.entry):
            place = self.noted(ENTRY, f"start of {c.name}")
            reader.compare_checksum(c, ENTRY, place, self.end - place, (unchecked,))
        reader.assign_given(array, self.kernels.fields(case, self.variables), ITEM)
        self.find_ends(array)
        for refused in self.kernels.refused(self.kernels.fields(case, self.variables), case):
            reader.values.fail_if(refused, array.field)
        start, end = self.loaded(self.row, "START"), self.loaded(self.row, "END")
        code.assign(self.variables.get("place", "position"), start + self.bias)
        code.assign(self.variables.get("place", "size"), end - start)
        counted = type_.count is not None or type_.counted_by is not None
        first, count = Var("first"), Var("count")
        code.assign(first, self.at)
        rules = self.kernels.row_rules(case, self.variables)
        apply = self.noted(*RULES)
        rules.initialize(code)
        if counted:
            code.assign(count, self.loaded(self.row, "COUNT"))
            with code.when(count > rows_room - first):
                code.emit_return(0)
            loop = code.count(self.at, first, first + count)
        else:
            loop = code.loop(self.p < self.end)
        with loop:
            if not counted:
                with code.when(self.at >= rows_room):
                    code.emit_return(0)
            refuse_rules(case.element, [case.entry.name])
            needed = self.kernels.item_fields(case)
            reader.read_layout(case.element, ITEM, self.end, needed, ruled=True)
            rules.check_row(reader.values, code, apply, self.at.eq(first))
            self.numbers(varying=True)
            if not counted:
                code.add(self.at, 1)
                reader.values.fail_if(self.at - first > self.max_elements, array.field)
        if type_.at_least:
            number = count if counted else self.at - first
            reader.values.fail_if(number < type_.at_least, array.field)
        reader.values.fail_if(self.p.ne(self.end), array.field)
        is_empty = count.eq(0) if counted else self.at.eq(first)
        rules.check_all_rows(reader.values, code, apply, is_empty)
        self.commit(first + count if counted else self.at)
        code.do("store_64", self.slot(self.row, "SECTION"), self.end)
        code.do("store_64", self.slot(self.row, "COUNT"), 0)
        code.do("store_64", self.slot(self.state, "LAST"), self.loaded(self.row, "START"))
        code.do("store_64", self.slot(self.state, "NEXT"), self.loaded(self.row, "END"))

    def find_ends(self, array: FieldPlan) -> None:
        """Emit a first pass over the array that stores in the index row the fields of its first and
        last element to which column values refer, and resets ``p`` to the start of the array. It
        stores 0 for an empty array, and assigns a variable that says so if a column is null then.
        Emit nothing if no column refers to an end. Raise Unsupported if kernels cannot read the
        elements.
        """
        code, case = self.code, self.case
        ends = self.kernels.asked[case.number].ends
        if not ends:
            return
        assert size_bounds(self.kernels.plan, case.element).min_size, "elements have bytes (C031)"
        wanted = []
        for key in sorted(ends):
            end = ends[key]
            assert isinstance(end.value, nodes.FieldValue)
            assert end.end in ("first", "last"), "a column cannot use max and min (C022)"
            name = end.value.field.name
            wanted.append((end.end, name, self.noted(end.end, name)))
        for _, _, variable in wanted:
            code.assign(variable, 0)
        if any(may_be_missing(end) for end in ends.values()):
            code.assign(self.variables.get(*NO_ELEMENTS), self.p.eq(self.end))
        start, before = Var("start"), Var("before")
        code.assign(start, self.p)
        only_first = all(which == "first" for which, _, _ in wanted)
        outputs = ColumnOutputs(
            code,
            None,
            {},
            row=self.row,
            max_elements=self.max_elements,
            at=self.at,
            check=self.outputs.check,
        )
        reader = LayoutReader(self.kernels.plan, code, "hop", self.variables, self.p, outputs)
        with code.loop(self.p < self.end):
            code.assign(before, self.p)
            refuse_rules(case.element, [case.entry.name])
            needed = {name for _, name, _ in wanted}
            reader.read_layout(case.element, ITEM, self.end, needed, ruled=True)
            for which, name, variable in wanted:
                value = self.variables.get(ITEM, name)
                if which == "last" or only_first:
                    code.assign(variable, value)
                else:
                    with code.when(before.eq(start)):
                        code.assign(variable, value)
            if only_first:
                code.leave()
        code.assign(self.p, start)
        slots = self.kernels.case_slots(case)
        for which, name, variable in wanted:
            code.do("store_64", self.row + slots[which, name], variable)

    def rows_that_are_entries(self, rows_room: Var) -> None:
        """Emit the loop that decodes and commits entries that are rows. The kernel returns 1 at the
        end, and at an entry that is no such row, is incomplete or has an invalid length; 0 if one
        is otherwise invalid or does not fit. Raise Unsupported if kernels cannot read a field, for
        a rule about array elements, or for header-only rows of entries without a length.
        """
        code, case = self.code, self.case
        full_check, after, start = Var("full_check"), Var("after"), Var("start")
        is_open = self.index.framing.open
        if is_open and case.rows.header_only:
            raise Unsupported(
                "a field of an entry without a length, in a view with `header_only` rows",
                case.entry.fields[0].field,
            )
        code.assign(full_check, self.loaded(self.row, "CHECKED"))
        own = Call(self.index.is_row[case.number], (self.p, after, full_check))
        with code.loop(TRUE):
            code.assign(after, Call(self.index.frame, (self.p, self.end)))
            with code.when(any_of([after <= 2, *([] if is_open else [invert(own)])])):
                code.emit_return(1)
            with code.when(self.at >= rows_room):
                code.emit_return(0)
            code.do("store_64", self.slot(self.row, "END"), after)
            code.assign(start, self.p)
            code.assign(self.variables.get("place", "position"), self.p + self.bias)
            if not is_open:
                code.assign(self.variables.get("place", "size"), after - self.p)
            if case.rows.header_only:
                self.header_fields()
                code.assign(self.p, after)
            else:
                reader = LayoutReader(
                    self.kernels.plan, code, "rows", self.variables, self.p, self.outputs
                )
                rules_of_rows(case)  # there are none
                fields = Fields(self.kernels.plan, case.entry, ITEM, self.variables)
                needed = self.kernels.item_fields(case)
                needed |= fields_of_rules(self.kernels.plan, case.entry)
                reader.read_layout(case.entry, ITEM, after, needed, ruled=True)
                check_fields(reader.values, fields, full_check & WITH_RULES)
                if is_open:
                    code.assign(self.variables.get("place", "size"), self.p - start)
                else:
                    reader.values.fail_if(self.p.ne(after), case.entry.fields[-1].field)
            self.numbers(varying=True)
            code.add(self.at, 1)
            self.commit(self.at)
            code.do("store_64", self.slot(self.state, "LAST"), start)
            code.do("store_64", self.slot(self.row, "SECTION"), self.p)
            code.do("store_64", self.slot(self.state, "NEXT"), self.p)

    def header_fields(self) -> None:
        """Emit loads of the header fields that columns use, from their fixed offsets, for a
        header-only case. Raise Unsupported if a field is of a type that is not loaded here: only
        integers but 24-bit ones, bits and floats are.
        """
        entry = self.case.entry
        for name in sorted(self.kernels.item_fields(self.case)):
            fp = entry.field(name)
            assert fp is not None and fp.offset is not None and fp.when is None, "C032"
            place = self.p + fp.offset if fp.offset else self.p
            if is_raw(fp.field):
                value = load_raw(getattr(fp.field.type, "name", ""), place, fp.field)
            else:
                value = load(base_type(fp.field), place, fp.field)
            self.code.assign(self.variables.get(ITEM, name), value)

    def commit(self, rows: Expr) -> None:
        """Emit stores of ``rows`` as the row count, of one more entry, and of the sizes of columns
        that have a value and the null counts of columns whose nulls are written row by row
        (:meth:`same` counts others). Rows written before count only from then on.
        """
        code = self.code
        code.do("store_64", self.slot(self.state, "ROWS"), rows)
        entries = self.slot(self.state, "ENTRIES")
        code.do("store_64", entries, call("load_i64_le", entries) + 1)
        for leaf in self.kernels.view.leaves:
            if self.sources.is_missing(leaf):
                continue
            target, slots = self.outputs.target_of(leaf), self.kernels.columns[leaf.index]
            if leaf.column.type in (*BYTES_LIKE, "list"):
                code.do("store_64", self.state + slots.at, target.at)
            if leaf.column.nullable and self.has_nulls_in_rows(leaf):
                code.do("store_64", self.state + slots.nulls, target.nulls)

    # ------------------------------------------------------------ numbers

    def terms(self) -> list[tuple[Leaf, Term]]:
        """Return the columns whose value is computed as a number or bool, each with the Term of its
        value. Raise Unsupported if kernels cannot express a value.
        """
        fields = self.kernels.fields(self.case, self.variables)
        numbers = self.sources.numbers
        return [
            (leaf, self.kernels.term(fields, self.case, value, leaf)) for leaf, value in numbers
        ]

    def varies(self, term: Term) -> bool:
        """Return True if a value can differ between the rows of one index row: it reads a field of
        the row or, where each entry is a row, a place such as the position.
        """
        own = {v for (part, _), v in self.variables.found.items() if part == ITEM}
        if self.case.array is None:
            own |= {v for (part, _), v in self.variables.found.items() if part == "place"}
        read = variables_of(term.value) | (set() if term.null is None else variables_of(term.null))
        return bool(own & read)

    def has_nulls_in_rows(self, leaf: Leaf) -> bool:
        """Return True if nulls of a column are written row by row: columns inside structs or lists,
        columns of bytes, text, uuids, structs and lists, and numbers whose value varies and may be
        null. Return False for others, filled for all rows at once.
        """
        if leaf.inside is not None or leaf.column.type in DIRECT:
            return True
        found = [term for own, term in self.terms() if own is leaf]
        return any(term.null is not None and self.varies(term) for term in found)

    def numbers(self, *, varying: bool) -> None:
        """Emit the writes of numbers that vary from row to row, or of those that do not."""
        for leaf, term in self.terms():
            if self.varies(term) is varying:
                self.number(leaf, term)

    def number(self, leaf: Leaf, term: Term) -> None:
        """Emit the write of a Term into a column of numbers or bools for one row; its value is
        evaluated only if the column is requested. In a nullable column, also mark and count the row
        as null where the Term is null, which is evaluated always. A condition becomes 0 or 1 in a
        number column.
        """
        value, truth = term.value, term.value
        if term.truth and leaf.column.type != "bool":
            value = call("int", term.value)
        elif isinstance(value, Pick) and leaf.column.type != "bool":
            value = self.branches(value, leaf)
        self.outputs.write_number(leaf, value, term.null, truth)

    def branches(self, value: Pick, leaf: Leaf) -> Expr:
        """Emit the evaluation of a conditional expression into a new variable, only where the
        column is requested, and return the variable.
        """
        made = Var("value")
        with self.code.when(self.outputs.target_of(leaf).data):
            self.code.choose(made, value)
        return made

    # ------------------------------------------------------------ the same in all rows

    def same(self) -> None:
        """Emit the function that fills the rows written since row ``first`` in all columns whose
        value is the same in them: values of the entry, and columns without a value (null, or empty
        if not nullable). A value is evaluated only if its column is requested; nulls of nullable
        columns are always counted. Raise Unsupported if kernels cannot express a value.
        """
        self.start()
        code, case = self.code, self.case
        first, count = Var("first"), Var("count")
        code.assign(count, self.loaded(self.state, "ROWS") - first)
        own = [leaf for leaf in self.kernels.view.leaves if leaf.list is None]
        self.outputs.load_slots(self.out, self.state, None, own)
        for (part, name), slot in self.kernels.case_slots(case).items():
            code.assign(self.noted(part, name), call("load_i64_le", self.row + slot))
        start, end = self.loaded(self.row, "START"), self.loaded(self.row, "END")
        code.assign(self.variables.get("place", "position"), start + self.bias)
        code.assign(self.variables.get("place", "size"), end - start)
        for leaf in self.sources.missing:
            self.outputs.fill_missing(leaf, self.state, (first, count))
        for leaf, term in self.terms():
            if self.varies(term):
                continue
            value = term.value
            if isinstance(value, Pick) and leaf.column.type != "bool":
                value = self.branches(value, leaf)
            if term.truth and leaf.column.type != "bool":
                value = call("int", value)
            self.outputs.fill_number(leaf, value, term.null, term.value, self.state, (first, count))
        doc = "Write the columns that are the same in all rows, from the first one on."
        tables = (self.row, self.out, self.state, first, self.bias)
        self.kernels.module.functions.append(
            Function(self.same_name, [(v, "int") for v in tables], "None", doc, code.body, "inner")
        )
