"""Pass 1 of writing: which rows one entry holds, how many bytes that takes, and what of them cannot be written."""

from __future__ import annotations

from collections.abc import Iterable

from codecgen.plan import LayoutPlan
from codecgen.plan.columns import CasePlan, Leaf
from codecgen.plan.constant_folding import as_truth, is_known
from codecgen.plan.nodes import ColumnValue
from codecgen.plan.write_ops import Bits, Length, Number, Rows, columns_of, leaf_of
from codecgen.plan.write_program import WriteProgram
from codecgen.schema.lookup import integer_range
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import (
    Call,
    Expr,
    Function,
    Num,
    Several,
    Var,
    all_of,
    any_of,
    call,
    invert,
)
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_encode.layout_rules import LayoutRules
from codecgen.targets.arrow.numba_encode.planner_function import PlannerFunction
from codecgen.targets.arrow.numba_encode.range_checks import RangeChecks
from codecgen.targets.arrow.numba_encode.round_trip import RoundTrip
from codecgen.targets.arrow.numba_encode.sizes import (
    MAX_BYTES,
    largest,
    max_rows,
    room_for_rows,
    sizes_of,
)
from codecgen.targets.arrow.numba_encode.values import VARIABLE_OF
from codecgen.targets.arrow.numba_encode.view import Encoders, stored_values

_ROWS = (
    "Pass 1: how many rows from ``start`` on are entries of this kind. 0 rows and what is in the way; -1 when the first one "
    "is not."
)
_ENTRY = (
    "Pass 1: how many rows from ``start`` on one entry holds, and what it needs of them. 0 rows and what is in the way; -1 "
    "when such an entry is not for them."
)
_ALL = (
    "Pass 1: a row of the table for each entry that the rows make, until they are at least ``enough`` bytes. How many "
    "entries, the first row that is in none of them, what is in its way (-1: nothing), the bytes of the rows, how many "
    "entries are compressed. Unless the rows are the ``final`` ones, the last entry waits for more."
)


class EntryPlanner:
    """Emits the kernel function that plans one entry of a case (pass 1 of writing): how many rows
    it holds, how many bytes they take, and which row or column cannot be written. A "stop" is code
    by which a row ends the entry before it, or is refused if it is the first row.
    """

    def __init__(self, encoders: Encoders, program: WriteProgram) -> None:
        self.encoders = encoders
        self.program = program
        self.frame = PlannerFunction(encoders, program)
        self.code = self.frame.code
        self.fits = RangeChecks(self.frame)
        self.back = RoundTrip(self.frame)
        self.rules = LayoutRules(self.frame)
        self.frame.values.ends |= self.rules.ends
        self.ends = self.back.ends()
        self.columns, self.last, self.entry = map(Var, ("columns", "last", "entry"))
        self.bytes_room, self.extra = Var("bytes_room"), Var("extra")
        around = [op for op in program.order if isinstance(op, Number | Bits)]
        self.fixed = [op for op in around if isinstance(op, Bits) or not op.running]
        self.running = [op for op in around if isinstance(op, Number) and op.running]

    def emit(self) -> None:
        """Emit the function that plans one entry. It returns the number of rows and -1; 0 and the
        number of the failed check if the first row cannot be written; -1 and the number of a check
        if the first row does not meet the case's condition. Raise Unsupported if kernels cannot
        express a value or check.
        """
        frame, code, variables = self.frame, self.code, self.frame.variables
        frame.columns.addresses(self.columns)
        code.assign(self.extra, call("load_i64_le", self.columns + self.encoders.extra))
        if self.program.around:
            self.first_row()
        for end, name in self.ends:
            code.assign(variables.get(end, name), 0)
        self.rules.begin()
        code.assign(frame.size, 0)
        code.assign(frame.blamed, -1)
        code.assign(frame.row, frame.start)
        more = all_of([frame.row < self.last, frame.row - frame.start < frame.max_elements])
        with code.loop(more):
            frame.inside = True
            self.one_row()
        self.close()
        code.emit_return(Several((frame.row - frame.start, Num(-1))))
        parameters = (
            self.columns, frame.start, self.last, self.entry, frame.sizes, self.bytes_room, frame.max_elements,
        )  # fmt: skip
        self.encoders.module.functions.append(
            Function(
                self.encoders.function("plan", self.program.case).name,
                [(parameter, "int") for parameter in parameters],
                "tuple[int, int]",
                _ENTRY if self.program.around else _ROWS,
                code.body,
                "inner",
            )
        )

    # ------------------------------------------------------------ the first row

    def used(self) -> list[ColumnValue]:
        """Return the column values that the write program uses, with repetitions."""
        ops = (*self.program.around, *self.program.row)
        return [value for op in ops for value in columns_of(op)]

    def first_row(self) -> None:
        """Emit, before the loop over rows, what the first row determines: initial column values and
        extremes, fields of the entry that no later row changes with their checks, the test of the
        case's condition (the function returns -1), and rules that no later row changes. If such a
        check or rule fails, the function returns 0, checks before the condition. Raise Unsupported
        if kernels cannot express a value or no row can meet the condition.
        """
        frame, code, variables = self.frame, self.code, self.frame.variables
        used = {(value.which, value.column.name) for value in self.used()}
        starts = {name for op in self.running for name in _column_names(columns_of(op))}
        first = {name for which, name in used if which in ("first", "max", "min")} | starts
        for name in sorted(first):
            frame.columns.number(self.encoders.leaf(name), frame.start, "first row")
        for which, name in sorted(used):
            if which in ("max", "min"):
                code.assign(
                    variables.get(VARIABLE_OF[which], name), variables.get("first row", name)
                )
        for name in sorted(_column_names(v for v in self.used() if v.which == "last")):
            code.assign(variables.get("row", name), variables.get("first row", name))
        for op in self.fixed:
            self.fits.work_out(op, "entry")
        when = self.program.when
        if when is not None and not (is_known(when) and as_truth(when)):
            with code.when(self.condition_fails()):
                self.refuse_first_row()
        self.rules.first_row()
        for op in self.running:
            self.fits.begin(op)

    def condition_fails(self) -> Expr:
        """Return the test that a row does not meet the condition of the case, which has one that is
        not always true. Raise Unsupported if the condition never holds, or if kernels cannot
        express it.
        """
        assert self.program.when is not None
        f = self.program.case.entry.fields[0].field
        if is_known(self.program.when):
            raise Unsupported("written for rows whose condition never holds", f)
        return invert(self.frame.condition(self.program.when, self.frame.values.own, f))

    def refuse_first_row(self) -> None:
        """Emit the refusal of the first row: the statement that returns -1 and the number of the
        check of the case's condition. The case has a condition.
        """
        assert self.program.case.rows.when is not None
        self.frame.refuse_first_row(self.program.case.rows.when)

    # ------------------------------------------------------------ one row

    def one_row(self) -> None:
        """Emit the loop body for one row: load its columns, check values, rules and sizes, compare
        what readers would return, and go on to the next row. A row that fails a check ends the
        entry before it. If rows are entries, so does a row that does not meet the condition of its
        case; otherwise the condition is not checked here. Raise Unsupported if kernels cannot
        express a value or check, or a length measures only a part of the row.
        """
        frame, code, variables = self.frame, self.code, self.frame.variables
        for now, before in self.back.moving().items():
            code.assign(before, now)
        main, others = self.row_columns()
        for leaf in main:
            frame.columns.load(leaf, frame.row)
        for op in self.program.row_order:
            self.fits.work_out(op, "item")
        when = self.program.when
        if not self.program.around and when is not None and not (is_known(when) and as_truth(when)):
            with code.when(self.condition_fails()):
                with code.when(frame.row.eq(frame.start)):
                    self.refuse_first_row()
                code.leave()
        for which, name in sorted({(value.which, value.column.name) for value in self.used()}):
            if which in ("max", "min"):
                so_far = variables.get(VARIABLE_OF[which], name)
                code.assign(so_far, call(which, so_far, variables.get("row", name)))
        for op in self.running:
            self.fits.number(op, "entry")
        self.keep_ends()
        self.fits.bytes()
        self.fits.rules(self.program.row, "item")
        self.fits.rules(self.program.around, "entry")
        self.rules.row()
        self.back.columns([leaf for leaf in main if not leaf.column.on_request])
        late = [leaf for leaf in main if leaf.column.on_request]
        wanted = [leaf for leaf in others if leaf.column.on_request]
        if wanted or late:
            first = all_of([self.extra, frame.row.eq(frame.start)])
            with code.when(any_of([self.extra.eq(1), first])):
                for leaf in wanted:
                    frame.columns.load(leaf, frame.row)
                self.back.columns([*late, *wanted])
        self.sizes()
        code.add(frame.row, 1)

    def row_columns(self) -> tuple[list[Leaf], list[Leaf]]:
        """Return two lists of top-level columns: those that each row writes or compares with what
        readers return, and columns on request that are not written, which are compared only if they
        are given. Columns of file positions are in neither.
        """
        used = _column_names(value for value in self.used() if value.which != "first")
        used |= {leaf.column.name for op in self.program.row if (leaf := leaf_of(op))}
        main: list[Leaf] = []
        others: list[Leaf] = []
        for leaf in self.encoders.view.leaves:
            if leaf.inside is not None:
                continue
            if leaf.column.name in used:
                main.append(leaf)
            elif leaf.column.name not in self.encoders.places:
                (others if leaf.column.on_request else main).append(leaf)
        return main, others

    def keep_ends(self) -> None:
        """Emit the assignments that keep the fields of the first and the last element so far that
        readers or rules use. At the first row, also set the values of "the row before" to those of
        this row.
        """
        frame, code, variables = self.frame, self.code, self.frame.variables
        last = [(end, name) for end, name in self.ends if end == "last"]
        first = [(end, name) for end, name in self.ends if end == "first"]
        for end, name in last:
            code.assign(variables.get(end, name), variables.get("item", name))
        if self.ends:
            with code.when(frame.row.eq(frame.start)):
                for end, name in first:
                    code.assign(variables.get(end, name), variables.get("item", name))
                for end, name in last:
                    code.assign(variables.get(f"before {end}", name), variables.get(end, name))

    # ------------------------------------------------------------ sizes

    def sizes(self) -> None:
        """Emit the size of the row in bytes, and stops for rows that exceed a length field or the
        room of an entry; only rows after the first end the entry for lack of ``bytes_room``. Add
        the size to the entry's. Raise Unsupported if a length measures only a part of the row, or
        if a varint length follows another one or a field of varying size.
        """
        frame, code, taken = self.frame, self.code, self.frame.taken
        others: list[Expr] = []
        total = ahead = 0
        length: Length | None = None
        for op in self.program.row:
            if isinstance(op, Length) and op.ahead:
                if length is not None or others:
                    raise Unsupported(
                        "the length of a part of a row instead of the whole row", op.field.field
                    )
                self.whole_row(op)
                length, ahead, total = op, total, 0
                continue
            fixed, more = sizes_of(op, frame.variables)
            total += fixed
            others += more
        code.assign(taken, total)
        for other in others:
            code.add(taken, other)
        if length is not None:
            if largest(length.type) < MAX_BYTES:
                frame.stop(taken > largest(length.type), None, length.field.field)
            code.do("store_32", frame.sizes, taken)
            code.add(frame.sizes, 4)
            code.add(taken, self.with_length(length, ahead))
        self.lengths_hold()
        frame.stop(taken > room_for_rows(self.program), None)
        full = frame.size + taken > self.bytes_room
        frame.stop(all_of([full, frame.row > frame.start]), None)
        code.add(frame.size, taken)

    def with_length(self, op: Length, ahead: int) -> Expr:
        """Return the expression for the size in bytes of a row's varint length prefix, which states
        the size in the variable ``taken``, plus the ``ahead`` bytes before the prefix. The content
        itself is not included.
        """
        taken = self.frame.taken
        size = (
            call("size_uvarint", taken + 1)
            if op.type == "compact"
            else call(f"size_{op.type}", taken)
        )
        return size + ahead if ahead else size

    def whole_row(self, op: Length) -> None:
        """Raise Unsupported unless a length prefix measures all fields that follow it in the row,
        from the next field to the last.
        """
        fields = self.program.case.element.fields
        names = [fp.name for fp in fields]
        at = names.index(op.field.name)
        if op.field_range.last not in (None, names[-1]):
            raise Unsupported(
                "a length that stops before the end of its row (entry or element)", op.field.field
            )
        if at + 1 >= len(fields) or op.field_range.first != names[at + 1]:
            raise Unsupported(
                "a length that does not directly precede what it measures", op.field.field
            )

    def lengths_hold(self) -> None:
        """Emit stops for rows whose size exceeds a fixed-size length field in them. Emit nothing
        for fields that hold at least 2**31 - 1. Raise Unsupported if such a field measures from no
        fixed offset, or not to the end of the row.
        """
        element = self.program.case.element
        for op in self.program.row:
            if not isinstance(op, Length) or op.ahead:
                continue
            high = (integer_range(op.type) or (0, 0))[1]
            if high >= MAX_BYTES:
                continue
            first = element.field(op.field_range.first)
            to_end = op.field_range.last in (None, element.fields[-1].name)
            if first is None or first.offset is None or not to_end:
                raise Unsupported(
                    "the length of a part of a row instead of the whole row", op.field.field
                )
            taken: Expr = self.frame.taken
            counted = taken - first.offset if first.offset else taken
            self.frame.stop(counted > high, None, op.field.field)

    # ------------------------------------------------------------ after the last row

    def close(self) -> None:
        """Emit what follows the loop: without rows, return 0 and the failed check. Otherwise set
        the fields that change with each row back to their value before a row that failed a check,
        and store the entry's case, rows, sizes, codec and values in the table; the return after
        that is not emitted here.
        """
        frame, code, table, variables = (
            self.frame,
            self.code,
            self.encoders.table,
            self.frame.variables,
        )
        with code.when(frame.row.eq(frame.start)):
            code.emit_return(Several((Num(0), frame.blamed)))
        if self.running:
            with code.when(frame.blamed >= 0):
                for op in self.running:
                    name = op.field.name
                    code.assign(variables.get("entry", name), variables.get("before entry", name))
        stored: list[tuple[Expr, Expr]] = [
            (table["CASE"], Num(self.program.case.number)),
            (table["FIRST"], frame.start),
            (table["ROWS"], frame.row - frame.start),
            (table["SIZE"], frame.size),
            (table["CODEC"], self.codec()),
            (table["SECTION"], Num(0)),
            (table["SECTION_SIZE"], frame.size),
        ]
        for kind, name in stored_values(self.program):
            value: Expr = variables.get(kind, name)
            if kind == "null first row":
                value = call("int", value)
            stored.append((self.encoders.kept[kind, name], value))
        for slot, value in stored:
            code.do("store_64", self.entry + slot, value)

    def codec(self) -> Expr:
        """Return the expression for the number of the compression codec of an entry's rows; 0 if
        their array declares no codec or rows are entries themselves.
        """
        for op in self.program.around:
            if isinstance(op, Rows) and op.codec is not None:
                return self.frame.values.read(self.frame.values.own).number(op.codec)
        return Num(0)


def _column_names(values: Iterable[ColumnValue]) -> set[str]:
    """Return the column names of ``values``."""
    return {value.column.name for value in values}


def plan_entries(encoders: Encoders, entry: LayoutPlan, cases: list[CasePlan]) -> str:
    """Emit the function that plans many entries of one layout (pass 1 of writing), and return its
    name. The first of ``cases`` that accepts a row plans its entry. The function stops at a row that
    cannot be written, when the table is full, or when the rows have ``enough`` bytes. Unless the
    rows are ``final``, an entry around the last row waits for more. The function returns the number
    of entries, the first row in none, the failed check (-1: none), the bytes of the rows, and the
    number of compressed entries.
    """
    code = Builder()
    parameters = [
        Var(name)
        for name in (
            "columns", "table", "capacity", "start", "last", "final", "sizes", "bytes_room", "enough", "max_elements",
        )
    ]  # fmt: skip
    columns, table, capacity, start, last, final, sizes, bytes_room, enough, max_elements = (
        parameters
    )
    n, done, compressed_entries, row, own, at = map(
        Var, ("n", "done", "compressed_entries", "row", "entry", "at")
    )
    rows, blamed = Var("rows"), Var("blamed")
    for variable, value in (
        (n, Num(0)),
        (done, Num(0)),
        (compressed_entries, Num(0)),
        (row, start),
    ):
        code.assign(variable, value)
    with code.loop(all_of([row < last, n < capacity, done < enough])):
        code.assign(own, table + n * encoders.size_of_entry)
        code.assign(at, sizes + Num(4) * (row - start))
        code.unpack((rows, blamed), Several((Num(-1), Num(-1))))
        for case in cases:
            program = encoders.programs[case.number]
            limit = max_rows(program)
            max_rows_of_entry = (
                max_elements if limit == MAX_BYTES else call("min", max_elements, limit)
            )
            room = call("min", bytes_room, room_for_rows(program))
            many = room if program.around else enough - done
            arguments = (columns, row, last, own, at, many, max_rows_of_entry)
            with code.when(rows < 0):
                plan = Call(encoders.function("plan", case), arguments, (), False)
                code.unpack((rows, blamed), plan)
                if program.around:
                    waits = all_of([rows > 0, (row + rows).eq(last), invert(final)])
                    with code.when(waits):
                        code.emit_return(Several((n, row, Num(-1), done, compressed_entries)))
        with code.when(rows <= 0):
            code.emit_return(Several((n, row, blamed, done, compressed_entries)))
        code.do("store_64", own + encoders.table["SIZES"], at)
        code.add(done, call("load_i64_le", own + encoders.table["SIZE"]))
        compressed = call("load_i64_le", own + encoders.table["CODEC"]).ne(0)
        code.add(compressed_entries, call("int", compressed))
        code.add(row, rows)
        code.add(n, 1)
    code.emit_return(Several((n, row, Num(-1), done, compressed_entries)))
    name = encoders.entry_function("plan_entries", entry)
    typed = [(parameter, "int") for parameter in parameters]
    result = "tuple[int, int, int, int, int]"
    encoders.module.functions.append(Function(name, typed, result, _ALL, code.body, "jit"))
    return name
