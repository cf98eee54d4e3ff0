"""Pass 1 of writing: which rows one entry holds, how many bytes that takes, and what of them cannot be written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from codecgen.plan import LayoutPlan
from codecgen.plan.columns import CasePlan, Leaf
from codecgen.schema.expression import Expression
from codecgen.schema.model import (
    INTEGERS,
    ArrayType,
    BitMember,
    BytesType,
    Field,
    ScalarType,
)
from codecgen.targets.arrow_code import Unsupported, function_name
from codecgen.targets.arrow_expressions import Operand, Refused, negated
from codecgen.targets.arrow_rowwise import (
    BYTES_LIKE,
    LONGEST_VARINT,
    SLOTS,
    Rowwise,
    length_name,
    size_of_number,
)
from codecgen.targets.arrow_scope import ENTRY, ITEM
from codecgen.targets.arrow_written import (
    HEAD,
    LEAST,
    MOST,
    ROW,
    FieldNames,
    Part,
    Written,
    columns_in,
    range_of,
)

NO_COLUMN = 255
"""Stands for the size of a row in the place of a column."""

MOST_BYTES = (1 << 31) - 1
_WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "timestamp_ms": 64}


class Cut(Rowwise):
    """Writes the functions of pass 1. ``current`` is what the function at hand writes, ``inside`` tells whether it is
    in the loop over the rows."""

    current: Written
    inside = False

    def cut_case(self, case: CasePlan) -> None:
        add = self.code.add
        written = self.current = self.written[case.number]
        parameters = "columns: int, start: int, last: int, entry: int, sizes: int, most_bytes: int, most: int"
        self.function(
            f"cut_{case.name}({parameters}) -> tuple[int, int]",
            "Pass 1: how many rows from ``start`` on one entry holds, and what it needs of them. 0 rows and what is in the "
            "way; -1 when such an entry is not for them."
            if case.array is not None
            else "Pass 1: how many rows from ``start`` on are entries of this kind. 0 rows and what is in the way; -1 when "
            "the first one is not.",
        )
        self.addresses(self.leaves(written))
        add("extra = load_i64_le(columns)")
        self.inside = False
        self.head(case, written)
        running = [part for part in written.entry if part.running]
        ends = self.ends(case, written)
        for name in sorted(ends):
            add(f"{name} = 0")
        add("size = 0")
        add("blamed = -1")
        add("row = start")
        with self.code.block("while row < last and row - start < most:"):
            self.inside = True
            self.row(case, written, running, ends)
        self.close(case, written, running)
        add("return row - start, -1")

    # ------------------------------------------------------------ the first row

    def head(self, case: CasePlan, written: Written) -> None:
        """What the first row settles for the entry."""
        add = self.code.add
        if case.array is None:
            return
        for name in sorted({n for p, n in written.columns.used if p in (HEAD, MOST, LEAST)}):
            self.load(self.number_leaf(name), "start", HEAD + name)
        for prefix, name in sorted(written.columns.used):
            if prefix in (MOST, LEAST):
                add(f"{prefix}{name} = {HEAD}{name}")
        for name in sorted(self.last_columns(written)):
            add(f"{ROW}{name} = {HEAD}{name}")
        for part in written.order:
            if part.varies and not part.running:
                self.work_out(part, ENTRY)
        if case.rows.when is not None:
            holds = self.rule(case.rows.when, written, case.entry, ENTRY)
            if holds.constant != 1:
                with self.code.block(f"if {negated(holds)}:"):
                    add(f"return -1, {self.blame(case.rows.when, written, case)}")
        for part in written.order:
            if part.running and part.value is not None:
                self.assign(ENTRY + part.name, part.value)

    def last_columns(self, written: Written) -> set[str]:
        """Columns whose value in the last row an entry holds, and which the first row must stand for at first."""
        out: set[str] = set()
        for part in written.entry:
            if part.running and part.value is not None:
                found = re.findall(rf"\b{ROW}(\w+)", f"{part.value.text} {part.value.null or ''}")
                out |= {name.removesuffix("_null") for name in found}
        for name in out:
            written.columns.used.add((HEAD, name))
            self.load(self.number_leaf(name), "start", HEAD + name)
        return out

    # ------------------------------------------------------------ one row

    def row(
        self, case: CasePlan, written: Written, running: list[Part], ends: dict[str, str]
    ) -> None:
        add = self.code.add
        for part in running:
            add(f"{ENTRY}{part.name}_before = {ENTRY}{part.name}")
        last = [name for name in sorted(ends) if name.startswith("last_")]
        for name in last:
            add(f"{name}_before = {name}")
        main, others = self.row_columns(case, written)
        for leaf in main:
            self.load_one(leaf)
        for part in written.item:
            if part.varies:
                self.work_out(part, ITEM)
        if case.array is None and case.rows.when is not None:
            holds = self.rule(case.rows.when, written, case.entry, ITEM)
            if holds.constant != 1:
                with self.code.block(f"if {negated(holds)}:"):
                    with self.code.block("if row == start:"):
                        add(f"return -1, {self.blame(case.rows.when, written, case)}")
                    add("break")
        for prefix, name in sorted(written.columns.used):
            if prefix in (MOST, LEAST):
                function = "max" if prefix == MOST else "min"
                add(f"{prefix}{name} = {function}({prefix}{name}, {ROW}{name})")
        for part in running:
            assert part.value is not None
            self.assign(ENTRY + part.name, part.value)
            self.within(part.field, part.expression, written, case, ENTRY + part.name)
        for name in last:
            add(f"{name} = {ends[name]}")
        if ends:
            with self.code.block("if row == start:"):
                for name in sorted(ends.keys() - set(last)):
                    add(f"{name} = {ends[name]}")
                for name in last:
                    add(f"{name}_before = {name}")
        self.bytes_fit(case, written)
        self.rules(case.element, written.item, written, case, ITEM)
        if case.array is not None:
            self.rules(case.entry, written.entry, written, case, ENTRY)
        self.read_back(case, written, running, ends, [x for x in main if not x.column.on_request])
        wanted = [leaf for leaf in others if leaf.column.on_request]
        late = [x for x in main if x.column.on_request]
        if wanted or late:
            with self.code.block("if extra:"):
                for leaf in wanted:
                    self.load_one(leaf)
                self.read_back(case, written, running, ends, [*late, *wanted])
        self.sizes(case, written)
        add("row += 1")

    def row_columns(self, case: CasePlan, written: Written) -> tuple[list[Leaf], list[Leaf]]:
        """The columns that are written or read back by default, and others that are looked at when they are given."""
        used = {name for prefix, name in written.columns.used if prefix != HEAD}
        used |= {p.leaf.column.name for p in written.item if p.leaf is not None}
        main: list[Leaf] = []
        others: list[Leaf] = []
        for leaf, _ in written.leaves_read():
            if leaf.column.name in used:
                main.append(leaf)
            elif leaf.column.name not in self.places():
                (others if leaf.column.on_request else main).append(leaf)
        return main, others

    def load_one(self, leaf: Leaf) -> None:
        if leaf.column.type in BYTES_LIKE:
            self.load_bytes(leaf, "row")
            self.null_bytes(leaf, "row")
        elif leaf.column.type == "list":
            self.load_bytes(leaf, "row")
        else:
            self.load(leaf, "row", ROW + leaf.column.name)

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
            self.stop(" or ".join(tests), blame, f.span.line)
        if isinstance(f.type, ScalarType) and f.type.enum is not None:
            enum = self.plan.model.enums[f.type.enum]
            if not enum.keep_unknown:
                only = f.type.only
                allowed = [v.value for v in enum.values if only is None or v.name in only]
                self.stop(_outside(value, allowed), blame, f.span.line)

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
        self.stop(condition, self.leaf_blamed(expression), f.span.line)

    def plain_column(self, expression: Expression) -> Leaf | None:
        """The column that an expression is nothing but."""
        names = list(columns_in(expression))
        text = str(expression)
        plain = {names[0], f"first({names[0]})", f"last({names[0]})"} if len(names) == 1 else set()
        plain |= {f"max({names[0]})", f"min({names[0]})"} if len(names) == 1 else set()
        return self.number_leaf(names[0]) if text in plain else None

    def leaf_blamed(self, expression: Expression | None) -> int:
        names = [] if expression is None else list(columns_in(expression))
        return self.number_leaf(names[0]).index if names else NO_COLUMN

    def blame(self, expression: Expression, written: Written, case: CasePlan) -> int:
        """The column behind a condition on fields."""
        for path in expression.paths():
            for prefix in (ENTRY, ITEM):
                part = written.known.get((prefix, path.names[0]))
                if part is None:
                    continue
                for m, _, e in part.members:
                    if path.names[1:] == (m.name,):
                        return self.number(self.leaf_blamed(e), expression.line)
                if part.expression is not None:
                    return self.number(self.leaf_blamed(part.expression), expression.line)
        return self.number(NO_COLUMN, expression.line)

    def number(self, leaf: int, line: int) -> int:
        """What is in the way: a column, and the line of YAML that it does not fit (0: it would not be read back)."""
        return line << 8 | leaf

    def stop(self, condition: str, leaf: int, line: int) -> None:
        with self.code.block(f"if {condition}:"):
            if not self.inside:
                self.code.add(f"return 0, {self.number(leaf, line)}")
            else:
                self.code.add(f"blamed = {self.number(leaf, line)}")
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
        n = ROW + leaf.name
        length = f.type.length
        if isinstance(length, int):
            self.stop(f"{n} != {length}", leaf.index, f.span.line)
        elif length != "rest":
            high = (1 << 31) - 1 if length == "compact" else _most(length)
            if high < MOST_BYTES:
                self.stop(f"{n} > {high}", leaf.index, f.span.line)
        if leaf.column.nullable and f.type.null is None:
            self.stop(f"{n} < 0", leaf.index, f.span.line)
        if f.type.text:
            start = f"{leaf.name}_data + {leaf.name}_at"
            self.stop(f"not is_utf8_within({start}, {n}, {leaf.name}_end)", leaf.index, f.span.line)

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
        high = min((1 << 31) - 1 if name == "compact" else _most(name), MOST_BYTES)
        limit = f" or {ROW}{leaf.name} > {high}" if high < MOST_BYTES else ""
        self.stop(f"{ROW}{leaf.name} > most{limit}", leaf.index, f.span.line)
        add = self.code.add
        members = self.members(leaf)
        add(f"{leaf.name}_size = 0")
        with self.code.block(
            f"for part in range({leaf.name}_at, {leaf.name}_at + {ROW}{leaf.name}):"
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
                            add(f"{leaf.name}_size += {text}")
                        continue
                    self.load_bytes(member, "part")
                    self.null_bytes(member, "part")
                    self.one_fits(inner, member)
                    const, text = self.bytes_size(inner, ROW + member.name)
                    fixed += const
                    add(f"{leaf.name}_size += {text}")
                else:
                    fixed += self.constant_size(inner)
            if fixed:
                add(f"{leaf.name}_size += {fixed}")
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

    # ------------------------------------------------------------ rules and reading back

    def rule(
        self, expression: Expression, written: Written, layout: LayoutPlan, prefix: str
    ) -> Operand:
        names = FieldNames(self.plan, layout, prefix, parts=written.known)
        return names.value(expression)

    def rules(
        self,
        layout: LayoutPlan,
        parts: tuple[Part, ...],
        written: Written,
        case: CasePlan,
        prefix: str,
    ) -> None:
        """What the format says of its values holds for those that are written."""
        for part in parts:
            f = part.field
            if part.kind in ("absent", "length", "count", "checksum", "rows"):
                continue
            for expression, wanted in ((f.valid, True), (f.refuse, False)):
                if expression is None:
                    continue
                try:
                    value = self.rule(expression, written, layout, prefix)
                except Refused as error:
                    raise Unsupported(error.reason, f) from None
                if value.constant is not None and bool(value.constant) == wanted:
                    continue
                condition = negated(value) if wanted else value.text
                leaf = self.blame(expression, written, case) & 0xFF
                if part.leaf is not None:
                    leaf = part.leaf.index
                self.stop(condition, leaf, f.span.line)

    def read_back(
        self,
        case: CasePlan,
        written: Written,
        running: list[Part],
        ends: dict[str, str],
        leaves: list[Leaf],
    ) -> None:
        """A reader finds the columns as they are, for this row and (``before``) for those that are in already."""
        for leaf in leaves:
            expression = case.rows.values.get(leaf.column.name)
            if leaf.column.name in self.places():
                continue
            if expression is not None and written.identical(leaf, expression):
                continue
            given = f"{leaf.name}_given and "
            n = ROW + leaf.name
            if leaf.column.type == "list":
                if expression is None or not self.is_written(leaf, written):
                    self.stop(f"{given}{n} > 0", leaf.index, 0)
            elif leaf.column.type in BYTES_LIKE:
                if expression is None or not self.is_written(leaf, written):
                    self.stop(f"{given}{n} >= 0", leaf.index, 0)
            elif expression is None:
                self.stop(f"{given}not {n}_null", leaf.index, 0)
            else:
                self.number_back(leaf, expression, written, case, running, ends)

    def is_written(self, leaf: Leaf, written: Written) -> bool:
        return any(part.leaf is leaf for part in written.item)

    def number_back(
        self,
        leaf: Leaf,
        expression: Expression,
        written: Written,
        case: CasePlan,
        running: list[Part],
        ends: dict[str, str],
    ) -> None:
        prefix = ITEM if case.array is None else ENTRY
        names = FieldNames(self.plan, case.entry, prefix, case, parts=written.known)
        value = names.value(expression)
        n = ROW + leaf.name
        text = value.text if value.plain else f"({value.text})"
        if leaf.column.type == "bool" and value.constant is None and not text.endswith("& 1)"):
            text = f"int({value.text})"
        moving = [ENTRY + part.name for part in running]
        moving += [name for name in ends if name.startswith("last_")]
        moving = [name for name in moving if re.search(rf"\b{name}\b", f"{text} {value.null}")]
        if value.branches or leaf.column.nullable:
            with self.code.block(f"if {leaf.name}_given:"):
                self.back(value, n, leaf)
                if moving:
                    self.back(_earlier(value, moving), n, leaf)
            return
        for variant in (text, _before(text, moving)) if moving else (text,):
            test = f"{n} != {variant}" if value.constant is not None else f"{variant} != {n}"
            self.stop(f"{leaf.name}_given and {test}", leaf.index, 0)

    def back(self, value: Operand, n: str, leaf: Leaf) -> None:
        """Work out what is read, and compare."""
        if not leaf.column.nullable:
            self.assign("back", value)
            self.stop(f"back != {n}", leaf.index, 0)
            return
        null = value.null or "False"
        self.stop(f"{n}_null != ({null})", leaf.index, 0)
        if value.constant is None:
            self.assign("back", value)
            self.stop(f"not {n}_null and back != {n}", leaf.index, 0)
        elif null != "True":
            self.stop(f"not {n}_null and {n} != {value.text}", leaf.index, 0)

    def ends(self, case: CasePlan, written: Written) -> dict[str, str]:
        """Fields of the first and the last element that readers use: variable -> the field's value in the row."""
        if case.array is None:
            return {}
        names = FieldNames(self.plan, case.entry, ENTRY, case, parts=written.known)
        for leaf, expression in written.leaves_read():
            if expression is not None and leaf.column.type not in (*BYTES_LIKE, "list"):
                names.value(expression)
        out = {}
        for variable, (_, field) in names.ends.items():
            part = written.known.get((ITEM, field))
            known = part.value if part is not None else None
            out[variable] = (
                str(known.constant)
                if known is not None and known.constant is not None
                else ITEM + field
            )
        return out

    # ------------------------------------------------------------ sizes

    def fixed(self, layout: LayoutPlan, parts: tuple[Part, ...]) -> Iterator[tuple[Part, int]]:
        """The bytes of each part that are the same in all rows."""
        for part in parts:
            f = part.field
            if part.kind == "absent" or part.kind == "rows":
                yield part, 0
            elif part.kind in ("number", "bits", "length", "count", "checksum"):
                yield part, part.plan.size or 0
            elif part.kind == "bytes":
                assert isinstance(f.type, BytesType)
                name = f.type.length
                yield part, INTEGERS[str(name)][0] if name in INTEGERS else 0
            else:
                assert isinstance(f.type, ArrayType)
                name = f.type.count or ""
                yield part, INTEGERS[name][0] if name in INTEGERS else 0

    def sizes(self, case: CasePlan, written: Written) -> None:
        """The bytes of the row; it goes into the entry if there is room."""
        add = self.code.add
        terms: list[str] = []
        total = 0
        ahead = 0
        length: Part | None = None
        for part, const in self.fixed(case.element, written.item):
            if part.kind == "length" and part.plan.size is None:
                run = part.plan.measures
                fields = case.element.fields
                at = [fp.name for fp in fields].index(part.name)
                to_end = run is not None and run.last in (None, fields[-1].name)
                if length is not None or terms or not to_end or run is None:
                    raise Unsupported("a length in front of a part of the row", part.field)
                if at + 1 >= len(fields) or run.first != fields[at + 1].name:
                    raise Unsupported(
                        "a length that is not in front of what it measures", part.field
                    )
                length, ahead, total = part, total, 0
                continue
            total += const
            terms += self.terms(part, case)
        add(f"taken = {total}")
        for term in terms:
            add(f"taken += {term}")
        if length is not None:
            name = getattr(length.field.type, "name", "varint")
            if _most(name) < MOST_BYTES:
                self.stop(f"taken > {_most(name)}", NO_COLUMN, length.field.span.line)
            add("store_32(sizes, taken)")
            add("sizes += 4")
            behind = f" + {ahead}" if ahead else ""
            add(f"taken += size_{name}(taken){behind}")
        self.lengths_hold(case, written)
        limit = self.most_of(case)
        with self.code.block(f"if taken > {limit}:"):
            add(f"blamed = {self.number(NO_COLUMN, 0)}")
            add("break")
        with self.code.block("if size + taken > most_bytes and row > start:"):
            add(f"blamed = {self.number(NO_COLUMN, 0)}")
            add("break")
        add("size += taken")

    def lengths_hold(self, case: CasePlan, written: Written) -> None:
        """Lengths of fixed size that are small can say how long the row is."""
        for part in written.item:
            if part.kind != "length" or part.plan.size is None:
                continue
            high = range_of(part.field)[1]
            if high >= MOST_BYTES:
                continue
            run = part.plan.measures
            first = None if run is None else case.element.field(run.first)
            to_end = run is not None and run.last in (None, case.element.fields[-1].name)
            if first is None or first.offset is None or not to_end:
                raise Unsupported("a length in front of a part of the row", part.field)
            behind = f" - {first.offset}" if first.offset else ""
            self.stop(f"taken{behind} > {high}", NO_COLUMN, part.field.span.line)

    def terms(self, part: Part, case: CasePlan) -> list[str]:
        """The bytes of a part that depend on its value."""
        f = part.field
        if part.kind == "number" and part.plan.size is None:
            assert part.value is not None
            value = part.value
            text = str(value.constant) if value.constant is not None else ITEM + part.name
            return [size_of_number(str(getattr(f.type, "name", "")), text)[1]]
        if part.kind == "count" and part.plan.size is None:
            return [size_of_number(str(getattr(f.type, "name", "")), self.count_of(part, case))[1]]
        if part.kind == "bytes":
            if part.leaf is None:
                return [t for t in [size_of_number(length_name(f), "-1")[1]] if t]
            return [self.bytes_size(f, ROW + part.leaf.name)[1]]
        if part.kind == "list":
            assert isinstance(f.type, ArrayType)
            count = ROW + part.leaf.name if part.leaf is not None else "0"
            out = [] if f.type.count is None else [size_of_number(f.type.count, count)[1]]
            if part.leaf is not None:
                out.append(f"{part.leaf.name}_size")
            return [t for t in out if t]
        return []

    def count_of(self, part: Part, case: CasePlan) -> str:
        """The number of elements that a field of an element counts."""
        written = self.written[case.number]
        counted = written.known.get((ITEM, part.field.counts or ""))
        leaf = counted.leaf if counted is not None else None
        return ROW + leaf.name if leaf is not None else "0"

    def most_of(self, case: CasePlan) -> int:
        """The most bytes that the rows of one entry can have, before they are compressed."""
        return min(MOST_BYTES - self.head_size(case), self.room(case))

    def room(self, case: CasePlan) -> int:
        """What the lengths around the rows leave for them."""
        if case.array is None:
            return MOST_BYTES
        room = MOST_BYTES
        for part in self.written[case.number].entry:
            if part.kind == "length":
                room = min(room, _most(str(getattr(part.field.type, "name", ""))))
        type_ = case.array.field.type
        assert isinstance(type_, ArrayType)
        if type_.length is not None:
            room = min(room, _most(type_.length))
        return room - self.head_size(case)

    def head_size(self, case: CasePlan) -> int:
        """The most bytes of an entry beside its rows."""
        if case.array is None:
            return 0
        total = 0
        for part, const in self.fixed(case.entry, self.written[case.number].entry):
            total += const
            if part.kind != "absent" and not const:
                total += 2 * LONGEST_VARINT
        return total

    def most_rows(self, case: CasePlan) -> int:
        """How many rows an entry can count."""
        if case.array is None:
            return MOST_BYTES
        most = MOST_BYTES
        for part in self.written[case.number].entry:
            if part.kind == "count" and part.field.counts == case.array.name:
                most = min(most, range_of(part.field)[1])
        type_ = case.array.field.type
        assert isinstance(type_, ArrayType)
        return min(most, _most(type_.count)) if type_.count is not None else most

    # ------------------------------------------------------------ behind the last row

    def close(self, case: CasePlan, written: Written, running: list[Part]) -> None:
        add = self.code.add
        with self.code.block("if row == start:"):
            add("return 0, blamed")
        if running:
            with self.code.block("if blamed >= 0:"):
                for part in running:
                    add(f"{ENTRY}{part.name} = {ENTRY}{part.name}_before")
        add(f"store_64(entry + CASE, {case.number})")
        add("store_64(entry + FIRST, start)")
        add("store_64(entry + ROWS, row - start)")
        add("store_64(entry + SIZE, size)")
        codec = self.codec_of(case, written)
        add(f"store_64(entry + CODEC, {codec})")
        add("store_64(entry + RUN, 0)")
        add("store_64(entry + RUN_SIZE, size)")
        for name, at in self.slots[case.number].items():
            value = f"int({name})" if name.endswith("_null") else name
            add(f"store_64(entry + {at}, {value})")

    def codec_of(self, case: CasePlan, written: Written) -> str:
        type_ = None if case.array is None else case.array.field.type
        if not isinstance(type_, ArrayType) or type_.compression is None:
            return "0"
        return self.rule(type_.compression.by, written, case.entry, ENTRY).text

    def cut(self, entry: LayoutPlan, cases: list[CasePlan]) -> None:
        """Pass 1 over many entries."""
        add = self.code.add
        parameters = (
            "columns: int, table: int, capacity: int, start: int, last: int, final: int, sizes: int, "
            "most_bytes: int, enough: int, most: int"
        )
        self.function(
            f"{function_name('cut_all', entry)}({parameters}) -> tuple[int, int, int, int, int]",
            "Pass 1: a row of the table for each entry that the rows make, until they are at least ``enough`` bytes. How many "
            "entries, the first row that is in none of them, what is in its way (-1: nothing), the bytes of the rows, how many "
            "entries are compressed. Unless the rows are the ``final`` ones, the last entry waits for more.",
            inner=False,
        )
        add("n = 0")
        add("done = 0")
        add("squeezed = 0")
        add("row = start")
        with self.code.block("while row < last and n < capacity and done < enough:"):
            add("entry = table + n * ENTRY_SIZE")
            add("at = sizes + 4 * (row - start)")
            add("rows, blamed = -1, -1")
            for case in cases:
                most = self.most_rows(case)
                limit = "most" if most == MOST_BYTES else f"min(most, {most})"
                own = self.most_of(case)
                many = f"min(most_bytes, {own})"
                if case.array is None:
                    many = "enough - done"
                call = f"cut_{case.name}(columns, row, last, entry, at, {many}, {limit})"
                with self.code.block("if rows < 0:"):
                    add(f"rows, blamed = {call}")
                    if case.array is not None:
                        with self.code.block("if rows > 0 and row + rows == last and not final:"):
                            add("return n, row, -1, done, squeezed")
            with self.code.block("if rows <= 0:"):
                add("return n, row, blamed, done, squeezed")
            add("store_64(entry + SIZES, at)")
            add("done += load_i64_le(entry + SIZE)")
            add("squeezed += int(load_i64_le(entry + CODEC) != 0)")
            add("row += rows")
            add("n += 1")
        add("return n, row, -1, done, squeezed")


def _most(name: str) -> int:
    """The largest number of a type that lengths have."""
    if name in INTEGERS:
        size, signed = INTEGERS[name]
        return (1 << 8 * size - signed) - 1
    return (1 << 31) - 1


def _outside(value: str, allowed: list[int]) -> str:
    """The condition that a number is none of those."""
    low, high = min(allowed), max(allowed)
    if len(set(allowed)) == high - low + 1:
        return f"{value} < {low} or {value} > {high}"
    return " and ".join(f"{value} != {number}" for number in sorted(set(allowed)))


def _before(text: str, names: list[str]) -> str:
    for name in names:
        text = re.sub(rf"\b{name}\b", f"{name}_before", text)
    return text


def _earlier(value: Operand, names: list[str]) -> Operand:
    """A value before the row at hand was looked at."""
    branches = tuple((_before(a, names), _before(b, names)) for a, b in value.branches)
    null = None if value.null is None else _before(value.null, names)
    return replace(value, text=_before(value.text, names), null=null, branches=branches)


__all__ = ["NO_COLUMN", "SLOTS", "Cut"]
