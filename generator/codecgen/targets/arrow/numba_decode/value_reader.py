"""Emits code that reads one value: a number, true or false, a uuid, or bytes."""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.schema.model import Field
from codecgen.schema.scalars import SCALARS, fixed_size, is_integer
from codecgen.schema.types import BytesType
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import Expr, Prefix, Var, any_of, call, effect
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.column_outputs import ColumnOutputs, Target
from codecgen.targets.arrow.numba_decode.field_variables import (
    RAW,
    Variables,
    load,
    load_raw,
    null_of,
)

_VARINTS = {"varint": "varint", "varlong": "varlong", "uvarint": "uvarint", "compact": "uvarint"}

MAX_LOOSE = 40
"""Max bytes that may be read beyond the end before a check. The slack after all input is longer."""


class ValueReader:
    """Emits kernel code that reads single values at the address ``p``, checks their bounds,
    advances ``p``, and writes the values to columns. The kernel "fails at" a field by noting the
    field's check and the address, and returning 0. ``target`` is the column to write, None for
    none.

    Attributes:
        loose: Bytes by which ``p`` may be beyond the end of what may be read. A check is due before they exceed MAX_LOOSE.
        covered: Bytes from ``p`` on that are known to be there.
        part: Part whose fields are read.
        starts: Variables, by part and field, that note where bytes begin.
    """

    def __init__(
        self, code: Builder, variables: Variables, p: Var, outputs: ColumnOutputs, *, checks: bool
    ) -> None:
        self.code = code
        self.variables = variables
        self.p = p
        self.outputs = outputs
        self.checks = checks
        self.loose = 0
        self.covered = 0
        self.part = ""
        self.starts: Mapping[tuple[str, str], Var] = {}

    # ------------------------------------------------------------ refusing

    def fail_call(self, f: Field) -> Expr:
        """Return the call that notes that the check of ``f`` failed at ``p``. The kernel returns its value."""
        return effect("fail", self.outputs.row, self.outputs.check(f), self.p)

    def fail_if(self, condition: Expr, f: Field) -> None:
        """Emit code by which the kernel fails at ``f`` if ``condition`` holds."""
        with self.code.when(condition):
            self.fail_always(f)

    def fail_always(self, f: Field) -> None:
        """Emit code by which the kernel fails at ``f``."""
        self.code.emit_return(self.fail_call(f), f.name)

    def check_size(self, size: int, end: Expr, f: Field) -> None:
        """Emit the check that ``size`` bytes follow before ``end``, by which the kernel fails at
        ``f``. As long as at most MAX_LOOSE (40) bytes in sum are unchecked, emit nothing and add
        ``size`` to ``loose``: input is followed by more readable bytes.
        """
        if self.loose + size > MAX_LOOSE:
            self.fail_if(end - self.p < size, f)
            self.loose = 0
        else:
            self.loose += size

    def check_end(self, end: Expr, f: Field) -> None:
        """Check that ``p`` is not beyond ``end``, unless that is known already."""
        if self.loose:
            self.fail_if(self.p > end, f)
            self.loose = 0

    # ------------------------------------------------------------ numbers

    def read_scalar(
        self,
        name: str,
        variable: Var | None,
        target: Target | None,
        part: str,
        end: Expr,
        f: Field,
    ) -> None:
        """Emit the read of a scalar of the type ``name``, and the step over it: into ``variable``
        if it is given, and into the column ``target`` if it is given. Without both, the scalar is
        only skipped, after the checks of bools and varints. A uuid goes to the column only. Reads
        may go up to 40 bytes beyond ``end``: call :meth:`check_end` after the last one. ``part`` is
        where the field lies (the entry, a row, or a nested layout). Raise Unsupported for types
        that kernels cannot read.
        """
        size = fixed_size(name)
        if target is not None and name != "uuid":
            variable = self.variables.get(part, f.name)
        if name in RAW and variable is not None:
            self.read_raw(name, variable, end, f)
        elif variable is not None and name != "uuid":
            self.read_number(name, variable, end, f)
        elif size is not None:
            if not self.covered:
                self.check_size(size, end, f)
            if name == "bool":
                self.fail_if(call("load_u8", self.p) > 1, f)
            if target is not None:
                self.outputs.write_uuid(target, self.p)
            self.code.add(self.p, size, f.name)
            return
        else:
            variable = self.variables.get(part, f.name)
            self.read_number(name, variable, end, f)
        if target is not None and variable is not None:
            self.outputs.write_value(target, variable)

    def read_raw(self, name: str, variable: Var, end: Expr, f: Field) -> None:
        """Emit the read of the bits of a ``u64``, ``f32`` or ``f64``, which kernels copy and do not
        interpret, into ``variable``, and the step over it. ``end`` is checked as by
        :meth:`read_number`.
        """
        size = SCALARS[name].width
        if not self.covered:
            self.check_size(size, end, f)
        self.code.assign(variable, load_raw(name, self.p, f))
        self.code.add(self.p, size)

    def read_number(self, name: str, variable: Var, end: Expr, f: Field) -> None:
        """Emit the read of an integer, varint or bool into ``variable``, and the step over it. The
        kernel fails for a bool above 1 and for an overlong varint; 1 is subtracted from a compact
        length. It may read beyond ``end``: that is checked only before MAX_LOOSE (40) bytes in sum
        are unchecked, and at last by :meth:`check_end`. Raise Unsupported for ``u64``, 24-bit
        integers and all other types.
        """
        if is_integer(name):
            size = SCALARS[name].width
            if not self.covered:
                self.check_size(size, end, f)
            self.code.assign(variable, load(name, self.p, f))
            self.code.add(self.p, size)
            return
        if name == "bool":
            if not self.covered:
                self.check_size(1, end, f)
            self.code.assign(variable, call("load_u8", self.p))
            self.code.add(self.p, 1)
            self.fail_if(variable > 1, f)
            return
        function = _VARINTS.get(name)
        if function is None:
            raise Unsupported(f"a number of the type {name}", f)
        longest = SCALARS[function].max_size
        if self.loose + longest > MAX_LOOSE:
            self.check_end(end, f)
        self.loose += longest
        shortest = Var("shortest")
        self.code.unpack((variable, self.p, shortest), call(function, self.p))
        with self.code.when(Prefix("not", shortest)):
            self.fail_always(f)
        if name == "compact":
            self.code.subtract(variable, 1)

    # ------------------------------------------------------------ bytes

    def read_bytes(
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
        """Emit the read of bytes or text: the size into ``n`` (-1 for null), the content into the
        column ``target`` unless it is None. The kernel fails if they reach beyond ``end`` or
        (except in mode ``hop``) are text but not UTF-8, and returns 0 if the column is full. Raise
        Unsupported if they take all bytes up to ``end`` and the fields after them vary in size
        (``after`` is None), if null is a possible size, or for a length that kernels cannot read.

        Args:
            f: Field that the bytes are, or are elements of.
            type_: Type of the bytes.
            after: Bytes of the fields after those that reach to the end. None if they vary.
            n: Variable for the size, -1 for null.
            target: Column, or None.
            end: End of the bytes that may be read.
            ends_window: The field is the last one of a window that a length measures.
        """
        code = self.code
        if type_.length == "rest":
            if after is None:
                raise Unsupported("bytes to the end with fields after them that vary", f)
            self.check_end(end, f)
            code.assign(n, end - self.p - after if after else end - self.p)
            if after or ends_window:
                self.fail_if(n < 0, f)
        elif isinstance(type_.length, int):
            if not self.covered:
                self.fail_if(end - self.p < type_.length, f)
                self.loose = 0
            code.assign(n, type_.length)
        else:
            self.read_prefixed(f, type_, type_.length, n, end, target)
            return
        self.read_content(f, type_, n, target)
        self.outputs.end_value(target)

    def read_prefixed(
        self,
        f: Field,
        type_: BytesType,
        length: str,
        n: Var,
        end: Expr,
        target: Target | None,
    ) -> None:
        """Emit the read of bytes after a length prefix of the type ``length``: the size into ``n``
        (-1 for null), the content into the column. The kernel fails for other negative sizes,
        beyond ``end``, and (except in mode ``hop``) for text that is not UTF-8. Raise Unsupported
        if null is written as a possible size, or for a prefix that kernels cannot read.
        """
        code = self.code
        self.covered = 0
        self.read_number(length, n, end, f)
        self.fail_if(n > end - self.p, f)
        loose, self.loose = self.loose, 0
        null = null_of(type_, f)
        if null is None:
            self.fail_if(n < 0, f)
            self.read_content(f, type_, n, target)
            self.outputs.end_value(target)
            return
        with code.when(n < 0):
            tests = [n.ne(null), *([self.p > end] if loose else [])]
            self.fail_if(any_of(tests), f)
            if null != -1:
                code.assign(n, -1)
            if target is not None:
                self.outputs.write_null(target)
        with code.otherwise():
            self.read_content(f, type_, n, target)
        self.outputs.end_value(target)

    def read_content(self, f: Field, type_: BytesType, n: Var, target: Target | None) -> None:
        """Emit the copy of ``n`` bytes at ``p`` to the column ``target``, if it is not None, and
        the step over them. Except in mode ``hop``, the kernel fails for text that is not UTF-8. If
        ``starts`` has a variable for the field, it first gets the address.
        """
        start = self.starts.get((self.part, f.name))
        if start is not None:
            self.code.assign(start, self.p)
        if self.checks and type_.text:
            with self.code.when(Prefix("not", call("is_utf8", self.p, n))):
                self.fail_always(f)
        if target is not None:
            self.outputs.write_bytes(target, self.p, n)
        self.code.add(self.p, n)
