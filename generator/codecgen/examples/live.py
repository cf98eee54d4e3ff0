"""Load the generated codecs of a plan from memory."""

from __future__ import annotations

import importlib
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

from codecgen.diagnostics import Diagnostic
from codecgen.plan import LayoutPlan, Plan, make_plan
from codecgen.schema.model import Model
from codecgen.schema.texts import Text
from codecgen.targets import construct
from codecgen.targets.construct.homes import module_path, symbol


class Codecs:
    """The generated modules of target construct, by YAML file."""

    def __init__(self, modules: Mapping[tuple[str, ...], ModuleType], finder: SourceFinder) -> None:
        self._modules = modules
        self._finder = finder

    def importable(self) -> AbstractContextManager[None]:
        """Return a context manager inside which the generated modules can be imported by name, as
        layouts import their fast parsers when they first parse. A layout that first parses outside
        of it never uses a fast parser.
        """
        return self._finder.installed()

    def layout(self, plan: LayoutPlan) -> Any:
        """Return the codec of a layout in one version."""
        return getattr(self.module(plan.layout.span.file), symbol(plan.name, plan.version))

    def any_version(self, plan: LayoutPlan) -> Any:
        """Return the codec that finds the version in the bytes."""
        return getattr(self.module(plan.layout.span.file), symbol(plan.name))

    def text(self, text: Text) -> Any:
        """Return the codec of a text."""
        return getattr(self.module(text.span.file), symbol(text.name))

    def derived(self, file: str, name: str) -> Any:
        """Return the function of a derived value."""
        return getattr(self.module(file), name)

    def module(self, file: str) -> ModuleType:
        """Return the module of a YAML file."""
        return self._modules[module_path(file)]


class SourceFinder(MetaPathFinder, Loader):
    """Finds and executes modules from source text in memory. ``loaded`` has those that were imported."""

    def __init__(self, sources: Mapping[str, tuple[str, bool]]) -> None:
        self.sources = sources
        self.loaded: dict[str, ModuleType] = {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let modules be imported inside the ``with`` block. Afterwards none is in ``sys.modules``."""
        sys.modules.update(self.loaded)
        sys.meta_path.insert(0, self)
        try:
            yield
        finally:
            sys.meta_path.remove(self)
            for name in self.sources:
                if (module := sys.modules.pop(name, None)) is not None:
                    self.loaded[name] = module

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module whose source is in memory, or None for every other module, so
        that the next finder is asked.
        """
        if fullname not in self.sources:
            return None
        return spec_from_loader(fullname, self, is_package=self.sources[fullname][1])

    def exec_module(self, module: ModuleType) -> None:
        """Execute the source of a module."""
        source = self.sources[module.__name__][0]
        exec(compile(source, f"<{module.__name__}>", "exec"), module.__dict__)


def load(plan: Plan) -> tuple[Codecs | None, tuple[Diagnostic, ...]]:
    """Return the codecs of a plan, generated and compiled in memory, and ``()``. Return None and
    diagnostics if a schema file's name cannot be a module name, or target construct cannot express
    a layout of the plan or of a used directory. Nothing stays in ``sys.modules``.

    The package gets a unique name, so that many threads can do this, and an installed package of
    the same name is not touched.
    """
    for file, things in plan.modules().items():
        # Code is about to be run: what names it must be names, whether or not a check has said so.
        if not all(part.isidentifier() for part in module_path(file)):
            message = "the name of the file cannot be that of a module"
            return None, (Diagnostic("C027", message, things[0].span),)
    package = f"_codecgen_{uuid.uuid4().hex}"
    files: dict[str, str] = {}
    used = [(make_plan(other.model), other.place) for other in plan.model.uses.values()]
    for made, place in ((plan, ""), *used):
        emitted = construct.emit(replace(made, model=_with_unique_names(made.model, package)))
        if emitted.diagnostics:
            return None, tuple(_seen_from_here(d, place) for d in emitted.diagnostics)
        files |= emitted.files
    package += f"_{plan.manifest.package}"
    sources = {}
    for path, text in files.items():
        if path.endswith(".py"):
            name = path.removesuffix(".py").replace("/", ".")
            sources[name.removesuffix(".__init__")] = (text, name.endswith(".__init__"))
    finder = SourceFinder(sources)
    homes = {module_path(file) for file in plan.modules()}
    with finder.installed():
        modules = {
            home: importlib.import_module(".".join((package, *home))) for home in sorted(homes)
        }
    return Codecs(modules, finder), ()


def _seen_from_here(d: Diagnostic, place: str) -> Diagnostic:
    """Return a diagnostic about a used directory at the place that names the directory."""
    return replace(d, span=replace(d.span, file=place + d.span.file))


def _with_unique_names(model: Model, before: str) -> Model:
    """Return the model with ``before_`` in front of the package names of its manifest and of used
    directories, recursively.
    """
    manifest = replace(model.manifest, package=f"{before}_{model.manifest.package}")
    uses = {
        name: replace(directory, model=_with_unique_names(directory.model, before))
        for name, directory in model.uses.items()
    }
    return replace(model, manifest=manifest, uses=uses)
