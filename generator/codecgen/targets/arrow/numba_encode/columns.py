"""Loading columns: what a kernel knows of them, and their values in a row."""

from __future__ import annotations

from codecgen.plan.columns import Leaf
from codecgen.targets.arrow.code_tree import Expr, Num, Var, call
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_encode.view import BUFFERS, BYTES_LIKE, Encoders

LOADS = {
    "int8": ("load_i8", 1),
    "int16": ("load_i16_le", 2),
    "int32": ("load_i32_le", 4),
    "int64": ("load_i64_le", 8),
    "timestamp_ms": ("load_i64_le", 8),
}


class Variables:
    """Variables of one kernel function, by the fields and columns whose values they hold."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], Var] = {}
        self.parts: dict[tuple[int, str], Var] = {}

    def get(self, kind: str, name: str) -> Var:
        """Return the variable of a field or column; ``kind`` says which value, such as ``row``,
        ``entry`` or ``null row``. Repeated calls return the same variable.
        """
        key = (kind, name)
        if key not in self.found:
            self.found[key] = Var(f"{kind.replace(' ', '_')}_{name}")
        return self.found[key]

    def leaf_variable(self, leaf: Leaf, part: str) -> Var:
        """Return the variable of a property of a column, such as ``data``, its buffer address.
        Repeated calls return the same variable.
        """
        key = (leaf.index, part)
        if key not in self.parts:
            self.parts[key] = Var(f"{leaf.name}_{part}")
        return self.parts[key]

    def value(self, leaf: Leaf) -> Var:
        """Return the variable of a column's value in the current row or list element: a number, or
        for bytes and lists their size, which is -1 for null bytes. Repeated calls return the same
        variable.
        """
        if leaf.inside is None:
            return self.get("row", leaf.name)
        key = (leaf.index, "value")
        if key not in self.parts:
            self.parts[key] = Var(f"part_{leaf.name}")
        return self.parts[key]


class Columns:
    """Emits kernel code that loads values of Arrow columns into variables: a number into the
    variable of its column and a kind, such as ``row``, its null flag into that of ``null row``, the
    start of bytes and lists into ``at`` and their size into the column's value. ``row`` is the
    index of the value.
    """

    def __init__(self, encoders: Encoders, code: Builder, variables: Variables) -> None:
        self.encoders = encoders
        self.code = code
        self.variables = variables
        self.leaf_variable = variables.leaf_variable

    def addresses(self, columns: Var) -> None:
        """Emit loads of the facts of all columns from the table at the address ``columns`` into
        variables: addresses of data, offsets and validity, first bit, step (0: one value for all
        rows), end of the data, and whether the rows have the column. Loads that no later code uses
        are removed when the function is printed.
        """
        for leaf in self.encoders.view.leaves:
            for name in BUFFERS:
                place = columns + self.encoders.columns[leaf.index, name]
                self.code.assign(self.leaf_variable(leaf, name), call("load_i64_le", place))

    def value_index(self, leaf: Leaf, row: Expr) -> Expr:
        """Return the index of a row's value; a column on request may have a single value for all rows."""
        return row * self.leaf_variable(leaf, "step") if leaf.column.on_request else row

    def load(self, leaf: Leaf, row: Expr) -> None:
        """Emit the loads of a column's value in the row ``row``: its number and null flag, or the
        start and the size of its bytes or list elements. The size of null bytes is -1.
        """
        if leaf.column.type in BYTES_LIKE:
            self.bytes(leaf, row)
            self.null_bytes(leaf, row)
        elif leaf.column.type == "list":
            self.bytes(leaf, row)
        else:
            self.number(leaf, row, "row")

    def number(self, leaf: Leaf, row: Expr, kind: str) -> None:
        """Emit the load of a number or bool at the index ``row`` into the variable ``kind`` of the
        column, and of its null flag if the column is nullable. A column on request may have one
        value for all rows. Raise KeyError for other types, which :class:`Encoders` has refused.
        """
        place = self.value_index(leaf, row)
        variable = self.variables.get(kind, leaf.column.name)
        data = self.leaf_variable(leaf, "data")
        if leaf.column.type == "bool":
            value = call("load_bit", data, self.leaf_variable(leaf, "bit") + place)
        else:
            function, size = LOADS[leaf.column.type]
            value = call(function, data + (place if size == 1 else Num(size) * place))
        self.code.assign(variable, value)
        if leaf.column.nullable:
            null = self.variables.get(f"null {kind}", leaf.column.name)
            self.code.assign(null, self.is_null(leaf, place))

    def is_null(self, leaf: Leaf, place: Expr) -> Expr:
        """Return the test that the value at index ``place`` is null."""
        return call(
            "is_null", self.leaf_variable(leaf, "validity"), self.leaf_variable(leaf, "bit") + place
        )

    def bytes(self, leaf: Leaf, row: Expr) -> None:
        """Emit the loads of the start and the size of the bytes or list elements at the index
        ``row``, from two neighboring Arrow offsets. Nulls are not considered.
        """
        at = self.leaf_variable(leaf, "at")
        first = self.leaf_variable(leaf, "offsets") + Num(4) * self.value_index(leaf, row)
        self.code.assign(at, call("load_i32_le", first))
        self.code.assign(self.variables.value(leaf), call("load_i32_le", first + 4) - at)

    def null_bytes(self, leaf: Leaf, row: Expr) -> None:
        """Emit the assignment of the size -1 if the value of a nullable column is null."""
        if leaf.column.nullable:
            with self.code.when(self.is_null(leaf, self.value_index(leaf, row))):
                self.code.assign(self.variables.value(leaf), -1)
