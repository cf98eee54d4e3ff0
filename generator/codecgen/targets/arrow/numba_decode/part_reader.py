"""Prints what reads arrays inside rows, and layouts in the place of fields."""

from __future__ import annotations

from dataclasses import replace

from codecgen.plan import LayoutPlan, read_ops
from codecgen.schema.model import Field
from codecgen.schema.scalars import fixed_size
from codecgen.schema.types import ArrayType, BytesType, ChoiceType, ScalarType, StructType
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import Expr, Num, Var, all_of, any_of
from codecgen.targets.arrow.numba_decode.column_outputs import Target
from codecgen.targets.arrow.numba_decode.field_reader import (
    FieldReader,
    check_number,
    field_of,
    null_of,
)
from codecgen.targets.arrow.numba_decode.field_variables import Fields, part_of


class PartReader(FieldReader):
    """Prints what a row holds others in: arrays, and layouts."""

    # ------------------------------------------------------------ arrays in rows

    def array(self, op: read_ops.Elements, fields: Fields, end: Expr) -> None:
        fp, type_, element = op.field, op.type, op.element
        f, part = fp.field, fields.part
        if type_.compression is not None:
            if fp.when is None:
                raise Unsupported("a compressed array inside rows", f)
            self.never(f)  # rows hold no rows of their own
            return
        null = null_of(type_, f)
        if op.any_version:
            raise Unsupported("an array of layouts whose bytes say which version they are", f)
        if type_.length is not None:
            raise Unsupported("an array with a length inside rows", f)
        if isinstance(element, ChoiceType):
            raise Unsupported("an array of a choice", f)
        n = self.variables.of(part, f.name)
        self.covered = 0
        counted = type_.says_how_many
        if type_.fixed is not None:
            self.code.assign(n, type_.fixed)
        elif type_.count is not None:
            self.number(type_.count, fields.layout, n, end, f)
        elif type_.counted_by is not None:
            check_number(field_of(fields.layout, type_.counted_by))
            self.code.assign(n, self.variables.of(part, type_.counted_by))
        else:
            self.code.assign(n, 0)
        if null is not None:
            self.null_array(type_, n, null, self.gives.target(part, f.name), f)
            type_ = replace(type_, at_least=0)
        if counted:
            most = self.gives.most
            self.fail(any_of([n < 0, n > end - self.p, n > most]), f)
            self.loose = 0
        size = element_size(element)
        if size is not None and counted and self.gives.target(part, f.name) is None:
            self.fail(n * size > end - self.p, f)
            if type_.at_least:
                self.fail(n < type_.at_least, f)
            self.code.add(self.p, n * size)
            return
        self.elements(f, type_, element, fields, n, end, counted)

    def null_array(
        self, type_: ArrayType, n: Var, null: int, target: Target | None, f: Field
    ) -> None:
        """An array that is null has no elements, which is not too few."""
        with self.code.when(n.eq(null)):
            self.code.assign(n, 0)
            if target is not None:
                self.gives.null(target)
        if type_.at_least:
            with self.code.otherwise():
                self.fail(n < type_.at_least, f)

    def elements(
        self,
        f: Field,
        type_: ArrayType,
        element: LayoutPlan | ScalarType | BytesType,
        fields: Fields,
        n: Var,
        end: Expr,
        counted: bool,
    ) -> None:
        """Go through the elements of an array in a row; a column of lists may want them."""
        code = self.code
        part = fields.part
        target = self.gives.target(part, f.name)
        if target is not None and counted:
            self.gives.list_room(target, n)
        with code.count(None, n) if counted else code.loop(self.p < end):
            if target is not None and not counted:
                self.gives.list_room(target, Num(1))
            self.loose = 0
            self.element(f, element, fields, target, end)
            self.tighten(end, f)
            if not counted:
                code.add(n, 1)
                self.fail(n > self.gives.most, f)
            if target is not None:
                code.add(target.at, 1)
        if type_.at_least:
            self.fail(n < type_.at_least, f)
        self.gives.close(target)

    def element(
        self,
        f: Field,
        element: LayoutPlan | ScalarType | BytesType,
        fields: Fields,
        target: Target | None,
        end: Expr,
    ) -> None:
        """One element of an array."""
        if isinstance(element, LayoutPlan):
            self.nested(f, element, part_of(fields.part, f.name), target, end)
            return
        self.covered = 0
        inside = next(iter(self.gives.inside(target)), None)
        of = replace(fields, part=part_of(fields.part, f.name))
        if isinstance(element, ScalarType):
            self.scalar(element.name, None, inside, of, end, f)
        else:
            n = self.variables.of(of.part, f.name)
            self.bytes(f, element, None, n, inside, fields.layout, end)

    # ------------------------------------------------------------ layouts in rows

    def nested(
        self, f: Field, layout: LayoutPlan, part: str, target: Target | None, end: Expr
    ) -> None:
        """A layout inside another one."""
        if layout.name in self.held:
            raise Unsupported("a layout that holds itself", f)
        kept = self.windows, self.covered, self.ends
        self.ends = {}
        self.gives.enter(target, part)
        self.layout(layout, part, end, ())
        self.windows, self.covered, self.ends = kept
        for inner in self.gives.inside(target):
            if layout.field(inner.leaf.column.name) is None:  # not in this version
                self.gives.nothing(inner)

    def struct(self, f: Field, layout: LayoutPlan, fields: Fields, end: Expr) -> None:
        """A layout in the place of a field."""
        type_ = f.type
        assert isinstance(type_, StructType)
        if len(self.plan.held(type_.layout, fields.layout)) > 1:
            raise Unsupported("a layout whose bytes say which version it is", f)
        part, target = part_of(fields.part, f.name), self.gives.target(fields.part, f.name)
        self.covered = 0
        if type_.present is None:
            self.nested(f, layout, part, target, end)
            self.covered = 0
            return
        there = self.variables.of(fields.part, f.name)
        self.number(type_.present, fields.layout, there, end, f)
        self.tighten(end, f)
        if type_.null is None:
            self.fail(there.ne(1), f)
            self.nested(f, layout, part, target, end)
        else:
            self.fail(all_of([there.ne(1), there.ne(type_.null)]), f)
            with self.code.when(there.eq(1)):
                self.nested(f, layout, part, target, end)
            if target is not None:
                with self.code.otherwise():
                    self.gives.nothing(target)
        self.covered = 0


def element_size(element: LayoutPlan | ScalarType | BytesType) -> int | None:
    """The bytes of an element that can be passed over without a look: None where there is no telling."""
    if not isinstance(element, ScalarType) or element.name == "bool":
        return None
    return fixed_size(element.name)
