"""Whether columns have room in the fields that they are written to."""

from __future__ import annotations

from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.columns import CasePlan, Leaf, ViewPlan
from codecgen.schema.expression import Expression
from codecgen.schema.model import INTEGERS, ArrayType, BitMember, BytesType, Field, ScalarType
from codecgen.targets.arrow.code import Check, Checks, Unsupported
from codecgen.targets.arrow.expressions import Operand
from codecgen.targets.arrow.naming import ENTRY, ITEM, ROW, value_of
from codecgen.targets.arrow.numba_encode.rowwise import (
    MOST_BYTES,
    Rowwise,
    largest,
    length_name,
    size_of_number,
)
from codecgen.targets.arrow.numba_encode.written import (
    FieldNames,
    Part,
    Written,
    columns_in,
    range_of,
)

_WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "timestamp_ms": 64}


class Fits(Rowwise):
    """Writes checks. ``current`` is what the function at hand writes, ``inside`` tells whether it is in the loop over the
    rows. ``checks`` gathers what is in the way of rows."""

    current: Written
    inside = False

    def __init__(self, plan: Plan, view: ViewPlan) -> None:
        super().__init__(plan, view)
        self.checks = Checks()

    # ------------------------------------------------------------ numbers

    def work_out(self, part: Part, prefix: str) -> None:
        """The number of a field, and whether it has room there."""
        assert part.value is not None
        written = self.current
        case = written.case
        for m, value, expression in part.members:
            self.bit_fits(m, value, expression, part.field, written, case)
        variable = prefix + part.name
        if part.kind == "bits" or part.value.text != variable:
            self.assign(variable, part.value)
        if part.kind == "number":
            self.within(part.field, part.expression, written, case, variable)

    def within(
        self, f: Field, expression: Expression | None, written: Written, case: CasePlan, value: str
    ) -> None:
        """A number has a place in its field."""
        low, high = range_of(f)
        column = None if expression is None else self.plain_column(expression)
        if column is not None:
            bits = 1 if column.column.type == "bool" else _WIDTHS.get(column.column.type, 64)
            least, greatest = (0, 1) if bits == 1 else (-(1 << bits - 1), (1 << bits - 1) - 1)
        else:
            least, greatest = -(1 << 63), (1 << 63) - 1
        tests = []
        if low > least:
            tests.append(f"{value} < {low}")
        if high < greatest:
            tests.append(f"{value} > {high}")
        blame = self.leaf_blamed(expression)
        if tests:
            self.stop(" or ".join(tests), blame, f)
        if isinstance(f.type, ScalarType) and f.type.enum is not None:
            enum = self.plan.model.enums[f.type.enum]
            if not enum.keep_unknown:
                only = f.type.only
                allowed = [v.value for v in enum.values if only is None or v.name in only]
                self.stop(_outside(value, allowed), blame, f)

    def bit_fits(
        self,
        m: BitMember,
        value: Operand,
        expression: Expression,
        f: Field,
        written: Written,
        case: CasePlan,
    ) -> None:
        if value.constant is not None or value.text.startswith("int("):
            return
        column = self.plain_column(expression)
        if column is not None and column.column.type == "bool":
            return
        text = value.text if value.plain else f"({value.text})"
        allowed = list(range(1 << m.width)) if m.width <= 8 else None
        if m.enum is not None and not self.plan.model.enums[m.enum].keep_unknown:
            values = self.plan.model.enums[m.enum].values
            allowed = [v.value for v in values if m.only is None or v.name in m.only]
        if allowed is None:
            condition = f"{text} < 0 or {text} > {(1 << m.width) - 1}"
        else:
            condition = _outside(text, allowed)
        self.stop(condition, self.leaf_blamed(expression), f)

    def plain_column(self, expression: Expression) -> Leaf | None:
        """The column that an expression is nothing but."""
        names = list(columns_in(expression))
        text = str(expression)
        plain = {names[0], f"first({names[0]})", f"last({names[0]})"} if len(names) == 1 else set()
        plain |= {f"max({names[0]})", f"min({names[0]})"} if len(names) == 1 else set()
        return self.number_leaf(names[0]) if text in plain else None

    def leaf_blamed(self, expression: Expression | None) -> int | None:
        names = [] if expression is None else list(columns_in(expression))
        return self.number_leaf(names[0]).index if names else None

    def blame(self, expression: Expression, written: Written) -> int | None:
        """The column behind a condition on fields."""
        for path in expression.paths():
            for prefix in (ENTRY, ITEM):
                part = written.known.get((prefix, path.names[0]))
                if part is None:
                    continue
                for m, _, e in part.members:
                    if path.names[1:] == (m.name,):
                        return self.leaf_blamed(e)
                if part.expression is not None:
                    return self.leaf_blamed(part.expression)
        return None

    def refusal(self, before: str, check: Check) -> None:
        """A line with the number of what is in the way, and its names."""
        name = "the row" if check.column is None else self.view.leaves[check.column].name
        remark = f"{name}, {check.name}" if check.name else name
        self.code.add(f"{before}{self.checks.number(check)}  # {remark}")

    def not_these(self, case: CasePlan, written: Written) -> None:
        """Rows of this case are others than the first one is."""
        assert case.rows.when is not None
        check = Check("when", case.rows.when, self.blame(case.rows.when, written))
        self.refusal("return -1, ", check)

    def stop(self, condition: str, leaf: int | None, f: Field | None = None) -> None:
        """A column (None: the row) does not fit into a field (None: it would not be read back)."""
        check = Check(column=leaf) if f is None else Check(f.name, f.span, leaf)
        with self.code.block(f"if {condition}:"):
            if not self.inside:
                self.refusal("return 0, ", check)
            else:
                self.refusal("blamed = ", check)
                self.code.add("break")

    # ------------------------------------------------------------ bytes and lists

    def bytes_fit(self, case: CasePlan, written: Written) -> None:
        """Bytes and lists have a place in their fields."""
        for part in written.item:
            if part.leaf is None:
                continue
            if part.kind == "bytes":
                self.one_fits(part.field, part.leaf)
            elif part.kind == "list":
                self.list_fits(case, part.field, part.leaf)

    def one_fits(self, f: Field, leaf: Leaf) -> None:
        assert isinstance(f.type, BytesType)
        n = value_of(leaf)
        length = f.type.length
        if isinstance(length, int):
            self.stop(f"{n} != {length}", leaf.index, f)
        elif length != "rest":
            high = (1 << 31) - 1 if length == "compact" else largest(length)
            if high < MOST_BYTES:
                self.stop(f"{n} > {high}", leaf.index, f)
        if leaf.column.nullable and f.type.null is None:
            self.stop(f"{n} < 0", leaf.index, f)
        if f.type.text:
            start = f"{self.part(leaf, 'data')} + {self.part(leaf, 'at')}"
            self.stop(f"not is_utf8_within({start}, {n}, {self.part(leaf, 'end')})", leaf.index, f)

    def list_fits(self, case: CasePlan, f: Field, leaf: Leaf) -> None:
        element = self.element_of(f, case.element)
        assert isinstance(f.type, ArrayType)
        if element is None or f.type.length is not None or f.type.at_least:
            raise Unsupported("an array that is not written by the kernels", f)
        self.refuse_element(element)
        counted = f.type.counted_by
        name = f.type.count or "varint"
        if counted is not None:
            fp = case.element.field(counted)
            assert fp is not None
            name = getattr(fp.field.type, "name", "varint")
        high = min((1 << 31) - 1 if name == "compact" else largest(name), MOST_BYTES)
        limit = f" or {ROW}{leaf.name} > {high}" if high < MOST_BYTES else ""
        self.stop(f"{ROW}{leaf.name} > most{limit}", leaf.index, f)
        add = self.code.add
        members = self.members(leaf)
        add(f"{self.part(leaf, 'size')} = 0")
        with self.code.block(
            f"for part in range({self.part(leaf, 'at')}, {self.part(leaf, 'at')} + {ROW}{leaf.name}):"
        ):
            fixed = 0
            for fp in element.fields:
                inner = fp.field
                member = members.get(fp.name)
                if isinstance(inner.type, BytesType):
                    if member is None:
                        if inner.type.null is None:
                            raise Unsupported("without a value to write, and cannot be null", inner)
                        const, text = size_of_number(length_name(inner), "-1")
                        fixed += const
                        if text:
                            add(f"{self.part(leaf, 'size')} += {text}")
                        continue
                    self.load_bytes(member, "part")
                    self.null_bytes(member, "part")
                    self.one_fits(inner, member)
                    const, text = self.bytes_size(inner, value_of(member))
                    fixed += const
                    add(f"{self.part(leaf, 'size')} += {text}")
                else:
                    fixed += self.constant_size(inner)
            if fixed:
                add(f"{self.part(leaf, 'size')} += {fixed}")
        with self.code.block("if blamed >= 0:"):
            add("break")

    def bytes_size(self, f: Field, variable: str) -> tuple[int, str]:
        """(constant, text of the rest) of the bytes that a field of bytes takes."""
        assert isinstance(f.type, BytesType)
        null = f.type.null is not None
        content = f"max({variable}, 0)" if null else variable
        if isinstance(f.type.length, int) or f.type.length == "rest":
            return 0, content
        const, text = size_of_number(f.type.length, variable)
        return const, f"{text} + {content}" if text else content

    def constant_size(self, f: Field) -> int:
        """Bytes of a number in an element, which has its default."""
        name = getattr(f.type, "name", None) or getattr(f.type, "base", None)
        if name in INTEGERS:
            return INTEGERS[str(name)][0]
        raise Unsupported("not written by the kernels inside an array of a row", f)

    def rule(
        self, expression: Expression, written: Written, layout: LayoutPlan, prefix: str
    ) -> Operand:
        names = FieldNames(self.plan, layout, prefix, parts=written.known)
        return names.value(expression)


def _outside(value: str, allowed: list[int]) -> str:
    """The condition that a number is none of those."""
    low, high = min(allowed), max(allowed)
    if len(set(allowed)) == high - low + 1:
        return f"{value} < {low} or {value} > {high}"
    return " and ".join(f"{value} != {number}" for number in sorted(set(allowed)))
