"""Functions that make the rows of a view from parsed entries: one module for each view, in the package ``rows``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codecgen.diagnostics import Diagnostic
from codecgen.plan import LayoutPlan, Plan, nodes
from codecgen.plan.columns import CasePlan, ViewPlan, has_layouts, plan_view, written_paths
from codecgen.plan.nodes import Value
from codecgen.plan.write_program import is_written
from codecgen.schema.model import Column, Model
from codecgen.spans import place
from codecgen.targets.construct.homes import Home, symbol
from codecgen.targets.construct.view_code import ROW_HELPERS, ViewExpressions, ViewModule
from codecgen.targets.made_for import package_text
from codecgen.targets.python_source import (
    WIDTH,
    Call,
    Code,
    call,
    docstring,
    mapping,
    string,
    tuple_of,
)

RUNTIME = "codecgen.runtime.rows"
_RESERVED = {"entry", "place", "part", "Column", "Place", "RowView"}
_INDENT = 21
"""Characters beside a lambda on its line."""
_PARAMETERS = "entry, item, place"


def emit(plan: Plan, homes: Mapping[str, Home], mark: str) -> dict[str, str]:
    """Return a module for each view of entries, by path; skip views whose layout or choice (``of``)
    the plan lacks. ``homes`` has the module of each layout, enum and choice; ``mark`` begins the
    note in each docstring that the file is generated.
    """
    package = plan.manifest.package
    files = {}
    for view in plan.model.views.values():
        if has_layouts(plan, view):
            text = RowModule(plan, plan_view(plan, view), homes).text(mark)
            files[f"{package}/rows/{view.name}.py"] = text
    return files


def find_cases_without_rows(model: Model) -> Iterator[Diagnostic]:
    """Yield a note for each view of entries and each layout of its choice that has no rows in the
    view. Its entries are missing from the table, which the author of a new case may not expect.
    """
    for view in model.views.values():
        choice = model.choices.get(view.of)
        seen = {rows.layout for rows in view.rows}
        for _, case in () if choice is None else choice.cases:
            if case.layout not in seen:
                seen.add(case.layout)
                message = (
                    f'the view "{view.name}" has no rows of "{case.layout}", a case of "{view.of}"'
                )
                help = f"the case is at {case.span}; add rows of it unless its entries hold none"
                yield Diagnostic("C032", message, place(view, "of"), help=help)


def package_module(plan: Plan, mark: str) -> dict[str, str]:
    """Return the ``__init__.py`` of the package ``rows``, by path."""
    head = f"{plan.manifest.title}: rows of views. {mark} YAML; do not edit."
    return {f"{plan.manifest.package}/rows/__init__.py": package_text(head)}


class RowModule:
    """Prints the generated module that makes the rows of one view of entries (a table over record
    batches and the like) from parsed entries.
    """

    def __init__(self, plan: Plan, view: ViewPlan, homes: Mapping[str, Home]) -> None:
        self.view = view
        self.module = ViewModule(plan, view.view.name, homes, _RESERVED)

    def text(self, mark: str) -> str:
        """Return the source of the module: functions for long column values, and the description of
        the view (``RowView``) with its columns and cases. ``mark`` begins the note in the docstring
        that the file is generated.
        """
        view = self.view.view
        of = self.module.refer(view.of, symbol(view.of))
        body = call(
            "RowView",
            string(view.name),
            of=of,
            columns=tuple_of([string(column.name) for column in view.columns]),
            cases=tuple_of([self._case(case) for case in self.view.cases]),
        )
        doc = view.doc or f"The view {view.name}."
        head = docstring(doc, f"{mark} {view.span.file}; do not edit.")
        names = {"Case", "Column", "RowView"} | (self.module.helpers & ROW_HELPERS)
        names |= {"Place"} if self.module.functions else set()
        ordered = sorted(names, key=lambda name: (name.islower(), name.lower()))
        return self.module.text(head, f"from {RUNTIME} import {', '.join(ordered)}", body)

    def _case(self, case: CasePlan) -> Code:
        """Return the ``Case`` call for the rows of one layout: its codec, its columns, and its
        array, other arrays (``other_arrays``) and condition if it has them. It gets ``header_only`` if
        the schema says so, ``whole`` if it needs array ends or its condition the entry's last
        field, and ``writes`` if its rows declare ``write``.
        """
        columns = self.view.view.columns
        scope = ViewExpressions(self.module, _EntryOwners(case))
        values = [(string(c.name), self._column(c, case, scope)) for c in columns]
        items: list[tuple[str, Code]] = [
            ("", self.module.layout(case.entry)),
            ("", mapping(values)),
        ]
        if case.array is not None:
            items.append(("each=", string(case.array.name)))
        if case.other_arrays:
            items.append(("other_arrays=", tuple_of([string(name) for name in case.other_arrays])))
        if case.when is not None:
            items.append(("when=", scope.function(case.when)))
        self.module.helpers |= scope.helpers
        if case.rows.header_only:
            items.append(("header_only=", "True"))
        if any(map(takes_ends, case.values.values())) or _needs_last(case):
            items.append(("whole=", "True"))
        if is_written(case):
            items.append(("writes=", tuple_of([string(path) for path in written_paths(case)])))
        return Call("Case", tuple(items))

    def _column(self, column: Column, case: CasePlan, scope: ViewExpressions) -> Code:
        """Return the ``Column`` call of a column in a case: a lambda, or the name of a function
        added to the module if the lambda is too long, and the entry's fields that it reads, if any.
        A column without a value in this case gives None, or ``()`` if it is a list that cannot be
        null.
        """
        value = case.values.get(column.name)
        if value is None:
            nothing = "()" if column.type == "list" and not column.nullable else "None"
            return call("Column", f"lambda {_PARAMETERS}: {nothing}")
        paths = [string(path) for path in sorted(paths_of(value, case))]
        taken = tuple_of([*paths]) if paths else None
        function = f"lambda {_PARAMETERS}: {scope.column_text(column, value)}"
        if len(function) > WIDTH - _INDENT:
            function = self._function(column, value, scope, case)
        return call("Column", function, *([] if taken is None else [taken]))

    def _function(
        self, column: Column, value: Value, scope: ViewExpressions, case: CasePlan
    ) -> str:
        """Add a function that returns the value of a column, and return its name: case and column,
        with underscores appended until it is unique.
        """
        name = self.module.unused_name(f"{case.name}_{column.name}")
        doc = docstring(f"{column.doc or column.name} From {case.rows.span}.", indent=4)
        head = f"def {name}(entry: Any, item: Any, place: Place) -> Any:"
        self.module.functions.append("\n".join([head, doc, *scope.column_body(column, value)]))
        return name


class _EntryOwners:
    """Variables of a case of a view of entries: ``entry``, and ``item`` for an element of its array."""

    derived_functions = True

    def __init__(self, case: CasePlan) -> None:
        self.case = case

    def layout_of(self, owner: str) -> LayoutPlan:
        """Return the layout whose fields ``owner`` has: that of the elements of the array for
        ``item``, of another array of the rows for its owner, otherwise that of the entry.
        """
        array = nodes.other_array_of(owner)
        if array is not None:
            return self.case.other_arrays[array]
        return self.case.element if owner == "item" else self.case.entry

    def variable_of(self, owner: str) -> str:
        """Return the expression for the element of an array of the rows, or ``entry``. With several arrays,
        ``item`` is a tuple of their elements.
        """
        array = nodes.other_array_of(owner)
        if array is not None:
            return f"item[{1 + list(self.case.other_arrays).index(array)}]"
        return "entry" if owner != "item" else "item[0]" if self.case.other_arrays else "item"

    def owner_of_array(self, array: str) -> str:
        """Return the owner of the fields of the element of ``array`` in a row."""
        return nodes.owner_of_other_array(array) if array in self.case.other_arrays else "item"

    def place_text(self, name: str) -> str:
        """Return the expression for the position or the size of the entry."""
        return f"place.{name}"


def takes_ends(value: Value) -> bool:
    """Return whether a value takes the first, last, largest or smallest element of an array."""
    return any(True for _ in nodes.ends_read(value))


def _needs_last(case: CasePlan) -> bool:
    """Return whether the condition of a case reads the last field of the entry or the first, last,
    largest or smallest element of an array. Return False if the case has no condition.
    """
    if case.when is None:
        return False
    last = case.entry.in_order[-1].name
    return takes_ends(case.when) or any(
        isinstance(node, nodes.FieldValue) and node.names[0] == last
        for node in nodes.iterate_nodes(case.when)
    )


def paths_of(value: Value, case: CasePlan) -> set[str]:
    """Return the names of the entry's fields that a value depends on, with bits as ``flags.codec``,
    without the array of the case, but with other arrays whose elements the rows have. A derived value counts as the field with the version, if the
    layout has one.
    """
    found = set()
    words = {
        id(node.word) for node in nodes.iterate_nodes(value) if isinstance(node, nodes.BitValue)
    }
    for node in nodes.iterate_nodes(value):
        match node:
            case nodes.BitValue(word) if word.owner == "own":
                found.add(".".join(node.names[:2]))
            case nodes.FieldValue(owner="own") if id(node) not in words:
                found.add(node.names[0])
            case nodes.FieldValue(owner=owner) if (
                array := nodes.other_array_of(owner)
            ) is not None:
                found.add(array)
            case nodes.LookUpValue(nodes.FieldValue(owner="own") as looked):
                found.add(looked.names[0])
            case nodes.DerivedValue(derived) if (
                of := derived.array
            ) is not None and of in case.other_arrays:
                found.add(of)
            case nodes.VersionValue(_, field):
                found.add(field)
            case nodes.DerivedValue() if case.entry.layout.version_is is not None:
                found.add(case.entry.layout.version_is)  # its function asks for the version
    return found - ({case.array.name} if case.array is not None else set())
