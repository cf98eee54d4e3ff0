"""Prints read programs as kernels: the fields of a layout, one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from codecgen.plan import FieldPlan, LayoutPlan, read_ops
from codecgen.plan.nodes import Value
from codecgen.plan.read_ops import ReadOp, fields_needed
from codecgen.plan.read_program import read_program
from codecgen.plan.writable import KERNEL_CHECKSUMS
from codecgen.schema.model import Field
from codecgen.schema.types import BitsType, BytesType, ScalarType
from codecgen.targets.arrow.arithmetic import Refused, negated_condition
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import Expr, Var, all_of, any_of, call
from codecgen.targets.arrow.numba_decode.field_reader import (
    Window,
    check_number,
    field_of,
)
from codecgen.targets.arrow.numba_decode.field_variables import Fields
from codecgen.targets.arrow.numba_decode.layout_rules import refuse_rules
from codecgen.targets.arrow.numba_decode.tag_section import TaggedReader


class Reader(TaggedReader):
    """Prints programs: fields in their order, with the windows that lengths open and the checksums over them."""

    # ------------------------------------------------------------ programs

    def layout(
        self,
        layout: LayoutPlan,
        part: str,
        end: Expr,
        needed: Iterable[str],
        stop: str | None = None,
        *,
        ruled: bool = False,
    ) -> Expr:
        """Print the program of a layout, up to (not with) the field ``stop``. The end of the bytes that are open then.

        ``needed`` are the fields that somebody else asks for. ``ruled``: the caller applies, or refuses, the rules of the layout.
        """
        if not ruled:
            refuse_rules(layout)
        whole = read_program(self.plan, layout)
        ops = whole.ops if stop is None else whole.ops_before(stop)
        wanted = fields_needed(whole.ops, checks=self.checks) | set(needed)
        wanted |= self.gives.fields(part)
        outer, self.windows, self.covered = self.windows, [], 0
        self.held.append(layout.name)
        fields = Fields(self.plan, layout, part, self.variables)
        for i, op in enumerate(ops):
            measured = self.windows and self.windows[0].last is None
            if not self.checks and measured and not self.still(ops[i:], set(needed)):
                end = self.skip(layout)
                self.windows = outer
                self.held.pop()
                return end
            end = self.op(op, ops, i, fields, end, wanted)
        if stop is None:
            self.tighten(end, layout.fields[-1].field)
        else:
            self.tighten(
                end, layout.layout.fields[0] if not layout.field(stop) else field_of(layout, stop)
            )
        self.windows = outer
        self.held.pop()
        return end

    def still(self, ops: tuple[ReadOp, ...], wanted: set[str]) -> bool:
        """Whether something that is wanted is still to come."""
        for op in ops:
            match op:
                case read_ops.When(field) | read_ops.Number(field) | read_ops.Bytes(field):
                    if field.name in wanted:
                        return True
                case read_ops.Elements(field) | read_ops.Struct(field) | read_ops.Absent(field):
                    if field.name in wanted:
                        return True
                case read_ops.Choose(field):
                    if field.name in wanted:
                        return True
                case read_ops.Tags(known=known):
                    if any(fp.name in wanted for fp, _ in known):
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
        self,
        op: ReadOp,
        ops: tuple[ReadOp, ...],
        i: int,
        fields: Fields,
        end: Expr,
        wanted: set[str],
    ) -> Expr:
        match op:
            case read_ops.Open():
                return self.open(op, fields, end)
            case read_ops.Close():
                return self.close(op, fields.layout, end)
            case read_ops.Mark(checksum, at_end):
                self.mark(checksum, at_end, fields)
            case read_ops.Verify(checksum, ahead):
                self.verify_here(checksum, ahead, fields, end)
            case read_ops.Require(field, condition):
                if self.checks:
                    self.require(field.field, condition, fields)
            case read_ops.When(field, condition, then):
                self.sometimes(field, condition, then, fields, end, wanted)
            case read_ops.Absent(field):
                self.absent(field.field, fields.part)
            case _:
                self.bound(ops[i:], fields.layout, end)
                self.read(op, fields, end, wanted)
        return end

    def one(self, op: ReadOp, fields: Fields, end: Expr, wanted: set[str]) -> None:
        if isinstance(op, read_ops.Require):
            self.op(op, (op,), 0, fields, end, wanted)
        else:
            self.read(op, fields, end, wanted)

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
        then: tuple[ReadOp, ...],
        fields: Fields,
        end: Expr,
        wanted: set[str],
    ) -> None:
        """A field that may be left out."""
        test = self.condition(condition, fields, fp.field)
        self.covered = 0
        loose = self.loose
        with self.code.when(test):
            for op in then[:1] if _never_in_rows(then[0]) else then:
                self.one(op, fields, end, wanted)
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
        elif isinstance(f.type, ScalarType | BitsType):
            self.code.assign(variable, 0)
        if target is not None:
            self.gives.nothing(target)

    # ------------------------------------------------------------ windows and checksums

    def open(self, op: read_ops.Open, fields: Fields, end: Expr) -> Expr:
        m, code = op.length, self.code
        check_number(m.field)
        if m.own_bytes:
            raise Unsupported("a length that counts itself", m.field)
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
            raise Unsupported("bytes to the end with fields after them that vary", op.first.field)
        test = self.condition(op.when, fields, m.field)
        with code.when(test):
            self.fail(too_long, m.field)
            code.assign(inner, self.p + length)
        with code.otherwise():
            code.assign(inner, end - op.after if op.after else end)
        self.windows.append(Window(m.name, end, op.last or op.first.name, test))
        return inner

    def close(self, op: read_ops.Close, layout: LayoutPlan, end: Expr) -> Expr:
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
            where = "part" if "/" in part else part
            self.variables.found[key] = Var(f"{where}_{name.replace(' ', '_')}")
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
            raise Unsupported("a checksum over a range without a measured end", c.field)
        if self.mode == "open" and len(self.held) == 1:
            self.code.assign(self.place(fields.part, f"start of {c.name}"), self.p)
            self.pending.append((c, end))
        else:
            self.tighten(end, c.field)
            self.verify(c, fields.part, self.p, end - self.p)

    def verify(
        self, c: FieldPlan, part: str, start: Expr, size: Expr, only: tuple[Expr, ...] = ()
    ) -> None:
        """Compare a checksum, perhaps only under conditions."""
        if c.field.checksum not in KERNEL_CHECKSUMS:
            raise Unsupported(f"a checksum that kernels lack, {c.field.checksum}", c.field)
        stored: Expr = self.variables.of(part, c.name)
        if isinstance(c.field.type, ScalarType) and c.field.type.name != "u32":
            stored = stored & 0xFFFFFFFF
        computed = call(str(c.field.checksum), start, size)
        self.fail(all_of([*only, computed.ne(stored)]), c.field)

    def bound(self, ops: tuple[ReadOp, ...], layout: LayoutPlan, end: Expr) -> None:
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
                case read_ops.Require() | read_ops.Mark():
                    continue
                case read_ops.Number(field) | read_ops.Bytes(field) if field.size is not None:
                    total += field.size
                case read_ops.Verify(_, True):
                    continue
                case _:
                    break
        self.fits(total, end, fp.field)
        self.covered = total


def _never_in_rows(op: ReadOp) -> bool:
    """Whether a row that has this is refused, so that nothing else can be asked of it."""
    return isinstance(op, read_ops.Elements) and op.type.compression is not None
