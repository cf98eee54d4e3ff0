"""The code that reads one field: numbers, bits, bytes, arrays inside rows."""

from __future__ import annotations

from dataclasses import dataclass

from codecgen.plan import FieldPlan, LayoutPlan, Plan
from codecgen.plan.columns import Leaf
from codecgen.schema.expression import Binary, Expression, If, Node, Not
from codecgen.schema.model import (
    INTEGERS,
    ArrayType,
    BitMember,
    BitsType,
    BytesType,
    Field,
    Reference,
    ScalarType,
    Span,
    StructType,
)
from codecgen.targets.arrow.code import Check, Checks, Code, Sinks, Unsupported
from codecgen.targets.arrow.expressions import Operand, Refused, negated
from codecgen.targets.arrow.scope import PART, Names, is_number

_FIXED = {"f64": 8, "bool": 1, "uuid": 16}
_LONGEST = {"varint": 5, "uvarint": 5, "varlong": 10}

LOOSE = 40
"""How far fields may be read beyond the end before somebody looks: less than the slack that there is."""


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


def has_sum(node: Node) -> bool:
    """Whether there is a sum in an expression."""
    match node:
        case Binary("+" | "-"):
            return True
        case Binary(_, left, right):
            return has_sum(left) or has_sum(right)
        case Not(operand):
            return has_sum(operand)
        case If(condition, then, otherwise):
            return any(map(has_sum, (condition, then, otherwise)))
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Window:
    """Bytes that a length measures: the end of those ``around`` them, and the last field in them (None: that of the
    layout). With ``when`` the length may be left out."""

    around: str
    last: str | None
    when: str | None = None


class Values:
    """Writes what reads one field. ``mode``: ``open`` and ``rows`` check everything, and ``rows`` writes what is wanted;
    ``hop`` only looks that nothing ends too early."""

    def __init__(self, plan: Plan, code: Code, numbers: Checks, mode: str) -> None:
        self.plan = plan
        self.code = code
        self.numbers = numbers
        self.mode = mode
        self.ends = 0
        self.window: Window | None = None  # the innermost
        self.loose = 0  # by how much p may be beyond the end
        self.pending: list[
            tuple[FieldPlan, str]
        ] = []  # checksums that are verified later, and the ends of their runs

    @property
    def checks(self) -> bool:
        return self.mode != "hop"

    def fail(self, condition: str, f: Field) -> None:
        with self.code.block(f"if {condition}:"):
            self.never(f)

    def never(self, f: Field) -> None:
        """What cannot be here."""
        self.refuse(f.name, f.span)

    def refuse(self, name: str, span: Span, at: str = "p") -> None:
        """An entry is not as it should be, for a rule that has a place in YAML."""
        number = 1 + self.numbers.number(Check(name, span))
        self.code.add(f"return fail(row, {number}, {at})  # {name}")

    def fits(self, size: int, end: str, f: Field) -> None:
        """Bytes of a fixed number are there. Few of them need no look: the slack behind all input is as long."""
        if self.loose + size > LOOSE:
            self.fail(f"{end} - p < {size}", f)
            self.loose = 0
        else:
            self.loose += size

    def tighten(self, end: str, f: Field) -> None:
        """From here on p is not beyond the end."""
        if self.loose:
            self.fail(f"p > {end}", f)
            self.loose = 0

    def fields(
        self,
        layout: LayoutPlan,
        prefix: str,
        end: str,
        sinks: Sinks,
        needed: set[str],
        stop: str | None = None,
    ) -> str:
        """Go through all fields of a layout."""
        raise NotImplementedError

    def boolean(self, names: Names, expression: Expression, f: Field) -> Operand:
        if has_sum(expression.node):
            wide = {"i64", "u64", "varlong", "uvarlong"}
            for path in expression.paths():
                fp = names.own.field(path.names[0])
                if fp is not None and getattr(fp.field.type, "name", "") in wide:
                    raise Unsupported("checked by a sum that 64 bits may not hold", f)
        try:
            return names.value(expression)
        except Refused as error:
            raise Unsupported(error.reason, f) from None

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
                self.fail(negated(valid), f)
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
                self.fits(size, end, f)
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
        if self.loose + _LONGEST[function] > LOOSE:
            self.tighten(end, f)
        self.loose += _LONGEST[function]
        self.code.add(f"{variable}, p, shortest = {function}(p)")
        self.fail("not shortest", f)
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
                self.fits(size, end, f)
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
            inside = self.window is not None and self.window.last == f.name
            behind = 0 if inside else self.behind(f, layout)
            self.tighten(end, f)
            self.code.add(f"{n} = {end} - p" + (f" - {behind}" if behind else ""))
            if behind or inside:
                self.fail(f"{n} < 0", f)
        elif isinstance(type_.length, int):
            if not bounded:
                self.fail(f"{end} - p < {type_.length}", f)
                self.loose = 0
            self.code.add(f"{n} = {type_.length}")
        else:
            self.number(type_.length, layout, n, end, f, False)
            self.fail(f"{n} > {end} - p", f)
            loose, self.loose = self.loose, 0
            if type_.null is None:
                self.fail(f"{n} < 0", f)
            else:
                null = type_.null - 1 if type_.length == "compact" else type_.null
                if null >= 0:
                    raise Unsupported(f"null written as {type_.null}", f)
                with self.code.block(f"if {n} < 0:"):
                    self.fail(f"{n} != {null}" + (f" or p > {end}" if loose else ""), f)
                    if null != -1:
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
            rest = isinstance(fp.field.type, BytesType) and fp.field.type.length == "rest"
            if rest and fp.field.when is not None:
                continue  # of two fields that reach to the end one is there
            if fp.size is None or fp.field.when is not None:
                raise Unsupported("bytes to the end with fields behind them that vary", f)
            total += fp.size
        return total

    def present(self, f: Field, type_: BytesType, n: str, leaf: Leaf | None) -> None:
        if self.checks and type_.text:
            self.fail(f"not is_utf8(p, {n})", f)
        if leaf is not None:
            with self.code.block(f"if {leaf.name}_offsets:"):
                with self.code.block(f"if {n} > {leaf.name}_room - {leaf.name}_at:"):
                    self.code.add("return 0")
                self.code.add(f"copy({leaf.name}_data + {leaf.name}_at, p, {n})")
            self.code.add(f"{leaf.name}_at += {n}")
        self.code.add(f"p += {n}")

    def null(self, leaf: Leaf) -> None:
        if leaf.column.nullable:
            self.code.add(f"{leaf.name}_nulls += 1")
            with self.code.block(f"if {leaf.name}_validity:"):
                self.code.add(f"clear_bit({leaf.name}_validity, {self.place(leaf)})")

    def close_leaf(self, leaf: Leaf | None) -> None:
        if leaf is not None:
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
            self.never(f)  # rows hold no rows of their own
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
            self.loose = 0
        if not isinstance(type_.element, Reference):
            size = INTEGERS[type_.element.name][0] if type_.element.name in INTEGERS else None
            if size is None or not counted:
                raise Unsupported("an array of numbers that vary in length", f)
            self.fail(f"{n} * {size} > {end} - p", f)
            code.add(f"p += {n} * {size}")
            return
        self.elements(f, type_, layout, n, end, sinks, counted)

    def elements(
        self,
        f: Field,
        type_: ArrayType,
        layout: LayoutPlan,
        n: str,
        end: str,
        sinks: Sinks,
        counted: bool,
    ) -> None:
        """Go through the elements of an array in a row; a column of lists may want them."""
        code = self.code
        assert isinstance(type_.element, Reference)
        held = self.plan.of(type_.element)
        element = ([p for p in held if p.version in (layout.version, None)] or list(held))[0]
        leaf, members = sinks.lists.get(f.name, (None, {}))
        inner = Sinks(members)
        needed = names_needed(element, self.checks)
        if leaf is not None and counted:
            with code.block(f"if {leaf.name}_offsets and {n} > {leaf.name}_room - {leaf.name}_at:"):
                code.add("return 0")
        with code.block(f"for _ in range({n}):" if counted else f"while p < {end}:"):
            if leaf is not None and not counted:
                with code.block(f"if {leaf.name}_offsets and {leaf.name}_at >= {leaf.name}_room:"):
                    code.add("return 0")
            self.loose = 0
            self.fields(element, PART, end, inner, needed)
            self.tighten(end, f)
            if not counted:
                code.add(f"{n} += 1")
                self.fail(f"{n} > most", f)
            if leaf is not None:
                code.add(f"{leaf.name}_at += 1")
        if type_.at_least:
            self.fail(f"{n} < {type_.at_least}", f)
        if leaf is not None:
            self.close_leaf(leaf)
