"""Prints what reads sections of tagged fields: their tags ascend, and those that the layout does not know are passed over."""

from __future__ import annotations

from typing import Literal

from codecgen.plan import FieldPlan, read_ops
from codecgen.plan.read_ops import ReadOp
from codecgen.plan.tag_defaults import default_bytes, default_data, default_number
from codecgen.runtime.tags import HIGHEST, MAX_COUNT
from codecgen.schema.types import ArrayType, BytesType, ScalarType, StructType
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import Expr, Num, Var, all_of, any_of, call
from codecgen.targets.arrow.numba_decode.field_variables import Fields, is_raw
from codecgen.targets.arrow.numba_decode.part_reader import PartReader

_LEAST = 2
"""The fewest bytes of a tagged field: a tag and a size."""


class TaggedReader(PartReader):
    """Prints the section of tagged fields of a layout."""

    leaves_layouts = False
    """Whether what has a tagged layout may be left to the reference codecs."""

    def one(self, op: ReadOp, fields: Fields, end: Expr, wanted: set[str]) -> None:
        """Print one operation of those that read a field."""
        raise NotImplementedError

    def place(self, part: str, name: str) -> Var:
        """The variable of something about a part."""
        raise NotImplementedError

    def tags(self, op: read_ops.Tags, fields: Fields, end: Expr, wanted: set[str]) -> None:
        code, f = self.code, op.field.field
        part = fields.part
        there = {fp.name: self.before(fp, part) for fp, _ in op.known}
        number, tag, last, size, after = (
            self.place(part, f"{word} of {f.name}")
            for word in ("number", "tag", "last", "size", "after")
        )
        self.covered = 0
        self.number("uvarint", fields.layout, number, end, f)
        limits = [number > self.gives.most, number > MAX_COUNT]
        self.fail(any_of([Num(_LEAST) * number > end - self.p, *limits]), f)
        self.loose = 0
        code.assign(last, -1)
        with code.count(None, number):
            self.number("uvarint", fields.layout, tag, end, f)
            self.tighten(end, f)
            self.fail(any_of([tag <= last, tag > HIGHEST, *(tag.eq(t) for t in op.other)]), f)
            code.assign(last, tag)
            self.number("uvarint", fields.layout, size, end, f)
            self.fail(size > end - self.p, f)
            self.loose = 0
            code.assign(after, self.p + size)
            for fp, ops in op.known:
                if self.is_left(fp, part):
                    self.fail(tag.eq(Num(fp.field.tag or 0)), fp.field)
                    continue
                with code.when(tag.eq(Num(fp.field.tag or 0))):
                    self.known(fp, ops, fields, size, after, wanted)
                    found = there[fp.name]
                    if found is not None:
                        code.assign(found, 1)
            code.assign(self.p, after)
        self.loose = self.covered = 0
        for fp, _ in op.known:
            self.missing(fp, part, there[fp.name])

    def is_left(self, fp: FieldPlan, part: str) -> bool:
        """Whether the reference codecs read a field: in payloads a tagged layout, which no column is made of."""
        if not isinstance(fp.field.type, StructType):
            return False
        if not self.leaves_layouts or self.gives.target(part, fp.name) is not None:
            raise Unsupported("a tagged layout", fp.field)
        return True

    def before(self, fp: FieldPlan, part: str) -> Var | None:
        """Set the variable of a tagged field to its default. The variable that says whether it is there, for columns."""
        f = fp.field
        variable = self.variables.of(part, f.name)
        default = default_value(fp)
        if default is not None:
            self.code.assign(variable, default)
        elif isinstance(f.type, BytesType):
            data = default_data(fp)
            self.code.assign(variable, -1 if data is None else len(data))
        if self.gives.target(part, f.name) is None:
            return None
        there = self.place(part, f"{f.name} is there")
        self.code.assign(there, 0)
        return there

    def known(
        self,
        fp: FieldPlan,
        ops: tuple[ReadOp, ...],
        fields: Fields,
        size: Var,
        after: Var,
        wanted: set[str],
    ) -> None:
        """Read a field of the layout, which does not hold its default and ends where its size says."""
        f = fp.field
        if self.checks:
            default = default_bytes(fp)
            same = [call("load_u8", self.p + i).eq(byte) for i, byte in enumerate(default)]
            self.fail(all_of([size.eq(len(default)), *same]), f)
        windows, self.windows = self.windows, []
        for op in ops:
            self.one(op, fields, after, wanted)
        self.windows = windows
        self.tighten(after, f)
        self.fail(self.p.ne(after), f)
        self.covered = 0

    def missing(self, fp: FieldPlan, part: str, there: Var | None) -> None:
        """Give the default to a column that holds the field."""
        f = fp.field
        target = self.gives.target(part, f.name)
        if there is None or target is None:
            return
        null = fp.default is not None and isinstance(f.type, ArrayType)
        if isinstance(f.type, BytesType):
            data = default_data(fp)
            null = data is None
            if data:
                raise Unsupported("a column of a tagged field with a default that is not empty", f)
        with self.code.when(there.eq(0)):
            if null:
                self.gives.nothing(target)
            elif default_value(fp) is not None:
                self.gives.value(target, self.variables.of(part, f.name))
            else:
                self.gives.empty(target)


def default_value(fp: FieldPlan) -> int | None:
    """The default of a number as kernels have it: its bits, for those that they copy. None for others."""
    f, number = fp.field, default_number(fp)
    if isinstance(f.type, ScalarType) and f.type.name != "uuid" and (number is None or is_raw(f)):
        order: Literal["little", "big"] = "little" if f.endian == "little" else "big"
        return int.from_bytes(default_bytes(fp), order, signed=True)
    return number


__all__ = ["TaggedReader"]
