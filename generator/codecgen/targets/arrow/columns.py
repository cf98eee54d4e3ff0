"""What the columns of a view are made of in each of its layouts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from codecgen.plan import FieldPlan, LayoutPlan, Plan
from codecgen.plan.columns import CasePlan, Leaf, ViewPlan
from codecgen.schema.expression import Expression, Path
from codecgen.schema.model import BytesType, Field
from codecgen.targets.arrow.code import Checks, Code, Sinks, Unsupported, integer_of
from codecgen.targets.arrow.expressions import Operand, Refused
from codecgen.targets.arrow.naming import ENTRY, ITEM, START, Naming, packed
from codecgen.targets.arrow.scope import Names
from codecgen.targets.pycode import WIDTH, docstring

SLOTS = ("STATUS", "AT", "CASE", "START", "END", "CODEC", "RUN", "RUN_END", "COUNT", "CHECKED")
"""What the index says of an entry, before the values of its fields."""

STATE = ("ROWS", "ENTRIES", "LAST", "NEXT")
"""What has been written so far, before the sizes and the nulls of the columns."""

WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "timestamp_ms": 64}
BYTES_LIKE = ("binary", "string")


@dataclass(frozen=True, slots=True)
class Resolved:
    """The columns of a case: where bytes go (``sinks``), and the numbers of the others."""

    sinks: Sinks
    numbers: dict[str, Operand]
    missing: tuple[Leaf, ...]
    names: Names

    def used(self, prefix: str) -> list[str]:
        return sorted(name for p, name in self.names.used if p == prefix)


def deferred(entry: LayoutPlan) -> list[FieldPlan]:
    """The checksums over all that follows them: they are verified when the rows are read, while these are in the cache."""
    last = (None, entry.fields[-1].name)
    return [
        c
        for c in entry.fields
        if c.covers is not None and c.field.checksum is not None and c.covers.last in last
    ]


def covered_from(prefix: str, c: FieldPlan) -> str:
    """The variable that holds where the bytes begin that a checksum covers."""
    return f"{START}{prefix}{c.name}"


class Columns:
    """What all kernels of a view need to know of its columns, and the text that they add to."""

    def __init__(self, plan: Plan, view: ViewPlan) -> None:
        self.plan = plan
        self.view = view
        self.resolved = {case.number: self.resolve(case) for case in view.cases}
        self.fields_at = len(SLOTS)
        self.slots = {case.number: self.slots_of(case) for case in view.cases}
        """Variables that the index keeps for other passes."""
        self.kept = packed(self.slots, self.fields_at)
        self.width = max([self.fields_at, *(place + 1 for place in self.kept.values())])
        self.naming = Naming(plan, view)
        self.code = Code()
        self.checks = Checks()

    # ------------------------------------------------------------ what the columns are made of

    def resolve(self, case: CasePlan) -> Resolved:
        prefix = ITEM if case.array is None else ENTRY
        names = Names(self.plan, case.entry, prefix, case)
        leaves: dict[str, Leaf] = {}
        lists: dict[str, tuple[Leaf, dict[str, Leaf]]] = {}
        numbers: dict[str, Operand] = {}
        missing = []
        for leaf in self.view.leaves:
            if leaf.inside is not None:
                continue
            expression = case.rows.values.get(leaf.column.name)
            if expression is None:
                missing.append(leaf)
            elif leaf.column.type in BYTES_LIKE:
                f = self.bytes_field(case, expression)
                if leaf.column.type == "string" and not (
                    isinstance(f.type, BytesType) and f.type.text
                ):
                    raise Unsupported("a string that is not text in UTF-8", f)
                if case.rows.head:
                    raise Unsupported("in a view of heads, but at no fixed place", f)
                if f.name in leaves:
                    raise Unsupported("two columns of the same bytes", f)
                leaves[f.name] = leaf
            elif leaf.column.type == "list":
                f = self.item_field(case, expression)
                members = {m.column.name: m for m in self.view.leaves if m.inside is leaf.column}
                lists[f.name] = (leaf, members)
            else:
                try:
                    numbers[leaf.column.name] = names.value(expression)
                except Refused as error:
                    raise Unsupported(error.reason, self.blamed(case, expression)) from None
        return Resolved(Sinks(leaves, lists), numbers, tuple(missing), names)

    def item_field(self, case: CasePlan, expression: Expression) -> Field:
        node = expression.node
        if isinstance(node, Path):
            names = (
                node.names[1:] if case.array is not None and node.names[0] == "item" else node.names
            )
            fp = case.element.field(names[0]) if len(names) == 1 else None
            if fp is not None and (case.array is None or node.names[0] == "item"):
                return fp.field
        raise Unsupported(
            "bytes or a list that are no field of the row", self.blamed(case, expression)
        )

    def bytes_field(self, case: CasePlan, expression: Expression) -> Field:
        f = self.item_field(case, expression)
        if not isinstance(f.type, BytesType):
            raise Unsupported("a column of bytes from something else", f)
        return f

    def blamed(self, case: CasePlan, expression: Expression) -> Field:
        """The field to name when an expression cannot be expressed."""
        for path in expression.paths():
            for name in path.names:
                for layout in (case.entry, case.element):
                    fp = layout.field(name)
                    if fp is not None:
                        return fp.field
        return (case.array or case.entry.fields[0]).field

    def slots_of(self, case: CasePlan) -> list[str]:
        """The variables that hold what the other passes need of the entry: fields, and ends of the array."""
        if case.array is None:
            return []
        resolved = self.resolved[case.number]
        wanted = set(resolved.used(ENTRY))
        for c in deferred(case.entry):
            wanted.add(c.name)
        starts = [covered_from(ENTRY, c) for c in deferred(case.entry)]
        return [ENTRY + name for name in sorted(wanted)] + starts + sorted(resolved.names.ends)

    def slots_named(self) -> dict[str, dict[str, int]]:
        """The places of all numbers that kernels and Python tell each other, by what they are in."""
        index = {name: 8 * i for i, name in enumerate(SLOTS)}
        index |= {name.upper(): 8 * place for name, place in self.kept.items()}
        state = {name: 8 * i for i, name in enumerate(STATE)}
        columns = {}
        for leaf in self.view.leaves:
            state[self.naming.slot(leaf, "at")] = 8 * (len(STATE) + leaf.index)
            nulls = len(STATE) + len(self.view.leaves) + leaf.index
            state[self.naming.slot(leaf, "nulls")] = 8 * nulls
            for k, part in enumerate(("data", "validity", "offsets")):
                columns[self.naming.slot(leaf, part)] = 8 * (3 * leaf.index + k)
        return {
            "A row of the index.": {**index, "SIZE_OF_ROW": 8 * self.width},
            "What has been written, and what there is room for.": state,
            "The addresses of columns.": columns,
        }

    def part(self, leaf: Leaf, part: str) -> str:
        """The variable that holds a part of a column."""
        return self.naming.part(leaf, part)

    def head_fields(self, case: CasePlan) -> None:
        """Load the fields that are asked for from their places."""
        for name in self.resolved[case.number].used(ITEM):
            fp = case.entry.field(name)
            if fp is None or fp.offset is None or fp.field.when is not None:
                blamed = case.entry.fields[0].field if fp is None else fp.field
                raise Unsupported("in a view of heads, but at no fixed place", blamed)
            size, signed = integer_of(fp.field)
            order = "_le" if case.entry.layout.endian == "little" and size > 1 else ""
            load = f"load_{'i' if signed else 'u'}{8 * size}{order}"
            self.code.add(f"{ITEM}{name} = {load}(p + {fp.offset})")

    def numbers(self, case: CasePlan) -> list[tuple[Leaf, Operand]]:
        resolved = self.resolved[case.number]
        return [
            (leaf, resolved.numbers[leaf.column.name])
            for leaf in self.view.leaves
            if leaf.inside is None and leaf.column.name in resolved.numbers
        ]

    def varies(self, value: Operand, case: CasePlan) -> bool:
        """Whether a number differs from row to row of what the index has as one."""
        texts = (value.text, value.null or "")
        own = case.array is None and any(re.search(r"\bposition\b", text) for text in texts)
        return own or any(ITEM in text for text in texts)

    def slot(self, leaf: Leaf, part: str) -> str:
        """Where a part of a column is in the state, in what there is room for, or among the addresses."""
        return self.naming.slot(leaf, part)

    def is_missing(self, leaf: Leaf, resolved: Resolved) -> bool:
        names = {m.column.name for m in resolved.missing}
        return (leaf.inside.name if leaf.inside else leaf.column.name) in names

    def function(self, head: str, doc: str, *, inner: bool = True) -> None:
        self.code.depth = 0
        self.code.add("")
        self.code.add("")
        self.code.add("@inner" if inner else "@jit")
        if len(head) > WIDTH - 5:
            name, _, rest = head.partition("(")
            parameters, _, result = rest.rpartition(")")
            self.code.lines += [f"def {name}(", f"    {parameters}", f"){result}:"]
        else:
            self.code.add(f"def {head}:")
        self.code.lines.append(docstring(doc, indent=4))
        self.code.depth = 1
