"""Functions that make the rows of a view from what the codecs parse: one module for each view, in the package ``rows``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from codecgen.plan import LayoutPlan, Plan
from codecgen.plan.columns import CasePlan, ViewPlan, plan_view
from codecgen.schema.expression import Binary, EndOf, If, Node, Not, Number, Path
from codecgen.schema.model import BitsType, Column, Derived, Layout, ScalarType
from codecgen.targets.construct.expressions import COMPARISONS, PythonExpressions
from codecgen.targets.construct.module import class_name, symbol
from codecgen.targets.pycode import WIDTH, Call, Code, assign, call, docstring, mapping, string

RUNTIME = "codecgen.runtime.rows"
_TAKEN = {"entry", "item", "place", "part", "Any", "Case", "Column", "Place", "RowView"}
_TAKEN |= {"bits_of", "end_of", "wrap", "bool", "int", "tuple"}
_INDENT = 21
"""Characters beside a lambda on its line."""
_BUILT_IN = (("position",), ("size",))
_PARAMETERS = "entry, item, place"

Home = tuple[str, ...]


def emit(plan: Plan, homes: Mapping[str, Home], mark: str) -> dict[str, str]:
    """The modules of all views. ``homes`` says in which module each layout, enum and choice is."""
    package = plan.manifest.package
    files = {}
    for view in plan.model.views.values():
        if view.of in plan.model.choices:
            text = RowModule(plan, plan_view(plan, view), homes).text(mark)
            files[f"{package}/rows/{view.name}.py"] = text
    if files:
        head = docstring(f"{plan.manifest.title}: rows of views. {mark} YAML; do not edit.")
        files[f"{package}/rows/__init__.py"] = head + "\n"
    return files


class RowModule:
    """Writes the module of one view."""

    def __init__(self, plan: Plan, view: ViewPlan, homes: Mapping[str, Home]) -> None:
        self.plan = plan
        self.view = view
        self.homes = homes
        self.modules: dict[Home, str] = {}
        self.helpers: set[str] = set()
        self.functions: list[str] = []
        self.names = {view.view.name.upper()} | _TAKEN

    def text(self, mark: str) -> str:
        view = self.view.view
        of = self.refer(self.view.choice.name, symbol(self.view.choice.name))
        body = call(
            "RowView",
            string(view.name),
            of=of,
            columns=_tuple([string(column.name) for column in view.columns]),
            cases=_tuple([self.case(case) for case in self.view.cases]),
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

    def imports(self) -> Iterator[str]:
        runtime = {"Case", "Column", "RowView"} | (self.helpers & {"bits_of"})
        runtime |= {"Place"} if self.functions else set()
        other = self.helpers - {"bits_of"}
        if other:
            yield f"from codecgen.runtime.construct import {', '.join(sorted(other))}"
        yield f"from {RUNTIME} import {', '.join(sorted(runtime, key=_import_key))}"
        package = self.plan.manifest.package
        for home in sorted({module[:-1] for module in self.modules}):
            inside = sorted((m[-1], name) for m, name in self.modules.items() if m[:-1] == home)
            source = ".".join((package, *home))
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
        if case.rows.when is not None:
            items.append(("when=", RowExpressions(self, case).function(case.rows.when)))
        if case.rows.head:
            items.append(("head=", "True"))
        if any(self.is_whole(c, case) for c in columns):
            items.append(("whole=", "True"))
        return Call("Case", tuple(items))

    def layout(self, layout: LayoutPlan) -> str:
        return self.refer(layout.name, symbol(layout.name, layout.version))

    def is_whole(self, column: Column, case: CasePlan) -> bool:
        """Whether a column takes the first or the last element."""
        value = case.rows.values.get(column.name)
        if value is None:
            return False
        found = meanings(settled(value.node, case.entry), case)
        return any(isinstance(node, EndOf) for one in found for node in nodes(one))

    def column(self, column: Column, case: CasePlan) -> Code:
        value = case.rows.values.get(column.name)
        if value is None:
            nothing = "()" if column.type == "list" else "None"
            return call("Column", f"lambda {_PARAMETERS}: {nothing}")
        node = settled(value.node, case.entry)
        paths = [string(path) for path in sorted(paths_of(node, case))]
        taken = _tuple([*paths]) if paths else None
        scope = RowExpressions(self, case)
        lambda_ = f"lambda {_PARAMETERS}: {self.value(column, node, scope, case)}"
        if len(lambda_) > WIDTH - _INDENT:
            lambda_ = self.defined(column, node, scope, case)
        self.helpers |= scope.helpers
        return call("Column", lambda_, *([] if taken is None else [taken]))

    def defined(self, column: Column, node: Node, scope: RowExpressions, case: CasePlan) -> str:
        """A function, for what is too long for one line. Its name."""
        name = self.fresh(f"{case.name}_{column.name}")
        doc = docstring(f"{column.doc or column.name} From {case.rows.span}.", indent=4)
        lines = [f"def {name}(entry: Any, item: Any, place: Place) -> Any:", doc]
        while isinstance(node, If):
            lines.append(f"    if {scope.text(node.condition)}:")
            lines += _folded(f"        return {self.value(column, node.then, scope, case)}")
            node = node.otherwise
        lines += _folded(f"    return {self.value(column, node, scope, case)}")
        self.functions.append("\n".join(lines))
        return name

    def value(self, column: Column, node: Node, scope: RowExpressions, case: CasePlan) -> str:
        """The text of a value, of the type that the column has."""
        if isinstance(node, If):
            then = self.value(column, node.then, scope, case)
            otherwise = self.value(column, node.otherwise, scope, case)
            then = f"({then})" if isinstance(node.then, If) else then
            return f"{then} if {scope.text(node.condition)} else {otherwise}"
        text = scope.text(node)
        if column.type == "list":
            members = "".join(f"part.{m.name}, " for m in column.members)
            inside = members if len(column.members) == 1 else members[:-2]
            return f"tuple([({inside.strip()}) for part in {text}])"
        kind = kind_of(node, case)
        if column.type == "bool" and isinstance(node, Number):
            return str(bool(node.value))
        if column.type == "bool":
            return text if kind == "bool" else f"bool({text})"
        return f"int({text})" if kind in ("bool", "enum") else text


def _tuple(items: list[Code]) -> Call:
    return Call("", tuple(("", item) for item in items), "()")


def _folded(line: str) -> list[str]:
    """A line, or several when the call that it returns is too long for one."""
    head, call_, inside = line.partition("return wrap(")
    if len(line) <= WIDTH or not call_:
        return [line]
    pad = " " * (len(head) + 4)
    parts = [pad + inside[:-1]]
    if len(parts[0]) > WIDTH:
        value, _, bits = inside[:-1].rpartition(", ")
        parts = [f"{pad}{value},", f"{pad}{bits},"]
    return [head + call_, *parts, f"{head})"]


def _import_key(name: str) -> tuple[bool, str]:
    return name.islower(), name.lower()


class RowExpressions(PythonExpressions):
    """Expressions of a view: also derived values, the place of the entry, and the bits of a field as one number."""

    def __init__(self, module: RowModule, case: CasePlan) -> None:
        array = None if case.array is None else case.array.name
        super().__init__(
            case.entry.layout,
            module.plan.model,
            lambda enum: module.refer(enum, class_name(enum)),
            this="entry",
            array=array,
            bits=64,
        )
        self.module = module
        self.case = case

    def path(self, path: Path) -> str:
        names, case = path.names, self.case
        if case.array is not None and len(names) == 2 and names[0] == case.array.name:
            return self.derived(f"{names[0]}_{names[1]}", "entry, item")
        own, at, layout = names, "entry", case.entry
        if case.array is not None and names[0] == "item" and len(names) > 1:
            own, at, layout = names[1:], "item", case.element
        fp = layout.field(own[0])
        if fp is not None and isinstance(fp.field.type, BitsType) and len(own) == 1:
            self.helpers.add("bits_of")
            return f"bits_of({self.module.layout(layout)}, {at}, {string(own[0])})"
        if fp is None and names in _BUILT_IN:
            return f"place.{names[0]}"
        if fp is None and derived_of(case.entry.layout, names, None) is not None:
            return self.derived(names[0], "entry")
        return super().path(path)

    def derived(self, name: str, arguments: str) -> str:
        function = self.module.refer(self.layout.name, name)
        return f"{function}({arguments})"


# ---------------------------------------------------------------- what expressions are about


def derived_of(layout: Layout, names: tuple[str, ...], array: str | None) -> Derived | None:
    name = names[-1]
    if len(names) != (1 if array is None else 2):
        return None
    return next((d for d in layout.derived if d.name == name and d.array == array), None)


def nodes(node: Node) -> Iterator[Node]:
    """A node and all that it is made of."""
    yield node
    match node:
        case Not(operand):
            yield from nodes(operand)
        case Binary(_, left, right):
            yield from nodes(left)
            yield from nodes(right)
        case If(condition, then, otherwise):
            for part in (condition, then, otherwise):
                yield from nodes(part)


def meanings(value: Node, case: CasePlan) -> Iterator[Node]:
    """A value, and those of the derived values in it."""
    yield value
    array = None if case.array is None else case.array.name
    for node in nodes(value):
        if isinstance(node, Path) and node.names[0] != "item":
            of_array = array if node.names[0] == array else None
            if of_array is None and case.entry.field(node.names[0]) is not None:
                continue
            found = derived_of(case.entry.layout, node.names, of_array)
            if found is not None:
                yield settled(found.value.node, case.entry)


def paths_of(value: Node, case: CasePlan) -> set[str]:
    """The fields of the entry that a value is worked out from, and bits of them (``flags.codec``)."""
    found = set()
    for node in (part for meaning in meanings(value, case) for part in nodes(meaning)):
        if not isinstance(node, Path):
            continue
        fp = case.entry.field(node.names[0])
        if fp is not None and (case.array is None or fp is not case.array):
            found.add(".".join(node.names[: 2 if isinstance(fp.field.type, BitsType) else 1]))
    return found


def kind_of(node: Node, case: CasePlan) -> Literal["bool", "enum", "other"]:
    """Whether a value is true or false, or one of an enum."""
    match node:
        case Not() | Binary("and" | "or"):
            return "bool"
        case Binary(operator) if operator in COMPARISONS:
            return "bool"
        case Path(names):
            layout = case.entry
            if names[0] == "item" and case.array is not None:
                layout, names = case.element, names[1:]
            fp = layout.field(names[0]) if names else None
            if fp is None or fp.field.when is not None:
                return "other"
            if isinstance(fp.field.type, ScalarType) and len(names) == 1:
                if fp.field.type.enum is not None:
                    return "enum"
                return "bool" if fp.field.type.name == "bool" else "other"
            members = fp.field.type.members if isinstance(fp.field.type, BitsType) else ()
            for m in members:
                if names[1:] == (m.name,):
                    if m.enum is not None:
                        return "enum"
                    return "bool" if m.width == 1 and not m.reserved else "other"
    return "other"


def settled(node: Node, entry: LayoutPlan) -> Node:
    """A value without the branches that are about other versions."""
    while isinstance(node, If):
        decided = of_version(node.condition, entry)
        if decided is None:
            otherwise = settled(node.otherwise, entry)
            return If(node.condition, settled(node.then, entry), otherwise)
        node = node.then if decided else node.otherwise
    return node


def of_version(condition: Node, entry: LayoutPlan) -> bool | None:
    """What a comparison of the version with a number says in one version; None for other conditions."""
    version, name = entry.version, entry.layout.version_is
    if version is None or name is None or not isinstance(condition, Binary):
        return None
    match condition:
        case Binary(operator, Path(names), Number(number)) if names in ((name,), ("version",)):
            compare: dict[str, Callable[[int, int], bool]] = {
                "==": int.__eq__,
                "!=": int.__ne__,
                "<": int.__lt__,
                "<=": int.__le__,
                ">": int.__gt__,
                ">=": int.__ge__,
            }
            return compare[operator](version, number) if operator in compare else None
    return None
