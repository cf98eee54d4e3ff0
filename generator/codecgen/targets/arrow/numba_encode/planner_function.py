"""A function of pass 1 while it is put together: its variables, and what it says of rows that cannot be written."""

from __future__ import annotations

from codecgen.plan import nodes
from codecgen.plan.column_sources import field_to_blame
from codecgen.plan.nodes import Value
from codecgen.plan.write_ops import Bits, Bytes, Elements, Number, WriteOp
from codecgen.plan.write_program import WriteProgram
from codecgen.schema.expression import Expression
from codecgen.schema.model import Field
from codecgen.targets.arrow.arithmetic import Refused, Term
from codecgen.targets.arrow.checks import Check, Unsupported
from codecgen.targets.arrow.code_tree import FALSE, Expr, Num, Several, Var
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_encode.columns import Columns, Variables
from codecgen.targets.arrow.numba_encode.values import Values
from codecgen.targets.arrow.numba_encode.view import Encoders


class PlannerFunction:
    """State of one kernel function of pass 1 of writing while it is emitted: variables, columns,
    and how it reports rows that cannot be written: by the number of a check, which names a column
    ("blame") and a field. ``inside`` says that the loop over the rows is open.
    """

    def __init__(self, encoders: Encoders, program: WriteProgram) -> None:
        self.encoders = encoders
        self.program = program
        self.case = program.case
        self.code = Builder()
        self.variables = Variables()
        self.columns = Columns(encoders, self.code, self.variables)
        self.values = Values(program, self.variables)
        self.inside = False
        self.row, self.start, self.max_elements, self.sizes = map(
            Var, ("row", "start", "max_elements", "sizes")
        )
        self.blamed, self.size, self.taken = map(Var, ("blamed", "size", "taken"))

    # ------------------------------------------------------------ values

    def written_term(self, value: Value, op: WriteOp, part: str) -> Term:
        """Return the Term of ``value`` as written into a field of ``part`` (entry or item); sums
        wrap in 64 bits. Raise Unsupported, which names the field of ``op``, if kernels cannot
        express it.
        """
        try:
            return self.values.written_term(value, part)
        except Refused as error:
            raise Unsupported(error.reason, op.field.field) from None

    def condition(self, value: Value, part: str, f: Field) -> Expr:
        """Return a condition on written fields of ``part`` (entry or item) as a test. Raise
        Unsupported, which names ``f``, if kernels cannot express it.
        """
        try:
            return self.values.read(part).condition(value)
        except Refused as error:
            raise Unsupported(error.reason, f) from None

    def read(self, value: Value) -> Term:
        """Return the value that a reader would compute for a column from the written fields, as a
        Term. Raise Unsupported if kernels cannot express it.
        """
        try:
            return self.values.read(self.values.own).term(value)
        except Refused as error:
            raise Unsupported(error.reason, field_to_blame(self.case, value)) from None

    # ------------------------------------------------------------ who is to blame

    def blame(self, value: Value, part: str) -> int | None:
        """Return the index of the first column that ``value`` depends on, directly or through
        written fields of ``part``; None if it depends on none. Raise Refused for a field that
        nothing writes.
        """
        for column in nodes.columns_read(value):
            return self.encoders.leaf(column.column.name).index
        for node in nodes.iterate_nodes(value):
            match node:
                case nodes.BitValue(word, m) if not word.holders:
                    found = self.blame_op(self.values.op(word, part)[1], part, m.name)
                case nodes.FieldValue(holders=()):
                    found = self.blame_op(self.values.op(node, part)[1], part)
                case _:
                    continue
            if found is not None:
                return found
        return None

    def blame_op(self, op: WriteOp, part: str, bits: str | None = None) -> int | None:
        """Return the index of the first column that the write operation ``op`` depends on; of its
        member ``bits`` only, if that is given. Return None if no column determines what it writes,
        also for lengths, counts and checksums. Raise Refused if it reads a field that nothing
        writes.
        """
        match op:
            case Bytes(column=leaf) | Elements(column=leaf) if leaf is not None:
                return leaf.index
            case Bits(members=members):
                values = (m.value for m in members if bits in (None, m.bits.name))
                found = (self.blame(value, part) for value in values)
                return next((leaf for leaf in found if leaf is not None), None)
            case Number(value=value):
                return self.blame(value, part)
        return None

    # ------------------------------------------------------------ refusals

    def refuse_first_row(self, when: Expression) -> None:
        """Emit the refusal of the first row, which does not meet the condition ``when`` of this
        case: the statement that returns -1 and the number of a check.
        """
        assert self.program.when is not None
        leaf = self.blame(self.program.when, self.values.own)
        check = Check("when", when, leaf)
        self.code.emit_return(Several((Num(-1), self.number(check))), self.remark(check))

    def stop(self, condition: Expr, leaf: int | None, f: Field | None = None) -> None:
        """Emit code by which a row is not taken into the entry where ``condition`` holds: the
        column with the index ``leaf`` (None: the whole row) does not fit the field ``f``. If ``f``
        is None, a reader would return another value, or the entry has no room for the row. Emit
        nothing for the constant false.
        """
        check = Check(column=leaf) if f is None else Check(f.name, f.span, leaf)
        if condition != FALSE:
            self.stop_for(condition, check)

    def stop_for(self, condition: Expr, check: Check) -> None:
        """Emit code that acts if ``condition`` holds: inside the loop over rows, note the check and
        leave the loop before this row; before the loop, return 0 and the number of the check.
        """
        with self.code.when(condition):
            if self.inside:
                self.code.assign(self.blamed, self.number(check), self.remark(check))
                self.code.leave()
            else:
                self.code.emit_return(Several((Num(0), self.number(check))), self.remark(check))

    def number(self, check: Check) -> Num:
        """Return the number of a check as an expression."""
        return Num(self.encoders.module.checks.number(check))

    def remark(self, check: Check) -> str:
        """Return the comment for a check: the column and the field it is about."""
        name = "the row" if check.column is None else self.encoders.view.leaves[check.column].name
        return f"{name}, {check.name}" if check.name else name
