"""What the kernels that write share: loading columns, working out fields, the numbers kept of an entry."""

from __future__ import annotations

from collections.abc import Iterable

from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.columns import CasePlan, Leaf, ViewPlan
from codecgen.schema.model import INTEGERS, ArrayType, BytesType, Field, Reference
from codecgen.targets.arrow.code import Code, Unsupported
from codecgen.targets.arrow.expressions import Operand
from codecgen.targets.arrow.naming import ENTRY, HEAD, NULL, Naming, packed, value_of
from codecgen.targets.arrow.numba_encode.written import Part, Written, leaf_of
from codecgen.targets.pycode import WIDTH, docstring

SLOTS = ("CASE", "FIRST", "ROWS", "SIZE", "SIZES", "CODEC", "RUN", "RUN_SIZE")
"""What the table says of an entry, before the values of its fields."""

BUFFERS = ("data", "offsets", "validity", "bit", "step", "end", "given")
"""What the kernels are told of a column: addresses, the bit where it begins, 1 or 0 for one value for all rows, the
address where the data end, whether the rows have the column."""

LOADS = {
    "int8": ("load_i8", 1),
    "int16": ("load_i16_le", 2),
    "int32": ("load_i32_le", 4),
    "int64": ("load_i64_le", 8),
    "timestamp_ms": ("load_i64_le", 8),
}
BYTES_LIKE = ("binary", "string")
LONGEST_VARINT = 10
MOST_BYTES = (1 << 31) - 1


class Rowwise:
    """One view, with what is written for each of its cases."""

    def __init__(self, plan: Plan, view: ViewPlan) -> None:
        self.plan = plan
        self.view = view
        self.code = Code()
        cases = [case for case in view.cases if case.rows.write is not None]
        self.written = {case.number: Written(plan, view, case) for case in cases}
        self.slots = {case.number: self.slots_of(case) for case in cases}
        """Variables that the table keeps for the second pass."""
        self.kept = packed(self.slots, len(SLOTS))
        self.width = max([len(SLOTS), *(place + 1 for place in self.kept.values())])
        self.naming = Naming(plan, view)

    def slots_of(self, case: CasePlan) -> list[str]:
        """The variables that the second pass needs: fields of the entry, columns of its first row."""
        if case.array is None:
            return []
        written = self.written[case.number]
        names = [ENTRY + part.name for part in written.entry if part.varies]
        heads = {name for prefix, name in written.columns.used if prefix == HEAD}
        used = {name for part in written.item for name in self.heads_in(part)}
        for name in sorted(heads & used):
            names.append(HEAD + name)
            leaf = leaf_of(self.view, name)
            if leaf is not None and leaf.column.nullable:
                names.append(f"{NULL}{HEAD}{name}")
        return names

    def slots_named(self) -> dict[str, dict[str, int]]:
        """The places of all numbers that kernels and Python tell each other, by what they are in."""
        table = {name: 8 * i for i, name in enumerate(SLOTS)}
        table |= {name.upper(): 8 * place for name, place in self.kept.items()}
        columns = {"EXTRA": 0}
        for leaf in self.view.leaves:
            for i, part in enumerate(BUFFERS):
                columns[self.naming.slot(leaf, part)] = 8 + 8 * (len(BUFFERS) * leaf.index + i)
        return {
            "A row of the table of entries.": {**table, "SIZE_OF_ENTRY": 8 * self.width},
            "What is known of columns.": columns,
        }

    def heads_in(self, part: Part) -> set[str]:
        """The columns of the first row that a part of an element needs."""
        text = "" if part.value is None else f"{part.value.text} {part.value.null}"
        words = text.replace("(", " ").replace(")", " ").replace(",", " ").split()
        plain = [word.removeprefix(NULL) for word in words]
        return {word.removeprefix(HEAD) for word in plain if word.startswith(HEAD)}

    # ------------------------------------------------------------ text

    def function(self, head: str, doc: str, *, inner: bool = True) -> None:
        self.code.depth = 0
        self.code.lines += ["", "", "@inner" if inner else "@jit"]
        if len(head) > WIDTH - 5:
            name, _, rest = head.partition("(")
            parameters, _, result = rest.rpartition(")")
            lines = [f"    {parameters}"]
            if len(lines[0]) > WIDTH:
                lines = [f"    {parameter}," for parameter in parameters.split(", ")]
            self.code.lines += [f"def {name}(", *lines, f"){result}:"]
        else:
            self.code.lines.append(f"def {head}:")
        self.code.lines.append(docstring(doc, indent=4))
        self.code.depth = 1

    def assign(self, variable: str, value: Operand) -> None:
        """``variable = value``, a condition as branches."""
        if not value.branches:
            self.code.add(f"{variable} = {value.text}")
            return
        word = "if"
        for condition, text in value.branches:
            head = f"{word} {condition}:" if condition else "else:"
            with self.code.block(head):
                self.code.add(f"{variable} = {text}")
            word = "elif"

    # ------------------------------------------------------------ columns

    def part(self, leaf: Leaf, part: str) -> str:
        """The variable that holds a part of a column."""
        return self.naming.part(leaf, part)

    def leaves(self, written: Written) -> list[Leaf]:
        """All columns, with the members of lists."""
        return list(self.view.leaves)

    def addresses(self, leaves: Iterable[Leaf], names: Iterable[str] = BUFFERS) -> None:
        """Load what is known of columns. What turns out not to be used is taken away again."""
        for leaf in leaves:
            for name in names:
                place = f"columns + {self.naming.slot(leaf, name)}"
                self.code.add(f"{self.part(leaf, name)} = load_i64_le({place})")

    def index(self, leaf: Leaf, row: str) -> str:
        """Where the value of a row is: columns on request may have one value for all rows."""
        return f"{row} * {self.part(leaf, 'step')}" if leaf.column.on_request else row

    def load(self, leaf: Leaf, row: str, variable: str) -> None:
        """A number of a row, and whether it is null."""
        place = self.index(leaf, row)
        if leaf.column.type == "bool":
            self.code.add(
                f"{variable} = load_bit({self.part(leaf, 'data')}, {self.part(leaf, 'bit')} + {place})"
            )
        else:
            function, size = LOADS[leaf.column.type]
            self.code.add(
                f"{variable} = {function}({self.part(leaf, 'data')} + {_times(size, place)})"
            )
        self.null_number(leaf, place, variable)

    def null_number(self, leaf: Leaf, place: str, variable: str) -> None:
        if leaf.column.nullable:
            bit = f"{self.part(leaf, 'bit')} + {place}"
            self.code.add(f"{NULL}{variable} = is_null({self.part(leaf, 'validity')}, {bit})")

    def load_bytes(self, leaf: Leaf, row: str) -> None:
        """Where the bytes of a row are, and how many; -1 for null."""
        at, offsets = self.part(leaf, "at"), self.part(leaf, "offsets")
        place = _times(4, self.index(leaf, row))
        self.code.add(f"{at} = load_i32_le({offsets} + {place})")
        self.code.add(f"{value_of(leaf)} = load_i32_le({offsets} + {place} + 4) - {at}")

    def null_bytes(self, leaf: Leaf, row: str) -> None:
        """-1 for null."""
        if leaf.column.nullable:
            bit = f"{self.part(leaf, 'bit')} + {self.index(leaf, row)}"
            with self.code.block(f"if is_null({self.part(leaf, 'validity')}, {bit}):"):
                self.code.add(f"{value_of(leaf)} = -1")

    def places(self) -> tuple[str, ...]:
        """Columns that say where a row was read: they are not written."""
        out = []
        for leaf in self.view.leaves:
            pairs = [(case.rows.values.get(leaf.name), case.entry) for case in self.view.cases]
            found = [(e, entry) for e, entry in pairs if e is not None and leaf.inside is None]
            if found and all(
                entry.field("position") is None
                and any(path.names == ("position",) for path in e.paths())
                for e, entry in found
            ):
                out.append(leaf.name)
        return tuple(out)

    def number_leaf(self, name: str) -> Leaf:
        leaf = leaf_of(self.view, name)
        assert leaf is not None
        return leaf

    def members(self, leaf: Leaf) -> dict[str, Leaf]:
        return {m.column.name: m for m in self.view.leaves if m.inside is leaf.column}

    # ------------------------------------------------------------ layouts

    def element_of(self, f: Field, layout: LayoutPlan) -> LayoutPlan | None:
        """The layout of the elements of an array in a row."""
        assert isinstance(f.type, ArrayType)
        if not isinstance(f.type.element, Reference):
            return None
        held = self.plan.of(f.type.element)
        return ([p for p in held if p.version in (layout.version, None)] or list(held))[0]

    def refuse_element(self, element: LayoutPlan) -> None:
        """Elements in rows have numbers that are constant, and bytes."""
        for fp in element.fields:
            f = fp.field
            odd = f.when is not None or fp.measures is not None or f.checksum is not None
            odd = odd or f.counts is not None or isinstance(f.type, ArrayType)
            if odd or f.valid is not None or f.refuse is not None:
                raise Unsupported("not written by the kernels inside an array of a row", f)


def _times(size: int, place: str) -> str:
    if size == 1:
        return place
    return f"{size} * ({place})" if " " in place else f"{size} * {place}"


def length_name(f: Field) -> str:
    """The type of the length in front of bytes, or of the count in front of an array."""
    if isinstance(f.type, BytesType):
        return str(f.type.length)
    assert isinstance(f.type, ArrayType)
    return str(f.type.count)


def size_of_number(name: str, value: str) -> tuple[int, str]:
    """(constant bytes, text of the others) of a number of a type."""
    if name in INTEGERS:
        return INTEGERS[name][0], ""
    if name == "bool":
        return 1, ""
    if name == "compact":
        return 0, f"size_uvarint({value} + 1)"
    return 0, f"size_{name}({value})"


def largest(name: str) -> int:
    """The largest number of a type that lengths have."""
    if name in INTEGERS:
        size, signed = INTEGERS[name]
        return (1 << 8 * size - signed) - 1
    return (1 << 31) - 1
