"""Prints what reads one value: a number, true or false, a uuid, or bytes."""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.schema.model import Field
from codecgen.schema.scalars import SCALARS, fixed_size, is_integer
from codecgen.schema.types import BytesType
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import Expr, Prefix, Var, any_of, call, effect
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.column_outputs import ColumnOutputs, Target
from codecgen.targets.arrow.numba_decode.field_variables import Variables, load, null_of

_RAW = {"u64": "i64", "f32": "u32", "f64": "i64"}
_VARINTS = {"varint": "varint", "varlong": "varlong", "uvarint": "uvarint", "compact": "uvarint"}

MAX_LOOSE = 40
"""Max bytes that may be read beyond the end before a check. The slack after all input is longer."""


class ValueReader:
    """Prints bounds-checked reads of single values at the place ``p``, and gives the values to columns.

    Attributes:
        loose: Bytes by which ``p`` may be beyond the end of what may be read. A check is due before they exceed MAX_LOOSE.
        covered: Bytes from ``p`` on that are known to be there.
        part: Part whose fields are read.
        starts: Variables, by part and field, that note where bytes begin.
    """

    def __init__(
        self, code: Builder, variables: Variables, p: Var, gives: ColumnOutputs, *, checks: bool
    ) -> None:
        self.code = code
        self.variables = variables
        self.p = p
        self.gives = gives
        self.checks = checks
        self.loose = 0
        self.covered = 0
        self.part = ""
        self.starts: Mapping[tuple[str, str], Var] = {}

    # ------------------------------------------------------------ refusing

    def failing(self, f: Field) -> Expr:
        return effect("fail", self.gives.row, self.gives.check(f), self.p)

    def fail(self, condition: Expr, f: Field) -> None:
        with self.code.when(condition):
            self.never(f)

    def never(self, f: Field) -> None:
        self.code.give(self.failing(f), f.name)

    def fits(self, size: int, end: Expr, f: Field) -> None:
        """Bytes of a fixed number are there. Few of them need no look: the slack after all input is as long."""
        if self.loose + size > MAX_LOOSE:
            self.fail(end - self.p < size, f)
            self.loose = 0
        else:
            self.loose += size

    def tighten(self, end: Expr, f: Field) -> None:
        """From here on p is not beyond the end."""
        if self.loose:
            self.fail(self.p > end, f)
            self.loose = 0

    # ------------------------------------------------------------ numbers

    def scalar(
        self,
        name: str,
        variable: Var | None,
        target: Target | None,
        part: str,
        end: Expr,
        f: Field,
    ) -> None:
        """A number, true or false, or a uuid: into a variable, or passed over."""
        size = fixed_size(name)
        if target is not None and name != "uuid":
            variable = self.variables.of(part, f.name)
        if name in _RAW and variable is not None:
            self.raw(name, variable, end, f)
        elif variable is not None and name != "uuid":
            self.number(name, variable, end, f)
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
            variable = self.variables.of(part, f.name)
            self.number(name, variable, end, f)
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

    def number(self, name: str, variable: Var, end: Expr, f: Field) -> None:
        """Read an integer into a variable, and step over it."""
        if is_integer(name):
            size = SCALARS[name].width
            if not self.covered:
                self.fits(size, end, f)
            self.code.assign(variable, load(name, self.p, f))
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
        if self.loose + longest > MAX_LOOSE:
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
        end: Expr,
        *,
        ends_window: bool = False,
    ) -> None:
        code = self.code
        if type_.length == "rest":
            if after is None:
                raise Unsupported("bytes to the end with fields after them that vary", f)
            self.tighten(end, f)
            code.assign(n, end - self.p - after if after else end - self.p)
            if after or ends_window:
                self.fail(n < 0, f)
        elif isinstance(type_.length, int):
            if not self.covered:
                self.fail(end - self.p < type_.length, f)
                self.loose = 0
            code.assign(n, type_.length)
        else:
            self.prefixed(f, type_, type_.length, n, end, target)
            return
        self.present(f, type_, n, target)
        self.gives.close(target)

    def prefixed(
        self,
        f: Field,
        type_: BytesType,
        length: str,
        n: Var,
        end: Expr,
        target: Target | None,
    ) -> None:
        """Bytes with their length in front."""
        code = self.code
        self.covered = 0
        self.number(length, n, end, f)
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
        start = self.starts.get((self.part, f.name))
        if start is not None:
            self.code.assign(start, self.p)
        if self.checks and type_.text:
            with self.code.when(Prefix("not", call("is_utf8", self.p, n))):
                self.never(f)
        if target is not None:
            self.gives.bytes(target, self.p, n)
        self.code.add(self.p, n)
