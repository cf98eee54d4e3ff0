"""The kernel of a view into payloads as Python: a loop over records that tells what their parts are, and writes their rows."""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.plan import FieldPlan, LayoutPlan, Plan
from codecgen.plan.payloads import Combination, PayloadPlan
from codecgen.targets.arrow.checks import Unsupported
from codecgen.targets.arrow.code_tree import Call, Expr, Function, Global, Num, Var, any_of, call
from codecgen.targets.arrow.function_builder import Builder
from codecgen.targets.arrow.numba_decode.array_opener import base_type
from codecgen.targets.arrow.numba_decode.field_variables import load
from codecgen.targets.arrow.numba_decode.payload_rows import PayloadRowsKernel
from codecgen.targets.arrow.numba_decode.payload_view import PayloadKernels
from codecgen.targets.arrow.unsupported_fields import refuse_unsupported_layout

_LOOK, _DONE, _REJECTED, _UNKNOWN = range(4)
"""What became of a payload: the state says what (rejected if a check noted its number, otherwise there was no room); done;
left to the reference codecs; nothing knows it."""


def payload_kernels_of(plan: Plan, view: PayloadPlan, *doc: str) -> str:
    """Return the source of the kernel module of a payload view: a row function for each combination
    of part layouts, and the loop over payloads. ``doc`` has the paragraphs of the module's
    docstring, at least one. Raise Unsupported if kernels cannot read a layout, condition or column,
    or find out the layouts of the parts.

    Args:
        plan: Plan of the schemas.
        view: The view.
        doc: Paragraphs of the docstring of the module.
    """
    kernels = PayloadKernels(plan, view)
    rows = []
    for combination in view.combinations:
        for layout in combination.layouts.values():
            if layout is not None:
                refuse_unsupported_layout(plan, layout)
        kernel = PayloadRowsKernel(kernels, combination)
        kernel.emit()
        rows.append(kernel)
    name = PayloadLoop(kernels, rows).emit()
    table = [f"KERNELS: Any = {name}", '"""The loop over payloads."""']
    return kernels.module.text(table, doc[0], *doc[1:])


class PayloadLoop:
    """Emits the kernel function that loops over payloads (values of records), determines the
    layouts of each payload's parts, and calls the function that writes its rows.
    """

    def __init__(self, kernels: PayloadKernels, rows: list[PayloadRowsKernel]) -> None:
        self.kernels = kernels
        self.view = kernels.view
        self.rows = {id(kernel.combination): kernel for kernel in rows}
        self.code = Builder()
        self.i, self.done = Var("i"), Var("done")
        self.bias, self.out, self.state, self.room, self.max_elements = map(
            Var, ("bias", "out", "state", "room", "max_elements")
        )
        named = {name for c in self.view.combinations for name in c.layouts}
        decider = self.view.decider
        named |= set() if decider is None else {decider.name}
        self.parts = [kind.name for kind in self.view.parts if kind.name in named]
        self.starts = {name: Var(f"{name}_start") for name in self.parts}
        self.ends = {name: Var(f"{name}_end") for name in self.parts}
        self.nulls = {name: Var(f"{name}_is_null") for name in self.parts}

    def emit(self) -> str:
        """Add the function that loops over the payloads ``first`` to ``last`` (exclusive) to the
        kernel module, and return its name. The function returns ``last``, or the index of the
        payload at which an output is full; numbers of rejected and of unknown payloads go to two
        lists, and the loop goes on. Raise Unsupported if kernels cannot determine the kind of a
        payload.
        """
        code, state = self.code, self.kernels.state
        table, first, last = Var("parts"), Var("first"), Var("last")
        rejected, unknown = Var("rejected"), Var("unknown")
        found = {}
        for name in self.parts:
            at = [kind.name for kind in self.view.parts].index(name)
            place = table + Num(at) * self.kernels.part_size
            found[name] = [Var(f"{name}_{what}") for what in ("data", "offsets", "validity", "bit")]
            for variable, slot in zip(found[name], self.kernels.part.values(), strict=True):
                code.assign(variable, call("load_i64_le", place + slot))
        with code.count(self.i, first, last):
            for name in self.parts:
                data, offsets, validity, bit = found[name]
                here = offsets + Num(8) * self.i
                code.assign(self.starts[name], data + call("load_i64_le", here))
                code.assign(self.ends[name], data + call("load_i64_le", here + 8))
                code.assign(self.nulls[name], call("is_null", validity, bit + self.i))
            code.assign(self.done, _DONE)
            self.print_decision()
            with code.when(self.done.eq(_DONE)):
                code.leave("continue")
            with code.when(self.done.eq(_LOOK)):
                noted = self.state + state["NOTED"]
                with code.when(call("load_i64_le", noted).eq(0)):
                    code.emit_return(self.i)
                code.do("store_64", noted, 0)
            for what, out, word in (
                (self.done.eq(_UNKNOWN), unknown, "UNKNOWN"),
                (None, rejected, "REJECTED"),
            ):
                with code.when(what) if what is not None else code.otherwise():
                    count = Var("count")
                    place = self.state + state[word]
                    code.assign(count, call("load_i64_le", place))
                    code.do("store_64", out + Num(8) * count, self.i + self.bias)
                    code.do("store_64", place, count + 1)
        code.emit_return(last)
        name = self.kernels.module.name("decode_payloads")
        doc = (
            "Check payloads and write their rows, until there is no room. The first one that is not done. Those that are not "
            "as they should be, and those that nothing knows, are noted and passed over."
        )
        parameters = [
            table,
            first,
            last,
            self.bias,
            self.out,
            self.state,
            self.room,
            self.max_elements,
        ]
        parameters += [rejected, unknown]
        typed = [(v, "int") for v in parameters]
        self.kernels.module.functions.append(Function(name, typed, "int", doc, code.body, "jit"))
        return name

    def print_decision(self) -> None:
        """Emit code that finds the kind of a payload by its discriminator (without one, there is
        one kind) and goes on with its parts. The payload is unknown if the discriminating part is
        null or its number has no case, rejected if that part is too short, done if its case has no
        rows. Raise Unsupported if the discriminator or a version has no fixed offset and size, or
        is no integer that kernels load.
        """
        code, decider = self.code, self.view.decider
        by_number: dict[int | None, list[Combination]] = {}
        for combination in self.view.combinations:
            by_number.setdefault(combination.number, []).append(combination)
        if decider is None or decider.choice is None:
            self.print_parts([*self.read_parts(by_number[None])], {}, by_number[None])
            return
        plans = [p for ref in decider.cases.values() for p in self.kernels.plan.of(ref)]
        fp = plans[0].field(decider.choice.by or "")
        assert fp is not None
        with code.when(self.nulls[decider.name]):
            code.assign(self.done, _UNKNOWN)
        with code.otherwise(self.is_too_short(decider.name, fp)):
            code.assign(self.done, _REJECTED)
        with code.otherwise():
            number = Var("number")
            code.assign(number, self.load_number(decider.name, fp, plans[0]))
            begun = False
            for value, combinations in by_number.items():
                assert value is not None
                test = number.eq(value)
                with code.otherwise(test) if begun else code.when(test):
                    self.print_parts([*self.read_parts(combinations)], {}, combinations)
                begun = True
            others = [number.eq(n) for n in decider.cases if n not in by_number]
            if others:
                with code.otherwise(any_of(others)) if begun else code.when(any_of(others)):
                    code.assign(self.done, _DONE, "no rows are of it")
            with code.otherwise():
                code.assign(self.done, _UNKNOWN)

    def read_parts(self, combinations: list[Combination]) -> list[str]:
        """Return the names of the parts that rows look at, in order."""
        return [*combinations[0].layouts]

    def is_too_short(self, name: str, fp: FieldPlan) -> Expr:
        """Return the condition that a part ends before a field does. Raise Unsupported if the field lies at no fixed place."""
        if fp.offset is None or fp.size is None:
            raise Unsupported(
                "the discriminator of the bytes after it, but at no fixed place", fp.field
            )
        return self.ends[name] - self.starts[name] < fp.offset + fp.size

    def load_number(self, name: str, fp: FieldPlan, plan: LayoutPlan) -> Expr:
        """Return the expression that loads a field at a fixed place of a part."""
        start: Expr = self.starts[name]
        place = start + fp.offset if fp.offset else start
        return load(base_type(fp.field), place, fp.field)

    def print_parts(
        self,
        names: list[str],
        chosen: Mapping[str, LayoutPlan | None],
        combinations: list[Combination],
    ) -> None:
        """Emit code that determines for each of the parts ``names`` whether it is null (only where
        a combination allows that) and its version, then calls the row function of the combination
        that matches. ``chosen`` has the layouts of the parts known so far, None for null. Raise
        Unsupported if a version has no fixed offset or is no integer that kernels load.
        """
        if not names:
            self.call_rows(next(c for c in combinations if c.layouts == chosen))
            return
        name, rest = names[0], names[1:]
        plans: list[LayoutPlan] = []
        nullable = False
        for combination in combinations:
            plan = combination.layouts[name]
            nullable = nullable or plan is None
            if plan is not None and not any(plan is known for known in plans):
                plans.append(plan)
        if not nullable:
            self.print_versions(name, plans, rest, chosen, combinations)
            return
        with self.code.when(self.nulls[name]):
            self.print_parts(rest, {**chosen, name: None}, combinations)
        with self.code.otherwise():
            self.print_versions(name, plans, rest, chosen, combinations)

    def print_versions(
        self,
        name: str,
        plans: list[LayoutPlan],
        rest: list[str],
        chosen: Mapping[str, LayoutPlan | None],
        combinations: list[Combination],
    ) -> None:
        """Emit code that compares the version number in the part ``name`` with those of ``plans``,
        and in each branch goes on with the parts ``rest``. The payload is rejected if the part is
        too short for the number, or of no such version. For a single plan, emit no test. Raise
        Unsupported if the version has no fixed offset or is no integer that kernels load.
        """
        code = self.code
        if len(plans) == 1:
            self.print_parts(rest, {**chosen, name: plans[0]}, combinations)
            return
        fp = plans[0].field(plans[0].layout.version_is or "")
        assert fp is not None
        with code.when(self.is_too_short(name, fp)):
            code.assign(self.done, _REJECTED)
        with code.otherwise():
            version = Var(f"version_of_{name}")
            code.assign(version, self.load_number(name, fp, plans[0]))
            for i, plan in enumerate(plans):
                test = version.eq(Num(plan.version or 0))
                with code.otherwise(test) if i else code.when(test):
                    self.print_parts(rest, {**chosen, name: plan}, combinations)
            with code.otherwise():
                code.assign(self.done, _REJECTED)

    def call_rows(self, combination: Combination) -> None:
        """Emit the call of the function that writes the rows of a combination of part layouts, with
        the start and end addresses of its parts and the tables. The variable ``done`` gets its
        result: 1, or 0 if the payload is invalid or an output is full.
        """
        kernel = self.rows[id(combination)]
        arguments: list[Expr] = [v for n in kernel.layouts for v in (self.starts[n], self.ends[n])]
        arguments += [self.i + self.bias, self.state + self.kernels.state["NOTED"]]
        arguments += [self.out, self.state, self.room, self.max_elements]
        called = Call(Global(kernel.name), tuple(arguments), (), False)
        self.code.assign(self.done, called)
