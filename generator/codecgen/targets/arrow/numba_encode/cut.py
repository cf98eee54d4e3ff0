"""Pass 1 of writing: which rows one entry holds, how many bytes that takes, and what of them cannot be written."""

from __future__ import annotations

import re

from codecgen.plan import LayoutPlan
from codecgen.plan.columns import CasePlan, Leaf
from codecgen.schema.model import ArrayType
from codecgen.targets.arrow.expressions import negated
from codecgen.targets.arrow.naming import BEFORE, ENTRY, HEAD, ITEM, LEAST, MOST, NULL, ROW
from codecgen.targets.arrow.numba_encode.rowwise import BYTES_LIKE, MOST_BYTES
from codecgen.targets.arrow.numba_encode.sizes import Sizes
from codecgen.targets.arrow.numba_encode.written import Part, Written


class Cut(Sizes):
    """Writes the functions of pass 1."""

    def cut_case(self, case: CasePlan) -> None:
        add = self.code.add
        written = self.current = self.written[case.number]
        parameters = "columns: int, start: int, last: int, entry: int, sizes: int, bytes_room: int, most: int"
        self.function(
            f"{self.naming.function('cut', case)}({parameters}) -> tuple[int, int]",
            "Pass 1: how many rows from ``start`` on one entry holds, and what it needs of them. 0 rows and what is in the "
            "way; -1 when such an entry is not for them."
            if case.array is not None
            else "Pass 1: how many rows from ``start`` on are entries of this kind. 0 rows and what is in the way; -1 when "
            "the first one is not.",
        )
        self.addresses(self.leaves(written))
        add("extra = load_i64_le(columns + EXTRA)")
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
                    self.not_these(case, written)
        for part in written.order:
            if part.running and part.value is not None:
                self.assign(ENTRY + part.name, part.value)

    def last_columns(self, written: Written) -> set[str]:
        """Columns whose value in the last row an entry holds, and which the first row must stand for at first."""
        out: set[str] = set()
        for part in written.entry:
            if part.running and part.value is not None:
                text = f"{part.value.text} {part.value.null or ''}"
                out |= set(re.findall(rf"\b(?:{NULL})?{ROW}(\w+)", text))
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
            add(f"{BEFORE}{ENTRY}{part.name} = {ENTRY}{part.name}")
        last = [name for name in sorted(ends) if name.startswith("last_")]
        for name in last:
            add(f"{BEFORE}{name} = {name}")
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
                        self.not_these(case, written)
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
                    add(f"{BEFORE}{name} = {name}")
        self.bytes_fit(case, written)
        self.rules(case.element, written.item, written, case, ITEM)
        if case.array is not None:
            self.rules(case.entry, written.entry, written, case, ENTRY)
        self.read_back(case, written, running, ends, [x for x in main if not x.column.on_request])
        wanted = [leaf for leaf in others if leaf.column.on_request]
        late = [x for x in main if x.column.on_request]
        if wanted or late:
            with self.code.block("if extra == 1 or (extra and row == start):"):
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

    # ------------------------------------------------------------ behind the last row

    def close(self, case: CasePlan, written: Written, running: list[Part]) -> None:
        add = self.code.add
        with self.code.block("if row == start:"):
            add("return 0, blamed")
        if running:
            with self.code.block("if blamed >= 0:"):
                for part in running:
                    add(f"{ENTRY}{part.name} = {BEFORE}{ENTRY}{part.name}")
        add(f"store_64(entry + CASE, {case.number})")
        add("store_64(entry + FIRST, start)")
        add("store_64(entry + ROWS, row - start)")
        add("store_64(entry + SIZE, size)")
        codec = self.codec_of(case, written)
        add(f"store_64(entry + CODEC, {codec})")
        add("store_64(entry + RUN, 0)")
        add("store_64(entry + RUN_SIZE, size)")
        for name in self.slots[case.number]:
            value = f"int({name})" if name.startswith(NULL) else name
            add(f"store_64(entry + {name.upper()}, {value})")

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
            "bytes_room: int, enough: int, most: int"
        )
        self.function(
            f"{self.naming.function('cut_all', entry)}({parameters}) -> tuple[int, int, int, int, int]",
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
            add("entry = table + n * SIZE_OF_ENTRY")
            add("at = sizes + 4 * (row - start)")
            add("rows, blamed = -1, -1")
            for case in cases:
                most = self.most_rows(case)
                limit = "most" if most == MOST_BYTES else f"min(most, {most})"
                own = self.most_of(case)
                many = f"min(bytes_room, {own})"
                if case.array is None:
                    many = "enough - done"
                call = f"{self.naming.function('cut', case)}(columns, row, last, entry, at, {many}, {limit})"
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
