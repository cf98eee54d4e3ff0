"""Pass 2 of writing: the bytes of rows, and of the entries around them."""

from __future__ import annotations

from codecgen.plan import LayoutPlan
from codecgen.plan.columns import CasePlan, Leaf
from codecgen.schema.model import INTEGERS, ArrayType, BytesType, Field
from codecgen.targets.arrow.code import Unsupported
from codecgen.targets.arrow.naming import ENTRY, HEAD, ITEM, NULL, ROW, value_of
from codecgen.targets.arrow.numba_encode.cut import Cut
from codecgen.targets.arrow.numba_encode.rowwise import BYTES_LIKE
from codecgen.targets.arrow.numba_encode.written import Part, Written


class Put(Cut):
    """Writes the functions of pass 2."""

    little = False

    def put_case(self, case: CasePlan) -> None:
        """The rows of an entry."""
        add = self.code.add
        written = self.current = self.written[case.number]
        self.little = case.element.layout.endian == "little"
        self.function(
            f"{self.naming.function('put', case)}(columns: int, entry: int, p: int) -> int",
            "Pass 2: write the rows of an entry. The address behind them.",
        )
        self.addresses(self.leaves(written))
        add("start = load_i64_le(entry + FIRST)")
        add("rows = load_i64_le(entry + ROWS)")
        add("sizes = load_i64_le(entry + SIZES)")
        for name in self.slots[case.number]:
            add(f"{name} = load_i64_le(entry + {name.upper()})")
        with self.code.block("for row in range(start, start + rows):"):
            used = self.columns_put(written)
            for leaf in self.view.leaves:
                if leaf.inside is None and leaf.name in used:
                    if leaf.column.type in BYTES_LIKE:
                        self.load_bytes(leaf, "row")
                        self.null_bytes(leaf, "row")
                    elif leaf.column.type == "list":
                        self.load_bytes(leaf, "row")
                    else:
                        self.load(leaf, "row", ROW + leaf.name)
            self.fields(case, case.element, written.item, ITEM)
        add("return p")

    def columns_put(self, written: Written) -> set[str]:
        """The columns whose values in each row are written."""
        out = set()
        for part in written.item:
            if part.leaf is not None:
                out.add(part.leaf.name)
            if part.value is not None:
                text = f"{part.value.text} {part.value.null}"
                for leaf in self.view.leaves:
                    if leaf.inside is None and f"{ROW}{leaf.name}" in text:
                        out.add(leaf.name)
        return out

    def write_case(self, case: CasePlan) -> None:
        """An entry with its rows."""
        add = self.code.add
        if case.array is None:
            return
        written = self.current = self.written[case.number]
        self.little = case.entry.layout.endian == "little"
        self.function(
            f"{self.naming.function('write', case)}(columns: int, entry: int, p: int) -> int",
            "Pass 2: write an entry, with its rows or the run that they were compressed to. The address behind it.",
        )
        add("run = load_i64_le(entry + RUN)")
        add("run_size = load_i64_le(entry + RUN_SIZE)")
        add("rows = load_i64_le(entry + ROWS)")
        for name in self.slots[case.number]:
            if not name.removeprefix(NULL).startswith(HEAD):
                add(f"{name} = load_i64_le(entry + {name.upper()})")
        self.fields(case, case.entry, written.entry, ENTRY)
        add("return p")

    # ------------------------------------------------------------ fields

    def fields(
        self, case: CasePlan, layout: LayoutPlan, parts: tuple[Part, ...], prefix: str
    ) -> None:
        """All fields in their order; then lengths, and then checksums, in the places that were left for them."""
        add = self.code.add
        there = [part for part in parts if part.kind != "absent"]
        firsts = self.starts(there)
        lasts = {name for part in there for name in self.runs_end(part, layout)}
        for i, part in enumerate(there):
            if part.name in firsts:
                add(f"start_of_{part.name} = p")
            self.one(case, part, prefix)
            if part.name in lasts and i + 1 < len(there):
                add(f"end_of_{part.name} = p")
        for part in reversed(there):
            if part.kind == "length" and part.plan.size is not None:
                start, end = self.run(part, layout)
                self.patch(part, f"{end} - {start}")
        checks = [part for part in there if part.kind == "checksum"]
        for part in sorted(checks, key=lambda part: self.covered(part, layout)):
            start, end = self.run(part, layout)
            self.patch(part, f"{part.field.checksum}({start}, {end} - {start})")

    def covered(self, part: Part, layout: LayoutPlan) -> int:
        run = part.plan.covers
        return 0 if run is None else len(layout.run(run))

    def starts(self, parts: list[Part]) -> set[str]:
        out = set()
        for part in parts:
            run = part.plan.measures or part.plan.covers
            if run is not None and not (part.kind == "length" and part.plan.size is None):
                out.add(run.first)
        return out

    def runs_end(self, part: Part, layout: LayoutPlan) -> set[str]:
        run = part.plan.measures or part.plan.covers
        if run is None or run.last is None or run.last == layout.fields[-1].name:
            return set()
        return {run.last}

    def run(self, part: Part, layout: LayoutPlan) -> tuple[str, str]:
        """Where a run of fields begins and ends."""
        run = part.plan.measures or part.plan.covers
        assert run is not None
        end = "p" if not self.runs_end(part, layout) else f"end_of_{run.last}"
        return f"start_of_{run.first}", end

    def patch(self, part: Part, value: str) -> None:
        size = part.plan.size
        if size is None:
            raise Unsupported("worked out when all is written, but of no fixed size", part.field)
        self.store(f"place_of_{part.name}", size, value)

    def store(self, place: str, size: int, value: str) -> None:
        order = "" if size == 1 or self.little else "_be"
        self.code.call(f"store_{8 * size}{order}", place, value)

    def put_number(self, name: str, value: str, comment: str = "") -> None:
        """A number at the end of what is written."""
        remark = f"  # {comment}" if comment else ""
        if name in INTEGERS or name == "bool":
            size = 1 if name == "bool" else INTEGERS[name][0]
            self.store("p", size, value)
            self.code.add(f"p += {size}{remark}")
        elif name == "compact":
            self.code.add(f"p = put_uvarint(p, {value} + 1){remark}")
        else:
            self.code.add(f"p = put_{name}(p, {value}){remark}")

    def one(self, case: CasePlan, part: Part, prefix: str) -> None:
        add = self.code.add
        f = part.field
        name = str(getattr(f.type, "name", None) or getattr(f.type, "base", ""))
        if part.kind in ("length", "checksum") and part.plan.size is not None:
            add(f"place_of_{part.name} = p")
            add(f"p += {part.plan.size}")
        elif part.kind == "length":
            if prefix != ITEM:
                raise Unsupported("a length of an entry that varies in size", f)
            add("length = load_i32_le(sizes)")
            add("sizes += 4")
            self.put_number(name, "length", part.name)
        elif part.kind == "count":
            own = prefix == ENTRY and case.array is not None and f.counts == case.array.name
            self.put_number(name, "rows" if own else self.count_of(part, case), part.name)
        elif part.kind in ("number", "bits"):
            assert part.value is not None
            if part.value.constant is not None:
                self.put_number(name, str(part.value.constant), part.name)
            elif prefix == ENTRY:
                self.put_number(name, ENTRY + part.name)
            elif part.value.branches:
                self.assign(ITEM + part.name, part.value)
                self.put_number(name, ITEM + part.name)
            else:
                self.put_number(name, part.value.text, part.name)
        elif part.kind == "bytes":
            self.put_bytes(f, part.leaf)
        elif part.kind == "list":
            self.put_list(case, f, part.leaf)
        elif part.kind == "rows":
            self.put_rows(case, f)
        else:
            raise Unsupported("a checksum of no fixed size", f)

    def put_bytes(self, f: Field, leaf: Leaf | None) -> None:
        assert isinstance(f.type, BytesType)
        length = f.type.length
        if leaf is None:
            missing = "-1" if length == "compact" else str(f.type.null)
            self.put_number(str(length), missing, f.name)
            return
        n = value_of(leaf)
        counted = not isinstance(length, int) and length != "rest"
        if not leaf.column.nullable:
            self.put_content(f, str(length) if counted else "", leaf)
            return
        with self.code.block(f"if {n} >= 0:"):
            self.put_content(f, str(length) if counted else "", leaf)
        if counted:
            with self.code.block("else:"):
                null = -1 if length == "compact" else f.type.null
                self.put_number(str(length), str(null), "null")

    def put_content(self, f: Field, length: str, leaf: Leaf) -> None:
        """Bytes with their length in front."""
        n = value_of(leaf)
        if length:
            self.put_number(length, n, f.name)
        start = f"{self.part(leaf, 'data')} + {self.part(leaf, 'at')}"
        self.code.add(f"copy_from(p, {start}, {n}, {self.part(leaf, 'end')})")
        self.code.add(f"p += {n}")

    def put_list(self, case: CasePlan, f: Field, leaf: Leaf | None) -> None:
        assert isinstance(f.type, ArrayType)
        if f.type.length is not None:
            raise Unsupported("an array with a length inside rows", f)
        if leaf is None:
            if f.type.count is not None:
                self.put_number(f.type.count, "0", f.name)
            return
        if f.type.count is not None:
            self.put_number(f.type.count, ROW + leaf.name, f.name)
        element = self.element_of(f, case.element)
        assert element is not None
        members = self.members(leaf)
        with self.code.block(
            f"for part in range({self.part(leaf, 'at')}, {self.part(leaf, 'at')} + {ROW}{leaf.name}):"
        ):
            for fp in element.fields:
                inner = fp.field
                if isinstance(inner.type, BytesType):
                    member = members.get(fp.name)
                    if member is not None:
                        self.load_bytes(member, "part")
                        self.null_bytes(member, "part")
                    self.put_bytes(inner, member)
                else:
                    name = getattr(inner.type, "name", None) or getattr(inner.type, "base", "")
                    self.put_number(str(name), self.default(inner), inner.name)

    def default(self, f: Field) -> str:
        """The number that a field has without a column."""
        if f.const is not None:
            return str(f.const)
        if f.default is None:
            if getattr(f.type, "base", None):
                return "0"
            raise Unsupported("without a value to write, and has no default", f)
        value = self.current.columns.value(f.default)
        if value.constant is None:
            raise Unsupported("without a value to write, and has no default", f)
        return str(value.constant)

    def put_rows(self, case: CasePlan, f: Field) -> None:
        add = self.code.add
        assert isinstance(f.type, ArrayType)
        if f.type.count is not None:
            self.put_number(f.type.count, "rows", f"{f.name}, how many")
        if f.type.length is not None:
            self.put_number(f.type.length, "run_size", f"{f.name}, how long")
        put = f"p = {self.naming.function('put', case)}(columns, entry, p)"
        if f.type.compression is None:
            add(put)
            return
        with self.code.block("if run:"):
            add("copy_from(p, run, run_size, run + run_size)")
            add("p += run_size")
        with self.code.block("else:"):
            add(put)

    # ------------------------------------------------------------ many entries

    def fill(self, entry: LayoutPlan, cases: list[CasePlan]) -> None:
        """The rows of entries that are compressed."""
        add = self.code.add
        self.function(
            f"{self.naming.function('fill_all', entry)}(columns: int, table: int, first: int, last: int, p: int) -> int",
            "Write the rows of the entries that are compressed, one behind the other, and note where they are. The address "
            "behind them.",
            inner=False,
        )
        with self.code.block("for i in range(first, last):"):
            add("entry = table + i * SIZE_OF_ENTRY")
            with self.code.block("if load_i64_le(entry + CODEC) == 0:"):
                add("continue")
            add("store_64(entry + RUN, p)")
            add("case = load_i64_le(entry + CASE)")
            for case in cases:
                if case.array is not None:
                    with self.code.block(f"if case == {case.number}:"):
                        add(f"p = {self.naming.function('put', case)}(columns, entry, p)")
        add("return p")

    def write(self, entry: LayoutPlan, cases: list[CasePlan]) -> None:
        """Entries as they lie in a file."""
        add = self.code.add
        self.function(
            f"{self.naming.function('write_all', entry)}(columns: int, table: int, first: int, last: int, p: int) -> int",
            "Pass 2: write entries one behind the other. The address behind them.",
            inner=False,
        )
        with self.code.block("for i in range(first, last):"):
            add("entry = table + i * SIZE_OF_ENTRY")
            add("case = load_i64_le(entry + CASE)")
            for case in cases:
                with self.code.block(f"if case == {case.number}:"):
                    verb = "put" if case.array is None else "write"
                    add(f"p = {self.naming.function(verb, case)}(columns, entry, p)")
        add("return p")
