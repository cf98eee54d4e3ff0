"""Functions that make the rows of a view into payloads from what the codecs parse: one module for each, in the package
``rows``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from codecgen.plan import LayoutPlan, Plan, nodes
from codecgen.plan.columns import CasePlan
from codecgen.plan.nodes import Value
from codecgen.plan.payloads import (
    Combination,
    PartKind,
    PayloadCase,
    PayloadPlan,
    is_whole,
    plan_payloads,
)
from codecgen.schema.model import Column
from codecgen.schema.types import BitsType
from codecgen.targets.construct.homes import Home, symbol
from codecgen.targets.construct.rows import OWN_HELPERS, RowExpressions, RowModule
from codecgen.targets.python_source import (
    WIDTH,
    Call,
    Code,
    assign,
    call,
    docstring,
    flat,
    mapping,
    returned,
    string,
    tuple_of,
)

RUNTIME = "codecgen.runtime.payloads"
_INDENT = 16 + len(": ,")
"""Characters beside the name of a column and its lambda on their line."""
_TAKEN = {"item", "row", "Case", "Part", "PayloadRows", "bits_of", "case_of"}


def emit(plan: Plan, homes: Mapping[str, Home], mark: str) -> dict[str, str]:
    """The modules of all views into payloads."""
    package = plan.manifest.package
    files = {}
    for view in plan.model.views.values():
        if view.parts and is_whole(plan, view):
            text = PayloadModule(plan, plan_payloads(plan, view), homes).text(mark)
            files[f"{package}/rows/{view.name}.py"] = text
    return files


class PayloadModule(RowModule):
    """Writes the module of one view into payloads."""

    def __init__(self, plan: Plan, view: PayloadPlan, homes: Mapping[str, Home]) -> None:
        super().__init__(plan, cast(Any, view), homes)
        self.payloads = view
        self.names |= {*_TAKEN, *(part.name for part in view.parts)}
        self.parameters = ", ".join([*(part.name for part in view.parts), "item", "row"])

    def text(self, mark: str) -> str:
        view = self.payloads.view
        looks = {c.number: _looks(c) for c in self.payloads.combinations}
        body = call(
            "PayloadRows",
            string(view.name),
            parts=mapping([(string(part.name), self.part(part)) for part in self.payloads.parts]),
            columns=tuple_of([string(column.name) for column in view.columns]),
            looks=mapping([(str(number), names) for number, names in looks.items()]),
            cases=tuple_of(self.cases()),
        )
        head = docstring(
            view.doc or f"The view {view.name}.", f"{mark} {view.span.file}; do not edit."
        )
        parts = [head, "from __future__ import annotations"]
        if self.functions:
            parts.append("from typing import Any")
        parts.append("\n".join(self.imports()))
        text = "\n\n".join(parts)
        for function in self.functions:
            text += f"\n\n\n{function}"
        gap = "\n\n\n" if self.functions else "\n\n"
        return f"{text}{gap}{assign(view.name.upper(), body)}\n"

    def runtime_imports(self) -> Iterator[str]:
        other = self.helpers - OWN_HELPERS
        if other:
            yield f"from codecgen.runtime.construct import {', '.join(sorted(other))}"
        names = ["Case", "Part", "PayloadRows", *sorted(self.helpers & OWN_HELPERS)]
        yield f"from {RUNTIME} import {', '.join(names)}"

    def part(self, kind: PartKind) -> Code:
        if kind.choice is not None:
            thing = self.refer(kind.of, symbol(kind.of))
            return call("Part", thing, decides="True" if kind.decides else None)
        layout = self.plan.model.layouts[kind.of]
        only = layout.all_versions()
        version = only[0] if len(only) == 1 else None
        return call("Part", self.refer(kind.of, symbol(kind.of, version)))

    # ------------------------------------------------------------ cases

    def cases(self) -> list[Code]:
        """The cases, each with all payloads that it is the same for."""
        out: list[tuple[int, list[tuple[str, Code]], list[Code]]] = []
        order = {id(rows): i for i, rows in enumerate(self.payloads.view.rows)}
        for combination in self.payloads.combinations:
            of = self.combination(combination)
            for case in combination.cases:
                at, items = order[id(case.rows)], self.items(case, combination)
                known = next((ofs for i, known, ofs in out if (i, known) == (at, items)), None)
                if known is None:
                    out.append((at, items, [of]))
                else:
                    known.append(of)
        out.sort(key=lambda group: group[0])  # of some payload the first that hold are its rows
        return [Call("Case", (("", tuple_of(ofs)), *items)) for _, items, ofs in out]

    def combination(self, combination: Combination) -> Code:
        layouts: list[Code] = [
            "None" if plan is None else self.layout(plan) for plan in combination.layouts.values()
        ]
        return tuple_of([str(combination.number), tuple_of(layouts)])

    def items(self, case: PayloadCase, combination: Combination) -> list[tuple[str, Code]]:
        scope = PayloadExpressions(self, combination, case)
        values: list[tuple[str, Code]] = []
        for column in () if case.empty else self.payloads.view.columns:
            values.append((string(column.name), self.of_column(column, case, scope)))
        items: list[tuple[str, Code]] = [("", mapping(values))]
        if case.array is not None:
            items.append(("each=", tuple_of([string(case.of), string(case.array.name)])))
        if case.when is not None:
            items.append(("when=", self.condition_of(case, scope.text(case.when))))
        if case.empty:
            items.append(("empty=", "True"))
        self.helpers |= scope.helpers
        return items

    def of_column(self, column: Column, case: PayloadCase, scope: PayloadExpressions) -> Code:
        value = case.values.get(column.name)
        if value is None:
            nothing = "()" if column.type == "list" and not column.nullable else "None"
            return f"lambda {self.parameters}: {nothing}"
        any_case = cast(CasePlan, None)
        lambda_ = f"lambda {self.parameters}: {self.value(column, value, scope, any_case)}"
        room = WIDTH - _INDENT - len(string(column.name))
        return lambda_ if len(lambda_) <= room else self.long(column, value, scope, case)

    def value(self, column: Column, value: Value, scope: RowExpressions, case: CasePlan) -> str:
        if isinstance(value, nodes.FieldValue) and (
            column.parts or column.type in ("uuid", "binary")
        ):
            assert isinstance(scope, PayloadExpressions)
            around, text = scope.plan_of(value.owner), scope.text(value)
            nullable = value.type.nullable
            return self.parts.shown(column, value.field.type, text, around, nullable=nullable)
        return super().value(column, value, scope, case)

    def long(
        self, column: Column, value: Value, scope: PayloadExpressions, case: PayloadCase
    ) -> str:
        """A function, for what is too long for one line. Its name."""
        any_case = cast(CasePlan, None)
        lines = [docstring(f"{column.doc or column.name} From {case.rows.span}.", indent=4)]
        while isinstance(value, nodes.Conditional):
            asked = f"    if {scope.text(value.condition)}:"
            lines.append(asked if len(asked) <= WIDTH else f"{asked}  # fmt: skip")
            lines += returned(self.code(column, value.then, scope, any_case), 8)
            value = value.otherwise
        lines += returned(self.code(column, value, scope, any_case), 4)
        return self.function_of(f"row_{column.name}", lines)

    def condition_of(self, case: PayloadCase, text: str) -> str:
        """When there are rows: a lambda, or the name of a function where that is too long for one line."""
        lambda_ = f"lambda {self.parameters}: {text}"
        if len(lambda_) <= WIDTH - len("            when=,"):
            return lambda_
        doc = docstring(f"Whether there are rows. From {case.rows.span}.", indent=4)
        return self.function_of("has_rows", [doc, *returned(text, 4)])

    def function_of(self, wanted: str, lines: list[str]) -> str:
        """The name of a function with such lines, which may be there already."""
        parameters = ", ".join(f"{name}: Any" for name in self.parameters.split(", "))
        for known in self.functions:
            name = known.removeprefix("def ").partition("(")[0]
            if known == "\n".join([f"def {name}({parameters}) -> Any:", *lines]):
                return name
        name = self.fresh(wanted)
        self.functions.append("\n".join([f"def {name}({parameters}) -> Any:", *lines]))
        return name


def _looks(combination: Combination) -> str:
    return flat(tuple_of([string(name) for name in combination.layouts]))


class PayloadExpressions(RowExpressions):
    """Values of a view into payloads: the fields of parts, by the names of these."""

    def __init__(self, module: PayloadModule, combination: Combination, case: PayloadCase) -> None:
        super().__init__(module, cast(CasePlan, None))
        self.layouts = combination.layouts
        self.element = case.element

    def text(self, value: Value) -> str:
        match value:
            case nodes.PlaceValue("row"):
                return "row"
            case nodes.DerivedValue(_, inner, bits):
                outer, self.bits, self.derived_bits = (self.bits, self.derived_bits), bits, bits
                text = self.text(inner)
                self.bits, self.derived_bits = outer
                return text
            case nodes.FieldValue(field, owner=owner, holders=()) if isinstance(
                field.type, BitsType
            ):
                self.helpers.add("bits_of")
                at = self.start(owner)
                return f"bits_of({self.module.layout(self.plan_of(owner))}, {at}, {string(field.name)})"
        return super().text(value)

    def around(self, owner: str) -> tuple[str, str]:
        return self.module.layout(self.plan_of(owner)), self.start(owner)

    def plan_of(self, owner: str) -> LayoutPlan:
        """The layout that an owner's fields are of."""
        plan: LayoutPlan | None = self.element
        if owner != "item":
            plan = self.layouts[self.start(owner)]
        assert plan is not None
        return plan

    def start(self, owner: str) -> str:
        return nodes.part_of(owner) or "item"

    def path(self, owner: str, names: tuple[str, ...], may_end: bool) -> str:
        self.this = self.start(owner)
        return super().path(owner, names, may_end)

    def plain(self, value: Value) -> bool:
        if isinstance(value, nodes.DerivedValue):
            return isinstance(value.value, nodes.Sum) or self.plain(value.value)
        return super().plain(value)
