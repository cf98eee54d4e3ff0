"""Whether columns have room in the fields that they are written to, and keep the rules of these."""

from __future__ import annotations

from codecgen.plan.columns import Leaf
from codecgen.plan.constant_folding import as_truth, is_known
from codecgen.plan.nodes import Value
from codecgen.plan.write_ops import (
    Bits,
    Bytes,
    Constant,
    Elements,
    Limits,
    Number,
    Rows,
    WriteOp,
    leaf_of,
)
from codecgen.schema.model import Field
from codecgen.schema.types import ScalarType
from codecgen.targets.arrow.arithmetic import Term, invert_member
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import Expr, Prefix, Var, all_of, any_of, call, invert
from codecgen.targets.arrow.numba_encode.planner_function import PlannerFunction
from codecgen.targets.arrow.numba_encode.sizes import MAX_BYTES, largest, size_of_bytes, sizes_of


class RangeChecks:
    """Emits the values of written fields, and the checks that columns fit the fields and meet their
    rules. A failed check (a "stop") ends the entry before the row, or refuses the row if it is the
    first.
    """

    def __init__(self, frame: PlannerFunction) -> None:
        self.frame = frame
        self.code = frame.code

    # ------------------------------------------------------------ numbers

    def work_out(self, op: WriteOp, part: str) -> None:
        """Emit the value of a number or of a word of bits, and the checks that it is not null and
        in range. Emit nothing for other operations. Raise Unsupported if kernels cannot express the
        value, or if it never fits.
        """
        frame = self.frame
        variable = frame.variables.get(part, op.field.name)
        if isinstance(op, Number):
            self.number(op, part)
        elif isinstance(op, Bits):
            words = []
            for member in op.members:
                term = frame.written_term(member.value, op, part)
                leaf = frame.blame(member.value, part)
                self.not_null(term, leaf, op)
                value = _as_number(term)
                frame.stop(outside(value, member.limits), leaf, op.field.field)
                words.append(value << member.bits.low)
            total = words[0]
            for word in words[1:]:
                total = total | word
            self.code.choose(variable, total)

    def number(self, op: Number, part: str) -> None:
        """Emit the value of a number field into its variable, and the checks that it is not null
        and in range. Raise Unsupported if kernels cannot express the value.
        """
        frame, f = self.frame, op.field.field
        leaf = frame.blame(op.value, part)
        variable = frame.variables.get(part, op.field.name)
        term = frame.written_term(op.value, op, part)
        self.not_null(term, leaf, op)
        self.code.choose(variable, _as_number(term))
        frame.stop(outside(variable, op.limits), leaf, f)

    def begin(self, op: Number) -> None:
        """Emit the initial value of a running field from the first row; the row loop checks it."""
        term = self.frame.written_term(op.value, op, "entry")
        self.code.choose(self.frame.variables.get("entry", op.field.name), _as_number(term))

    def not_null(self, term: Term, leaf: int | None, op: WriteOp) -> None:
        """Emit a stop if a term is null."""
        if term.null is not None:
            self.frame.stop(term.null, leaf, op.field.field)

    # ------------------------------------------------------------ rules

    def rules(self, ops: tuple[WriteOp, ...], part: str) -> None:
        """Emit checks of the schema's ``valid`` and ``refuse`` rules for the fields of ``ops``,
        which are of ``part`` (entry or item). Lengths, counts, checksums and absent fields are not
        checked. Raise Unsupported if no row can meet a rule, or if kernels cannot express it.
        """
        for op in ops:
            if isinstance(op, Number | Bits | Constant | Bytes | Elements | Rows):
                for rule, wanted in ((op.field.valid, True), (op.field.refuse, False)):
                    if rule is not None:
                        self.rule(op, rule, wanted, part)

    def rule(self, op: WriteOp, rule: Value, wanted: bool, part: str) -> None:
        """Emit a stop where the rule's condition differs from ``wanted`` (True for ``valid``, False
        for ``refuse``); nothing if constants already decide it. Raise Unsupported if no row can
        meet the rule, or if kernels cannot express it.
        """
        frame, f = self.frame, op.field.field
        value = frame.program.fold_rule(rule, part)
        if is_known(value):
            if as_truth(value) is not wanted:
                raise Unsupported("given a value that its checks reject for all rows", f)
            return
        condition = frame.condition(value, part, f)
        own = leaf_of(op)
        leaf = frame.blame(value, part) if own is None else own.index
        frame.stop(invert(condition) if wanted else condition, leaf, f)

    # ------------------------------------------------------------ bytes and lists

    def bytes(self) -> None:
        """Emit the checks that the bytes and lists of the current row fit their fields; fields
        without a column need none. Raise Unsupported if a value never fits.
        """
        for op in self.frame.program.row:
            if isinstance(op, Bytes) and op.column is not None:
                self.bytes_fit(op, op.column)
            elif isinstance(op, Elements) and op.column is not None:
                self.list_fits(op, op.column)

    def bytes_fit(self, op: Bytes, leaf: Leaf) -> None:
        """Emit stops for bytes whose size differs from a fixed size or exceeds the length field,
        for nulls where the field cannot be null, and for text that is not UTF-8.
        """
        frame, f, n = self.frame, op.field.field, self.frame.variables.value(leaf)
        length = op.type.length
        nullable = leaf.column.nullable
        if isinstance(length, int):
            frame.stop(n.ne(length), leaf.index, f)
        elif length != "rest":
            high = MAX_BYTES if length == "compact" else largest(length)
            if high < MAX_BYTES:
                frame.stop(n > high, leaf.index, f)
        if nullable and op.type.null is None:
            frame.stop(n < 0, leaf.index, f)
        if op.type.text:
            part = frame.variables.leaf_variable
            start = part(leaf, "data") + part(leaf, "at")
            right = call("is_utf8_within", start, n, part(leaf, "end"))
            wrong: Expr = Prefix("not", right)
            frame.stop(all_of([n > 0, wrong]) if nullable else wrong, leaf.index, f)

    def list_fits(self, op: Elements, leaf: Leaf) -> None:
        """Emit stops for a list with more elements than its count can state or than the kernel
        argument ``max_elements``, and for elements that do not fit. Emit the sum of its elements' sizes, in
        bytes, into the column's variable ``size``.
        """
        frame, code, f = self.frame, self.code, op.field.field
        part = frame.variables.leaf_variable
        n, at, size = frame.variables.value(leaf), part(leaf, "at"), part(leaf, "size")
        high = self.max_elements(op)
        tests = [n > frame.max_elements]
        if high < MAX_BYTES:
            tests.append(n > high)
        frame.stop(any_of(tests), leaf.index, f)
        code.assign(size, 0)
        element = Var("part")
        with code.count(element, at, at + n):
            fixed = 0
            for inner in op.each:
                if isinstance(inner, Bytes) and inner.column is not None:
                    frame.columns.load(inner.column, element)
                    self.bytes_fit(inner, inner.column)
                    const, others = size_of_bytes(inner.type, frame.variables.value(inner.column))
                else:
                    const, others = sizes_of(inner, frame.variables)
                fixed += const
                for other in others:
                    code.add(size, other)
            if fixed:
                code.add(size, fixed)
        with code.when(frame.blamed >= 0):
            code.leave()

    def max_elements(self, op: Elements) -> int:
        """Return the largest number of elements that the count of a list can state, at most 2**31 -
        1. The count is a field of the row if the array is counted by one, otherwise the number
        before the elements.
        """
        name = op.type.count or "varint"
        if op.type.counted_by is not None:
            fp = self.frame.case.element.field(op.type.counted_by)
            name = _type_of(fp.field if fp is not None else op.field.field)
        return min(MAX_BYTES if name == "compact" else largest(name), MAX_BYTES)


def _type_of(f: Field) -> str:
    """Return the type name of a scalar field, varint for other fields."""
    return f.type.name if isinstance(f.type, ScalarType) else "varint"


def _as_number(term: Term) -> Expr:
    """Return a term as a number; conditions become 1 and 0."""
    return call("int", term.value) if term.truth else term.value


def outside(value: Expr, limits: Limits) -> Expr:
    """Return the condition that ``value`` is outside ``limits``: not among the allowed numbers,
    below the low or above the high limit. A limit of None is not tested; without any limit, the
    condition is FALSE.
    """
    if limits.allowed is not None:
        return invert_member(value, limits.allowed)
    tests = [value < limits.low] if limits.low is not None else []
    return any_of([*tests, *([value > limits.high] if limits.high is not None else [])])
