"""Prints what reads one field: numbers, bytes, arrays inside rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from codecgen.plan import FieldPlan, LayoutPlan, Plan, read_ops
from codecgen.plan.read_ops import ReadOp
from codecgen.schema.lookup import null_as_read
from codecgen.schema.model import Field
from codecgen.schema.scalars import SCALARS, fixed_size, is_integer
from codecgen.schema.types import ArrayType, BitsType, BytesType
from codecgen.targets.arrow.checks import Unsupported, loading
from codecgen.targets.arrow.code_tree import Expr, Prefix, Var, any_of, call, effect
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.column_outputs import ColumnOutputs, Target
from codecgen.targets.arrow.numba_decode.field_variables import (
    Fields,
    Variables,
    is_number,
    is_raw,
)

_RAW = {"u64": "i64", "f32": "u32", "f64": "i64"}
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


class FieldReader:
    """Prints fields. ``mode``: ``open`` and ``rows`` check everything, and ``rows`` gives what columns want; ``hop`` only
    looks that nothing ends too early."""

    def __init__(
        self,
        plan: Plan,
        code: Builder,
        mode: str,
        variables: Variables,
        p: Var,
        gives: ColumnOutputs,
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
        self.held: list[str] = []
        """The layouts that are being read, from the outermost on."""
        self.pending: list[tuple[FieldPlan, Expr]] = []
        """Checksums that are verified later, with the ends of what they cover."""

    @property
    def checks(self) -> bool:
        return self.mode != "hop"

    def layout(
        self,
        layout: LayoutPlan,
        part: str,
        end: Expr,
        needed: Iterable[str],
        stop: str | None = None,
    ) -> Expr:
        """Print the program of a layout, up to (not with) the field ``stop``. The end of the bytes that are open then."""
        raise NotImplementedError

    def tags(self, op: read_ops.Tags, fields: Fields, end: Expr, wanted: set[str]) -> None:
        """Print what reads a section of tagged fields."""
        raise NotImplementedError

    # ------------------------------------------------------------ refusing

    def failing(self, f: Field) -> Expr:
        return effect("fail", self.row, self.gives.check(f), self.p)

    def fail(self, condition: Expr, f: Field) -> None:
        with self.code.when(condition):
            self.never(f)

    def never(self, f: Field) -> None:
        self.code.give(self.failing(f), f.name)

    def fits(self, size: int, end: Expr, f: Field) -> None:
        """Bytes of a fixed number are there. Few of them need no look: the slack after all input is as long."""
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

    # ------------------------------------------------------------ one field

    def read(self, op: ReadOp, fields: Fields, end: Expr, wanted: set[str]) -> None:
        part = fields.part
        match op:
            case read_ops.Number(fp, name):
                self.number_field(fp.field, name, fields, end, wanted)
            case read_ops.Bytes(fp, type_, after):
                n, target = self.variables.of(part, fp.name), self.gives.target(part, fp.name)
                self.bytes(fp.field, type_, after, n, target, fields.layout, end)
            case read_ops.Elements():
                self.array(op, fields, end)
            case read_ops.Struct(fp, layout):
                self.struct(fp.field, layout, fields, end)
            case read_ops.Tags():
                self.tags(op, fields, end, wanted)
            case read_ops.Choose(fp):
                raise Unsupported("one of several layouts", fp.field)
            case _:
                raise TypeError(type(op).__name__)
        size = op.field.size
        self.covered = 0 if size is None or not part else max(0, self.covered - size)

    def number_field(
        self, f: Field, name: str, fields: Fields, end: Expr, wanted: set[str]
    ) -> None:
        target = self.gives.target(fields.part, f.name)
        variable = self.variables.of(fields.part, f.name)
        known = is_number(f) or is_raw(f) or isinstance(f.type, BitsType)
        self.scalar(name, variable if f.name in wanted and known else None, target, fields, end, f)

    def scalar(
        self,
        name: str,
        variable: Var | None,
        target: Target | None,
        fields: Fields,
        end: Expr,
        f: Field,
    ) -> None:
        """A number, true or false, or a uuid: into a variable, or passed over."""
        size = fixed_size(name)
        if target is not None and name != "uuid":
            variable = self.variables.of(fields.part, f.name)
        if name in _RAW and variable is not None:
            self.raw(name, variable, end, f)
        elif variable is not None and name != "uuid":
            self.number(name, fields.layout, variable, end, f)
        elif size is not None:
            if not self.covered:
                self.fits(size, end, f)
            if name == "bool":
                self.fail(call("load_u8", self.p) > 1, f)
            if target is not None:
                self.gives.uuid(target, self.p)
            self.code.add(self.p, size, f.name)
            return
        else:
            variable = self.variables.of(fields.part, f.name)
            self.number(name, fields.layout, variable, end, f)
        if target is not None and variable is not None:
            self.gives.value(target, variable)

    def raw(self, name: str, variable: Var, end: Expr, f: Field) -> None:
        """The bits of a number that kernels copy."""
        size = SCALARS[name].width
        if not self.covered:
            self.fits(size, end, f)
        order = "_le" if f.endian == "little" else ""
        self.code.assign(variable, call(f"load_{_RAW[name]}{order}", self.p))
        self.code.add(self.p, size)

    def number(self, name: str, layout: LayoutPlan, variable: Var, end: Expr, f: Field) -> None:
        """Read an integer into a variable, and step over it."""
        if is_integer(name):
            size = SCALARS[name].width
            if not self.covered:
                self.fits(size, end, f)
            self.code.assign(variable, load(name, layout, self.p, f))
            self.code.add(self.p, size)
            return
        if name == "bool":
            if not self.covered:
                self.fits(1, end, f)
            self.code.assign(variable, call("load_u8", self.p))
            self.code.add(self.p, 1)
            self.fail(variable > 1, f)
            return
        function = _VARINTS.get(name)
        if function is None:
            raise Unsupported(f"a number of the type {name}", f)
        longest = SCALARS[function].max_size
        if self.loose + longest > LOOSE:
            self.tighten(end, f)
        self.loose += longest
        shortest = Var("shortest")
        self.code.unpack((variable, self.p, shortest), call(function, self.p))
        with self.code.when(Prefix("not", shortest)):
            self.never(f)
        if name == "compact":
            self.code.subtract(variable, 1)

    # ------------------------------------------------------------ bytes

    def bytes(
        self,
        f: Field,
        type_: BytesType,
        after: int | None,
        n: Var,
        target: Target | None,
        layout: LayoutPlan,
        end: Expr,
    ) -> None:
        code = self.code
        if type_.length == "rest":
            if after is None:
                raise Unsupported("bytes to the end with fields after them that vary", f)
            inside = bool(self.windows) and self.windows[-1].last == f.name
            self.tighten(end, f)
            code.assign(n, end - self.p - after if after else end - self.p)
            if after or inside:
                self.fail(n < 0, f)
        elif isinstance(type_.length, int):
            if not self.covered:
                self.fail(end - self.p < type_.length, f)
                self.loose = 0
            code.assign(n, type_.length)
        else:
            self.prefixed(f, type_, type_.length, n, layout, end, target)
            return
        self.present(f, type_, n, target)
        self.gives.close(target)

    def prefixed(
        self,
        f: Field,
        type_: BytesType,
        length: str,
        n: Var,
        layout: LayoutPlan,
        end: Expr,
        target: Target | None,
    ) -> None:
        """Bytes with their length in front."""
        code = self.code
        self.covered = 0
        self.number(length, layout, n, end, f)
        self.fail(n > end - self.p, f)
        loose, self.loose = self.loose, 0
        null = null_of(type_, f)
        if null is None:
            self.fail(n < 0, f)
            self.present(f, type_, n, target)
            self.gives.close(target)
            return
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

    # ------------------------------------------------------------ what holds others

    def array(self, op: read_ops.Elements, fields: Fields, end: Expr) -> None:
        """An array inside a row."""
        raise NotImplementedError

    def struct(self, f: Field, layout: LayoutPlan, fields: Fields, end: Expr) -> None:
        """A layout in the place of a field."""
        raise NotImplementedError


def null_of(type_: ArrayType | BytesType, f: Field) -> int | None:
    """Return what :func:`null_as_read` does. Raise Unsupported if a length or a count that is not null may be that number."""
    null = null_as_read(type_)
    if null is not None and null >= 0:
        raise Unsupported(f"null written as {type_.null}", f)
    return null


def field_of(layout: LayoutPlan, name: str) -> Field:
    fp = layout.field(name)
    assert fp is not None
    return fp.field


def check_number(f: Field) -> None:
    """See that a length or a count is a number that 64 bits hold with their sign."""
    if not is_number(f):
        raise Unsupported(f"a number of the type {getattr(f.type, 'name', '')}", f)


def load(name: str, layout: LayoutPlan, place: Expr, f: Field) -> Expr:
    """The number of fixed size at an address."""
    order = "_le" if f.endian == "little" and SCALARS[name].width > 1 else ""
    return call(loading(name, order, f), place)
