"""The second kernel: rows into Arrow buffers."""

from __future__ import annotations

import re

from codecgen.plan import FieldPlan
from codecgen.plan.bounds import bounds
from codecgen.plan.columns import CasePlan, Leaf
from codecgen.schema.model import ArrayType
from codecgen.targets.arrow.code import Sinks, Unsupported, function_name
from codecgen.targets.arrow.columns import BYTES_LIKE, WIDTHS, deferred
from codecgen.targets.arrow.expressions import Operand
from codecgen.targets.arrow.numba_decode.index import Index
from codecgen.targets.arrow.numba_decode.values import names_needed
from codecgen.targets.arrow.numba_decode.walk import Walk
from codecgen.targets.arrow.scope import ENTRY, ITEM


class Fill(Index):
    """Writes the kernels that read rows. What they write counts when the state says so: all rows of an array at once,
    entries that are rows one by one."""

    def rows(self, case: CasePlan) -> None:
        add = self.code.add
        resolved = self.resolved[case.number]
        self.function(
            f"rows_{case.name}(row: int, out: int, state: int, room: int, most: int, bias: int) -> int",
            "Check rows and write them. 0 when they are not as they should be, or there is no room.",
        )
        add("p = load_i64_le(row + RUN)")
        add("end = load_i64_le(row + RUN_END)")
        add("at = load_i64_le(state + ROWS)")
        add("rows_room = load_i64_le(room + ROWS)")
        self.places(case)
        for name, place in self.slots[case.number].items():
            if name not in resolved.names.ends:
                add(f"{ENTRY}{name} = load_i64_le(row + {place})")
        if case.array is None:
            self.rows_that_are_entries(case)
        else:
            self.rows_of_array(case, case.array)
            add("return 1")

    def places(self, case: CasePlan) -> None:
        """Where the columns are written, how much of them there is, and how much there can be."""
        add = self.code.add
        resolved = self.resolved[case.number]
        for leaf in self.view.leaves:
            if self.is_missing(leaf, resolved):
                continue
            for k, part in enumerate(("data", "validity", "offsets")):
                add(f"{leaf.name}_{part} = load_i64_le(out + {8 * (3 * leaf.index + k)})")
            add(f"{leaf.name}_at = load_i64_le(state + {self.at(leaf)})")
            add(f"{leaf.name}_room = load_i64_le(room + {self.at(leaf)})")
            if leaf.column.nullable:
                add(f"{leaf.name}_nulls = load_i64_le(state + {self.nulls_at(leaf)})")

    def rows_of_array(self, case: CasePlan, array: FieldPlan) -> None:
        add = self.code.add
        resolved = self.resolved[case.number]
        type_ = array.field.type
        assert isinstance(type_, ArrayType)
        walk = Walk(self.plan, self.code, self.checks, "rows")
        checksums = deferred(case.entry)
        for c in checksums:
            place = f"{ENTRY}{c.name}_at"
            condition = "load_i64_le(row + CHECKED) == 0 and "
            walk.verify(c, ENTRY, place, f"end - {place}", condition)
        self.find_ends(case, array)
        needed = names_needed(case.element, True) | set(resolved.used(ITEM))
        counted = type_.count is not None or type_.counted_by is not None
        add("first = at")
        if counted:
            add("count = load_i64_le(row + COUNT)")
            with self.code.block("if count > rows_room - first:"):
                add("return 0")
        loop = "for at in range(first, first + count):" if counted else "while p < end:"
        with self.code.block(loop):
            if not counted:
                with self.code.block("if at >= rows_room:"):
                    add("return 0")
            walk.fields(case.element, ITEM, "end", resolved.sinks, needed)
            for leaf, value in self.numbers(case):
                if self.varies(value, case):
                    self.fill_number(leaf, value)
            if not counted:
                add("at += 1")
                walk.fail("at - first > most", array.field)
        if type_.at_least:
            count = "count" if counted else "at - first"
            walk.fail(f"{count} < {type_.at_least}", array.field)
        walk.fail("p != end", array.field)
        self.commit(case, "first + count" if counted else "at")
        add("store_64(row + RUN, end)")
        add("store_64(row + COUNT, 0)")
        add("store_64(state + LAST, load_i64_le(row + START))")
        add("store_64(state + NEXT, load_i64_le(row + END))")

    def find_ends(self, case: CasePlan, array: FieldPlan) -> None:
        """Look for the first and the last element, where columns are relative to these."""
        add = self.code.add
        ends = self.resolved[case.number].names.ends
        if not ends:
            return
        if bounds(self.plan, case.element).least == 0:
            raise Unsupported("an array of elements that may have no bytes", array.field)
        walk = Walk(self.plan, self.code, self.checks, "hop")
        for variable in sorted(ends):
            add(f"{variable} = 0")
        add("start = p")
        only_first = all(which == "first" for which, _ in ends.values())
        with self.code.block("while p < end:"):
            before = "p"
            if not only_first and any(which == "first" for which, _ in ends.values()):
                add("before = p")
                before = "before"
            needed = names_needed(case.element, False) | {name for _, name in ends.values()}
            walk.fields(case.element, ITEM, "end", Sinks(), needed)
            for variable, (which, name) in sorted(ends.items()):
                if which == "last" or only_first:
                    add(f"{variable} = {ITEM}{name}")
                else:
                    with self.code.block(f"if {before} == start:"):
                        add(f"{variable} = {ITEM}{name}")
            if only_first:
                add("break")
        add("p = start")
        for variable in sorted(ends):
            add(f"store_64(row + {self.slots[case.number][variable]}, {variable})")

    def rows_that_are_entries(self, case: CasePlan) -> None:
        add = self.code.add
        resolved = self.resolved[case.number]
        add("careful = load_i64_le(row + CHECKED)")
        with self.code.block("while True:"):
            add(f"behind = {function_name('frame', case.entry)}(p, end)")
            with self.code.block(f"if behind <= 2 or not is_{case.name}(p, behind, careful):"):
                add("return 1")
            with self.code.block("if at >= rows_room:"):
                add("return 0")
            add("store_64(row + END, behind)")
            add("start = p")
            if resolved.names.position:
                add("entry_position = p + bias")
            if case.rows.head:
                self.head_fields(case)
                add("p = behind")
            else:
                needed = names_needed(case.element, True) | set(resolved.used(ITEM))
                walk = Walk(self.plan, self.code, self.checks, "rows")
                walk.fields(case.element, ITEM, "behind", resolved.sinks, needed)
                walk.fail("p != behind", case.entry.fields[-1].field)
            for leaf, value in self.numbers(case):
                if self.varies(value, case):
                    self.fill_number(leaf, value)
            add("at += 1")
            self.commit(case, "at")
            add("store_64(state + LAST, start)")
            add("store_64(row + RUN, p)")
            add("store_64(state + NEXT, p)")

    def commit(self, case: CasePlan, rows: str) -> None:
        """What was written counts from here on."""
        add = self.code.add
        add(f"store_64(state + ROWS, {rows})")
        add("store_64(state + ENTRIES, load_i64_le(state + ENTRIES) + 1)")
        for leaf in self.view.leaves:
            if self.is_missing(leaf, self.resolved[case.number]):
                continue
            if leaf.column.type in (*BYTES_LIKE, "list"):
                add(f"store_64(state + {self.at(leaf)}, {leaf.name}_at)")
            if leaf.column.nullable and self.has_nulls_in_rows(leaf, case):
                add(f"store_64(state + {self.nulls_at(leaf)}, {leaf.name}_nulls)")

    def has_nulls_in_rows(self, leaf: Leaf, case: CasePlan) -> bool:
        value = self.resolved[case.number].numbers.get(leaf.column.name)
        if leaf.inside is not None or value is None:
            return leaf.column.type in BYTES_LIKE
        return value.null is not None and self.varies(value, case)

    def same(self, case: CasePlan) -> None:
        """The columns that have one value in all rows of what the index has as one."""
        add = self.code.add
        resolved = self.resolved[case.number]
        self.function(
            f"same_{case.name}(row: int, out: int, state: int, first: int, bias: int) -> None",
            "Write the columns that are the same in all rows, from the first one on.",
        )
        before = len(self.code.lines)
        for leaf in self.view.leaves:
            if leaf.inside is None:
                for k, part in enumerate(("data", "validity", "offsets")):
                    add(f"{leaf.name}_{part} = load_i64_le(out + {8 * (3 * leaf.index + k)})")
        for name, place in self.slots[case.number].items():
            prefix = "" if name in resolved.names.ends else ENTRY
            add(f"{prefix}{name} = load_i64_le(row + {place})")
        if resolved.names.position and case.array is not None:
            add("entry_position = load_i64_le(row + START) + bias")
        for leaf in resolved.missing:
            self.fill_missing(leaf)
        for leaf, value in self.numbers(case):
            if not self.varies(value, case):
                self.fill_constant(leaf, value)
        if any(re.search(r"\bcount\b", line) for line in self.code.lines[before:]):
            self.code.lines.insert(before, "    count = load_i64_le(state + ROWS) - first")
        if len(self.code.lines) == before:
            add("return")

    def fill_missing(self, leaf: Leaf) -> None:
        if leaf.column.nullable:
            self.add_nulls(leaf)
            with self.code.block(f"if {leaf.name}_validity:"):
                self.code.add(f"fill_false({leaf.name}_validity, first, count)")
        if leaf.column.type in (*BYTES_LIKE, "list"):
            with self.code.block(f"if {leaf.name}_offsets:"):
                at = f"load_i64_le(state + {self.at(leaf)})"
                self.code.call("fill_32", f"{leaf.name}_offsets", "first + 1", "count", at)

    def add_nulls(self, leaf: Leaf) -> None:
        place = f"state + {self.nulls_at(leaf)}"
        self.code.add(f"store_64({place}, load_i64_le({place}) + count)")

    def fill_constant(self, leaf: Leaf, value: Operand) -> None:
        if leaf.column.type == "bool":
            with self.code.block(f"if {leaf.name}_data and not ({value.text}):"):
                self.code.add(f"fill_false({leaf.name}_data, first, count)")
        else:
            with self.code.block(f"if {leaf.name}_data:"):
                width = WIDTHS[leaf.column.type]
                text = self.text_of(value)
                self.code.call(f"fill_{width}", f"{leaf.name}_data", "first", "count", text)
        if leaf.column.nullable and value.null is not None:
            with self.code.block(f"if {value.null}:"):
                self.add_nulls(leaf)
                with self.code.block(f"if {leaf.name}_validity:"):
                    self.code.add(f"fill_false({leaf.name}_validity, first, count)")

    def fill_number(self, leaf: Leaf, value: Operand) -> None:
        if leaf.column.type == "bool":
            with self.code.block(f"if {leaf.name}_data and not ({value.text}):"):
                self.code.add(f"clear_bit({leaf.name}_data, at)")
        else:
            with self.code.block(f"if {leaf.name}_data:"):
                width = WIDTHS[leaf.column.type]
                step = f"{width // 8} * at" if width > 8 else "at"
                text = self.text_of(value)
                self.code.call(f"store_{width}", f"{leaf.name}_data + {step}", text)
        if leaf.column.nullable and value.null is not None:
            with self.code.block(f"if {value.null}:"):
                self.code.add(f"{leaf.name}_nulls += 1")
                with self.code.block(f"if {leaf.name}_validity:"):
                    self.code.add(f"clear_bit({leaf.name}_validity, at)")

    def text_of(self, value: Operand) -> str:
        """A value as one expression; what has branches is worked out before."""
        if not value.branches:
            return value.text
        word = "if"
        for test, text in value.branches:
            with self.code.block(f"{word} {test}:" if test else "else:"):
                self.code.add(f"value = {text}")
            word = "elif"
        return "value"
