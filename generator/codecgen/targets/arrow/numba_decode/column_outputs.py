"""What a kernel gives to the columns: where each is written, how much of it there is, how much there can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from codecgen.plan.column_sources import BYTES_LIKE, Sources
from codecgen.plan.columns import Leaf
from codecgen.schema.model import Field
from codecgen.targets.arrow.code_tree import (
    FALSE,
    Expr,
    Global,
    Num,
    Var,
    all_of,
    call,
    invert,
)
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.field_variables import ITEM

WIDTHS = {
    **{f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "timestamp_ms": 64,
    "float": 32,
    "double": 64,
}
"""The bits of a number in a column."""

UUID = 16


@dataclass(frozen=True, slots=True)
class Target:
    """The variables of one column: addresses, how much of it is written, how much can be, how many nulls it has."""

    leaf: Leaf
    data: Var
    validity: Var
    offsets: Var
    at: Var
    room: Var
    nulls: Var


@dataclass(frozen=True, slots=True)
class Slots:
    """Where the tables have what belongs to a column."""

    data: Global
    validity: Global
    offsets: Global
    at: Global
    nulls: Global


class ColumnOutputs:
    """Prints what goes to columns. ``at`` is the number of the row, ``row`` the entry of the index, ``most`` the most
    elements; ``check`` gives the numbers of what is checked."""

    def __init__(
        self,
        code: Builder,
        sources: Sources | None,
        slots: Mapping[int, Slots],
        *,
        row: Var,
        most: Expr,
        at: Var,
        check: Callable[[Field], Num],
    ) -> None:
        self.code = code
        self.slots = slots
        self.row = row
        self.most = most
        self.at = at
        self.check = check
        self.targets: dict[int, Target] = {}
        self.named: dict[tuple[str, str], Leaf] = {}
        self.sources = sources
        if sources is not None:
            self.named = {(ITEM, name): leaf for name, leaf in sources.fields.items()}

    def of(self, leaf: Leaf) -> Target:
        """The variables of a column; always the same ones."""
        if leaf.index not in self.targets:
            words = ("data", "validity", "offsets", "at", "room", "nulls")
            made = (Var(f"{leaf.name}_{word}") for word in words)
            self.targets[leaf.index] = Target(leaf, *made)
        return self.targets[leaf.index]

    def fields(self, part: str) -> set[str]:
        """The fields of a part that columns want."""
        return {name for own, name in self.named if own == part}

    def target(self, part: str, name: str) -> Target | None:
        """Where a field goes."""
        leaf = self.named.get((part, name))
        return None if leaf is None else self.of(leaf)

    def inside(self, target: Target | None) -> list[Target]:
        """What a struct, or an element of a list, is made of."""
        if target is None or self.sources is None:
            return []
        return [self.of(leaf) for leaf in self.sources.inside.get(target.leaf.index, ())]

    def enter(self, target: Target | None, part: str) -> None:
        """The fields of a part are those of a struct, or of the elements of a list."""
        for inner in self.inside(target):
            self.named[part, inner.leaf.column.name] = inner.leaf

    def place(self, target: Target) -> Var:
        """The number of the row, or of the element of a list."""
        around = target.leaf.list
        return self.at if around is None else self.of(around).at

    # ------------------------------------------------------------ what is written

    def load(self, out: Var, state: Var, room: Var | None, leaves: list[Leaf]) -> None:
        """Load where columns are written."""
        for leaf in leaves:
            t, slots = self.of(leaf), self.slots[leaf.index]
            for variable, table, slot in (
                (t.data, out, slots.data),
                (t.validity, out, slots.validity),
                (t.offsets, out, slots.offsets),
                (t.at, state, slots.at),
                *([(t.room, room, slots.at)] if room is not None else []),
                *([(t.nulls, state, slots.nulls)] if leaf.column.nullable else []),
            ):
                self.code.assign(variable, call("load_i64_le", table + slot))

    def null(self, target: Target) -> None:
        if target.leaf.column.nullable:
            self.code.add(target.nulls, 1)
            with self.code.when(target.validity):
                self.code.do("clear_bit", target.validity, self.place(target))

    def close(self, target: Target | None) -> None:
        """The value of a row is there: what follows belongs to the next one."""
        if target is not None:
            with self.code.when(target.offsets):
                place = target.offsets + Num(4) * self.place(target) + 4
                self.code.do("store_32", place, target.at)

    def nothing(self, target: Target) -> None:
        """There is no value here: null, or what is empty."""
        self.null(target)
        self.empty(target)

    def empty(self, target: Target) -> None:
        """What lies in the place of a value that is not there."""
        type_ = target.leaf.column.type
        if type_ in WIDTHS or type_ == "bool":
            self.number(target.leaf, Num(0), None, FALSE)
        elif type_ == "uuid":
            with self.code.when(target.data):
                for place in self.halves(target):
                    self.code.do("store_64", place, 0)
        elif type_ == "struct":
            for inner in self.inside(target):
                self.empty(inner)
        else:
            self.close(target)

    def value(self, target: Target, value: Expr) -> None:
        """A number, as it was read."""
        self.number(target.leaf, value, None, value)

    def uuid(self, target: Target, p: Expr) -> None:
        with self.code.when(target.data):
            for place, half in zip(self.halves(target), (p, p + UUID // 2), strict=True):
                self.code.do("store_64", place, call("load_i64_le", half))

    def halves(self, target: Target) -> tuple[Expr, Expr]:
        """The places of both halves of a uuid."""
        place = target.data + Num(UUID) * self.place(target)
        return place, place + UUID // 2

    def bytes(self, target: Target, p: Expr, n: Expr) -> None:
        with self.code.when(target.offsets):
            with self.code.when(n > target.room - target.at):
                self.code.give(0)
            self.code.do("copy", target.data + target.at, p, n)
        self.code.add(target.at, n)

    def list_room(self, target: Target, n: Expr) -> None:
        """There is room for so many elements of a list."""
        with self.code.when(all_of([target.offsets, n > target.room - target.at])):
            self.code.give(0)

    def number(self, leaf: Leaf, value: Expr, null: Expr | None, truth: Expr) -> None:
        """A number; ``truth`` is the same as a condition."""
        t = self.of(leaf)
        at = self.place(t)
        if leaf.column.type == "bool" and isinstance(truth, Num):
            if not truth.value:
                with self.code.when(t.data):
                    self.code.do("clear_bit", t.data, at)
        elif leaf.column.type == "bool":
            with self.code.when(all_of([t.data, invert(truth)])):
                self.code.do("clear_bit", t.data, at)
        else:
            width = WIDTHS[leaf.column.type]
            step = at if width == 8 else Num(width // 8) * at
            with self.code.when(t.data):
                self.code.do(f"store_{width}", t.data + step, value)
        if leaf.column.nullable and null is not None:
            with self.code.when(null):
                self.null(t)

    def same_number(
        self,
        leaf: Leaf,
        value: Expr,
        null: Expr | None,
        truth: Expr,
        state: Var,
        rows: tuple[Var, Var],
    ) -> None:
        """A number that is the same in all rows from ``rows[0]`` on, ``rows[1]`` of them."""
        t = self.of(leaf)
        if leaf.column.type == "bool":
            with self.code.when(all_of([t.data, invert(truth)])):
                self.code.do("fill_false", t.data, *rows)
        else:
            with self.code.when(t.data):
                self.code.do(f"fill_{WIDTHS[leaf.column.type]}", t.data, *rows, value)
        if leaf.column.nullable and null is not None:
            with self.code.when(null):
                self.all_null(leaf, state, rows)

    def all_null(self, leaf: Leaf, state: Var, rows: tuple[Var, Var]) -> None:
        t = self.of(leaf)
        place = state + self.slots[leaf.index].nulls
        self.code.do("store_64", place, call("load_i64_le", place) + rows[1])
        with self.code.when(t.validity):
            self.code.do("fill_false", t.validity, *rows)

    def missing(self, leaf: Leaf, state: Var, rows: tuple[Var, Var]) -> None:
        """A column without values here: null, or empty lists."""
        if leaf.column.nullable:
            self.all_null(leaf, state, rows)
        self.all_empty(leaf, state, rows)

    def all_empty(self, leaf: Leaf, state: Var, rows: tuple[Var, Var]) -> None:
        """What lies in the place of values that are not there."""
        t, type_ = self.of(leaf), leaf.column.type
        if type_ == "struct":
            for inner in self.inside(t):
                self.all_empty(inner.leaf, state, rows)
        elif type_ in (*BYTES_LIKE, "list"):
            with self.code.when(t.offsets):
                at = call("load_i64_le", state + self.slots[leaf.index].at)
                self.code.do("fill_32", t.offsets, rows[0] + 1, rows[1], at)
        elif leaf.inside is not None or type_ == "uuid":
            self.zeros(t, rows)

    def zeros(self, target: Target, rows: tuple[Var, Var]) -> None:
        type_, (first, count) = target.leaf.column.type, rows
        with self.code.when(target.data):
            if type_ == "bool":
                self.code.do("fill_false", target.data, *rows)
            elif type_ == "uuid":
                self.code.do("fill_64", target.data, Num(2) * first, Num(2) * count, 0)
            else:
                self.code.do(f"fill_{WIDTHS[type_]}", target.data, *rows, 0)
