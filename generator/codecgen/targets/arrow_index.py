"""The first kernel: where the entries are, and what their heads say."""

from __future__ import annotations

from codecgen.plan import LayoutPlan
from codecgen.plan.columns import CasePlan
from codecgen.schema.model import ArrayType
from codecgen.targets.arrow_code import Sinks, Unsupported, function_name, integer_of
from codecgen.targets.arrow_columns import Columns
from codecgen.targets.arrow_expressions import Operand, negated
from codecgen.targets.arrow_scope import ENTRY, Names
from codecgen.targets.arrow_values import names_needed
from codecgen.targets.arrow_walk import Walk


class Index(Columns):
    """Writes the kernel that finds entries."""

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
        name = function_name("open", entry)
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
        base, signed = integer_of(f)
        add(f"{measured} = load_{'i' if signed else 'u'}{8 * base}{order}(start)")
        names = Names(self.plan, entry, ENTRY)
        odd = f"{measured} < 0"
        if f.refuse is not None:
            odd += f" or {walk.boolean(names, f.refuse, f).text}"
            if names.used - {(ENTRY, f.name)}:
                raise Unsupported("a length that is refused for the sake of another field", f)
        with self.code.block(f"if {odd}:"):
            add("return -1")
        add(f"entry_end = p + {first.offset} + {measured}")
        with self.code.block("if entry_end > end:"):
            add("return 0")
        add("start = p")
        add("store_64(row + STATUS, 0)")
        add("store_64(row + ROWS, -1)")
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
            size, signed = integer_of(fp.field)
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
                walk.fail(negated(there), f)
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
            if case.codecs.get(0, type_) is not None:
                raise Unsupported("compressed by an enum whose 0 is not none", f)
            codec = "codec"
            add(f"codec = {walk.boolean(names, type_.compression.by, f).text}")
        if type_.length is not None:
            walk.number(type_.length, case.entry, "length", end, f, False)
            walk.fail(f"length < 0 or length != {end} - p", f)
        if count != "-1" and type_.compression is not None and type_.length is None:
            with self.code.block(f"if {count} == 0:"):
                walk.fail(f"p != {end}", f)
                add("codec = 0")
        add(f"store_64(row + CODEC, {codec})")
        add("store_64(row + RUN, p)")
        add(f"store_64(row + RUN_END, {end})")
        add(f"store_64(row + COUNT, {count})")
        for name, at in self.slots[case.number].items():
            if name not in resolved.names.ends:
                add(f"store_64(row + {at}, {ENTRY}{name})")
        add("return 1")

    def kind(self) -> tuple[int, int, bool, str]:
        """Where the number lies that tells entries apart: byte, size, sign, order of bytes."""
        _, entry = self.view.entries[0]
        fp = entry.field(self.view.choice.by or "")
        if fp is None or fp.offset is None:
            raise Unsupported("told apart by what lies at no fixed place", entry.fields[0].field)
        return (fp.offset, *integer_of(fp.field), entry.layout.endian)

    def index(self, entry: LayoutPlan, keys: list[int]) -> None:
        add = self.code.add
        offset, size, signed, endian = self.kind()
        order = "_le" if endian == "little" and size > 1 else ""
        head = offset + size
        for m in entry.fields:
            if m.measures is not None and m.offset is not None:
                head = max(head, m.offset + (m.size or 0))
        parameters = "table: int, capacity: int, p: int, end: int, most: int, careful: int"
        self.function(
            f"{function_name('index', entry)}({parameters}) -> tuple[int, int, int]",
            "Pass 1: a row of the table for each whole entry. How many there are, where they end, and why: 2 an entry of "
            "another kind, 1 the table is full, 0 the bytes end, -1 what follows is no entry.",
            inner=False,
        )
        add("n = 0")
        with self.code.block("while n < capacity:"):
            with self.code.block(f"if end - p < {head}:"):
                add("return n, p, 0")
            add("row = table + n * ROW_SIZE")
            add(f"kind = load_{'i' if signed else 'u'}{8 * size}{order}(p + {offset})")
            with self.code.block("if " + " and ".join(f"kind != {key}" for key in keys) + ":"):
                add("return n, p, 2")
            add(f"behind = {function_name('open', entry)}(p, end, row, most, careful)")
            with self.code.block("if behind <= 0:"):
                add("return n, p, behind")
            # What is not compressed is measured at once, while it is in the cache.
            with self.code.block(
                "if load_i64_le(row + STATUS) == 0 and load_i64_le(row + CODEC) == 0:"
            ):
                add(f"{function_name('check', entry)}(row, most)")
            add("n += 1")
            add("p = behind")
        add("return n, p, 1")
