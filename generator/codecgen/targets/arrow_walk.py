"""The code that goes through the fields of a layout in the order of the bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from codecgen.plan import FieldPlan, LayoutPlan, Plan
from codecgen.plan.columns import Leaf
from codecgen.schema.expression import Expression
from codecgen.schema.model import (
    INTEGERS,
    ArrayType,
    BitMember,
    BitsType,
    BytesType,
    Field,
    Reference,
    ScalarType,
    StructType,
)
from codecgen.targets.arrow_expressions import Operand, Refused
from codecgen.targets.arrow_scope import PART, Names, is_number

_FIXED = {"f64": 8, "bool": 1, "uuid": 16}


class Code:
    """Lines of Python."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def add(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.add(head)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.add("pass")
        self.depth -= 1


@dataclass(frozen=True, slots=True)
class Sinks:
    """Where fields of an element go: ``leaves`` by the name of the field, ``lists`` by that of an array."""

    leaves: Mapping[str, Leaf] = field(default_factory=dict)
    lists: Mapping[str, tuple[Leaf, Mapping[str, Leaf]]] = field(default_factory=dict)


class Unsupported(Exception):
    """What the target cannot express, and the field that asks for it."""

    def __init__(self, reason: str, f: Field) -> None:
        super().__init__(reason)
        self.reason = reason
        self.field = f


def names_needed(plan: LayoutPlan, measuring: bool) -> set[str]:
    """The fields whose values a walk must have; ``measuring`` walks check them as well."""
    needed: set[str] = set()
    for fp in plan.fields:
        f = fp.field
        expressions: list[Expression | None] = [f.when]
        if measuring:
            expressions += [f.valid, f.refuse]
            own = f.const is not None or f.is_version or f.checksum is not None
            own = own or (isinstance(f.type, ScalarType) and f.type.enum is not None)
            own = own or (
                isinstance(f.type, BitsType) and any(m.enum or m.reserved for m in f.type.members)
            )
            own = own or f.valid is not None or f.refuse is not None
            if own:
                needed.add(f.name)
        if fp.measures is not None or f.counts is not None:
            needed.add(f.name)
        if isinstance(f.type, ArrayType) and f.type.compression is not None:
            expressions.append(f.type.compression.by)
        for expression in expressions:
            if expression is not None:
                needed |= {path.names[0] for path in expression.paths()}
    return needed


class Walk:
    """Writes walks. ``mode``: ``open`` and ``measure`` check everything, ``fill`` goes where they have been."""

    def __init__(self, plan: Plan, code: Code, mode: str) -> None:
        self.plan = plan
        self.code = code
        self.mode = mode
        self.ends = 0

    @property
    def checks(self) -> bool:
        return self.mode != "fill"

    def fail(self, condition: str, f: Field) -> None:
        if self.checks:
            with self.code.block(f"if {condition}:"):
                self.code.add(f"return fail(row, {f.span.line}, p)")

    def fields(
        self,
        layout: LayoutPlan,
        prefix: str,
        end: str,
        sinks: Sinks,
        needed: set[str],
        stop: str | None = None,
    ) -> str:
        """Go through the fields, up to (not with) the field ``stop``. The end of the window that is open then."""
        names = Names(self.plan, layout, prefix)
        windows: list[tuple[str, str | None]] = []  # (end around it, last field)
        covered = 0
        wanted = needed | set(sinks.leaves) | set(sinks.lists)
        fields = layout.fields
        for i, fp in enumerate(fields):
            f = fp.field
            end, opened = self.open_windows(layout, fp, prefix, end, windows)
            if opened:
                covered = 0
            self.checksums_at(layout, fp, prefix, end, windows)
            if f.name == stop:
                return end
            rest = {later.name for later in fields[i:]}
            if not self.checks and any(last is None for _, last in windows) and not rest & wanted:
                break  # nothing more is wanted, and it is known where the layout ends
            where = None if f.when is None else self.boolean(names, f.when, f)
            if where is not None and where.constant == 0:
                continue
            if where is not None and where.constant is None:
                covered = 0
                with self.code.block(f"if {where.text}:"):
                    self.one(layout, fp, prefix, end, sinks, wanted, bounded=False)
                with self.code.block("else:"):
                    self.absent(f, prefix, sinks)
            else:
                if fp.size is not None and covered <= 0:
                    covered = self.bound(fields[i:], layout, end, f)
                self.one(layout, fp, prefix, end, sinks, wanted, bounded=covered > 0)
                covered = covered - fp.size if fp.size is not None else 0
            while windows and windows[-1][1] == f.name:
                self.fail(f"p != {end}", f)
                end = windows.pop()[0]
                covered = 0
            self.checksums_behind(layout, fp, prefix)
        if stop is None:
            self.finish(layout, prefix, end, windows)
        return end

    def finish(
        self, layout: LayoutPlan, prefix: str, end: str, windows: list[tuple[str, str | None]]
    ) -> None:
        last = layout.fields[-1].field
        while windows:
            if self.checks:
                self.fail(f"p != {end}", last)
            else:
                self.code.add(f"p = {end}")
            end = windows.pop()[0]

    def boolean(self, names: Names, expression: Expression, f: Field) -> Operand:
        try:
            return names.value(expression)
        except Refused as error:
            raise Unsupported(error.reason, f) from None

    # ------------------------------------------------------------ windows and checksums

    def open_windows(
        self,
        layout: LayoutPlan,
        fp: FieldPlan,
        prefix: str,
        end: str,
        windows: list[tuple[str, str | None]],
    ) -> tuple[str, bool]:
        opened = False
        for m in layout.fields:
            if m.measures is None or m.measures.first != fp.name:
                continue
            if m.field.when is not None:
                raise Unsupported("a length that may be left out", m.field)
            length = prefix + m.name
            self.fail(f"{length} < 0 or {length} > {end} - p", m.field)
            self.ends += 1
            inner = f"end_{self.ends}"
            self.code.add(f"{inner} = p + {length}")
            last = m.measures.last
            if last == layout.fields[-1].name:
                last = None
            windows.append((end, last))
            end, opened = inner, True
        return end, opened

    def checksums_at(
        self,
        layout: LayoutPlan,
        fp: FieldPlan,
        prefix: str,
        end: str,
        windows: list[tuple[str, str | None]],
    ) -> None:
        """Where a run begins that a checksum covers: verify it when its end is known."""
        if not self.checks:
            return
        for c in layout.fields:
            if c.covers is None or c.field.checksum is None or c.covers.first != fp.name:
                continue
            if c.field.when is not None:
                raise Unsupported("a checksum that may be left out", c.field)
            last = c.covers.last
            if last in (None, layout.fields[-1].name):
                if not any(w[1] is None for w in windows):
                    raise Unsupported("a checksum over a run without a measured end", c.field)
                self.verify(c, prefix, "p", f"{end} - p")
            else:
                self.code.add(f"{prefix}{c.name}_at = p")

    def checksums_behind(self, layout: LayoutPlan, fp: FieldPlan, prefix: str) -> None:
        if not self.checks:
            return
        for c in layout.fields:
            if c.covers is not None and c.field.checksum is not None:
                last = c.covers.last
                if last == fp.name and last != layout.fields[-1].name:
                    at = f"{prefix}{c.name}_at"
                    if layout.fields.index(c) > layout.fields.index(fp):
                        raise Unsupported("a checksum behind what it covers", c.field)
                    self.verify(c, prefix, at, f"p - {at}")

    def verify(self, c: FieldPlan, prefix: str, start: str, size: str) -> None:
        stored = prefix + c.name
        if isinstance(c.field.type, ScalarType) and c.field.type.name != "u32":
            stored += " & 0xFFFFFFFF"
        self.fail(f"{c.field.checksum}({start}, {size}) != {stored}", c.field)

    # ------------------------------------------------------------ one field

    def bound(self, fields: tuple[FieldPlan, ...], layout: LayoutPlan, end: str, f: Field) -> int:
        """Check once that a run of fields of fixed size is there. How many bytes they have."""
        starts = {m.measures.first for m in layout.fields if m.measures is not None}
        stops = {m.measures.last for m in layout.fields if m.measures is not None}
        total = 0
        for i, fp in enumerate(fields):
            if fp.size is None or fp.field.when is not None or (i and fp.name in starts):
                break
            total += fp.size
            if fp.name in stops:
                break
        self.fail(f"{end} - p < {total}", f)
        return total

    def one(
        self,
        layout: LayoutPlan,
        fp: FieldPlan,
        prefix: str,
        end: str,
        sinks: Sinks,
        wanted: set[str],
        *,
        bounded: bool,
    ) -> None:
        f = fp.field
        match f.type:
            case ScalarType(name):
                self.scalar(f, name, layout, prefix, end, wanted, bounded)
            case BitsType(base, members):
                self.scalar(f, base, layout, prefix, end, wanted, bounded)
                for m in members:
                    self.bit(m, f, prefix)
            case BytesType():
                self.bytes(f, f.type, layout, prefix, end, sinks, bounded)
            case ArrayType():
                self.array(f, f.type, layout, prefix, end, sinks)
            case StructType():
                raise Unsupported("a layout in the place of a field", f)
        if self.checks:
            self.rules(f, layout, prefix)

    def rules(self, f: Field, layout: LayoutPlan, prefix: str) -> None:
        variable = prefix + f.name
        if f.const is not None:
            self.fail(f"{variable} != {f.const}", f)
        if f.is_version:
            self.fail(f"{variable} != {layout.version}", f)
        names = Names(self.plan, layout, prefix)
        if f.refuse is not None:
            self.fail(self.boolean(names, f.refuse, f).text, f)
        if f.valid is not None:
            valid = self.boolean(names, f.valid, f)
            if valid.constant != 1:
                self.fail(f"not ({valid.text})", f)
        if isinstance(f.type, ScalarType) and f.type.enum is not None:
            enum = self.plan.model.enums[f.type.enum]
            if not enum.keep_unknown:
                only = f.type.only
                allowed = [v.value for v in enum.values if only is None or v.name in only]
                self.member(variable, allowed, f)

    def bit(self, m: BitMember, f: Field, prefix: str) -> None:
        if not self.checks:
            return
        if m.reserved:
            mask = ((1 << m.width) - 1) << m.low
            self.fail(f"{prefix}{f.name} & {mask}", f)
            return
        if m.enum is None or self.plan.model.enums[m.enum].keep_unknown:
            return
        values = self.plan.model.enums[m.enum].values
        allowed = {v.value for v in values if m.only is None or v.name in m.only}
        if allowed >= set(range(1 << m.width)):
            return
        shifted = f"{prefix}{f.name} >> {m.low}" if m.low else f"{prefix}{f.name}"
        self.member(f"({shifted} & {(1 << m.width) - 1})", sorted(allowed), f)

    def member(self, value: str, allowed: list[int], f: Field) -> None:
        low, high = min(allowed), max(allowed)
        if len(set(allowed)) == high - low + 1:
            below = f"{value} < {low} or " if low or not value.startswith("(") else ""
            self.fail(f"{below}{value} > {high}", f)
        else:
            self.fail(" and ".join(f"{value} != {number}" for number in allowed), f)

    def number(
        self, name: str, layout: LayoutPlan, variable: str, end: str, f: Field, bounded: bool
    ) -> None:
        """Read an integer into a variable, and step over it."""
        if name in INTEGERS:
            size, signed = INTEGERS[name]
            if name == "u64":
                raise Unsupported("a number of type u64", f)
            if not bounded:
                self.fail(f"{end} - p < {size}", f)
            order = "_le" if layout.layout.endian == "little" and size > 1 else ""
            self.code.add(f"{variable} = load_{'i' if signed else 'u'}{8 * size}{order}(p)")
            self.code.add(f"p += {size}")
            return
        function = {
            "varint": "varint",
            "varlong": "varlong",
            "uvarint": "uvarint",
            "compact": "uvarint",
        }.get(name)
        if function is None:
            raise Unsupported(f"a number of type {name}", f)
        self.code.add(f"{variable}, p = {function}(p)")
        self.fail(f"p == 0 or p > {end}", f)
        if name == "compact":
            self.code.add(f"{variable} -= 1")

    def scalar(
        self,
        f: Field,
        name: str,
        layout: LayoutPlan,
        prefix: str,
        end: str,
        wanted: set[str],
        bounded: bool,
    ) -> None:
        size = INTEGERS[name][0] if name in INTEGERS else _FIXED.get(name)
        if f.name in wanted and (is_number(f) or isinstance(f.type, BitsType)):
            self.number(name, layout, prefix + f.name, end, f, bounded)
        elif size is not None:
            if not bounded:
                self.fail(f"{end} - p < {size}", f)
            if name == "bool":
                self.fail("load_u8(p) > 1", f)
            self.code.add(f"p += {size}  # {f.name}")
        else:
            self.number(name, layout, f"{prefix}{f.name}", end, f, bounded)

    def absent(self, f: Field, prefix: str, sinks: Sinks) -> None:
        """A field that is left out here."""
        if isinstance(f.type, BytesType):
            self.code.add(f"{prefix}{f.name} = -1")
            leaf = sinks.leaves.get(f.name)
            if leaf is not None:
                self.null(leaf)
            self.close_leaf(leaf)
        elif isinstance(f.type, ScalarType | BitsType):
            self.code.add(f"{prefix}{f.name} = 0")
        elif f.name in sinks.lists:
            raise Unsupported("a column of an array that may be left out", f)

    # ------------------------------------------------------------ bytes

    def bytes(
        self,
        f: Field,
        type_: BytesType,
        layout: LayoutPlan,
        prefix: str,
        end: str,
        sinks: Sinks,
        bounded: bool,
    ) -> None:
        n = prefix + f.name
        leaf = sinks.leaves.get(f.name)
        if type_.length == "rest":
            behind = self.behind(f, layout)
            self.code.add(f"{n} = {end} - p" + (f" - {behind}" if behind else ""))
            if behind:
                self.fail(f"{n} < 0", f)
        elif isinstance(type_.length, int):
            if not bounded:
                self.fail(f"{end} - p < {type_.length}", f)
            self.code.add(f"{n} = {type_.length}")
        else:
            self.number(type_.length, layout, n, end, f, False)
            self.fail(f"{n} > {end} - p", f)
            if type_.null is None:
                self.fail(f"{n} < 0", f)
            else:
                null = type_.null - 1 if type_.length == "compact" else type_.null
                if null >= 0:
                    raise Unsupported(f"null written as {type_.null}", f)
                with self.code.block(f"if {n} < 0:"):
                    self.fail(f"{n} != {null}", f)
                    self.code.add(f"{n} = -1")
                    if leaf is not None:
                        self.null(leaf)
                with self.code.block("else:"):
                    self.present(f, type_, n, leaf)
                self.close_leaf(leaf)
                return
        self.present(f, type_, n, leaf)
        self.close_leaf(leaf)

    def behind(self, f: Field, layout: LayoutPlan) -> int:
        at = next(i for i, fp in enumerate(layout.fields) if fp.name == f.name)
        total = 0
        for fp in layout.fields[at + 1 :]:
            if fp.size is None or fp.field.when is not None:
                raise Unsupported("bytes to the end with fields behind them that vary", f)
            total += fp.size
        return total

    def present(self, f: Field, type_: BytesType, n: str, leaf: Leaf | None) -> None:
        if self.checks and type_.text:
            self.fail(f"not is_utf8(p, {n})", f)
        if leaf is not None:
            if self.mode == "measure":
                self.code.add(f"{leaf.name}_bytes += {n}")
            elif self.mode == "fill":
                with self.code.block(f"if {leaf.name}_offsets:"):
                    self.code.add(f"copy({leaf.name}_data + {leaf.name}_at, p, {n})")
                    self.code.add(f"{leaf.name}_at += {n}")
        self.code.add(f"p += {n}")

    def null(self, leaf: Leaf) -> None:
        if not leaf.column.nullable:
            return
        if self.mode == "measure":
            self.code.add(f"{leaf.name}_nulls += 1")
        elif self.mode == "fill":
            with self.code.block(f"if {leaf.name}_validity:"):
                self.code.add(f"clear_bit({leaf.name}_validity, {self.place(leaf)})")

    def close_leaf(self, leaf: Leaf | None) -> None:
        if leaf is not None and self.mode == "fill":
            with self.code.block(f"if {leaf.name}_offsets:"):
                place = f"{leaf.name}_offsets + 4 * {self.place(leaf)} + 4"
                self.code.add(f"store_32({place}, {leaf.name}_at)")

    def place(self, leaf: Leaf) -> str:
        return "at" if leaf.inside is None else f"{leaf.inside.name}_at"

    # ------------------------------------------------------------ arrays in rows

    def array(
        self, f: Field, type_: ArrayType, layout: LayoutPlan, prefix: str, end: str, sinks: Sinks
    ) -> None:
        code = self.code
        if type_.compression is not None:
            if f.when is None:
                raise Unsupported("a compressed array inside rows", f)
            self.fail("True", f)  # rows hold no rows of their own
            return
        if prefix == PART and isinstance(type_.element, Reference):
            raise Unsupported("an array in an array of a row", f)
        n = prefix + f.name
        counted = True
        if type_.count is not None:
            self.number(type_.count, layout, n, end, f, False)
        elif type_.counted_by is not None:
            code.add(f"{n} = {prefix}{type_.counted_by}")
        else:
            counted = False
            code.add(f"{n} = 0")
        if type_.length is not None:
            raise Unsupported("an array with a length inside rows", f)
        if counted:
            self.fail(f"{n} < 0 or {n} > {end} - p or {n} > most", f)
        if not isinstance(type_.element, Reference):
            size = INTEGERS[type_.element.name][0] if type_.element.name in INTEGERS else None
            if size is None or not counted:
                raise Unsupported("an array of numbers that vary in length", f)
            self.fail(f"{n} * {size} > {end} - p", f)
            code.add(f"p += {n} * {size}")
            return
        held = self.plan.of(type_.element)
        element = ([p for p in held if p.version in (layout.version, None)] or list(held))[0]
        leaf, members = sinks.lists.get(f.name, (None, {}))
        inner = Sinks(members)
        needed = names_needed(element, self.checks)
        with code.block(f"for _ in range({n}):" if counted else f"while p < {end}:"):
            self.fields(element, PART, end, inner, needed)
            if not counted:
                code.add(f"{n} += 1")
                self.fail(f"{n} > most", f)
            if leaf is not None and self.mode == "fill":
                code.add(f"{leaf.name}_at += 1")
        if type_.at_least:
            self.fail(f"{n} < {type_.at_least}", f)
        if leaf is not None and self.mode == "measure":
            code.add(f"{leaf.name}_count += {n}")
        if leaf is not None and self.mode == "fill":
            with code.block(f"if {leaf.name}_offsets:"):
                code.add(f"store_32({leaf.name}_offsets + 4 * at + 4, {leaf.name}_at)")
