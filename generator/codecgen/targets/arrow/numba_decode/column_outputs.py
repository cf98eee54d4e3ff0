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
    """Variables of a kernel for one column.

    Attributes:
        leaf: The column.
        data: Address of its values, or of their views. 0 if nobody asked for the column.
        validity: Address of its validity bitmap.
        offsets: Address of its offsets. 0 for views.
        at: Bytes or elements that are written.
        room: Bytes or elements that fit in; for views the address of the table of their buffers.
        nulls: Nulls that are written.
    """

    leaf: Leaf
    data: Var
    validity: Var
    offsets: Var
    at: Var
    room: Var
    nulls: Var


@dataclass(frozen=True, slots=True)
class Slots:
    """Constants of a kernel module: where its tables hold the addresses and the totals of one column."""

    data: Global
    validity: Global
    offsets: Global
    at: Global
    nulls: Global


class ColumnOutputs:
    """Emits kernel code that writes values into the Arrow buffers of columns (``leaf``), whose
    addresses are variables of a Target. At run time, nothing is written to a column whose addresses
    are 0 (it was not requested). Buffers of bools and validity begin with all bits set. ``rows`` is
    a pair: the first row and the number of rows.

    Attributes:
        row: Entry of the index that a failure is noted in.
        max_elements: Max elements of an array.
        at: Number of the row.
        check: Function that returns the number of the check of a field.
        targets: Variables by the index of the column.
        named: Columns by the part and the name of the field that they show.
    """

    def __init__(
        self,
        code: Builder,
        sources: Sources | None,
        slots: Mapping[int, Slots],
        *,
        row: Var,
        max_elements: Expr,
        at: Var,
        check: Callable[[Field], Num],
    ) -> None:
        self.code = code
        self.slots = slots
        self.row = row
        self.max_elements = max_elements
        self.at = at
        self.check = check
        self.targets: dict[int, Target] = {}
        self.named: dict[tuple[str, str], Leaf] = {}
        self.sources = sources
        if sources is not None:
            self.named = {(ITEM, name): leaf for name, leaf in sources.fields.items()}

    def target_of(self, leaf: Leaf) -> Target:
        """Return the Target (the kernel's variables for addresses, totals and room) of a column.
        Repeated calls return the same Target.
        """
        if leaf.index not in self.targets:
            words = ("data", "validity", "offsets", "at", "room", "nulls")
            made = (Var(f"{leaf.name}_{word}") for word in words)
            self.targets[leaf.index] = Target(leaf, *made)
        return self.targets[leaf.index]

    def wanted_fields(self, part: str) -> set[str]:
        """Return the names of the fields of a part that columns show."""
        return {name for own, name in self.named if own == part}

    def find_target(self, part: str, name: str) -> Target | None:
        """Return the variables of the column that shows a field, None if no column does."""
        leaf = self.named.get((part, name))
        return None if leaf is None else self.target_of(leaf)

    def targets_inside(self, target: Target | None) -> list[Target]:
        """Return the variables of the members of a struct or the element of a list, ``[]`` for any other column or None."""
        if target is None or self.sources is None:
            return []
        return [self.target_of(leaf) for leaf in self.sources.inside.get(target.leaf.index, ())]

    def name_members(self, target: Target | None, part: str) -> None:
        """Note that the fields of ``part`` go to the members of a struct, or of the structs in a list."""
        for inner in self.targets_inside(target):
            self.named[part, inner.leaf.column.name] = inner.leaf

    def position_of(self, target: Target) -> Var:
        """Return the variable with the position to write at: the number of the row, or of the element in its list."""
        around = target.leaf.list
        return self.at if around is None else self.target_of(around).at

    # ------------------------------------------------------------ what is written

    def load_slots(self, out: Var, state: Var, room: Var | None, leaves: list[Leaf]) -> None:
        """Emit loads of the buffer addresses and written totals of ``leaves`` from the tables at
        ``out`` and ``state``, and of the capacities from ``room`` unless it is None. Null counts
        are loaded for nullable columns only.
        """
        for leaf in leaves:
            t, slots = self.target_of(leaf), self.slots[leaf.index]
            for variable, table, slot in (
                (t.data, out, slots.data),
                (t.validity, out, slots.validity),
                (t.offsets, out, slots.offsets),
                (t.at, state, slots.at),
                *([(t.room, room, slots.at)] if room is not None else []),
                *([(t.nulls, state, slots.nulls)] if leaf.column.nullable else []),
            ):
                self.code.assign(variable, call("load_i64_le", table + slot))

    def write_null(self, target: Target) -> None:
        """Emit code that marks the value at the current position as null and adds 1 to the column's
        null count, also if the column was not requested. The value itself is not written. Emit
        nothing for a column that is not nullable.
        """
        if target.leaf.column.nullable:
            self.code.add(target.nulls, 1)
            with self.code.when(target.validity):
                self.code.do("clear_bit", target.validity, self.position_of(target))

    def end_value(self, target: Target | None) -> None:
        """Emit the write of the Arrow offset after a value of bytes or a list. Emit nothing if
        ``target`` is None.
        """
        if target is not None:
            with self.code.when(target.offsets):
                place = target.offsets + Num(4) * self.position_of(target) + 4
                self.code.do("store_32", place, target.at)

    def write_missing(self, target: Target) -> None:
        """Emit code that writes a value that is not there: null, and what lies in its place."""
        self.write_null(target)
        self.write_empty(target)

    def write_empty(self, target: Target) -> None:
        """Emit the write of an empty value without marking it null: 0, false, a uuid of zeros,
        empty bytes or list; a struct writes the empty values of its members.
        """
        type_ = target.leaf.column.type
        if type_ in WIDTHS or type_ == "bool":
            self.write_number(target.leaf, Num(0), None, FALSE)
        elif type_ == "uuid":
            with self.code.when(target.data):
                for place in self.uuid_halves(target):
                    self.code.do("store_64", place, 0)
        elif type_ == "struct":
            for inner in self.targets_inside(target):
                self.write_empty(inner)
        else:
            self.end_value(target)

    def write_value(self, target: Target, value: Expr) -> None:
        """Emit code that writes a number that was read and is not null."""
        self.write_number(target.leaf, value, None, value)

    def write_uuid(self, target: Target, p: Expr) -> None:
        """Emit code that copies the uuid at the address ``p``."""
        with self.code.when(target.data):
            for place, half in zip(self.uuid_halves(target), (p, p + UUID // 2), strict=True):
                self.code.do("store_64", place, call("load_i64_le", half))

    def uuid_halves(self, target: Target) -> tuple[Expr, Expr]:
        """Return the addresses to which the two halves of a uuid are written."""
        place = target.data + Num(UUID) * self.position_of(target)
        return place, place + UUID // 2

    def write_bytes(self, target: Target, p: Expr, n: Expr) -> None:
        """Emit the copy of ``n`` bytes from the address ``p`` to the end of the column's data, or
        for a column without offsets the write of their view; and add ``n`` to its total. The kernel
        returns 0 if the bytes exceed the column's room. A column that was not requested is only
        counted. The Arrow offset is left to :meth:`end_value`.
        """
        with self.code.when(target.data):
            with self.code.when(n > target.room - target.at):
                self.code.emit_return(0)
            place = target.data, target.offsets, target.at, target.room
            self.code.do("put_bytes", *place, self.position_of(target), p, n)
        self.code.add(target.at, n)

    def check_list_room(self, target: Target, n: Expr) -> None:
        """Emit the check that ``n`` more elements of a list fit in. The kernel returns 0 if they do not."""
        with self.code.when(all_of([target.offsets, n > target.room - target.at])):
            self.code.emit_return(0)

    def write_number(self, leaf: Leaf, value: Expr, null: Expr | None, truth: Expr) -> None:
        """Emit the write of a number or bool at the current position. In a bool column, only clear
        the bit where the condition ``truth`` is false; in others store ``value``. If ``null`` is
        not None and the column is nullable, also mark and count the value as null where that
        condition holds. The value is evaluated only if the column is requested, the condition
        always. Raise KeyError for a column of another type.

        Args:
            leaf: The column.
            value: The number.
            null: Condition that the number is null, None if it never is.
            truth: The number as a condition, for columns of the type bool.
        """
        t = self.target_of(leaf)
        at = self.position_of(t)
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
                self.write_null(t)

    def fill_number(
        self,
        leaf: Leaf,
        value: Expr,
        null: Expr | None,
        truth: Expr,
        state: Var,
        rows: tuple[Var, Var],
    ) -> None:
        """Emit the write of one value, ``value`` or in a bool column ``truth``, into ``rows[1]``
        rows from row ``rows[0]`` on. If ``null`` is not None and the column is nullable, also mark
        these rows as null where that condition holds, and add them to the null count in the table
        ``state``. The value is evaluated only if the column is requested, the condition always.
        Raise KeyError for a column of another type.
        """
        t = self.target_of(leaf)
        if leaf.column.type == "bool":
            with self.code.when(all_of([t.data, invert(truth)])):
                self.code.do("fill_false", t.data, *rows)
        else:
            with self.code.when(t.data):
                self.code.do(f"fill_{WIDTHS[leaf.column.type]}", t.data, *rows, value)
        if leaf.column.nullable and null is not None:
            with self.code.when(null):
                self.fill_null(leaf, state, rows)

    def fill_null(self, leaf: Leaf, state: Var, rows: tuple[Var, Var]) -> None:
        """Emit code that marks ``rows[1]`` rows from row ``rows[0]`` on as null, and adds them to
        the column's null count in the table ``state``, also if the column was not requested. The
        values are not written. Whether the column is nullable is not tested here.
        """
        t = self.target_of(leaf)
        place = state + self.slots[leaf.index].nulls
        self.code.do("store_64", place, call("load_i64_le", place) + rows[1])
        with self.code.when(t.validity):
            self.code.do("fill_false", t.validity, *rows)

    def fill_missing(self, leaf: Leaf, state: Var, rows: tuple[Var, Var]) -> None:
        """Emit code that fills a column without values in ``rows``: nulls, or empty values if it is
        not nullable.
        """
        if leaf.column.nullable:
            self.fill_null(leaf, state, rows)
        self.fill_empty(leaf, state, rows)

    def fill_empty(self, leaf: Leaf, state: Var, rows: tuple[Var, Var]) -> None:
        """Emit the write of empty values into ``rows[1]`` rows from row ``rows[0]`` on: equal
        offsets for bytes and lists, zeros for uuids and for numbers inside structs, recursively for
        structs. Emit nothing for a top-level number or bool.
        """
        t, type_ = self.target_of(leaf), leaf.column.type
        if type_ == "struct":
            for inner in self.targets_inside(t):
                self.fill_empty(inner.leaf, state, rows)
        elif type_ in (*BYTES_LIKE, "list"):
            with self.code.when(t.offsets):
                at = call("load_i64_le", state + self.slots[leaf.index].at)
                self.code.do("fill_32", t.offsets, rows[0] + 1, rows[1], at)
        elif leaf.inside is not None or type_ == "uuid":
            self.fill_zeros(t, rows)

    def fill_zeros(self, target: Target, rows: tuple[Var, Var]) -> None:
        """Emit the write of 0, false or a uuid of zeros into ``rows[1]`` rows from row ``rows[0]``
        on.
        """
        type_, (first, count) = target.leaf.column.type, rows
        with self.code.when(target.data):
            if type_ == "bool":
                self.code.do("fill_false", target.data, *rows)
            elif type_ == "uuid":
                self.code.do("fill_64", target.data, Num(2) * first, Num(2) * count, 0)
            else:
                self.code.do(f"fill_{WIDTHS[type_]}", target.data, *rows, 0)
