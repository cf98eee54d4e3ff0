"""Functions that make the rows of a view of payloads from parsed payloads: one module for each view, in ``rows``."""

from __future__ import annotations

from collections.abc import Mapping

from codecgen.plan import LayoutPlan, Plan, nodes
from codecgen.plan.payloads import (
    Combination,
    PartKind,
    PayloadCase,
    PayloadPlan,
    has_all_parts,
    plan_payloads,
)
from codecgen.schema.model import Column
from codecgen.targets.construct.homes import Home, symbol
from codecgen.targets.construct.view_code import ROW_HELPERS, ViewExpressions, ViewModule
from codecgen.targets.python_source import (
    WIDTH,
    Call,
    Code,
    call,
    docstring,
    flat,
    mapping,
    return_statement,
    string,
    tuple_of,
)

RUNTIME = "codecgen.runtime.payloads"
_INDENT = 16 + len(": ,")
"""Characters beside the name of a column and its lambda on their line."""
_RESERVED = {"entry", "place", "part", "row", "Column", "Place", "RowView", "Part", "PayloadRows"}


def emit(plan: Plan, homes: Mapping[str, Home], mark: str) -> dict[str, str]:
    """Return a module for each view of payloads, by path; skip views with a part whose layout the
    plan lacks. ``homes`` has the module of each layout, enum and choice; ``mark`` begins the note
    in each docstring that the file is generated.
    """
    package = plan.manifest.package
    files = {}
    for view in plan.model.views.values():
        if view.parts and has_all_parts(plan, view):
            text = PayloadModule(plan, plan_payloads(plan, view), homes).text(mark)
            files[f"{package}/rows/{view.name}.py"] = text
    return files


class PayloadModule:
    """Prints the generated module that makes the rows of one view of payloads (a table over values
    of records) from parsed payloads.
    """

    def __init__(self, plan: Plan, view: PayloadPlan, homes: Mapping[str, Home]) -> None:
        self.plan = plan
        self.payloads = view
        parts = [part.name for part in view.parts]
        self.module = ViewModule(plan, view.view.name, homes, {*_RESERVED, *parts})
        self.parameters = ", ".join([*parts, "item", "row"])

    def text(self, mark: str) -> str:
        """Return the source of the module: functions for columns and conditions, and the
        description of the view (``PayloadRows``) with its parts, columns and cases. ``mark`` begins
        the note in the docstring that the file is generated.
        """
        view = self.payloads.view
        looks = {
            c.number: flat(tuple_of([string(name) for name in c.layouts]))
            for c in self.payloads.combinations
        }
        body = call(
            "PayloadRows",
            string(view.name),
            parts=mapping(
                [(string(part.name), self._part_call(part)) for part in self.payloads.parts]
            ),
            columns=tuple_of([string(column.name) for column in view.columns]),
            looks=mapping([(str(number), names) for number, names in looks.items()]),
            cases=tuple_of(self._cases()),
        )
        doc = view.doc or f"The view {view.name}."
        head = docstring(doc, f"{mark} {view.span.file}; do not edit.")
        names = ["Case", "Part", "PayloadRows", *sorted(self.module.helpers & ROW_HELPERS)]
        return self.module.text(head, f"from {RUNTIME} import {', '.join(names)}", body)

    def _part_call(self, kind: PartKind) -> Code:
        """Return the ``Part`` call for one part of the payloads, with the codec of its choice or
        layout. A layout with one version gets the codec of that version.
        """
        if kind.choice is not None:
            thing = self.module.refer(kind.of, symbol(kind.of))
            return call("Part", thing, decides="True" if kind.decides else None)
        layout = self.plan.model.layouts[kind.of]
        only = layout.all_versions()
        version = only[0] if len(only) == 1 else None
        return call("Part", self.module.refer(kind.of, symbol(kind.of, version)))

    def _cases(self) -> list[Code]:
        """Return the ``Case`` calls of all combinations of part layouts, sorted by the ``rows`` of
        the view that they come from: for a payload, the first call with its combination whose
        condition holds gives the rows. If the part with the array of ``rows`` is null, or its
        version lacks the array, the call has ``empty=True`` and gives no row; a combination to
        which no ``rows`` apply has no call. Equal cases of several combinations become one call
        that lists the combinations.
        """
        out: list[tuple[int, list[tuple[str, Code]], list[Code]]] = []
        order = {id(rows): i for i, rows in enumerate(self.payloads.view.rows)}
        for combination in self.payloads.combinations:
            of = self._combination(combination)
            for case in combination.cases:
                at, items = order[id(case.rows)], self._items(case, combination)
                known = next((ofs for i, known, ofs in out if (i, known) == (at, items)), None)
                if known is None:
                    out.append((at, items, [of]))
                else:
                    known.append(of)
        out.sort(key=lambda group: group[0])  # the first case whose condition holds gives the rows
        return [Call("Case", (("", tuple_of(ofs)), *items)) for _, items, ofs in out]

    def _combination(self, combination: Combination) -> Code:
        """Return the code of a tuple of the discriminator's number of a combination of part layouts
        (None without a discriminator) and a tuple of the codecs of its parts, with ``None`` for a
        part that is null.
        """
        layouts: list[Code] = [
            "None" if plan is None else self.module.layout(plan)
            for plan in combination.layouts.values()
        ]
        return tuple_of([str(combination.number), tuple_of(layouts)])

    def _items(self, case: PayloadCase, combination: Combination) -> list[tuple[str, Code]]:
        """Return the arguments of the ``Case`` call except its combinations: a dict of functions by
        column (empty for a case without rows), and ``each``, ``when`` and ``empty`` if the case has
        them.
        """
        scope = ViewExpressions(self.module, _PayloadOwners(combination, case))
        values: list[tuple[str, Code]] = []
        for column in () if case.empty else self.payloads.view.columns:
            values.append((string(column.name), self._column(column, case, scope)))
        items: list[tuple[str, Code]] = [("", mapping(values))]
        if case.array is not None:
            items.append(("each=", tuple_of([string(case.of), string(case.array.name)])))
        if case.when is not None:
            items.append(("when=", self._condition(case, scope.text(case.when))))
        if case.empty:
            items.append(("empty=", "True"))
        self.module.helpers |= scope.helpers
        return items

    def _column(self, column: Column, case: PayloadCase, scope: ViewExpressions) -> Code:
        """Return a lambda that gives the value of a column, or the name of a new function if the
        lambda does not fit on its line. A column without a value in this case gets None, or ``()``
        if it is a list that cannot be null.
        """
        value = case.values.get(column.name)
        if value is None:
            nothing = "()" if column.type == "list" and not column.nullable else "None"
            return f"lambda {self.parameters}: {nothing}"
        function = f"lambda {self.parameters}: {scope.column_text(column, value)}"
        if len(function) <= WIDTH - _INDENT - len(string(column.name)):
            return function
        doc = docstring(f"{column.doc or column.name} From {case.rows.span}.", indent=4)
        return self._function(f"row_{column.name}", [doc, *scope.column_body(column, value)])

    def _condition(self, case: PayloadCase, text: str) -> str:
        """Return the condition ``text`` of a case as a lambda, or, if that is too long for one
        line, the name of a function that is added to the module.
        """
        function = f"lambda {self.parameters}: {text}"
        if len(function) <= WIDTH - len("            when=,"):
            return function
        doc = docstring(f"Whether there are rows. From {case.rows.span}.", indent=4)
        return self._function("has_rows", [doc, *return_statement(text, 4)])

    def _function(self, wanted: str, lines: list[str]) -> str:
        """Return the name of a function of the module with the body ``lines`` and the parameters of
        the view's parts, ``item`` and ``row``. Reuse an equal function; otherwise add one, named
        ``wanted`` with underscores appended until it is unique.
        """
        parameters = ", ".join(f"{name}: Any" for name in self.parameters.split(", "))
        for known in self.module.functions:
            name = known.removeprefix("def ").partition("(")[0]
            if known == "\n".join([f"def {name}({parameters}) -> Any:", *lines]):
                return name
        name = self.module.unused_name(wanted)
        self.module.functions.append("\n".join([f"def {name}({parameters}) -> Any:", *lines]))
        return name


class _PayloadOwners:
    """Variables of a case of a view of payloads: one for each part, and ``item`` for an element of an array."""

    derived_functions = False

    def __init__(self, combination: Combination, case: PayloadCase) -> None:
        self.layouts = combination.layouts
        self.element = case.element

    def layout_of(self, owner: str) -> LayoutPlan:
        """Return the layout of a part, or of the element."""
        plan = self.element if owner == "item" else self.layouts[self.variable_of(owner)]
        assert plan is not None
        return plan

    def variable_of(self, owner: str) -> str:
        """Return the name of the part, or ``item``."""
        return nodes.part_of(owner) or "item"

    def owner_of_array(self, array: str) -> str:
        """Return ``item``: rows of payloads are the elements of one array."""
        del array
        return "item"

    def place_text(self, name: str) -> str:
        """Return the expression for the number of the row, ``row``, or for another fact about the place."""
        return "row" if name == "row" else f"place.{name}"
