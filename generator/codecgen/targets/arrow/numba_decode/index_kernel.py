"""The first kernel: where the entries are, and what their headers say."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.plan import FieldPlan, LayoutPlan
from codecgen.plan.columns import CasePlan
from codecgen.plan.size_bounds import size_bounds
from codecgen.targets.arrow.checks import Unsupported, function_name
from codecgen.targets.arrow.code_tree import (
    FALSE,
    TRUE,
    Call,
    Expr,
    Function,
    Global,
    Num,
    Pick,
    Several,
    Var,
    all_of,
    any_of,
    call,
    effect,
    invert,
)
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.array_opener import (
    ArrayOpener,
    base_type,
    bytes_to_fixed,
    condition_of,
)
from codecgen.targets.arrow.numba_decode.column_outputs import ColumnOutputs
from codecgen.targets.arrow.numba_decode.field_variables import ENTRY, Fields, Variables, load
from codecgen.targets.arrow.numba_decode.framing import framing_of
from codecgen.targets.arrow.numba_decode.layout_reader import LayoutReader
from codecgen.targets.arrow.numba_decode.layout_rules import WITH_CARE
from codecgen.targets.arrow.numba_decode.view import Kernels, find_discriminator


@dataclass(frozen=True, slots=True)
class Test:
    """Conditions of a case on an entry: that the entry has rows of it, and that it needs the full check.

    A condition that is None always holds (``when``) or never holds (``care``).
    """

    case: CasePlan
    when: Expr | None
    care: Expr | None
    used: frozenset[str]


class Index:
    """Emits the kernel functions that find the entries of one layout and note each in a row of the
    index table (pass 1), for pass 2 to decode their rows. A function that fails notes the failed
    check in the index row. If the caller asks for full checks, entries that a case of the view
    marks as needing one fail, and the reference codecs read them.
    """

    def __init__(self, kernels: Kernels, entry: LayoutPlan, keys: list[int]) -> None:
        self.kernels = kernels
        self.module = kernels.module
        self.entry = entry
        self.keys = keys
        self.framing = framing_of(entry)
        self.see_framing()
        self.cases = kernels.view.cases_of(entry)
        self.frame = Global(self.module.name(function_name("frame", entry)))
        self.opener = Global(self.module.name(function_name("open", entry)))
        self.is_row = {
            case.number: Global(self.module.name(f"is_{case.name}"))
            for case in self.cases
            if case.array is None
        }

    def see_framing(self) -> None:
        """Raise Unsupported if the end of an entry is known only after its fields are read, and the
        view is of a choice, rows are elements of an array, or rows have
        a condition or ask for a full check. Do nothing if entries have a length or constant size.
        """
        if not self.framing.open:
            return
        entry = self.entry
        if self.kernels.view.view.of in self.kernels.plan.model.choices:
            raise Unsupported("an entry whose length is not at a fixed place", self.framing.blamed)
        assert size_bounds(self.kernels.plan, entry).min_size, "entries have bytes (C032)"
        for case in self.kernels.view.cases_of(entry):
            if case.array is not None:
                raise Unsupported(
                    "rows from an array in an entry without a length", case.array.field
                )
            if case.when is not None or case.full_check is not None:
                raise Unsupported(
                    "a field of an entry without a length, in rows with a condition",
                    self.framing.blamed,
                )

    def emit(self) -> str:
        """Emit the functions that open an entry, find its end, test whether it is a row, and find
        entries; return the name of the last, which is pass 1. Raise Unsupported if kernels cannot
        find or check the entries.
        """
        self.open()
        self.find_end()
        for case in self.cases:
            if case.array is None:
                self.row_test(case)
        return self.find()

    def at_fixed_place(self, fp: FieldPlan, start: Expr) -> Expr:
        """Return the load of the fixed-offset field ``fp`` of the entry at ``start``."""
        place = start + fp.offset if fp.offset else start
        return load(base_type(fp.field), place, fp.field)

    def tests(self, variables: Variables) -> list[Test]:
        """Return a Test for each case of the layout: the condition that an entry has rows of the
        case (None or TRUE: always), the condition that it needs the full check (None or FALSE:
        never), and the names of the fields that these conditions read. Raise Unsupported if kernels
        cannot express a condition, or if it reads the position or size of the entry.
        """
        first = self.entry.fields[0].field
        out = []
        for case in self.cases:
            fields = Fields(self.kernels.plan, self.entry, ENTRY, variables)
            when = condition_of(fields, case.when, first)
            care = condition_of(fields, case.full_check, first)
            for place in sorted(fields.places):
                raise Unsupported(f"a field of rows with a condition on `{place}`", first)
            out.append(Test(case, when, care, frozenset(name for _, name in fields.used)))
        return out

    def load_tested(
        self, code: Builder, tests: list[Test], start: Expr, variables: Variables
    ) -> None:
        """Emit loads of the entry's fields that the conditions of ``tests`` use, from the entry at
        ``start`` into their variables. Raise Unsupported if a field has no fixed offset and size,
        or is no integer that kernels load.
        """
        for name in sorted({name for test in tests for name in test.used}):
            fp = self.entry.field(name)
            if fp is None or fp.offset is None or fp.size is None:
                blamed = fp.field if fp else self.entry.fields[0].field
                raise Unsupported("a condition on what lies at no fixed place", blamed)
            code.assign(variables.get(ENTRY, name), self.at_fixed_place(fp, start))

    # ------------------------------------------------------------ one entry

    def open(self) -> None:
        """Emit the function that checks an entry whose rows are elements of its array, and stores
        its case, place and sections in an index row. It returns 1, or notes the failed check and
        returns 0 if the entry is too short, invalid, or of no such case. Raise Unsupported if
        kernels cannot read a field or express a condition.
        """
        slots, module = self.kernels.slots, self.module
        p, end, row, max_elements, full_check = map(
            Var, ("p", "end", "row", "max_elements", "full_check")
        )
        start = Var("start")
        code, variables = Builder(), Variables()
        code.assign(start, p)
        for slot, value in (
            ("STATUS", Num(0)), ("START", start), ("END", end), ("CODEC", Num(0)),
            ("SECTION", end), ("SECTION_END", end), ("COUNT", Num(0)),
        ):  # fmt: skip
            code.do("store_64", row + slots[slot], value)
        length = self.framing.blamed
        with code.when(end - p < bytes_to_fixed(self.entry)):
            code.emit_return(effect("fail", row, module.check(length), p), length.name)
        tests = self.tests(variables)
        if any(test.case.array is not None or test.care is not None for test in tests):
            self.load_tested(code, tests, start, variables)
        closed = False
        for test in tests:
            if test.when == FALSE:
                continue
            if test.when is None or test.when == TRUE:
                self.open_case(code, test, variables, p, end, row, max_elements, full_check, start)
                closed = test.case.array is not None
                break
            if test.case.array is not None or test.care is not None:
                with code.when(test.when):
                    self.open_case(
                        code, test, variables, p, end, row, max_elements, full_check, start
                    )
        if not closed:
            check = module.check(length, self.entry.layout.span, self.entry.name)
            code.emit_return(effect("fail", row, check, start), self.entry.name)
        doc = f"{self.entry.layout.span.file}: which rows an entry holds, and what they need of it. 0 when it is not as it should be."
        parameters = [(v, "int") for v in (p, end, row, max_elements, full_check)]
        module.functions.append(
            Function(self.opener.name, parameters, "int", doc, code.body, "inner")
        )

    def open_case(
        self,
        code: Builder,
        test: Test,
        variables: Variables,
        p: Var,
        end: Var,
        row: Var,
        max_elements: Var,
        full_check: Var,
        start: Var,
    ) -> None:
        """Emit the part of the opening function for the case of ``test``: fail if the caller asked
        for full checks (``full_check``) and the entry needs one, then, if rows are array elements,
        read the entry up to them. Raise Unsupported if kernels cannot read a field.
        """
        case, module = test.case, self.module
        if test.care is not None:
            with code.when(all_of([full_check & WITH_CARE, test.care])):
                check = module.check(case.entry.fields[0].field, case.rows.span, "full_check")
                code.emit_return(effect("fail", row, check, start), "full_check")
        if case.array is not None:
            outputs = ColumnOutputs(
                code, None, {}, row=row, max_elements=max_elements, at=Var("at"), check=module.check
            )
            reader = LayoutReader(self.kernels.plan, code, "open", variables, p, outputs)
            ArrayOpener(
                self.kernels, case, code, reader, variables, row, max_elements, full_check
            ).emit(end)

    # ------------------------------------------------------------ where it ends

    def find_end(self) -> None:
        """Emit the function that returns the end address of the entry at an address: 0 if the bytes
        end before it, 2 for a discriminator of another layout, -1 for an invalid length. Entries of
        constant size end after it; for entries without a length it returns the end of the bytes.
        Raise Unsupported if kernels cannot load the discriminator or check the length.
        """
        kernels, framing = self.kernels, self.framing
        discriminator = find_discriminator(kernels.view)
        p, end = Var("p"), Var("end")
        number, after = Var("kind"), Var("after")
        code, variables = Builder(), Variables()
        header_size = framing.size or 0
        if framing.open:
            header_size = size_bounds(kernels.plan, self.entry).min_size
        for m in self.entry.fields:
            if m.measures is not None and m.offset is not None:
                header_size = max(header_size, m.offset + (m.size or 0))
        if discriminator is not None:
            header_size = max(header_size, discriminator[0] + discriminator[1])
        with code.when(end - p < header_size):
            code.emit_return(0)
        if discriminator is not None:
            offset, size, signed, endian = discriminator
            order = "_le" if endian == "little" and size > 1 else ""
            found = call(f"load_{'i' if signed else 'u'}{8 * size}{order}", p + offset)
            code.assign(number, found)
            with code.when(all_of([number.ne(key) for key in self.keys])):
                code.emit_return(2)
        if framing.length is not None:
            measured = variables.get(ENTRY, framing.length.name)
            code.assign(measured, self.at_fixed_place(framing.length, p))
            with code.when(any_of(self.refused(measured, variables))):
                code.emit_return(-1)
            code.assign(after, p + framing.uncounted + measured)
            code.emit_return(Pick(after <= end, after, Num(0)))
        else:
            code.emit_return(end if framing.size is None else p + framing.size)
        doc = "Where the entry at an address ends; 2 when it is one of another kind, 0 when the bytes end before it does, -1 when it is no entry."
        if framing.open:
            doc = "Where entries end, of which only their fields say where each ends; 0 when there are too few bytes for one."
        self.module.functions.append(
            Function(self.frame.name, [(p, "int"), (end, "int")], "int", doc, code.body, "inner")
        )

    def refused(self, measured: Var, variables: Variables) -> list[Expr]:
        """Return the conditions under which the length ``measured`` is invalid: negative, or
        rejected by the ``refuse`` condition of its field, if it has one. Raise Unsupported if
        kernels cannot express that condition, or if it reads another field.
        """
        length = self.framing.length
        assert length is not None
        fields = Fields(self.kernels.plan, self.entry, ENTRY, variables)
        refused = condition_of(fields, length.refuse, length.field)
        if refused is None:
            return [measured < 0]
        if fields.used - {(ENTRY, length.name)}:
            reason = "a length that is refused for the sake of another field"
            raise Unsupported(reason, length.field)
        return [measured < 0, refused]

    def row_test(self, case: CasePlan) -> None:
        """Emit the function that returns whether an entry is itself a row of ``case``: False if it
        is shorter than its fields at fixed offsets, fails the case's condition, or needs a full
        check and the caller wants full checks. Raise Unsupported if kernels cannot express a
        condition of a case of the layout, or load a field that it reads.
        """
        p, after, full_check = map(Var, ("p", "after", "full_check"))
        code, variables = Builder(), Variables()
        tests = self.tests(variables)
        test = next(t for t in tests if t.case is case)
        min_size = bytes_to_fixed(self.entry)
        conditions = [] if test.when is None or test.when == TRUE else [test.when]
        if test.care is not None:
            conditions.append(invert(all_of([full_check & WITH_CARE, test.care])))
        if not conditions:
            code.emit_return(after - p >= min_size)
        else:
            with code.when(after - p < min_size):
                code.emit_return(FALSE)
            self.load_tested(code, tests, p, variables)
            code.emit_return(all_of(conditions))
        parameters = [(v, "int") for v in (p, after, full_check)]
        doc = "Whether an entry is a row of its own."
        name = self.is_row[case.number].name
        self.module.functions.append(Function(name, parameters, "bool", doc, code.body, "inner"))

    # ------------------------------------------------------------ many entries

    def find(self) -> str:
        """Emit the function that finds entries and fills the index table, and return its name;
        never raise Unsupported. The function returns four numbers: entries, the address where it
        stopped, why (3: entries from the last on are rows, 2: another kind, 1: table full, 0: end
        of bytes, -1: invalid length), and rows (-1: unknown). It notes entries that fail their
        checks and goes on.
        """
        slots, code = self.kernels.slots, Builder()
        table, capacity, p, end, max_elements, full_check = map(
            Var, ("table", "capacity", "p", "end", "max_elements", "full_check")
        )
        n, rows, after, row, count = map(Var, ("n", "rows", "after", "row", "count"))
        code.assign(n, 0)
        code.assign(rows, 0)

        def stop(why: Expr | int, reported: Expr | int = rows) -> None:
            code.emit_return(Several((n, p, _expr(why), _expr(reported))))

        with code.loop(TRUE):
            code.assign(after, Call(self.frame, (p, end)))
            with code.when(after <= 2):
                stop(after)
            with code.when(n.eq(capacity)):
                stop(1)
            ahead = Num(2) * after - p
            code.do("fetch_around", ahead, remark="a header to come, if entries are of like size")
            code.assign(row, table + n * self.kernels.row_size)
            code.add(n, 1)
            for case in self.cases:
                if case.array is not None:
                    continue
                with code.when(Call(self.is_row[case.number], (p, after, full_check))):
                    for slot, value in (
                        ("STATUS", Num(0)), ("CASE", Num(case.number)), ("START", p),
                        ("CODEC", Num(0)), ("SECTION", p), ("SECTION_END", end), ("COUNT", Num(-1)),
                        ("CHECKED", full_check),
                    ):  # fmt: skip
                        code.do("store_64", row + slots[slot], value)
                    stop(3, -1)
            opened = Call(self.opener, (p, after, row, max_elements, full_check), (), False)
            with code.when(all_of([opened, rows >= 0])):
                code.assign(count, call("load_i64_le", row + slots["COUNT"]))
                codec = call("load_i64_le", row + slots["CODEC"])
                code.assign(rows, Pick(any_of([count < 0, codec]), Num(-1), rows + count))
            code.assign(p, after)
        doc = (
            "Pass 1: a row of the table for each whole entry. How many there are, where they end, and why: 3 from the last one "
            "on entries are rows themselves, 2 an entry of another kind, 1 the table is full, 0 the bytes end, -1 what "
            "follows is no entry. And how many rows they say they have; -1 when some are compressed, or do not say."
        )
        name = self.module.name(function_name("index", self.entry))
        parameters = [(v, "int") for v in (table, capacity, p, end, max_elements, full_check)]
        result = "tuple[int, int, int, int]"
        self.module.functions.append(Function(name, parameters, result, doc, code.body, "jit"))
        return name


def _expr(value: Expr | int) -> Expr:
    """Return ``value`` as an expression."""
    return Num(value) if isinstance(value, int) else value
