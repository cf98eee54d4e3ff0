"""Functions that make the rows of a view from what the codecs parse: one module for each view, in the package ``rows``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codecgen.plan import LayoutPlan, Plan, nodes
from codecgen.plan.columns import CasePlan, ViewPlan, is_made, plan_view
from codecgen.plan.nodes import Value
from codecgen.schema.model import Column
from codecgen.schema.types import BitsType
from codecgen.targets.construct.expressions import PythonExpressions
from codecgen.targets.construct.homes import Home, class_name, symbol
from codecgen.targets.construct.row_parts import RowParts
from codecgen.targets.made_for import package_text
from codecgen.targets.python_source import (
    WIDTH,
    Call,
    Code,
    assign,
    call,
    docstring,
    mapping,
    returned,
    string,
    tuple_of,
)

RUNTIME = "codecgen.runtime.rows"
_TAKEN = {"entry", "item", "place", "part", "Any", "Case", "Column", "Place", "RowView"}
_TAKEN |= {"bits_of", "case_of", "end_of", "wrap", "bool", "int", "tuple"}
OWN_HELPERS = {"bits_of", "case_of"}
"""What the modules of rows have beside what codecs have."""
_INDENT = 21
"""Characters beside a lambda on its line."""
_PARAMETERS = "entry, item, place"


def emit(plan: Plan, homes: Mapping[str, Home], mark: str) -> dict[str, str]:
    """The modules of all views. ``homes`` says in which module each layout, enum and choice is."""
    package = plan.manifest.package
    files = {}
    for view in plan.model.views.values():
        if is_made(plan, view):
            text = RowModule(plan, plan_view(plan, view), homes).text(mark)
            files[f"{package}/rows/{view.name}.py"] = text
    return files


def package_module(plan: Plan, mark: str) -> dict[str, str]:
    """The module of the package that the modules of views are in."""
    head = f"{plan.manifest.title}: rows of views. {mark} YAML; do not edit."
    return {f"{plan.manifest.package}/rows/__init__.py": package_text(head)}


class RowModule:
    """Writes the module of one view."""

    def __init__(self, plan: Plan, view: ViewPlan, homes: Mapping[str, Home]) -> None:
        self.plan = plan
        self.view = view
        self.homes = homes
        self.modules: dict[Home, str] = {}
        self.helpers: set[str] = set()
        self.functions: list[str] = []
        self.parts = RowParts(plan, self.bits)
        self.names = {view.view.name.upper()} | _TAKEN

    def text(self, mark: str) -> str:
        view = self.view.view
        of = self.refer(view.of, symbol(view.of))
        body = call(
            "RowView",
            string(view.name),
            of=of,
            columns=tuple_of([string(column.name) for column in view.columns]),
            cases=tuple_of([self.case(case) for case in self.view.cases]),
        )
        doc = view.doc or f"The view {view.name}."
        head = docstring(doc, f"{mark} {view.span.file}; do not edit.")
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
        """What the module needs of the runtime."""
        runtime = {"Case", "Column", "RowView"} | (self.helpers & OWN_HELPERS)
        runtime |= {"Place"} if self.functions else set()
        other = self.helpers - OWN_HELPERS
        if other:
            yield f"from codecgen.runtime.construct import {', '.join(sorted(other))}"
        yield f"from {RUNTIME} import {', '.join(sorted(runtime, key=_import_key))}"

    def imports(self) -> Iterator[str]:
        yield from self.runtime_imports()
        for home in sorted({module[:-1] for module in self.modules}):
            inside = sorted((m[-1], name) for m, name in self.modules.items() if m[:-1] == home)
            source = ".".join(home)
            plain = [last for last, name in inside if last == name]
            if plain:
                yield f"from {source} import {', '.join(plain)}"
            for last, name in inside:
                if last != name:
                    yield f"from {source} import {last} as {name}"

    def refer(self, thing: str, name: str) -> str:
        """Something of a generated module, by the module's name."""
        home = self.homes[thing]
        if home not in self.modules:
            self.modules[home] = self.fresh(home[-1])
        return f"{self.modules[home]}.{name}"

    def fresh(self, name: str) -> str:
        """A name that nothing else in the module has."""
        while name in self.names:
            name += "_"
        self.names.add(name)
        return name

    # ------------------------------------------------------------ cases

    def case(self, case: CasePlan) -> Code:
        columns = self.view.view.columns
        values = [(string(c.name), self.column(c, case)) for c in columns]
        items: list[tuple[str, Code]] = [("", self.layout(case.entry)), ("", mapping(values))]
        if case.array is not None:
            items.append(("each=", string(case.array.name)))
        if case.when is not None:
            items.append(("when=", self.condition(case)))
        if case.rows.header_only:
            items.append(("header_only=", "True"))
        if any(self.is_whole(c, case) for c in columns):
            items.append(("whole=", "True"))
        return Call("Case", tuple(items))

    def layout(self, layout: LayoutPlan) -> str:
        return self.refer(layout.name, symbol(layout.name, layout.version))

    def is_whole(self, column: Column, case: CasePlan) -> bool:
        """Whether a column takes the first or the last element."""
        value = case.values.get(column.name)
        return value is not None and takes_ends(value)

    def column(self, column: Column, case: CasePlan) -> Code:
        value = case.values.get(column.name)
        if value is None:
            nothing = "()" if column.type == "list" and not column.nullable else "None"
            return call("Column", f"lambda {_PARAMETERS}: {nothing}")
        paths = [string(path) for path in sorted(paths_of(value, case))]
        taken = tuple_of([*paths]) if paths else None
        scope = RowExpressions(self, case)
        lambda_ = f"lambda {_PARAMETERS}: {self.value(column, value, scope, case)}"
        if len(lambda_) > WIDTH - _INDENT:
            lambda_ = self.defined(column, value, scope, case)
        self.helpers |= scope.helpers
        return call("Column", lambda_, *([] if taken is None else [taken]))

    def defined(self, column: Column, value: Value, scope: RowExpressions, case: CasePlan) -> str:
        """A function, for what is too long for one line. Its name."""
        name = self.fresh(f"{case.name}_{column.name}")
        doc = docstring(f"{column.doc or column.name} From {case.rows.span}.", indent=4)
        lines = [f"def {name}(entry: Any, item: Any, place: Place) -> Any:", doc]
        while isinstance(value, nodes.Conditional):
            head = f"    if {scope.text(value.condition)}:"
            lines.append(head if len(head) <= WIDTH else f"{head}  # fmt: skip")
            lines += returned(self.code(column, value.then, scope, case), 8)
            value = value.otherwise
        lines += returned(self.code(column, value, scope, case), 4)
        self.functions.append("\n".join(lines))
        return name

    def bits(self, layout: LayoutPlan, holder: str, name: str) -> str:
        """The number that a field of bits was parsed from."""
        self.helpers.add("bits_of")
        return f"bits_of({self.layout(layout)}, {holder}, {string(name)})"

    def condition(self, case: CasePlan) -> str:
        assert case.when is not None
        scope = RowExpressions(self, case)
        text = scope.function(case.when)
        self.helpers |= scope.helpers
        return text

    def code(self, column: Column, value: Value, scope: RowExpressions, case: CasePlan) -> Code:
        """A value of the type that the column has; a sum is one as it is."""
        if isinstance(value, nodes.Sum):
            return scope.code(value)
        return self.value(column, value, scope, case)

    def value(self, column: Column, value: Value, scope: RowExpressions, case: CasePlan) -> str:
        """The text of a value, of the type that the column has."""
        if isinstance(value, nodes.Conditional):
            then = self.value(column, value.then, scope, case)
            otherwise = self.value(column, value.otherwise, scope, case)
            then = f"({then})" if isinstance(value.then, nodes.Conditional) else then
            return f"{then} if {scope.text(value.condition)} else {otherwise}"
        if column.type == "bool" and isinstance(value, nodes.Literal):
            return str(bool(value.value))
        text = scope.text(value)
        if isinstance(value, nodes.FieldValue) and (
            column.parts or column.type in ("uuid", "binary")
        ):
            around = case.element if value.owner == "item" else case.entry
            nullable = value.type.nullable
            return self.parts.shown(column, value.field.type, text, around, nullable=nullable)
        kind = value.type.kind
        wanted = "bool" if column.type == "bool" else "int"
        if kind == "null" or kind not in ("bool", "enum", "int") or kind == wanted:
            return text
        made = f"{wanted}({text})"
        return f"None if {text} is None else {made}" if value.type.nullable else made


def _import_key(name: str) -> tuple[bool, str]:
    return name.islower(), name.lower()


class RowExpressions(PythonExpressions):
    """Values of a view: also derived values, the place of the entry, and the bits of a field as one number."""

    def __init__(self, module: RowModule, case: CasePlan) -> None:
        super().__init__(lambda enum: module.refer(enum, class_name(enum)), this="entry", bits=64)
        self.module = module
        self.case = case
        self.derived_bits: int | None = None
        """The width of the derived value that is being printed."""

    def text(self, value: Value) -> str:
        match value:
            case nodes.PlaceValue(known):
                return f"place.{known}"
            case nodes.DerivedValue(derived):
                name, arguments = derived.name, "entry"
                if derived.array is not None:
                    name, arguments = f"{derived.array}_{derived.name}", "entry, item"
                function = self.module.refer(self.case.entry.name, name)
                return f"{function}({arguments})"
            case nodes.FieldValue(field, owner=owner, holders=()) if isinstance(
                field.type, BitsType
            ):
                of_item = owner == "item"
                layout = self.case.element if of_item else self.case.entry
                return self.module.bits(layout, "item" if of_item else "entry", field.name)
            case nodes.FieldValue() | nodes.BitValue() if case := nodes.case_in(value):
                return self.in_case(case, value.names[2:])
        return super().text(value)

    def comparison(self, value: nodes.Comparison) -> str:
        """What is compared is exact, but for what derived values are made of."""
        kept, self.bits = self.bits, self.derived_bits
        text = super().comparison(value)
        self.bits = kept
        return text

    def in_case(self, case: nodes.FieldValue, names: tuple[str, ...]) -> str:
        """A case of a choice, or what is in it."""
        layout, start = self.around(case.owner)
        arguments = [layout, start, *map(string, case.names)]
        text = f"{self.help('case_of')}({', '.join(arguments)})"
        return (
            f"{self.help('value_at')}({', '.join([text, *map(string, names)])})" if names else text
        )

    def around(self, owner: str) -> tuple[str, str]:
        """The layout that an owner's fields are of, and what holds their values."""
        if owner == "item":
            return self.module.layout(self.case.element), "item"
        return self.module.layout(self.case.entry), "entry"

    def plain(self, value: Value) -> bool:
        return isinstance(value, nodes.DerivedValue) or super().plain(value)


def takes_ends(value: Value) -> bool:
    """Whether a value takes the first or the last element."""
    return any(True for _ in nodes.ends_read(value))


def paths_of(value: Value, case: CasePlan) -> set[str]:
    """The fields of the entry that a value is worked out from, and bits of them (``flags.codec``)."""
    found = set()
    words = {id(node.word) for node in nodes.walk(value) if isinstance(node, nodes.BitValue)}
    for node in nodes.walk(value):
        match node:
            case nodes.BitValue(word) if word.owner == "own":
                found.add(".".join(node.names[:2]))
            case nodes.FieldValue(owner="own") if id(node) not in words:
                found.add(node.names[0])
            case nodes.VersionValue(_, field):
                found.add(field)
            case nodes.DerivedValue() if case.entry.layout.version_is is not None:
                found.add(case.entry.layout.version_is)  # its function asks for the version
    return found - ({case.array.name} if case.array is not None else set())
