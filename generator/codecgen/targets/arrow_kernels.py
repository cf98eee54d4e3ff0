"""The kernels of a view as Python: index the entries, measure and check their rows, fill Arrow buffers."""

from __future__ import annotations

import re
from collections import Counter

from codecgen.plan import LayoutPlan
from codecgen.plan.columns import CasePlan
from codecgen.schema.model import ArrayType
from codecgen.targets.arrow_code import function_name
from codecgen.targets.arrow_columns import SLOTS, Sum
from codecgen.targets.arrow_fill import Fill
from codecgen.targets.arrow_index import Index
from codecgen.targets.arrow_scope import ENTRY, ITEM
from codecgen.targets.arrow_values import names_needed
from codecgen.targets.arrow_walk import Walk


class Kernels(Index, Fill):
    """Writes the kernels of one view."""

    def text(self) -> str:
        add = self.code.add
        for i, slot in enumerate(SLOTS):
            add(f"{slot} = {8 * i}")
        for i, total in enumerate(self.sums):
            add(f"{total.name.upper()} = {8 * (len(SLOTS) + i)}")
        add(f"ROW_SIZE = {8 * self.width}")
        self.fail()
        kernels = []
        for entry, keys in self.entries():
            cases = list(self.view.cases_of(entry))
            self.open(entry)
            for case in cases:
                self.measure_case(case)
            self.check(entry, cases)
            self.index(entry, keys)
            self.measure(entry)
            for case in cases:
                self.fill_case(case)
            self.fill(entry, cases)
            three = ", ".join(
                function_name(verb, entry) for verb in ("index", "measure_all", "fill_all")
            )
            kernels += [f"    {key}: ({three})," for key in keys]
        self.code.depth = 0
        self.code.lines += ["", "", "KERNELS: dict[int, tuple[Any, Any, Any]] = {", *kernels, "}"]
        self.code.lines.append('"""The three passes, by the number that tells entries apart."""')
        return "\n".join(_pruned(self.code.lines)) + "\n"

    def entries(self) -> list[tuple[LayoutPlan, list[int]]]:
        """The layouts of entries, each with the numbers that stand for it."""
        out: list[tuple[LayoutPlan, list[int]]] = []
        for key, entry in self.view.entries:
            same = next((keys for p, keys in out if p is entry), None)
            if same is None:
                out.append((entry, [key]))
            else:
                same.append(key)
        return out

    # ------------------------------------------------------------ pass 2: measure

    def measure_case(self, case: CasePlan) -> None:
        add = self.code.add
        resolved = self.resolved[case.number]
        self.function(
            f"measure_{case.name}(row: int, most: int) -> int",
            "Check the rows of an entry, and add up what they take. 0 when they are not as they should be.",
        )
        if not case.rows.head or self.nullable_numbers(case, ITEM):
            add("p = load_i64_le(row + RUN)")
        if not case.rows.head:
            add("end = load_i64_le(row + RUN_END)")
        if case.array is not None:
            add("count = load_i64_le(row + COUNT)")
        own = self.own_sums(case)
        for total in own:
            add(f"{total.name} = 0")
        walk = Walk(self.plan, self.code, "measure")
        needed = names_needed(case.element, True)
        ends = resolved.names.ends
        needed |= {name for _, name in ends.values()}
        if case.rows.head:
            if self.nullable_numbers(case, ITEM):
                self.head_fields(case)
            self.count_nulls(case, "1", row_level=True)
            add("at = 1")
        elif case.array is None:
            needed |= set(resolved.used(ITEM)) if self.nullable_numbers(case, ITEM) else set()
            walk.fields(case.element, ITEM, "end", resolved.sinks, needed)
            self.count_nulls(case, "1", row_level=True)
            add("at = 1")
        else:
            for variable in sorted(ends):
                add(f"{variable} = 0")
            if self.nullable_numbers(case, ITEM):
                needed |= set(resolved.used(ITEM))
            add("at = 0")
            with self.code.block("while at != count if count >= 0 else p < end:"):
                walk.fields(case.element, ITEM, "end", resolved.sinks, needed)
                for variable, (which, name) in sorted(ends.items()):
                    if which == "last":
                        add(f"{variable} = {ITEM}{name}")
                    else:
                        with self.code.block("if at == 0:"):
                            add(f"{variable} = {ITEM}{name}")
                self.count_nulls(case, "1", row_level=True)
                add("at += 1")
                walk.fail("at > most", case.array.field)
            type_ = case.array.field.type
            assert isinstance(type_, ArrayType)
            if type_.at_least:
                walk.fail(f"at < {type_.at_least}", case.array.field)
            walk.fail("p != end", case.array.field)
            for variable in sorted(ends):
                add(f"store_64(row + {self.slots[case.number][variable]}, {variable})")
            self.count_nulls(case, "at", row_level=False)
        for leaf in resolved.missing:
            if leaf.column.nullable:
                add(f"{leaf.name}_nulls = at")
        add("store_64(row + ROWS, at)")
        names = {total.name for total in own}
        for total in self.sums:
            value = total.name if total.name in names else "0"
            add(f"store_64(row + {total.name.upper()}, {value})")
        add("return 1")

    def own_sums(self, case: CasePlan) -> list[Sum]:
        resolved = self.resolved[case.number]
        missing = {leaf.name for leaf in resolved.missing}
        return [
            t
            for t in self.sums
            if t.leaf.name not in missing
            and not (t.leaf.inside and t.leaf.inside.name in missing)
            and (
                t.leaf.column.name not in resolved.numbers
                or t.leaf.inside
                or resolved.numbers[t.leaf.column.name].null
            )
        ] + [t for t in self.sums if t.leaf.name in missing and t.what == "nulls"]

    def count_nulls(self, case: CasePlan, by: str, *, row_level: bool) -> None:
        entry_fields: set[str] = set()
        pending = []
        for leaf, value in self.numbers(case):
            if value.null is None or not leaf.column.nullable:
                continue
            if case.array is not None and self.varies(value) != row_level:
                continue
            pending.append((leaf, value))
        if not row_level or case.array is None:
            entry_fields = {
                name
                for name in self.slots[case.number]
                if any(f"{ENTRY}{name}" in (v.null or "") for _, v in pending)
            }
            for name in sorted(entry_fields):
                self.code.add(f"{ENTRY}{name} = load_i64_le(row + {self.slots[case.number][name]})")
        for leaf, value in pending:
            with self.code.block(f"if {value.null}:"):
                self.code.add(f"{leaf.name}_nulls += {by}")

    def check(self, entry: LayoutPlan, cases: list[CasePlan]) -> None:
        """Rows of any case."""
        self.function(
            f"{function_name('check', entry)}(row: int, most: int) -> int",
            "Measure the rows of one entry. 0 when they are not as they should be.",
        )
        self.code.add("case = load_i64_le(row + CASE)")
        for case in cases:
            with self.code.block(f"if case == {case.number}:"):
                self.code.add(f"return measure_{case.name}(row, most)")
        self.code.add("return 0")

    def measure(self, entry: LayoutPlan) -> None:
        add = self.code.add
        parameters = "table: int, first: int, last: int, most: int, most_rows: int, most_bytes: int"
        self.function(
            f"{function_name('measure_all', entry)}({parameters}, totals: int) -> int",
            "Pass 2: check entries, and add up what their rows take, until one is not as it should be or the limits are "
            "reached. The first entry that is not counted in.",
            inner=False,
        )
        with self.code.block("for i in range(first, last):"):
            add("row = table + i * ROW_SIZE")
            with self.code.block("if load_i64_le(row + STATUS):"):
                add("return i")
            check = f"{function_name('check', entry)}(row, most)"
            with self.code.block(f"if load_i64_le(row + ROWS) < 0 and not {check}:"):
                add("return i")
            add("full = load_i64_le(totals) + load_i64_le(row + ROWS) > most_rows")
            sizes = [t for t in self.sums if t.what in ("bytes", "count")]
            for total in sizes:
                at = 8 * (self.sums.index(total) + 1)
                add(
                    f"full |= load_i64_le(totals + {at}) + load_i64_le(row + {total.name.upper()}) > most_bytes"
                )
            with self.code.block("if full and i > first:"):
                add("return i")
            with self.code.block(f"for k in range({len(self.sums) + 1}):"):
                add("place = totals + 8 * k")
                add("store_64(place, load_i64_le(place) + load_i64_le(row + ROWS + 8 * k))")
        add("return last")


_LOAD = re.compile(r" +(\w+) = load_\w+\(\w+( [+] \w+)?\)( [+] bias)?\Z")


def _pruned(lines: list[str]) -> list[str]:
    """The lines without loads whose values their function does not use."""
    out: list[str] = []
    function: list[str] = []
    for line in [*lines, "@"]:
        if line.startswith("@"):
            words = Counter(re.findall(r"\w+", "\n".join(function)))
            loads = [_LOAD.match(text) for text in function]
            pairs = zip(function, loads, strict=True)
            out += [text for text, load in pairs if load is None or words[load[1]] > 1]
            function = []
        function.append(line)
    return out
