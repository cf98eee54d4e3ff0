"""Pass 2 of writing: the bytes of rows, and of the entries around them."""

from __future__ import annotations

from codecgen.plan import nodes
from codecgen.plan.columns import Leaf
from codecgen.plan.write_ops import (
    Absent,
    Bits,
    Bytes,
    Checksum,
    Constant,
    Count,
    Elements,
    Length,
    Number,
    Rows,
    WriteOp,
    columns_of,
    leaf_of,
    values_of,
)
from codecgen.plan.write_program import WriteProgram
from codecgen.schema.model import Field
from codecgen.schema.scalars import fixed_size
from codecgen.schema.types import BytesType, FieldRange
from codecgen.targets.arrow.arithmetic import Term
from codecgen.targets.arrow.checks import Unsupported, primitive
from codecgen.targets.arrow.checksums import computed_checksum
from codecgen.targets.arrow.code_tree import Call, Expr, Function, Num, Pick, Var, call, effect
from codecgen.targets.arrow.numba_encode.planner_function import PlannerFunction
from codecgen.targets.arrow.numba_encode.sizes import count_of, null_of
from codecgen.targets.arrow.numba_encode.view import Encoders, stored_values


class EntryWriter:
    """Emits one kernel function of pass 2 of writing: with ``rows``, the function that writes the
    rows of an entry, otherwise the function that writes the entry around its rows. The code writes
    at the address ``p`` and advances it; pass 1 has checked all values.
    """

    def __init__(self, encoders: Encoders, program: WriteProgram, *, rows: bool) -> None:
        self.encoders = encoders
        self.program = program
        self.frame = PlannerFunction(encoders, program)
        self.code = self.frame.code
        self.of_rows = rows
        case = program.case
        self.layout = case.element if rows or case.array is None else case.entry
        self.ops = program.row if rows else program.around
        self.part = "item" if rows else "entry"
        self.p, self.columns, self.entry = map(Var, ("p", "columns", "entry"))
        self.rows, self.section, self.section_size = map(Var, ("rows", "section", "section_size"))
        self.worked_out: set[str] = set()

    # ------------------------------------------------------------ functions

    def emit(self) -> None:
        """Emit the function that writes the rows of an entry, or the entry around its rows, at an
        address, and returns the address after them. Raise Unsupported if kernels cannot write a
        field.
        """
        frame, code, table = self.frame, self.code, self.encoders.table
        case = self.program.case
        if self.of_rows:
            frame.columns.addresses(self.columns)
            code.assign(frame.start, self.loaded(table["FIRST"]))
            code.assign(self.rows, self.loaded(table["ROWS"]))
            code.assign(frame.sizes, self.loaded(table["SIZES"]))
        else:
            code.assign(self.section, self.loaded(table["SECTION"]))
            code.assign(self.section_size, self.loaded(table["SECTION_SIZE"]))
            code.assign(self.rows, self.loaded(table["ROWS"]))
        for kind, name in stored_values(self.program):
            slot = self.encoders.kept[kind, name]
            code.assign(frame.variables.get(kind, name), self.loaded(slot))
        if self.of_rows:
            with code.count(frame.row, frame.start, frame.start + self.rows):
                self.load()
                self.work_out()
                self.fields()
            doc = "Pass 2: write the rows of an entry. The address after them."
        else:
            self.fields()
            doc = (
                "Pass 2: write an entry, with its rows or the section that they were compressed to. The address after "
                "it."
            )
        code.emit_return(self.p)
        name = self.encoders.function("write_rows" if self.of_rows else "write_entry", case).name
        parameters = [(v, "int") for v in (self.columns, self.entry, self.p)]
        self.encoders.module.functions.append(
            Function(name, parameters, "int", doc, code.body, "inner")
        )

    def loaded(self, slot: Expr) -> Expr:
        """Return the load of a slot of the entry's row in the table."""
        return call("load_i64_le", self.entry + slot)

    def load(self) -> None:
        """Emit the loads of the columns that each row writes: numbers of the current row, bytes and
        lists. Columns of the first row or of extremes are not loaded.
        """
        used = {v.column.name for op in self.ops for v in columns_of(op) if v.which == "row"}
        used |= {leaf.column.name for op in self.ops if (leaf := leaf_of(op))}
        for leaf in self.encoders.view.leaves:
            if leaf.inside is None and leaf.column.name in used:
                self.frame.columns.load(leaf, self.frame.row)

    def work_out(self) -> None:
        """Emit the values of the row's numbers and bits that other fields of the row depend on,
        before the first field is written, and note their names in ``worked_out``. Raise Unsupported
        if kernels cannot express a value.
        """
        own = ("own",) if self.program.around else ("own", "entry")
        named = {
            read.field.name
            for op in self.ops
            for value in values_of(op)
            for read in nodes.fields_read(value)
            if read.owner in own
        }
        for op in self.program.row_order:
            if op.field.name in named and isinstance(op, Number | Bits):
                self.code.choose(self.frame.variables.get("item", op.field.name), self.value(op))
                self.worked_out.add(op.field.name)

    # ------------------------------------------------------------ fields

    def fields(self) -> None:
        """Emit the writes of all fields in order, then of the lengths for which only space was
        left, from the last to the first, then of the checksums, inner ones first. For an absent
        field, emit nothing. Raise Unsupported if kernels cannot write a field.
        """
        there = [op for op in self.ops if not isinstance(op, Absent)]
        later = [op for op in there if isinstance(op, Checksum) or _is_later(op)]
        firsts = {op.field_range.first for op in later if isinstance(op, Length | Checksum)}
        lasts = {self.end_of(op.field_range) for op in later if isinstance(op, Length | Checksum)}
        for op in self.ops:  # ranges begin and end with fields that are left out, too
            name = op.field.name
            if name in firsts:
                self.code.assign(self.address("start_of", name), self.p)
            if not isinstance(op, Absent):
                self.one(op)
            if name in lasts:
                self.code.assign(self.address("end_of", name), self.p)
        for op in reversed(there):
            if isinstance(op, Length) and not op.ahead:
                start, end = self.bounds(op.field_range)
                self.patch(op, op.field.size or 0, end - start)
        checks = {op.field.name: op for op in there if isinstance(op, Checksum)}
        for check in (checks[fp.name] for fp in self.layout.checksums() if fp.name in checks):
            start, end = self.bounds(check.field_range)
            value = computed_checksum(check.field.field, start, end - start, written=True)
            self.patch(check, check.field.size or 0, value)

    def address(self, what: str, name: str) -> Var:
        """Return the variable of an address, such as ``start_of`` a field."""
        return self.frame.variables.get(what.replace("_", " "), name)

    def end_of(self, field_range: FieldRange) -> str | None:
        """Return the last field of a range, None if the range goes to the end."""
        return None if field_range.last == self.layout.fields[-1].name else field_range.last

    def bounds(self, field_range: FieldRange) -> tuple[Var, Var]:
        """Return the addresses at which a field range begins and ends."""
        last = self.end_of(field_range)
        end = self.p if last is None else self.address("end_of", last)
        return self.address("start_of", field_range.first), end

    def patch(self, op: WriteOp, size: int, value: Expr) -> None:
        """Emit the write of ``value`` to the space that was left for a field."""
        self.store(self.address("place_of", op.field.name), size, value, op.field.field)

    def store(self, place: Expr, size: int, value: Expr, f: Field) -> None:
        """Emit the store of a number of ``size`` bytes in the byte order of ``f``."""
        order = "" if size == 1 or f.endian == "little" else "_be"
        self.code.do(primitive(f"store_{8 * size}{order}", f"{size} bytes", f), place, value)

    def number(self, name: str, value: Expr, f: Field, remark: str = "") -> None:
        """Emit the write of a number of the type ``name`` at the address ``p``, and advance ``p``
        past it. A compact number is written plus 1. Raise Unsupported if kernels lack a primitive
        for the type.
        """
        size = fixed_size(name)
        if size is not None:
            if isinstance(value, Num) and value.value >= 1 << 63:
                value = Num(value.value - (1 << 64))  # a u64, in numbers of 64 bits with a sign
            self.store(self.p, size, value, f)
            self.code.add(self.p, size, remark)
        elif name == "compact":
            one_more = Num(value.value + 1) if isinstance(value, Num) else value + 1
            self.code.assign(self.p, effect("put_uvarint", self.p, one_more), remark)
        else:
            put = primitive(f"put_{name}", f"the type {name}", f)
            self.code.assign(self.p, effect(put, self.p, value), remark)

    def one(self, op: WriteOp) -> None:
        """Emit the bytes of one write operation. For a length of fixed size or a checksum, whose
        value is written after the other fields, emit only the step over its space, and for an
        absent field nothing. Raise Unsupported for a varint length in an entry around rows, or if
        kernels cannot write the type.
        """
        code, f = self.code, op.field.field
        match op:
            case Constant(type=name, value=value):
                self.number(name, Num(value), f, f.name)
            case Number(type=name) | Bits(type=name):
                self.varying(op, name)
            case Length(ahead=True, type=name):
                if not self.of_rows:
                    raise Unsupported("a length of an entry that varies in size", f)
                length = Var("length")
                code.assign(length, call("load_i32_le", self.frame.sizes))
                code.add(self.frame.sizes, 4)
                self.number(name, length, f, f.name)
            case Length() | Checksum():
                code.assign(self.address("place_of", f.name), self.p)
                code.add(self.p, op.field.size or 0)
            case Count(type=name, rows=rows):
                many = self.rows if rows else count_of(op, self.frame.variables)
                self.number(name, many, f, f.name)
            case Bytes():
                self.bytes(op)
            case Elements():
                self.elements(op)
            case Rows():
                self.rows_of(op)

    def varying(self, op: Number | Bits, name: str) -> None:
        """Emit the write of a number or of bits, of the type ``name``, whose value depends on
        columns: in an entry around rows, and for values in ``worked_out``, from the field's
        variable, otherwise computed here. Raise Unsupported if kernels cannot express the value.
        """
        variable = self.frame.variables.get(self.part, op.field.name)
        remark = op.field.name
        if not self.of_rows:
            self.number(name, variable, op.field.field)
            return
        if op.field.name in self.worked_out:
            self.number(name, variable, op.field.field, remark)
            return
        value = self.value(op)
        if isinstance(value, Pick):
            self.code.choose(variable, value)
            value = variable
        self.number(name, value, op.field.field, remark)

    def value(self, op: Number | Bits) -> Expr:
        """Return the expression for a number, or for a word of bits with each member shifted to its
        place. Raise Unsupported if kernels cannot express the value.
        """
        if isinstance(op, Number):
            return _number(self.frame.written_term(op.value, op, self.part))
        words = [
            _number(self.frame.written_term(member.value, op, self.part)) << member.bits.low
            for member in op.members
        ]
        total = words[0]
        for word in words[1:]:
            total = total | word
        return total

    # ------------------------------------------------------------ bytes and lists

    def bytes(self, op: Bytes) -> None:
        """Emit the write of a bytes field from its column, after its length if it has one. Without
        a column, or for a null value, write the length that means null (0 if the type has none); a
        null value without a length writes nothing. Raise Unsupported if kernels cannot write the
        length.
        """
        f, leaf, length = op.field.field, op.column, op.type.length
        counted = not isinstance(length, int) and length != "rest"
        if leaf is None:
            self.number(str(length), Num(null_of(op.type)), f, f.name)
            return
        if not leaf.column.nullable:
            self.content(op.type, f, leaf, counted)
            return
        with self.code.when(self.frame.variables.value(leaf) >= 0):
            self.content(op.type, f, leaf, counted)
        if counted:
            with self.code.otherwise():
                self.number(str(length), Num(null_of(op.type)), f, "null")

    def content(self, type_: BytesType, f: Field, leaf: Leaf, counted: bool) -> None:
        """Emit the copy of a column's bytes to the address ``p``, after their length if
        ``counted``, and advance ``p`` past them. Raise Unsupported if kernels cannot write the
        length.
        """
        variables, code = self.frame.variables, self.code
        n = variables.value(leaf)
        if counted:
            self.number(str(type_.length), n, f, f.name)
        start = variables.leaf_variable(leaf, "data") + variables.leaf_variable(leaf, "at")
        code.do("copy_from", self.p, start, n, variables.leaf_variable(leaf, "end"))
        code.add(self.p, n)

    def elements(self, op: Elements) -> None:
        """Emit the write of a list's count, if the type has one, and of its elements, in order. A
        list without a column writes a count of 0; one whose elements are no layout writes only its
        count. Raise Unsupported if kernels cannot write a field.
        """
        f, leaf, variables = op.field.field, op.column, self.frame.variables
        many: Expr = Num(0) if leaf is None else variables.value(leaf)
        if op.type.count is not None:
            self.number(op.type.count, many, f, f.name)
        if leaf is None or op.layout is None:
            return
        element, at = Var("part"), variables.leaf_variable(leaf, "at")
        with self.code.count(element, at, at + many):
            for inner in op.each:
                if isinstance(inner, Constant):
                    own = inner.field.field
                    self.number(inner.type, Num(inner.value), own, own.name)
                    continue
                if inner.column is not None:
                    self.frame.columns.load(inner.column, element)
                self.bytes(inner)

    def rows_of(self, op: Rows) -> None:
        """Emit the write of the number of an entry's rows and of their length in bytes, each if the
        array declares it, and of the rows: a copy of the compressed section if the entry's row of
        the table has its address, otherwise a call of the function that writes rows. Raise
        Unsupported if kernels cannot write the number or the length.
        """
        code, f = self.code, op.field.field
        if op.type.count is not None:
            self.number(op.type.count, self.rows, f, f"{f.name}, how many")
        if op.type.length is not None:
            self.number(op.type.length, self.section_size, f, f"{f.name}, how long")
        rows = self.encoders.function("write_rows", self.program.case)
        written = Call(rows, (self.columns, self.entry, self.p), (), False)
        if op.type.compression is None:
            code.assign(self.p, written)
            return
        with code.when(self.section):
            code.do(
                "copy_from",
                self.p,
                self.section,
                self.section_size,
                self.section + self.section_size,
            )
            code.add(self.p, self.section_size)
        with code.otherwise():
            code.assign(self.p, written)


def _is_later(op: WriteOp) -> bool:
    """Return True for a length that is filled in after what it measures was written."""
    return isinstance(op, Length) and not op.ahead


def _number(term: Term) -> Expr:
    """Return a term as a number; conditions become 1 and 0."""
    return call("int", term.value) if term.truth else term.value
