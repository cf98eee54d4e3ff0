"""The modules of fast parsers and builders of a directory, and which layouts have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codecgen.plan import LayoutPlan, Plan
from codecgen.schema.model import Layout
from codecgen.targets.construct.class_names import Classes
from codecgen.targets.construct.fast_build import BuildFunction
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
        self._suffix = "_fast"
        while any((*home[:-1], home[-1] + self._suffix) in taken for home in homes.values()):
            self._suffix += "_"

    def home(self, layout: str) -> Home:
        """Return the module of the fast parsers of a layout."""
        *package, module = self.homes[layout]
        return (*package, module + self._suffix)

    def depth(self, layout: LayoutPlan) -> int | None:
        """Return how many layouts and arrays are nested in a layout, itself included (1: none
        inside). Return None if the layout has no fast parser: it is declared in another directory,
        holds itself, or has a field that fast parsers do not support.
        """
        key = layout.name, layout.version
        if key not in self._depths:
            self._depths[key] = None  # a layout that holds itself
            if layout.name in self.plan.model.layouts and "." not in layout.name:
                try:
                    function = ParseFunction(self, self.module(layout.name), layout)
                    function.text()
                except (Unsupported, TypeError):
                    return None
                self._depths[key] = function.depth
        return self._depths[key]

    def has_builder(self, layout: LayoutPlan) -> bool:
        """Return whether a layout has a fast builder: it has a fast parser, and no field that fast
        builders do not support.
        """
        key = layout.name, layout.version
        if key not in self._builders:
            self._builders[key] = False
            if self.depth(layout) is not None:
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
        wanted = [p for p in plans if self.depth(p) is not None]
        if not wanted:
            return None
        home = self.home(wanted[0].name)
        module = self.module(wanted[0].name)
        functions, paths = [], []
        for p in wanted:
            functions.append(ParseFunction(self, module, p).text())
            builder = "None"
            if self.has_builder(p):
                functions.append(BuildFunction(self, module, p).text())
                module.building = True
                builder = builder_name(p)
            path = f"FastPath({function_name(p)}, {builder}, depth={self.depth(p)})"
            paths.append(f"    {string(full_name(p))}: {path},")
        table = "\n".join(["FAST_PATHS = {", *paths, "}"])
        module.fast_runtime.add("FastPath")
        return ".".join(home), module.text(header, [*functions, table])


__all__ = ["FastModules"]
