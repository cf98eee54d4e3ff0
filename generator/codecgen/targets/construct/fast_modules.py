"""The modules of fast parsers and builders of a directory, and which layouts have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codecgen.plan import LayoutPlan, Plan
from codecgen.schema.lookup import choice_of
from codecgen.schema.model import Layout, Model
from codecgen.schema.types import ArrayType, held_layouts
from codecgen.targets.construct.class_names import Classes
from codecgen.targets.construct.fast_build import BuildFunction
from codecgen.targets.construct.fast_layouts import compressed_arrays
from codecgen.targets.construct.fast_module import (
    FastModule,
    Unsupported,
    builder_name,
    full_name,
    function_name,
)
from codecgen.targets.construct.fast_parse import ParseFunction
from codecgen.targets.construct.homes import Home
from codecgen.targets.construct.module_scope import ModuleScope
from codecgen.targets.python_source import string


class FastModules:
    """Determines which layouts of a schema directory have a fast parser and a fast builder,
    functions for regular bytes and values of one layout version, and emits the modules of these
    functions.
    """

    def __init__(self, plan: Plan, homes: Mapping[str, Home], classes: Classes) -> None:
        self.plan = plan
        self.homes = homes
        self.classes = classes
        self._depths: dict[tuple[str, int | None], int | None] = {}
        self._builders: dict[tuple[str, int | None], bool] = {}
        taken = {home[: depth + 1] for home in homes.values() for depth in range(len(home))}
        self._recursive = _find_recursive(plan.model)
        self._in_arrays = _find_elements(plan.model)
        self._linked = _find_linked(plan)
        self._suffix = "_fast"
        while any((*home[:-1], home[-1] + self._suffix) in taken for home in homes.values()):
            self._suffix += "_"

    def home(self, layout: str) -> Home:
        """Return the module of the fast parsers of a layout."""
        *package, module = self.homes[layout]
        return (*package, module + self._suffix)

    def depth(self, layout: LayoutPlan) -> int | None:
        """Return the number of nested levels of layouts and arrays in a layout that another one
        holds, itself included (1: none inside). Return None if the functions of the other one
        cannot call those of the layout: it has none, can hold itself, or has compressed arrays (the
        session counts their bytes by layout).
        """
        if layout.name in self._recursive or compressed_arrays(layout):
            return None
        return self._own_depth(layout)

    def is_element(self, layout: LayoutPlan) -> bool:
        """Return whether the fast parser of the layout, if it has one, parses a whole array: arrays
        hold the layout, it cannot hold itself, has no compressed arrays, and is given no values.
        """
        is_callable = layout.name not in self._recursive and not compressed_arrays(layout)
        return is_callable and layout.name in self._in_arrays and not layout.given

    def is_linked(self, layout: LayoutPlan) -> bool:
        """Return whether the layout is an element of an array that derives values for each."""
        return layout.name in self._linked

    def has_builder(self, layout: LayoutPlan) -> bool:
        """Return whether the fast builder of a layout that holds another one can call that of the
        other, ``layout``: it has one, and cannot hold itself.
        """
        return layout.name not in self._recursive and self._has_own_builder(layout)

    def _own_depth(self, layout: LayoutPlan) -> int | None:
        """Return the number of nested levels of layouts and arrays in a layout that has a fast
        parser, the layout included. Return None if it has none: it is declared in another
        directory, or has a part that fast parsers do not support. The result is cached.
        """
        key = layout.name, layout.version
        if key not in self._depths:
            self._depths[key] = None
            if layout.name in self.plan.model.layouts and "." not in layout.name:
                try:
                    function = ParseFunction(self, self.module(layout.name), layout)
                    function.text()
                except (Unsupported, TypeError):
                    return None
                self._depths[key] = function.depth
        return self._depths[key]

    def _has_own_builder(self, layout: LayoutPlan) -> bool:
        """Return whether a layout has a fast builder: it has a fast parser, is given no values, and
        has no field or rule that fast builders do not support. The result is cached.
        """
        key = layout.name, layout.version
        if key not in self._builders:
            self._builders[key] = False
            if self._own_depth(layout) is not None:
                try:
                    BuildFunction(self, self.module(layout.name), layout).text()
                    self._builders[key] = True
                except (Unsupported, TypeError):
                    pass
        return self._builders[key]

    def module(self, layout: str) -> FastModule:
        """Return a new module for the functions of a layout and of others of its schema file."""
        file = self.plan.model.layouts[layout].span.file
        scope = ModuleScope(self.plan, file, self.home(layout), self.homes, self.classes)
        return FastModule(self, scope)

    def emit(self, layouts: Sequence[Layout], header: str) -> tuple[str, str] | None:
        """Return the dotted name and the source of the module with the fast parsers and builders of
        ``layouts``, the layouts of one schema file. Return None if no version of them has a fast
        parser. ``header`` is the module's docstring.
        """
        plans = [p for layout in layouts for p in self.plan.versions[layout.name]]
        wanted = [p for p in plans if self._own_depth(p) is not None]
        if not wanted:
            return None
        home = self.home(wanted[0].name)
        module = self.module(wanted[0].name)
        functions, paths = [], []
        for p in wanted:
            functions.append(ParseFunction(self, module, p).text())
            builder = "None"
            if self._has_own_builder(p):
                functions.append(BuildFunction(self, module, p).text())
                module.building = True
                builder = builder_name(p)
            path = f"FastPath({function_name(p)}, {builder}, depth={self._own_depth(p)})"
            paths.append(f"    {string(full_name(p))}: {path},")
        table = "\n".join(["FAST_PATHS = {", *paths, "}"])
        module.fast_runtime.add("FastPath")
        return ".".join(home), module.text(header, [*functions, table])


def _find_elements(model: Model) -> set[str]:
    """Return the names of the layouts that are elements of arrays."""
    fields = [f for layout in model.layouts.values() for f in layout.fields]
    arrays = [type_ for f in fields for type_ in f.all_types() if isinstance(type_, ArrayType)]
    return {ref.layout for array in arrays for ref in held_layouts(array)}


def _find_linked(plan: Plan) -> set[str]:
    """Return the names of the layouts that are elements of an array for which an outer layout
    derives values, one for each element. All layouts that the array can hold count.
    """
    found = set()
    for around in (p for plans in plan.versions.values() for p in plans):
        for name in {value.derived.array for value in around.derived} - {None}:
            array = None if name is None else around.field(name)
            if array is not None:
                found |= {held.name for held in plan.held_by(array.field.type, around)}
    return found


def _find_recursive(model: Model) -> set[str]:
    """Return the names of the layouts that can hold themselves, in any depth and by any choice.
    The fast functions do not count how deep they go.
    """
    inner: dict[str, set[str]] = {
        name: {ref.layout for ref in model.references(layout)}
        | {choice.choice for f in layout.fields if (choice := choice_of(f)) is not None}
        for name, layout in model.layouts.items()
    }
    inner |= {name: {ref.layout for _, ref in c.cases} for name, c in model.choices.items()}
    found = set()
    for name in model.layouts:
        seen: set[str] = set()
        todo = list(inner[name])
        while todo and name not in seen:
            held = todo.pop()
            if held not in seen:
                seen.add(held)
                todo += inner.get(held, ())
        if name in seen:
            found.add(name)
    return found


__all__ = ["FastModules"]
