"""The first kernel: where the entries are, and what their heads say."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.plan import FieldPlan, LayoutPlan, Plan
from codecgen.plan.bounds import bounds
from codecgen.plan.columns import CasePlan
from codecgen.schema.model import ArrayType
from codecgen.targets.arrow.code import Sinks, Unsupported, function_name, integer_of
from codecgen.targets.arrow.columns import Columns
from codecgen.targets.arrow.expressions import Operand, negated
from codecgen.targets.arrow.numba_decode.values import names_needed
from codecgen.targets.arrow.numba_decode.walk import Walk
from codecgen.targets.arrow.scope import ENTRY, Names


def least_of(plan: Plan, case: CasePlan) -> int:
    """The fewest bytes that a row of a case has, as far as memory is set aside for rows: 1 at least."""
    return max(1, bounds(plan, case.element).least)


@dataclass(frozen=True, slots=True)
class Test:
    """When an entry holds the rows of a case, when it is one to be careful with, and the fields that say so."""

    case: CasePlan
    when: Operand | None
    care: Operand | None
    used: tuple[str, ...]


class Index(Columns):
    """Writes the kernel that finds entries."""

    # ------------------------------------------------------------ pass 1: entries

    def size_of(self, entry: LayoutPlan) -> tuple[FieldPlan, int]:
        """The field that says how long an entry is, and how many bytes it does not count."""
        last = (None, entry.fields[-1].name)
        found = (m for m in entry.fields if m.measures is not None and m.measures.last in last)
        f = next(found, None)
        if f is None or f.measures is None or f.offset is None or f.size is None:
            raise Unsupported(
                "an entry whose length is not at a fixed place", entry.fields[0].field
            )
        first = entry.field(f.measures.first)
        if first is None or first.offset is None:
            raise Unsupported("a length that begins at no fixed place", f.field)
        return f, first.offset

    def load(self, entry: LayoutPlan, fp: FieldPlan, start: str) -> str:
        """A number at a fixed place."""
        size, signed = integer_of(fp.field)
        order = "_le" if entry.layout.endian == "little" and size > 1 else ""
        return f"load_{'i' if signed else 'u'}{8 * size}{order}({start} + {fp.offset})"

    def least(self, entry: LayoutPlan) -> int:
        """Bytes of an entry up to the last field at a fixed place."""
        return max(
            (fp.offset or 0) + (fp.size or 0)
            for fp in entry.fields
            if fp.offset is not None and fp.size is not None and fp.field.when is None
        )

    def tests(self, entry: LayoutPlan, walk: Walk) -> list[Test]:
        """When an entry holds rows of each case, and when it is looked at with more care."""
        first = entry.fields[0].field
        names = Names(self.plan, entry, ENTRY)
        out = []
        for case in self.view.cases_of(entry):
            when, careful = case.rows.when, case.rows.careful
            test = None if when is None else walk.boolean(names, when, first)
            care = None if careful is None else walk.boolean(names, careful, first)
            out.append(Test(case, test, care, tuple(sorted(name for _, name in names.used))))
        return out

    def fixed(self, entry: LayoutPlan, tests: list[Test], start: str) -> None:
        """Load what the tests ask for."""
        for used in tests[-1].used if tests else ():
            fp = entry.field(used)
            if fp is None or fp.offset is None or fp.size is None:
                blamed = fp.field if fp else entry.fields[0].field
                raise Unsupported("a condition on what lies at no fixed place", blamed)
            self.code.add(f"{ENTRY}{used} = {self.load(entry, fp, start)}")

    def open(self, entry: LayoutPlan) -> None:
        add = self.code.add
        size, _ = self.size_of(entry)
        self.function(
            f"{function_name('open', entry)}(p: int, end: int, row: int, most: int, careful: int) -> int",
            f"{entry.layout.span.file}: which rows an entry holds, and what they need of it. 0 when it is not as it should "
            "be.",
        )
        add("start = p")
        add("store_64(row + STATUS, 0)")
        add("store_64(row + START, start)")
        add("store_64(row + END, end)")
        add("store_64(row + CODEC, 0)")
        add("store_64(row + RUN, end)")
        add("store_64(row + RUN_END, end)")
        add("store_64(row + COUNT, 0)")
        walk = Walk(self.plan, self.code, self.checks, "open")
        with self.code.block(f"if end - p < {self.least(entry)}:"):
            walk.never(size.field)
        tests = self.tests(entry, walk)
        if any(test.case.array is not None or test.care is not None for test in tests):
            self.fixed(entry, tests, "start")
        for test in tests:
            case, when, care = test.case, test.when, test.care
            if when is not None and when.constant == 0:
                continue
            if when is None or when.constant is not None:
                if self.open_case(case, walk, care):
                    return
                break
            if case.array is not None or care is not None:
                with self.code.block(f"if {when.text}:"):
                    self.open_case(case, walk, care)
        walk.refuse(entry.name, entry.layout.span, "start")

    def open_case(self, case: CasePlan, walk: Walk, care: Operand | None) -> bool:
        """False when there was nothing to write: the entry is a row, which the index has seen to."""
        add = self.code.add
        if care is not None:
            with self.code.block(f"if careful and {care.text}:"):
                walk.refuse("careful", case.rows.span, "start")
        if case.array is None:
            return False
        add(f"store_64(row + CASE, {case.number})")
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
        if count != "-1":
            test = f"{count} > ({end} - p) // {least_of(self.plan, case)}"
            with self.code.block(f"if {test}:" if codec == "0" else f"if codec == 0 and {test}:"):
                add("return fail(row, -1, 0)  # more rows than there are bytes for")
        self.checksums(walk, end, codec)
        add(f"store_64(row + CODEC, {codec})")
        add("store_64(row + RUN, p)")
        add(f"store_64(row + RUN_END, {end})")
        add(f"store_64(row + COUNT, {count})")
        for name, at in self.slots[case.number].items():
            if name not in resolved.names.ends:
                add(f"store_64(row + {at}, {ENTRY}{name})")
        add("return 1")
        return True

    def checksums(self, walk: Walk, end: str, codec: str) -> None:
        """Verify checksums before anything is decompressed; without compression that comes when the rows are read."""
        add = self.code.add
        for c, behind in walk.pending:
            if behind != end:
                raise Unsupported("a checksum whose run ends where the rows do not", c.field)
        if codec == "0":
            add("store_64(row + CHECKED, 0)")
        else:
            for c, _ in walk.pending:
                place = f"{ENTRY}{c.name}_at"
                walk.verify(c, ENTRY, place, f"{end} - {place}", "codec and ")
            add("store_64(row + CHECKED, codec)")
        walk.pending.clear()

    def kind(self) -> tuple[int, int, bool, str]:
        """Where the number lies that tells entries apart: byte, size, sign, order of bytes."""
        _, entry = self.view.entries[0]
        fp = entry.field(self.view.choice.by or "")
        if fp is None or fp.offset is None:
            raise Unsupported("told apart by what lies at no fixed place", entry.fields[0].field)
        return (fp.offset, *integer_of(fp.field), entry.layout.endian)

    def frame(self, entry: LayoutPlan, keys: list[int]) -> None:
        """Where an entry ends, by what the reading of it cannot do without."""
        add = self.code.add
        offset, size, signed, endian = self.kind()
        order = "_le" if endian == "little" and size > 1 else ""
        head = offset + size
        for m in entry.fields:
            if m.measures is not None and m.offset is not None:
                head = max(head, m.offset + (m.size or 0))
        self.function(
            f"{function_name('frame', entry)}(p: int, end: int) -> int",
            "Where the entry at an address ends; 2 when it is one of another kind, 0 when the bytes end before it does, -1 "
            "when it is no entry.",
        )
        walk = Walk(self.plan, self.code, self.checks, "open")
        length, uncounted = self.size_of(entry)
        names = Names(self.plan, entry, ENTRY)
        measured = ENTRY + length.name
        odd = f"{measured} < 0"
        if length.field.refuse is not None:
            odd += f" or {walk.boolean(names, length.field.refuse, length.field).text}"
            if names.used - {(ENTRY, length.name)}:
                reason = "a length that is refused for the sake of another field"
                raise Unsupported(reason, length.field)
        with self.code.block(f"if end - p < {head}:"):
            add("return 0")
        add(f"kind = load_{'i' if signed else 'u'}{8 * size}{order}(p + {offset})")
        with self.code.block("if " + " and ".join(f"kind != {key}" for key in keys) + ":"):
            add("return 2")
        add(f"{measured} = {self.load(entry, length, 'p')}")
        with self.code.block(f"if {odd}:"):
            add("return -1")
        add(f"behind = p + {uncounted} + {measured}")
        add("return behind if behind <= end else 0")

    def is_row(self, test: Test, tests: list[Test]) -> None:
        """Whether an entry is a row itself."""
        entry = test.case.entry
        self.function(
            f"is_{test.case.name}(p: int, behind: int, careful: int) -> bool",
            "Whether an entry is a row of its own.",
        )
        conditions = []
        if test.when is not None and test.when.constant is None:
            conditions.append(test.when.text)
        elif test.when is not None and test.when.constant == 0:
            conditions.append("False")
        if test.care is not None:
            conditions.append(f"not (careful and {test.care.text})")
        if not conditions:
            self.code.add(f"return behind - p >= {self.least(entry)}")
            return
        with self.code.block(f"if behind - p < {self.least(entry)}:"):
            self.code.add("return False")
        self.fixed(entry, tests, "p")
        self.code.add(f"return {' and '.join(conditions)}")

    def index(self, entry: LayoutPlan) -> None:
        add = self.code.add
        tests = self.tests(entry, Walk(self.plan, self.code, self.checks, "open"))
        own = [t for t in tests if t.case.array is None]
        for test in own:
            self.is_row(test, tests)
        parameters = "table: int, capacity: int, p: int, end: int, most: int, careful: int"
        self.function(
            f"{function_name('index', entry)}({parameters}) -> tuple[int, int, int, int]",
            "Pass 1: a row of the table for each whole entry. How many there are, where they end, and why: 3 from the last one "
            "on entries are rows themselves, 2 an entry of another kind, 1 the table is full, 0 the bytes end, -1 what "
            "follows is no entry. And how many rows they say they have; -1 when some are compressed, or do not say.",
            inner=False,
        )
        add("n = 0")
        add("rows = 0")
        with self.code.block("while True:"):
            add(f"behind = {function_name('frame', entry)}(p, end)")
            with self.code.block("if behind <= 2:"):
                add("return n, p, behind, rows")
            with self.code.block("if n == capacity:"):
                add("return n, p, 1, rows")
            add("fetch_around(2 * behind - p)  # a head to come, if entries are of like size")
            add("row = table + n * ROW_SIZE")
            add("n += 1")
            for test in own:
                with self.code.block(f"if is_{test.case.name}(p, behind, careful):"):
                    add("store_64(row + STATUS, 0)")
                    add(f"store_64(row + CASE, {test.case.number})")
                    add("store_64(row + START, p)")
                    add("store_64(row + CODEC, 0)")
                    add("store_64(row + RUN, p)")
                    add("store_64(row + RUN_END, end)")
                    add("store_64(row + COUNT, -1)")
                    add("store_64(row + CHECKED, careful)")
                    add("return n, p, 3, -1")
            with self.code.block(
                f"if {function_name('open', entry)}(p, behind, row, most, careful) and rows >= 0:"
            ):
                add("count = load_i64_le(row + COUNT)")
                add("rows = -1 if count < 0 or load_i64_le(row + CODEC) else rows + count")
            add("p = behind")
