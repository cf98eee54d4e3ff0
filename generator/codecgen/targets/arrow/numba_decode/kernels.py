"""The kernels of a view as Python: index the entries, check their rows and write them into Arrow buffers."""

from __future__ import annotations

import re
from collections import Counter

from codecgen.plan import LayoutPlan
from codecgen.plan.columns import CasePlan
from codecgen.targets.arrow.numba_decode.fill import Fill


class Kernels(Fill):
    """Writes the kernels of one view."""

    def text(self) -> str:
        kernels = []
        for entry, keys in self.view.layouts():
            cases = list(self.view.cases_of(entry))
            self.open(entry)
            self.frame(entry, keys)
            self.index(entry)
            for case in cases:
                self.rows(case)
                self.same(case)
            self.decode(entry, cases)
            two = ", ".join(self.naming.function(verb, entry) for verb in ("index", "decode_all"))
            kernels += [f"    {key}: ({two})," for key in keys]
        self.code.depth = 0
        self.code.lines += ["", "", "KERNELS: dict[int, tuple[Any, Any]] = {", *kernels, "}"]
        self.code.lines.append('"""The two passes, by the number that tells entries apart."""')
        return "\n".join(_pruned(self.code.lines)) + "\n"

    def decode(self, entry: LayoutPlan, cases: list[CasePlan]) -> None:
        add = self.code.add
        parameters = "table: int, first: int, last: int, most: int, bias: int, out: int, state: int"
        self.function(
            f"{self.naming.function('decode_all', entry)}({parameters}, room: int) -> int",
            "Pass 2: check the rows of entries and write them, until one is not as it should be or does not fit. The first "
            "entry that is not done.",
            inner=False,
        )
        with self.code.block("for i in range(first, last):"):
            add("row = table + i * SIZE_OF_ROW")
            with self.code.block("if load_i64_le(row + STATUS):"):
                add("return i")
            add("case = load_i64_le(row + CASE)")
            add("at = load_i64_le(state + ROWS)")
            add("done = 0")
            for case in cases:
                with self.code.block(f"if case == {case.number}:"):
                    add(
                        f"done = {self.naming.function('rows', case)}(row, out, state, room, most, bias)"
                    )
                    add(f"{self.naming.function('same', case)}(row, out, state, at, bias)")
            with self.code.block("if done == 0:"):
                add("return i")
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
