"""The third kernel: rows into Arrow buffers."""

from __future__ import annotations

import re

from codecgen.plan import LayoutPlan
from codecgen.plan.columns import CasePlan, Leaf
from codecgen.targets.arrow_code import function_name
from codecgen.targets.arrow_columns import BYTES_LIKE, WIDTHS, Columns
from codecgen.targets.arrow_expressions import Operand
from codecgen.targets.arrow_scope import ENTRY, ITEM
from codecgen.targets.arrow_values import names_needed
from codecgen.targets.arrow_walk import Walk


class Fill(Columns):
    """Writes the kernel that fills buffers."""

    def fill_case(self, case: CasePlan) -> None:
        add = self.code.add
        resolved = self.resolved[case.number]
        self.function(
            f"fill_{case.name}(row: int, out: int, state: int, most: int, bias: int) -> int",
            "Write the rows of an entry behind those that are there.",
        )
        add("first = load_i64_le(state)")
        add("count = load_i64_le(row + ROWS)")
        add("walk = load_i64_le(out)")
        moving = [leaf for leaf in self.view.leaves if leaf.column.type in (*BYTES_LIKE, "list")]
        present = [leaf for leaf in moving if not self.is_missing(leaf, resolved)]
        for leaf in self.view.leaves:
            top = leaf.column.type in BYTES_LIKE or leaf.column.type == "list"
            for k, part in enumerate(("data", "validity", "offsets")):
                if (part == "data" and leaf.column.type == "list") or (
                    part == "offsets" and not top
                ):
                    continue
                if part == "validity" and not leaf.column.nullable:
                    continue
                if self.is_missing(leaf, resolved) and (leaf.inside is not None or part == "data"):
                    continue
                add(f"{leaf.name}_{part} = load_i64_le(out + {8 * (1 + 3 * leaf.index + k)})")
        for leaf in moving:
            if leaf in present or leaf.inside is None:
                add(f"{leaf.name}_at = load_i64_le(state + {8 * (1 + leaf.index)})")
        for name, at in self.slots[case.number].items():
            prefix = "" if name in resolved.names.ends else ENTRY
            add(f"{prefix}{name} = load_i64_le(row + {at})")
        if resolved.names.position:
            add("entry_position = load_i64_le(row + START) + bias")
        for leaf in resolved.missing:
            self.fill_missing(leaf)
        if case.array is not None:
            for leaf, value in self.numbers(case):
                if not self.varies(value):
                    self.fill_constant(leaf, value)
        with self.code.block("if walk:"):
            add("p = load_i64_le(row + RUN)")
            before = len(self.code.lines)
            needed = names_needed(case.element, False) | set(resolved.used(ITEM))
            with self.code.block("for at in range(first, first + count):"):
                if case.rows.head:
                    self.head_fields(case)
                else:
                    Walk(self.plan, self.code, "fill").fields(
                        case.element, ITEM, "end", resolved.sinks, needed
                    )
                for leaf, value in self.numbers(case):
                    if case.array is None or self.varies(value):
                        self.fill_number(leaf, value)
            if any(re.search(r"\bend\b", line) for line in self.code.lines[before:]):
                self.code.lines.insert(before, "        end = load_i64_le(row + RUN_END)")
        for leaf in present:
            add(f"store_64(state + {8 * (1 + leaf.index)}, {leaf.name}_at)")
        add("store_64(state, first + count)")
        add("return 1")

    def fill_missing(self, leaf: Leaf) -> None:
        if leaf.column.nullable:
            with self.code.block(f"if {leaf.name}_validity:"):
                self.code.add(f"fill_false({leaf.name}_validity, first, count)")
        if leaf.column.type in (*BYTES_LIKE, "list"):
            with self.code.block(f"if {leaf.name}_offsets:"):
                self.code.add(f"fill_32({leaf.name}_offsets, first + 1, count, {leaf.name}_at)")

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
            with self.code.block(f"if {leaf.name}_validity and ({value.null}):"):
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
            with self.code.block(f"if {leaf.name}_validity and ({value.null}):"):
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

    def fill(self, entry: LayoutPlan, cases: list[CasePlan]) -> None:
        add = self.code.add
        parameters = "table: int, first: int, last: int, most: int, bias: int, out: int"
        self.function(
            f"{function_name('fill_all', entry)}({parameters}, state: int) -> int",
            "Pass 3: write the rows of entries that were measured.",
            inner=False,
        )
        with self.code.block("for i in range(first, last):"):
            add("row = table + i * ROW_SIZE")
            add("case = load_i64_le(row + CASE)")
            word = "if"
            for case in cases:
                with self.code.block(f"{word} case == {case.number}:"):
                    add(f"fill_{case.name}(row, out, state, most, bias)")
                word = "elif"
        add("return last")
