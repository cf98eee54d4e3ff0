"""What a kernel gives to the columns: where each is written, how much of it there is, how much there can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from codecgen.plan.column_sources import BYTES_LIKE, Sources
from codecgen.plan.columns import Leaf
from codecgen.schema.model import Field
from codecgen.targets.arrow.code_tree import Expr, Global, Num, Var, all_of, call, invert
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.field_variables import ITEM, PART

WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "timestamp_ms": 64}


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
        self.members: Mapping[str, Leaf] = {}
        self.lists: Mapping[str, tuple[Leaf, Mapping[str, Leaf]]] = {}
        self.inside: Target | None = None
        if sources is not None:
            self.named = {(ITEM, name): leaf for name, leaf in sources.bytes.items()}
            self.named |= {(ITEM, name): leaf for name, (leaf, _) in sources.lists.items()}
            self.lists = sources.lists

    def of(self, leaf: Leaf) -> Target:
        """The variables of a column; always the same ones."""
        if leaf.index not in self.targets:
            words = ("data", "validity", "offsets", "at", "room", "nulls")
            made = (Var(f"{leaf.name}_{word}") for word in words)
            self.targets[leaf.index] = Target(leaf, *made)
        return self.targets[leaf.index]

    def fields(self, part: str) -> set[str]:
        """The fields of a part that columns want."""
        if part == PART:
            return set(self.members)
        return {name for own, name in self.named if own == part}

    def target(self, part: str, name: str) -> Target | None:
        """Where a field goes."""
        leaf = self.members.get(name) if part == PART else self.named.get((part, name))
        return None if leaf is None else self.of(leaf)

    def enter(self, target: Target | None) -> tuple[Mapping[str, Leaf], Target | None]:
        """From here on fields are those of the elements of a list. What :meth:`leave` takes back."""
        outer = self.members, self.inside
        self.members = {}
        if target is not None:
            self.members = next(m for leaf, m in self.lists.values() if leaf is target.leaf)
            self.inside = target
        return outer

    def leave(self, outer: tuple[Mapping[str, Leaf], Target | None]) -> None:
        self.members, self.inside = outer

    def place(self, target: Target) -> Var:
        """The number of the row, or of the element of a list."""
        if target.leaf.inside is None:
            return self.at
        assert self.inside is not None
        return self.inside.at

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
        """A number of the row at hand; ``truth`` is the same as a condition."""
        t = self.of(leaf)
        if leaf.column.type == "bool":
            with self.code.when(all_of([t.data, invert(truth)])):
                self.code.do("clear_bit", t.data, self.at)
        else:
            width = WIDTHS[leaf.column.type]
            step = self.at if width == 8 else Num(width // 8) * self.at
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
        t = self.of(leaf)
        if leaf.column.nullable:
            self.all_null(leaf, state, rows)
        if leaf.column.type in (*BYTES_LIKE, "list"):
            with self.code.when(t.offsets):
                at = call("load_i64_le", state + self.slots[leaf.index].at)
                self.code.do("fill_32", t.offsets, rows[0] + 1, rows[1], at)
