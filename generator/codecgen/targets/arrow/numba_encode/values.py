"""What values mean in a kernel that writes: in terms of columns, and of fields that are worked out already."""

from __future__ import annotations

from codecgen.plan import nodes
from codecgen.plan.nodes import Value
from codecgen.plan.writable import TAGGED
from codecgen.plan.write_ops import Absent, Bits, Bytes, Constant, Number, WriteOp
from codecgen.plan.write_program import WriteProgram
from codecgen.targets.arrow.arithmetic import (
    NOT_DIRECT,
    NOT_WRITTEN,
    OTHER_ARRAY,
    Arithmetic,
    Refused,
    Term,
    refuse_end,
)
from codecgen.targets.arrow.code_tree import TRUE, Num
from codecgen.targets.arrow.numba_encode.columns import Variables
from codecgen.targets.arrow.numba_encode.view import BYTES_LIKE

VARIABLE_OF = {"row": "row", "last": "row", "first": "first row", "max": "max", "min": "min"}
"""The variables of columns: the row at hand is the last one so far."""


class Values:
    """Resolves values of one case to expressions of a writing kernel: columns, fields that are
    written, and array ends. ``part`` (``entry`` or ``item``) is where the value's own fields lie.
    ``ends`` collects the fields of the first and last element for which :meth:`end` was called.
    """

    def __init__(self, program: WriteProgram, variables: Variables) -> None:
        self.program = program
        self.variables = variables
        self.ends: set[tuple[str, str]] = set()
        self.own = "entry" if program.around else "item"

    def written_term(self, value: Value, part: str) -> Term:
        """Return ``value`` as written into a field of ``part`` (entry, item); sums wrap to 64 bits."""
        return Arithmetic(lambda leaf: self.leaf(leaf, part), 64).term(value)

    def read(self, part: str) -> Arithmetic:
        """Return the arithmetic for conditions and for values as a reader computes them."""
        return Arithmetic(lambda leaf: self.leaf(leaf, part))

    def locate_owner(self, owner: str, part: str) -> str:
        """Return the part that holds the fields of ``owner``."""
        return {"own": part, "entry": self.own}.get(owner, "item")

    def op(self, value: nodes.FieldValue, part: str) -> tuple[str, WriteOp]:
        """Return the part (``"entry"`` or ``"item"``) and the write operation of a field. Raise
        Refused if the field is tagged.
        """
        where = self.locate_owner(value.owner, part)
        ops = self.program.around if where == "entry" else self.program.row
        found = next((op for op in ops if op.field.name == value.field.name), None)
        if value.field.tag is not None and not value.holders:
            raise Refused(TAGGED)
        assert not value.holders and found is not None, "held layouts are not written"
        return where, found

    def leaf(self, value: Value, part: str) -> Term:
        """Return a column, written field, bits, known version or array end as a Term. Raise Refused
        for other values, and for names that are no numbers.
        """
        match value:
            case nodes.VersionValue(version) if version is not None:
                return Term(Num(version))
            case nodes.ColumnValue():
                return self.column(value)
            case nodes.FieldValue():
                return self.field(value, part)
            case nodes.BitValue(word, m):
                inner = self.field(word, part)
                return Term(inner.value >> m.low & (1 << m.width) - 1, inner.null)
            case nodes.EndValue():
                return self.end(value)
            case nodes.PlaceValue(name):
                raise Refused(
                    f"in rows that use `{name}`, which is known only after they are written"
                )
        raise TypeError(type(value).__name__)

    def column(self, value: nodes.ColumnValue) -> Term:
        """Return a column of the current, first or last row, or its largest or smallest value, as a
        Term with its null condition. Bytes and text give their size. Raise Refused for lists.
        """
        variable = self.variables.get(VARIABLE_OF[value.which], value.column.name)
        nullable = value.type.nullable
        if value.column.type in BYTES_LIKE:
            return Term(variable, variable < 0 if nullable else None)
        if value.column.type == "list":
            raise Refused("a list that is used as a number")
        null = self.variables.get(f"null {VARIABLE_OF[value.which]}", value.column.name)
        return Term(variable, null if nullable else None)

    def field(self, value: nodes.FieldValue, part: str) -> Term:
        """Return a written field as a Term: a number or bits, the size of bytes (null if negative
        or without a column), or null for an absent field. Raise Refused for fields without such a
        value, such as lengths and counts, and for fields that are not written.
        """
        where, op = self.op(value, part)
        match op:
            case Number() | Bits():
                return Term(self.variables.get(where, op.field.name))
            case Constant(value=number):
                return Term(Num(number))
            case Absent():
                return Term(Num(0), TRUE)
            case Bytes(column=leaf) if leaf is not None:
                variable = self.variables.value(leaf)
                return Term(variable, variable < 0 if leaf.column.nullable else None)
            case Bytes():
                return Term(Num(-1), TRUE)
        raise Refused("used while rows are written, but known only after the last row")

    def end(self, value: nodes.EndValue) -> Term:
        """Return a number field of the first or last element of the array of rows as a Term, which
        is never null, and note it in ``ends``. Raise Refused for other arrays, and for fields that
        are nested, tagged or not written as a number. Extremes must not come here: rules have their
        own method.
        """
        array, inner = self.program.case.array, value.value
        if array is None or value.array.names != (array.name,):
            raise refuse_end(value, OTHER_ARRAY)
        assert value.end in ("first", "last"), "max and min are for rules (C022)"
        if not isinstance(inner, nodes.FieldValue) or inner.holders:
            raise refuse_end(value, NOT_DIRECT)
        if not isinstance(self.op(inner, "item")[1], Number):
            raise refuse_end(value, NOT_WRITTEN)
        self.ends.add((value.end, inner.field.name))
        return Term(self.variables.get(value.end, inner.field.name))
