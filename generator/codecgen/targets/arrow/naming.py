"""Names of what kernels have: none means two things, whatever a schema calls its fields and columns.

Names of a schema are of small letters. Variables for fields and columns have a prefix of their own, so they differ from each
other; functions, the parts of columns (``key_data``) and their slots (``KEY_DATA``) come from here, and differ from all else.
"""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable, Mapping

from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.columns import CasePlan, Leaf, ViewPlan
from codecgen.targets.arrow.primitives import NAMES

ENTRY, ITEM, PART = "entry_", "item_", "part_"
"""Prefixes of the variables that hold fields: of the entry, of the element that is a row, of an element inside it."""

HEAD, ROW, MOST, LEAST = "head_", "row_", "most_", "least_"
"""Prefixes of variables that hold columns: of the first row, of the row at hand, the largest and the smallest so far."""

FIRST, LAST = "first_", "last_"
"""Prefixes of fields of the first and the last element."""

NULL, BEFORE = "null_", "before_"
"""Before variables: whether that is null, what it was before the row at hand."""

START, END, PLACE = "start_of_", "end_of_", "place_of_"
"""Prefixes of addresses: where a run of fields begins and ends, where a field is that is written later."""

PREFIXES = (ENTRY, ITEM, PART, HEAD, ROW, MOST, LEAST, FIRST, LAST, NULL, BEFORE, START, END, PLACE)

PARTS = (
    "data",
    "validity",
    "offsets",
    "at",
    "room",
    "nulls",
    "bit",
    "step",
    "end",
    "given",
    "size",
)
"""What is known of a column: addresses of its buffers, how much of it there is, and how much there can be."""

FIXED = frozenset(
    [
        "at",
        "back",
        "before",
        "behind",
        "bias",
        "blamed",
        "bytes_room",
        "capacity",
        "careful",
        "case",
        "codec",
        "columns",
        "count",
        "done",
        "end",
        "enough",
        "entry",
        "extra",
        "final",
        "first",
        "i",
        "kind",
        "last",
        "length",
        "most",
        "n",
        "out",
        "p",
        "part",
        "position",
        "room",
        "row",
        "rows",
        "rows_room",
        "run",
        "run_end",
        "run_size",
        "shortest",
        "size",
        "sizes",
        "squeezed",
        "start",
        "state",
        "table",
        "taken",
        "value",
    ]
)
"""Variables of kernels that belong to no field and no column, and slots of two words."""


class Naming:
    """The names in the kernels of one view."""

    def __init__(self, plan: Plan, view: ViewPlan) -> None:
        self.taken = {*NAMES, *FIXED, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)}
        self.functions: dict[tuple[str, str, int | None], str] = {}
        for case in view.cases:
            for verb in ("is", "rows", "same", "cut", "put", "write"):
                self.functions[verb, "case", case.number] = self._take(f"{verb}_{case.name}")
        for entry, _ in view.layouts():
            for verb in (
                "open",
                "frame",
                "index",
                "decode_all",
                "cut_all",
                "fill_all",
                "write_all",
            ):
                version = "" if entry.version is None else f"_v{entry.version}"
                name = self._take(f"{verb}_{entry.name}{version}")
                self.functions[verb, entry.name, entry.version] = name
        fields = {f.name for layout in plan.model.layouts.values() for f in layout.fields}
        columns = {leaf.column.name for leaf in view.leaves if leaf.inside is None}
        self.taken |= set(_variables(fields | columns | {leaf.name for leaf in view.leaves}))
        self.stems = {leaf.index: self._stem(leaf.name) for leaf in view.leaves}
        self.lists = {leaf.column.name: leaf for leaf in view.leaves if leaf.column.type == "list"}

    def function(self, verb: str, of: LayoutPlan | CasePlan) -> str:
        """The function that does something with entries, or with the rows of a case."""
        if isinstance(of, CasePlan):
            return self.functions[verb, "case", of.number]
        return self.functions[verb, of.name, of.version]

    def part(self, leaf: Leaf, part: str) -> str:
        """The variable that holds a part of a column."""
        return f"{self.stems[leaf.index]}_{part}"

    def outer(self, leaf: Leaf) -> Leaf | None:
        """The column of lists that a column is in."""
        return None if leaf.inside is None else self.lists[leaf.inside.name]

    def slot(self, leaf: Leaf, part: str) -> str:
        """The constant that says where a part of a column stands."""
        return self.part(leaf, part).upper()

    def _take(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name

    def _stem(self, wanted: str) -> str:
        """What the names of the parts of a column begin with."""
        stem, number = wanted, 1
        while not self.taken.isdisjoint(f"{stem}_{part}" for part in PARTS):
            number += 1
            stem = f"{wanted}_{number}"
        self.taken |= {f"{stem}_{part}" for part in PARTS}
        return stem


def value_of(leaf: Leaf) -> str:
    """The variable that holds a column in the row at hand, or a member of a list in the element at hand."""
    return (ROW if leaf.inside is None else PART) + leaf.name


def _variables(names: Iterable[str]) -> Iterable[str]:
    for name in names:
        for prefix in PREFIXES:
            yield prefix + name
            if prefix in (START, END, PLACE, NULL, BEFORE):
                for inner in (ENTRY, ITEM, PART, HEAD, ROW, FIRST, LAST):
                    yield prefix + inner + name


def packed(names: Mapping[int, Iterable[str]], first: int) -> dict[str, int]:
    """Places, counted from one on, for names that are kept together: each name has the same wherever it is kept."""
    cases = {case: set(kept) for case, kept in names.items()}
    every = set().union(*cases.values())
    out: dict[str, int] = {}
    for name in sorted(every, key=lambda name: (-sum(name in c for c in cases.values()), name)):
        beside = set().union(*(kept for kept in cases.values() if name in kept))
        used = {out[other] for other in beside if other in out}
        out[name] = next(place for place in range(first, first + len(every)) if place not in used)
    return out
