"""Prints what shows fields of payloads in columns: they are read once more, or left out."""

from __future__ import annotations

from contextlib import nullcontext

from codecgen.plan import LayoutPlan, read_ops
from codecgen.plan.column_sources import Sources
from codecgen.plan.columns import Leaf
from codecgen.plan.payloads import PayloadCase
from codecgen.plan.read_program import read_program
from codecgen.plan.tag_defaults import default_bytes, default_data
from codecgen.schema.model import Field
from codecgen.schema.types import ArrayType, ScalarType
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import Expr, Var
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.column_outputs import ColumnOutputs, Target
from codecgen.targets.arrow.numba_decode.field_variables import ITEM, Variables
from codecgen.targets.arrow.numba_decode.payload_cases import Cases
from codecgen.targets.arrow.numba_decode.payload_reader import (
    PayloadFields,
    PayloadReader,
    Places,
)
from codecgen.targets.arrow.numba_decode.payload_view import PayloadKernels


class FieldColumns:
    """Prints columns that are fields of a payload. ``layouts`` are the parts that are there."""

    def __init__(self, kernels: PayloadKernels, layouts: dict[str, LayoutPlan]) -> None:
        self.kernels = kernels
        self.layouts = layouts
        self.code = Builder()
        self.variables = Variables()
        self.places = Places()
        self.cases = Cases(kernels.plan)
        self.unread = Var("unread")
        self.note, self.out, self.state, self.room, self.most = map(
            Var, ("note", "out", "state", "room", "most")
        )
        self.at = Var("at")
        self.gives = self.outputs()

    def outputs(self, sources: Sources | None = None) -> ColumnOutputs:
        return ColumnOutputs(
            self.code,
            sources,
            self.kernels.columns,
            row=self.note,
            most=self.most,
            at=self.at,
            check=self.kernels.module.check,
        )

    def inside(self, leaf: Leaf) -> Sources:
        """What a column is made of."""
        leaves = self.kernels.view.leaves
        inside = {x.index: self.kernels.view.inside(x) for x in leaves if x.root is leaf}
        return Sources({}, (), (), inside)

    def versions(
        self, part: str, f: Field, case: PayloadCase
    ) -> list[tuple[LayoutPlan, Expr | None]]:
        """The layouts that a field may be read of, each with the condition that it is that one (None: otherwise)."""
        chosen = self.cases.of(part)
        if chosen is None:
            layout = case.element if part == ITEM else self.layouts[part]
            assert layout is not None
            return [(layout, None)]
        which = chosen.which(self.variables)
        there = [(i, plan) for i, plan in enumerate(chosen.plans, 1) if plan.field(f.name)]
        tests: list[Expr | None] = [which.eq(i) for i, _ in there]
        return [(plan, test) for (_, plan), test in zip(there, [*tests[:-1], None], strict=True)]

    def see_default(self, part: str, f: Field, case: PayloadCase) -> None:
        """Bytes of a tagged field that is left out begin anywhere: there are none of them."""
        for layout, _ in self.versions(part, f, case):
            for fp in layout.tagged:
                if fp.name == f.name and default_data(fp):
                    reason = "a column of a tagged field with a default that is not empty"
                    raise Unsupported(reason, f)
                if fp.name == f.name and (part, f.name) not in self.places.bytes:
                    self.places.note(part, f.name)
                    self.code.assign(self.places.bytes[part, f.name], self.note)

    def again(self, leaf: Leaf, target: Target, part: str, f: Field, case: PayloadCase) -> None:
        """Read a field once more, for a column: what is in structs and lists goes to buffers of its own."""
        start, end = self.places.again[part, f.name]
        gives = self.outputs(self.inside(leaf))
        gives.targets = self.gives.targets
        gives.named = {(part, f.name): leaf}
        plan = self.kernels.plan
        at = Var("at_again")
        reader = PayloadReader(plan, self.code, "rows", self.variables, at, gives)
        reader.cases, reader.unread = self.cases, self.unread
        with self.code.when(start.eq(0)):
            self.not_read(target, part, f, case)
        for layout, test in self.versions(part, f, case):
            fields = PayloadFields(plan, layout, part, self.variables)
            with self.code.otherwise(test):
                self.code.assign(at, start)
                reader.read(operation(self.kernels, layout, f), fields, end, {f.name})

    def not_read(self, target: Target, part: str, f: Field, case: PayloadCase) -> None:
        """A field has not been read: there is no such case, or it is left out."""
        chosen = self.cases.of(part)
        if chosen is None:
            [(layout, _)] = self.versions(part, f, case)
            self.left_out(target, layout, f)
            return
        which, begun = chosen.which(self.variables), False
        for i, layout in enumerate(chosen.plans, 1):
            if any(fp.name == f.name for fp in layout.tagged):
                test = which.eq(i)
                with self.code.otherwise(test) if begun else self.code.when(test):
                    self.left_out(target, layout, f)
                begun = True
        with self.code.otherwise() if begun else nullcontext():
            self.nothing(target)

    def left_out(self, target: Target, layout: LayoutPlan, f: Field) -> None:
        """A field is not there: it is null, or a tagged one that holds its default."""
        tagged = next((fp for fp in layout.tagged if fp.name == f.name), None)
        if tagged is None or (isinstance(f.type, ArrayType) and tagged.default is not None):
            self.nothing(target)
            return
        if isinstance(f.type, ScalarType) and any(default_bytes(tagged)):
            raise Unsupported("a column of a tagged field with a default that is not empty", f)
        gives = self.outputs(self.inside(target.leaf))
        gives.targets = self.gives.targets
        gives.empty(target)

    def nothing(self, target: Target) -> None:
        """There is no value for a column."""
        gives = self.outputs(self.inside(target.leaf))
        gives.targets = self.gives.targets
        gives.nothing(target)


def operation(kernels: PayloadKernels, layout: LayoutPlan, f: Field) -> read_ops.ReadOp:
    """The operation that reads a field."""
    ops = list(read_program(kernels.plan, layout).ops)
    for op in ops:
        if isinstance(op, read_ops.When):
            ops += op.then
        if isinstance(op, read_ops.Tags):
            ops += [inner for _, known in op.known for inner in known]
        reads = read_ops.Number | read_ops.Elements | read_ops.Struct
        if isinstance(op, reads) and op.field.name == f.name:
            return op
    raise Unsupported("read otherwise than by itself", f)
