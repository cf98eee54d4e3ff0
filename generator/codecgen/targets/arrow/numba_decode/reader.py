"""Prints read programs as kernels: the fields of a layout, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from codecgen.plan import FieldPlan, LayoutPlan, Plan, program
from codecgen.plan.nodes import Value
from codecgen.plan.program import Op, fields_needed, read_program
from codecgen.schema.model import (
    INTEGERS,
    ArrayType,
    BitsType,
    BytesType,
    Field,
    ScalarType,
)
from codecgen.targets.arrow.arithmetic import Refused, negated_condition
from codecgen.targets.arrow.building import Builder
from codecgen.targets.arrow.code import Unsupported
from codecgen.targets.arrow.numba_decode.fields import PART, Fields, Variables, is_number
from codecgen.targets.arrow.numba_decode.gives import Gives, Target
from codecgen.targets.arrow.tree import Expr, Num, Prefix, Var, all_of, any_of, call, effect

_FIXED = {"f64": 8, "bool": 1, "uuid": 16}
_LONGEST = {"varint": 5, "uvarint": 5, "varlong": 10}
_VARINTS = {"varint": "varint", "varlong": "varlong", "uvarint": "uvarint", "compact": "uvarint"}

LOOSE = 40
"""How far fields may be read beyond the end before somebody looks: less than the slack that there is."""


@dataclass(frozen=True, slots=True)
class Window:
    """Bytes that a length measures: the end of those ``around`` them. With ``when`` the length may be left out."""

    length: str
    around: Expr
    last: str | None
    when: Expr | None = None


class Reader:
    """Prints programs. ``mode``: ``open`` and ``rows`` check everything, and ``rows`` gives what columns want; ``hop`` only
    looks that nothing ends too early."""

    def __init__(
        self, plan: Plan, code: Builder, mode: str, variables: Variables, p: Var, gives: Gives
    ) -> None:
        self.plan = plan
        self.code = code
        self.mode = mode
        self.variables = variables
        self.p = p
        self.gives = gives
        self.row = gives.row
        self.loose = 0  # by how much p may be beyond the end
        self.covered = 0  # bytes from here on that are known to be there
        self.windows: list[Window] = []
        self.ends: dict[str, tuple[Var, Var]] = {}
        self.pending: list[tuple[FieldPlan, Expr]] = []
        """Checksums that are verified later, with the ends of what they cover."""

    @property
    def checks(self) -> bool:
        return self.mode != "hop"

    # ------------------------------------------------------------ refusing

    def failing(self, f: Field) -> Expr:
        return effect("fail", self.row, self.gives.check(f), self.p)

    def fail(self, condition: Expr, f: Field) -> None:
        with self.code.when(condition):
            self.never(f)

    def never(self, f: Field) -> None:
        self.code.give(self.failing(f), f.name)

    def fits(self, size: int, end: Expr, f: Field) -> None:
        """Bytes of a fixed number are there. Few of them need no look: the slack behind all input is as long."""
        if self.loose + size > LOOSE:
            self.fail(end - self.p < size, f)
            self.loose = 0
        else:
            self.loose += size

    def tighten(self, end: Expr, f: Field) -> None:
        """From here on p is not beyond the end."""
        if self.loose:
            self.fail(self.p > end, f)
            self.loose = 0

    # ------------------------------------------------------------ programs

    def layout(
        self,
        layout: LayoutPlan,
        part: str,
        end: Expr,
        needed: Iterable[str],
        stop: str | None = None,
    ) -> Expr:
        """Print the program of a layout, up to (not with) the field ``stop``. The end of the bytes that are open then.

        ``needed`` are the fields that somebody else asks for.
        """
        whole = read_program(self.plan, layout)
        ops = whole.ops if stop is None else whole.until(stop)
        wanted = fields_needed(whole.ops, checks=self.checks) | set(needed)
        wanted |= self.gives.fields(part)
        outer, self.windows, self.covered = self.windows, [], 0
        fields = Fields(self.plan, layout, part, self.variables)
        for i, op in enumerate(ops):
            measured = self.windows and self.windows[0].last is None
            if not self.checks and measured and not self.still(ops[i:], set(needed)):
                end = self.skip(layout)
                self.windows = outer
                return end
            end = self.op(op, ops, i, fields, end, wanted)
        if stop is None:
            self.tighten(end, layout.fields[-1].field)
        else:
            self.tighten(
                end, layout.layout.fields[0] if not layout.field(stop) else _field(layout, stop)
            )
        self.windows = outer
        return end

    def still(self, ops: tuple[Op, ...], wanted: set[str]) -> bool:
        """Whether something that is wanted is still to come."""
        for op in ops:
            match op:
                case program.When(field) | program.Number(field) | program.Bytes(field):
                    if field.name in wanted:
                        return True
                case program.Elements(field) | program.Struct(field) | program.Absent(field):
                    if field.name in wanted:
                        return True
        return False

    def skip(self, layout: LayoutPlan) -> Expr:
        """Nothing more is wanted, and it is known where the layout ends."""
        inner = self.windows[0]
        end = self.ends[inner.length][0]
        self.code.assign(self.p, end)
        self.loose = 0
        self.tighten(inner.around, layout.fields[-1].field)
        return inner.around

    def op(
        self, op: Op, ops: tuple[Op, ...], i: int, fields: Fields, end: Expr, wanted: set[str]
    ) -> Expr:
        match op:
            case program.Open():
                return self.open(op, fields, end)
            case program.Close():
                return self.close(op, fields.layout, end)
            case program.Mark(checksum, at_end):
                self.mark(checksum, at_end, fields)
            case program.Verify(checksum, ahead):
                self.verify_here(checksum, ahead, fields, end)
            case program.Require(field, condition):
                if self.checks:
                    self.require(field.field, condition, fields)
            case program.When(field, condition, then):
                self.sometimes(field, condition, then, fields, end, wanted)
            case program.Absent(field):
                self.absent(field.field, fields.part)
            case _:
                self.bound(ops[i:], fields.layout, end)
                self.read(op, fields, end, wanted)
        return end

    def require(self, f: Field, condition: Value, fields: Fields) -> None:
        try:
            self.fail(negated_condition(fields.arithmetic(), condition), f)
        except Refused as error:
            raise Unsupported(error.reason, f) from None

    def condition(self, value: Value, fields: Fields, f: Field) -> Expr:
        try:
            return fields.arithmetic().condition(value)
        except Refused as error:
            raise Unsupported(error.reason, f) from None

    def sometimes(
        self,
        fp: FieldPlan,
        condition: Value,
        then: tuple[Op, ...],
        fields: Fields,
        end: Expr,
        wanted: set[str],
    ) -> None:
        """A field that may be left out."""
        test = self.condition(condition, fields, fp.field)
        self.covered = 0
        loose = self.loose
        with self.code.when(test):
            for i, op in enumerate(then):
                if isinstance(op, program.Require):
                    self.op(op, then, i, fields, end, wanted)
                else:
                    self.read(op, fields, end, wanted)
        self.covered = 0
        self.loose = max(loose, self.loose)
        with self.code.otherwise():
            self.absent(fp.field, fields.part)
        branch = self.code.body[-1]
        if not branch.arms[-1][1]:  # type: ignore[attr-defined]
            branch.arms.pop()  # type: ignore[attr-defined]

    def absent(self, f: Field, part: str) -> None:
        variable = self.variables.of(part, f.name)
        target = self.gives.target(part, f.name)
        if isinstance(f.type, BytesType):
            self.code.assign(variable, -1)
            if target is not None:
                self.gives.null(target)
                self.gives.close(target)
        elif isinstance(f.type, ScalarType | BitsType):
            self.code.assign(variable, 0)
        elif target is not None:
            raise Unsupported("a column of an array that may be left out", f)

    # ------------------------------------------------------------ windows and checksums

    def open(self, op: program.Open, fields: Fields, end: Expr) -> Expr:
        m, code = op.length, self.code
        check_number(m.field)
        length = self.variables.of(fields.part, m.name)
        inner = Var(f"end_of_{op.first.name}")
        self.ends[m.name] = (inner, length)
        too_long = any_of([length < 0, length > end - self.p])
        self.covered = 0
        if op.when is None:
            self.fail(too_long, m.field)
            self.loose = 0
            code.assign(inner, self.p + length)
            self.windows.append(Window(m.name, end, op.last))
            return inner
        rest = getattr(op.first.field.type, "length", None) == "rest"
        alone = m.measures is not None and m.measures.last == op.first.name
        if not rest or not alone or not isinstance(op.first.field.type, BytesType):
            raise Unsupported("a length that may be left out", m.field)
        if op.after is None:
            raise Unsupported("bytes to the end with fields behind them that vary", op.first.field)
        test = self.condition(op.when, fields, m.field)
        with code.when(test):
            self.fail(too_long, m.field)
            code.assign(inner, self.p + length)
        with code.otherwise():
            code.assign(inner, end - op.after if op.after else end)
        self.windows.append(Window(m.name, end, op.last or op.first.name, test))
        return inner

    def close(self, op: program.Close, layout: LayoutPlan, end: Expr) -> Expr:
        window = self.windows.pop()
        f = op.at.field
        differs = self.p.ne(end)
        if not self.checks and window.last is None:
            self.code.assign(self.p, end)
        else:
            self.fail(differs if window.when is None else all_of([window.when, differs]), f)
        if window.when is None:
            self.loose = 0
        self.covered = 0
        return window.around

    def mark(self, c: FieldPlan, at_end: bool, fields: Fields) -> None:
        if self.checks:
            if c.when is not None:
                raise Unsupported("a checksum that may be left out", c.field)
            name = f"end of {c.name}" if at_end else f"start of {c.name}"
            self.code.assign(self.place(fields.part, name), self.p)

    def place(self, part: str, name: str) -> Var:
        key = (part, name)
        if key not in self.variables.found:
            self.variables.found[key] = Var(f"{part}_{name.replace(' ', '_')}")
        return self.variables.found[key]

    def verify_here(self, c: FieldPlan, ahead: bool, fields: Fields, end: Expr) -> None:
        if not self.checks:
            return
        if c.when is not None:
            raise Unsupported("a checksum that may be left out", c.field)
        if not ahead:
            start = self.place(fields.part, f"start of {c.name}")
            stop: Expr = self.p
            if (fields.part, f"end of {c.name}") in self.variables.found:
                stop = self.place(fields.part, f"end of {c.name}")
            self.verify(c, fields.part, start, stop - start)
            return
        if not any(window.last is None for window in self.windows):
            raise Unsupported("a checksum over a run without a measured end", c.field)
        if self.mode == "open":
            self.code.assign(self.place(fields.part, f"start of {c.name}"), self.p)
            self.pending.append((c, end))
        else:
            self.tighten(end, c.field)
            self.verify(c, fields.part, self.p, end - self.p)

    def verify(
        self, c: FieldPlan, part: str, start: Expr, size: Expr, only: tuple[Expr, ...] = ()
    ) -> None:
        """Compare a checksum, perhaps only under conditions."""
        stored: Expr = self.variables.of(part, c.name)
        if isinstance(c.field.type, ScalarType) and c.field.type.name != "u32":
            stored = stored & 0xFFFFFFFF
        computed = call(str(c.field.checksum), start, size)
        self.fail(all_of([*only, computed.ne(stored)]), c.field)

    def bound(self, ops: tuple[Op, ...], layout: LayoutPlan, end: Expr) -> None:
        """Check once that fields of fixed size are there, as many as follow each other."""
        first = ops[0]
        fp = first.field  # type: ignore[union-attr]
        if fp.size is None:
            self.covered = 0
            return
        if self.covered > 0:
            return
        total = 0
        for op in ops:
            match op:
                case program.Require() | program.Mark():
                    continue
                case program.Number(field) | program.Bytes(field) if field.size is not None:
                    total += field.size
                case program.Verify(_, True):
                    continue
                case _:
                    break
        self.fits(total, end, fp.field)
        self.covered = total

    # ------------------------------------------------------------ one field

    def read(self, op: Op, fields: Fields, end: Expr, wanted: set[str]) -> None:
        part = fields.part
        match op:
            case program.Number(fp, name):
                self.number_field(fp.field, name, fields, end, wanted)
            case program.Bytes(fp, type_, after):
                self.bytes(fp.field, type_, after, fields, end)
            case program.Elements():
                self.array(op, fields, end)
            case program.Struct(fp):
                raise Unsupported("a layout in the place of a field", fp.field)
            case _:
                raise TypeError(type(op).__name__)
        size = op.field.size
        self.covered = 0 if size is None or not part else max(0, self.covered - size)

    def number_field(
        self, f: Field, name: str, fields: Fields, end: Expr, wanted: set[str]
    ) -> None:
        size = INTEGERS[name][0] if name in INTEGERS else _FIXED.get(name)
        variable = self.variables.of(fields.part, f.name)
        if f.name in wanted and (is_number(f) or isinstance(f.type, BitsType)):
            self.number(name, fields.layout, variable, end, f)
        elif size is not None:
            if not self.covered:
                self.fits(size, end, f)
            if name == "bool":
                self.fail(call("load_u8", self.p) > 1, f)
            self.code.add(self.p, size, f.name)
        else:
            self.number(name, fields.layout, variable, end, f)

    def number(self, name: str, layout: LayoutPlan, variable: Var, end: Expr, f: Field) -> None:
        """Read an integer into a variable, and step over it."""
        if name in INTEGERS:
            size = INTEGERS[name][0]
            if not self.covered:
                self.fits(size, end, f)
            self.code.assign(variable, load(name, layout, self.p, f))
            self.code.add(self.p, size)
            return
        function = _VARINTS.get(name)
        if function is None:
            raise Unsupported(f"a number of type {name}", f)
        if self.loose + _LONGEST[function] > LOOSE:
            self.tighten(end, f)
        self.loose += _LONGEST[function]
        shortest = Var("shortest")
        self.code.unpack((variable, self.p, shortest), call(function, self.p))
        with self.code.when(Prefix("not", shortest)):
            self.never(f)
        if name == "compact":
            self.code.subtract(variable, 1)

    # ------------------------------------------------------------ bytes

    def bytes(
        self, f: Field, type_: BytesType, after: int | None, fields: Fields, end: Expr
    ) -> None:
        code = self.code
        n = self.variables.of(fields.part, f.name)
        target = self.gives.target(fields.part, f.name)
        if type_.length == "rest":
            inside = bool(self.windows) and self.windows[-1].last == f.name
            if not inside and after is None:
                raise Unsupported("bytes to the end with fields behind them that vary", f)
            behind = 0 if inside else int(after or 0)
            self.tighten(end, f)
            code.assign(n, end - self.p - behind if behind else end - self.p)
            if behind or inside:
                self.fail(n < 0, f)
        elif isinstance(type_.length, int):
            if not self.covered:
                self.fail(end - self.p < type_.length, f)
                self.loose = 0
            code.assign(n, type_.length)
        else:
            self.prefixed(f, type_, type_.length, n, fields, end, target)
            return
        self.present(f, type_, n, target)
        self.gives.close(target)

    def prefixed(
        self,
        f: Field,
        type_: BytesType,
        length: str,
        n: Var,
        fields: Fields,
        end: Expr,
        target: Target | None,
    ) -> None:
        """Bytes with their length in front."""
        code = self.code
        self.covered = 0
        self.number(length, fields.layout, n, end, f)
        self.fail(n > end - self.p, f)
        loose, self.loose = self.loose, 0
        if type_.null is None:
            self.fail(n < 0, f)
            self.present(f, type_, n, target)
            self.gives.close(target)
            return
        null = type_.null - 1 if length == "compact" else type_.null
        if null >= 0:
            raise Unsupported(f"null written as {type_.null}", f)
        with code.when(n < 0):
            tests = [n.ne(null), *([self.p > end] if loose else [])]
            self.fail(any_of(tests), f)
            if null != -1:
                code.assign(n, -1)
            if target is not None:
                self.gives.null(target)
        with code.otherwise():
            self.present(f, type_, n, target)
        self.gives.close(target)

    def present(self, f: Field, type_: BytesType, n: Var, target: Target | None) -> None:
        if self.checks and type_.text:
            with self.code.when(Prefix("not", call("is_utf8", self.p, n))):
                self.never(f)
        if target is not None:
            self.gives.bytes(target, self.p, n)
        self.code.add(self.p, n)

    # ------------------------------------------------------------ arrays in rows

    def array(self, op: program.Elements, fields: Fields, end: Expr) -> None:
        fp, type_, element = op.field, op.type, op.element
        f, part = fp.field, fields.part
        if type_.compression is not None:
            if fp.when is None:
                raise Unsupported("a compressed array inside rows", f)
            self.never(f)  # rows hold no rows of their own
            return
        if part == PART and isinstance(element, LayoutPlan):
            raise Unsupported("an array in an array of a row", f)
        if type_.length is not None:
            raise Unsupported("an array with a length inside rows", f)
        n = self.variables.of(part, f.name)
        self.covered = 0
        counted = type_.count is not None or type_.counted_by is not None
        if type_.count is not None:
            self.number(type_.count, fields.layout, n, end, f)
        elif type_.counted_by is not None:
            check_number(_field(fields.layout, type_.counted_by))
            self.code.assign(n, self.variables.of(part, type_.counted_by))
        else:
            self.code.assign(n, 0)
        if counted:
            most = self.gives.most
            self.fail(any_of([n < 0, n > end - self.p, n > most]), f)
            self.loose = 0
        if isinstance(element, ScalarType):
            size = INTEGERS[element.name][0] if element.name in INTEGERS else None
            if size is None or not counted:
                raise Unsupported("an array of numbers that vary in length", f)
            self.fail(n * size > end - self.p, f)
            if type_.at_least:
                self.fail(n < type_.at_least, f)
            self.code.add(self.p, n * size)
            return
        self.elements(f, type_, element, part, n, end, counted)

    def elements(
        self,
        f: Field,
        type_: ArrayType,
        element: LayoutPlan,
        part: str,
        n: Var,
        end: Expr,
        counted: bool,
    ) -> None:
        """Go through the elements of an array in a row; a column of lists may want them."""
        code = self.code
        target = self.gives.target(part, f.name)
        if target is not None and counted:
            self.gives.list_room(target, n)
        outer = self.gives.enter(target)
        with code.count(None, n) if counted else code.loop(self.p < end):
            if target is not None and not counted:
                self.gives.list_room(target, Num(1))
            self.loose = 0
            windows, covered = self.windows, self.covered
            self.layout(element, PART, end, ())
            self.windows, self.covered = windows, covered
            self.tighten(end, f)
            if not counted:
                code.add(n, 1)
                self.fail(n > self.gives.most, f)
            if target is not None:
                code.add(target.at, 1)
        self.gives.leave(outer)
        if type_.at_least:
            self.fail(n < type_.at_least, f)
        self.gives.close(target)


def _field(layout: LayoutPlan, name: str) -> Field:
    fp = layout.field(name)
    assert fp is not None
    return fp.field


def check_number(f: Field) -> None:
    """See that a length or a count is a number that 64 bits hold with their sign."""
    if not is_number(f):
        raise Unsupported(f"a number of type {getattr(f.type, 'name', '')}", f)


def load(name: str, layout: LayoutPlan, place: Expr, f: Field) -> Expr:
    """The number of fixed size at an address."""
    if name == "u64" or name not in INTEGERS:
        raise Unsupported(f"a number of type {name}", f)
    size, signed = INTEGERS[name]
    order = "_le" if layout.layout.endian == "little" and size > 1 else ""
    return call(f"load_{'i' if signed else 'u'}{8 * size}{order}", place)
