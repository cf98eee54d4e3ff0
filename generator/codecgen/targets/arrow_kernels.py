"""The kernels of a view as Python: index the entries, measure and check their rows, fill Arrow buffers."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.columns import CasePlan, Leaf, ViewPlan
from codecgen.schema.expression import Expression, Path
from codecgen.schema.model import INTEGERS, ArrayType, BytesType, Field
from codecgen.targets.arrow_expressions import Operand, Refused
from codecgen.targets.arrow_scope import ENTRY, ITEM, Names
from codecgen.targets.arrow_walk import Code, Sinks, Unsupported, Walk, names_needed
from codecgen.targets.pycode import WIDTH, docstring

SLOTS = ("STATUS", "AT", "CASE", "START", "END", "CODEC", "RUN", "RUN_END", "COUNT", "ROWS")
"""What the index says of an entry, before the values of its fields."""

WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "timestamp_ms": 64}
BYTES_LIKE = ("binary", "string")


@dataclass(frozen=True, slots=True)
class Sum:
    """Something that the measuring pass counts for a leaf: ``bytes``, ``nulls`` or the ``count`` of a list."""

    leaf: Leaf
    what: str

    @property
    def name(self) -> str:
        return f"{self.leaf.name}_{self.what}"


def sums_of(view: ViewPlan) -> tuple[Sum, ...]:
    out = []
    for leaf in view.leaves:
        if leaf.column.type in BYTES_LIKE:
            out.append(Sum(leaf, "bytes"))
        elif leaf.column.type == "list":
            out.append(Sum(leaf, "count"))
        if leaf.column.nullable:
            out.append(Sum(leaf, "nulls"))
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Resolved:
    """The columns of a case: where bytes go (``sinks``), and the numbers of the others."""

    sinks: Sinks
    numbers: dict[str, Operand]
    missing: tuple[Leaf, ...]
    names: Names

    def used(self, prefix: str) -> list[str]:
        return sorted(name for p, name in self.names.used if p == prefix)


class Kernels:
    """Writes the kernels of one view."""

    def __init__(self, plan: Plan, view: ViewPlan) -> None:
        self.plan = plan
        self.view = view
        self.sums = sums_of(view)
        self.resolved = {case.number: self.resolve(case) for case in view.cases}
        self.fields_at = len(SLOTS) + len(self.sums)
        self.slots = {case.number: self.slots_of(case) for case in view.cases}
        self.width = self.fields_at + max([len(s) for s in self.slots.values()] or [0])
        self.code = Code()

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

    def slots_of(self, case: CasePlan) -> dict[str, int]:
        """Where the index keeps what the other passes need of the entry: fields, and ends of the array."""
        if case.array is None:
            return {}
        resolved = self.resolved[case.number]
        wanted = resolved.used(ENTRY) + sorted(resolved.names.ends)
        return {name: 8 * (self.fields_at + i) for i, name in enumerate(wanted)}

    # ------------------------------------------------------------ the module

    def text(self) -> str:
        add = self.code.add
        for i, slot in enumerate(SLOTS):
            add(f"{slot} = {8 * i}")
        for i, total in enumerate(self.sums):
            add(f"{total.name.upper()} = {8 * (len(SLOTS) + i)}")
        add(f"ROW_SIZE = {8 * self.width}")
        self.fail()
        entries = list(dict.fromkeys(p.name + str(p.version) for _, p in self.view.entries))
        done: set[str] = set()
        for _, entry in self.view.entries:
            if entry.name + str(entry.version) not in done:
                done.add(entry.name + str(entry.version))
                self.open(entry)
        assert len(entries) == len(done)
        self.index()
        for case in self.view.cases:
            self.measure_case(case)
        self.measure()
        for case in self.view.cases:
            self.fill_case(case)
        self.fill()
        return "\n".join(self.code.lines) + "\n"

    def function(self, head: str, doc: str) -> None:
        self.code.depth = 0
        self.code.add("")
        self.code.add("")
        self.code.add("@jit")
        if len(head) > WIDTH - 5:
            name, _, rest = head.partition("(")
            parameters, _, result = rest.rpartition(")")
            self.code.lines += [f"def {name}(", f"    {parameters}", f"){result}:"]
        else:
            self.code.add(f"def {head}:")
        self.code.lines.append(docstring(doc, indent=4))
        self.code.depth = 1

    def fail(self) -> None:
        self.function(
            "fail(row: int, line: int, p: int) -> int",
            "Note the line of YAML that an entry breaks, and where.",
        )
        self.code.add("store_64(row + STATUS, line)")
        self.code.add("store_64(row + AT, p)")
        self.code.add("return 0")
        self.code.depth = 0

    # ------------------------------------------------------------ pass 1: entries

    def open(self, entry: LayoutPlan) -> None:
        add = self.code.add
        size_field = next(
            (
                m
                for m in entry.fields
                if m.measures is not None and m.measures.last in (None, entry.fields[-1].name)
            ),
            None,
        )
        name = _function("open", entry)
        if size_field is None or size_field.offset is None or size_field.size is None:
            raise Unsupported(
                "an entry whose length is not at a fixed place", entry.fields[0].field
            )
        first = entry.field(size_field.measures.first) if size_field.measures else None
        if first is None or first.offset is None:
            raise Unsupported("a length that begins at no fixed place", size_field.field)
        head = [
            fp
            for fp in entry.fields
            if fp.offset is not None and fp.size is not None and fp.field.when is None
        ]
        least = max((fp.offset or 0) + (fp.size or 0) for fp in head)
        self.function(
            f"{name}(p: int, end: int, row: int, most: int, careful: int) -> int",
            f"{entry.layout.span.file}: the head of an entry; 0 when it is not whole, -1 when its length cannot be.",
        )
        walk = Walk(self.plan, self.code, "open")
        f = size_field.field
        measured = ENTRY + f.name
        add(f"start = p + {size_field.offset}")
        order = "_le" if entry.layout.endian == "little" and (size_field.size or 0) > 1 else ""
        base, signed = _integer(f)
        add(f"{measured} = load_{'i' if signed else 'u'}{8 * base}{order}(start)")
        names = Names(self.plan, entry, ENTRY)
        odd = f"{measured} < 0"
        if f.refuse is not None:
            odd += f" or {walk.boolean(names, f.refuse, f).text}"
        with self.code.block(f"if {odd}:"):
            add("return -1")
        add(f"entry_end = p + {first.offset} + {measured}")
        with self.code.block("if entry_end > end:"):
            add("return 0")
        add("start = p")
        add("store_64(row + STATUS, 0)")
        add("store_64(row + START, start)")
        add("store_64(row + END, entry_end)")
        with self.code.block(f"if entry_end - start < {least}:"):
            add(f"fail(row, {f.span.line}, p)")
            add("return entry_end")
        self.code.add("body_" + name + "(p, entry_end, row, most, careful)")
        add("return entry_end")
        self.open_body(entry, "body_" + name)

    def open_body(self, entry: LayoutPlan, name: str) -> None:
        add = self.code.add
        self.function(
            f"{name}(p: int, end: int, row: int, most: int, careful: int) -> int",
            "Which rows the entry holds, and what they need of it. 0 when it is not as it should be.",
        )
        walk = Walk(self.plan, self.code, "open")
        add("start = p")
        cases = self.view.cases_of(entry)
        names = Names(self.plan, entry, ENTRY)
        tests = []
        for case in cases:
            test = (
                None
                if case.rows.when is None
                else walk.boolean(names, case.rows.when, entry.fields[0].field)
            )
            care = (
                None
                if case.rows.careful is None
                else walk.boolean(names, case.rows.careful, entry.fields[0].field)
            )
            tests.append((case, test, care))
        for _, used in sorted(names.used):
            fp = entry.field(used)
            if fp is None or fp.offset is None or fp.size is None:
                raise Unsupported(
                    "a condition on what lies at no fixed place",
                    fp.field if fp else entry.fields[0].field,
                )
            size, signed = _integer(fp.field)
            order = "_le" if entry.layout.endian == "little" and size > 1 else ""
            add(
                f"{ENTRY}{used} = load_{'i' if signed else 'u'}{8 * size}{order}(start + {fp.offset})"
            )
        for case, test, care in tests:
            if test is not None and test.constant == 0:
                continue
            if test is None or test.constant is not None:
                self.open_case(case, walk, care)
                return
            with self.code.block(f"if {test.text}:"):
                self.open_case(case, walk, care)
        add(f"return fail(row, {entry.layout.span.line}, start)")

    def open_case(self, case: CasePlan, walk: Walk, care: Operand | None) -> None:
        add = self.code.add
        if care is not None:
            with self.code.block(f"if careful and {care.text}:"):
                add(f"return fail(row, {case.rows.span.line}, start)")
        add(f"store_64(row + CASE, {case.number})")
        if case.array is None:
            add("store_64(row + CODEC, 0)")
            add("store_64(row + RUN, start)")
            add("store_64(row + RUN_END, end)")
            add("store_64(row + COUNT, 1)")
            add("return 1")
            return
        f = case.array.field
        type_ = f.type
        if case.entry.fields[-1] is not case.array or not isinstance(type_, ArrayType):
            raise Unsupported("rows from what is no array at the end of its layout", f)
        resolved = self.resolved[case.number]
        needed = names_needed(case.entry, True) | set(resolved.used(ENTRY))
        if type_.counted_by is not None:
            needed.add(type_.counted_by)
        end = walk.fields(case.entry, ENTRY, "end", Sinks(), needed, stop=f.name)
        names = Names(self.plan, case.entry, ENTRY)
        if f.when is not None:
            there = walk.boolean(names, f.when, f)
            if there.constant != 1:
                walk.fail(f"not ({there.text})", f)
        count = "-1"
        if type_.count is not None:
            count = "count"
            walk.number(type_.count, case.entry, count, end, f, False)
        elif type_.counted_by is not None:
            count = ENTRY + type_.counted_by
        if count != "-1":
            walk.fail(f"{count} < 0 or {count} > most", f)
        codec = "0"
        if type_.compression is not None:
            codec = "codec"
            add(f"codec = {walk.boolean(names, type_.compression.by, f).text}")
        if type_.length is not None:
            walk.number(type_.length, case.entry, "length", end, f, False)
            walk.fail(f"length < 0 or length != {end} - p", f)
        if count != "-1" and type_.compression is not None and type_.length is None:
            none = next((n for n, c in case.codecs.items() if c is None), 0)
            with self.code.block(f"if {count} == 0:"):
                walk.fail(f"p != {end}", f)
                add(f"codec = {none}")
        add(f"store_64(row + CODEC, {codec})")
        add("store_64(row + RUN, p)")
        add(f"store_64(row + RUN_END, {end})")
        add(f"store_64(row + COUNT, {count})")
        for name, at in self.slots[case.number].items():
            if name not in resolved.names.ends:
                add(f"store_64(row + {at}, {ENTRY}{name})")
        add("return 1")

    def index(self) -> None:
        add = self.code.add
        by = self.view.choice.by or ""
        places = [(key, p, p.field(by)) for key, p in self.view.entries]
        _, layout, fp = places[0]
        if fp is None or fp.offset is None:
            raise Unsupported("a choice by what lies at no fixed place", layout.fields[0].field)
        size, signed = _integer(fp.field)
        order = "_le" if layout.layout.endian == "little" and size > 1 else ""
        head = fp.offset + size
        for _, p in self.view.entries:
            for m in p.fields:
                if m.measures is not None and m.offset is not None:
                    head = max(head, m.offset + (m.size or 0))
        self.function(
            "index(table: int, capacity: int, p: int, end: int, most: int, careful: int) -> tuple[int, int, int]",
            "Pass 1: a row of the table for each whole entry. How many there are, where they end, and why: 1 the table is "
            "full, 0 the bytes end, -1 what follows is no entry.",
        )
        add("n = 0")
        with self.code.block("while n < capacity:"):
            with self.code.block(f"if end - p < {head}:"):
                add("return n, p, 0")
            add("row = table + n * ROW_SIZE")
            add(f"kind = load_{'i' if signed else 'u'}{8 * size}{order}(p + {fp.offset})")
            word = "if"
            for key, p, _ in places:
                with self.code.block(f"{word} kind == {key}:"):
                    add(f"behind = {_function('open', p)}(p, end, row, most, careful)")
                word = "elif"
            with self.code.block("else:"):
                add("behind = -1")
            with self.code.block("if behind <= 0:"):
                add("return n, p, behind")
            add("n += 1")
            add("p = behind")
        add("return n, p, 1")

    # ------------------------------------------------------------ pass 2: measure

    def measure_case(self, case: CasePlan) -> None:
        add = self.code.add
        resolved = self.resolved[case.number]
        self.function(
            f"measure_{case.name}(row: int, most: int) -> int",
            "Check the rows of an entry, and add up what they take. 0 when they are not as they should be.",
        )
        add("p = load_i64_le(row + RUN)")
        add("end = load_i64_le(row + RUN_END)")
        add("count = load_i64_le(row + COUNT)")
        own = self.own_sums(case)
        for total in own:
            add(f"{total.name} = 0")
        walk = Walk(self.plan, self.code, "measure")
        needed = names_needed(case.element, True)
        ends = resolved.names.ends
        needed |= {name for _, name in ends.values()}
        if case.array is None:
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

    def nullable_numbers(self, case: CasePlan, prefix: str) -> list[tuple[Leaf, Operand]]:
        """Numbers that may be null, at the level of rows (``item_``) or of the entry."""
        resolved = self.resolved[case.number]
        return [
            (leaf, value)
            for leaf, value in self.numbers(case)
            if value.null is not None
            and leaf.column.nullable
            and (self.varies(value) == (prefix == ITEM))
            and resolved is not None
        ]

    def numbers(self, case: CasePlan) -> list[tuple[Leaf, Operand]]:
        resolved = self.resolved[case.number]
        return [
            (leaf, resolved.numbers[leaf.column.name])
            for leaf in self.view.leaves
            if leaf.inside is None and leaf.column.name in resolved.numbers
        ]

    def varies(self, value: Operand) -> bool:
        """Whether a number differs from row to row of an entry."""
        return ITEM in value.text or (value.null is not None and ITEM in value.null)

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

    def measure(self) -> None:
        add = self.code.add
        self.function(
            "measure(table: int, first: int, last: int, most: int, most_rows: int, most_bytes: int, totals: int) -> int",
            "Pass 2: check entries, and add up what their rows take, until one is not as it should be or the limits are "
            "reached. The first entry that is not counted in.",
        )
        with self.code.block("for i in range(first, last):"):
            add("row = table + i * ROW_SIZE")
            with self.code.block("if load_i64_le(row + STATUS):"):
                add("return i")
            add("case = load_i64_le(row + CASE)")
            word = "if"
            for case in self.view.cases:
                with self.code.block(f"{word} case == {case.number}:"):
                    add(f"good = measure_{case.name}(row, most)")
                word = "elif"
            with self.code.block("else:"):
                add("good = 0")
            with self.code.block("if not good:"):
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

    # ------------------------------------------------------------ pass 3: fill

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
            add("end = load_i64_le(row + RUN_END)")
            needed = names_needed(case.element, False) | set(resolved.used(ITEM))
            with self.code.block("for at in range(first, first + count):"):
                Walk(self.plan, self.code, "fill").fields(
                    case.element, ITEM, "end", resolved.sinks, needed
                )
                for leaf, value in self.numbers(case):
                    if case.array is None or self.varies(value):
                        self.fill_number(leaf, value)
        for leaf in present:
            add(f"store_64(state + {8 * (1 + leaf.index)}, {leaf.name}_at)")
        add("store_64(state, first + count)")
        add("return 1")

    def is_missing(self, leaf: Leaf, resolved: Resolved) -> bool:
        names = {m.column.name for m in resolved.missing}
        return (leaf.inside.name if leaf.inside else leaf.column.name) in names

    def fill_missing(self, leaf: Leaf) -> None:
        if leaf.column.nullable:
            with self.code.block(f"if {leaf.name}_validity:"):
                self.code.add(f"fill_false({leaf.name}_validity, first, count)")
        if leaf.column.type in (*BYTES_LIKE, "list"):
            with self.code.block(f"if {leaf.name}_offsets:"):
                self.code.add(f"fill_32({leaf.name}_offsets, first + 1, count, {leaf.name}_at)")

    def fill_constant(self, leaf: Leaf, value: Operand) -> None:
        with self.code.block(f"if {leaf.name}_data:"):
            if leaf.column.type == "bool":
                with self.code.block(f"if not ({self.text_of(value)}):"):
                    self.code.add(f"fill_false({leaf.name}_data, first, count)")
            else:
                width = WIDTHS[leaf.column.type]
                text = self.text_of(value)
                self.code.add(f"fill_{width}({leaf.name}_data, first, count, {text})")
        if leaf.column.nullable and value.null is not None:
            with self.code.block(f"if {leaf.name}_validity and ({value.null}):"):
                self.code.add(f"fill_false({leaf.name}_validity, first, count)")

    def fill_number(self, leaf: Leaf, value: Operand) -> None:
        with self.code.block(f"if {leaf.name}_data:"):
            if leaf.column.type == "bool":
                with self.code.block(f"if not ({self.text_of(value)}):"):
                    self.code.add(f"clear_bit({leaf.name}_data, at)")
            else:
                width = WIDTHS[leaf.column.type]
                step = f"{width // 8} * at" if width > 8 else "at"
                text = self.text_of(value)
                self.code.add(f"store_{width}({leaf.name}_data + {step}, {text})")
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

    def fill(self) -> None:
        add = self.code.add
        self.function(
            "fill(table: int, first: int, last: int, most: int, bias: int, out: int, state: int) -> int",
            "Pass 3: write the rows of entries that were measured.",
        )
        with self.code.block("for i in range(first, last):"):
            add("row = table + i * ROW_SIZE")
            add("case = load_i64_le(row + CASE)")
            word = "if"
            for case in self.view.cases:
                with self.code.block(f"{word} case == {case.number}:"):
                    add(f"fill_{case.name}(row, out, state, most, bias)")
                word = "elif"
        add("return last")


def _function(verb: str, entry: LayoutPlan) -> str:
    version = "" if entry.version is None else f"_v{entry.version}"
    return f"{verb}_{entry.name}{version}"


def _integer(f: Field) -> tuple[int, bool]:
    """Bytes and sign of a field of fixed size."""
    name = getattr(f.type, "base", None) or getattr(f.type, "name", "")
    if name not in INTEGERS or name == "u64":
        raise Unsupported("a number that is none of fixed size", f)
    return INTEGERS[name]
