"""Load the generated codecs of a plan from memory."""

from __future__ import annotations

import builtins
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from codecgen.diagnostics import Diagnostic
from codecgen.identity_cache import cached_by_identity
from codecgen.plan import LayoutPlan, Plan, make_plan
from codecgen.runtime.layout import Layout
from codecgen.schema.texts import Text
from codecgen.targets import construct
from codecgen.targets.construct.homes import module_path, symbol


class Codecs:
    """The generated modules of target construct, by YAML file."""

    def __init__(self, modules: Mapping[tuple[str, ...], ModuleType]) -> None:
        self._modules = modules

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


class _Modules:
    """Executes modules from source text in memory. Their imports of each other find these modules,
    even if a package of the same name is installed, and nothing else can import them.

    In the modules ``__name__`` is unique, so that the runtime does not take them for an installed package.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.sources = sources
        self._before = f"_codecgen_{uuid.uuid4().hex}_"
        self._loaded: dict[str, ModuleType] = {}
        self._builtins = {**vars(builtins), "__import__": self._import}

    def load(self, name: str) -> ModuleType:
        """Return the module ``name``, compiled and executed at its first use. A module that is
        still being executed is returned as far as it is. Raise KeyError if there is no such source;
        errors of the module's own code pass through.
        """
        if name not in self._loaded:
            module = self._loaded[name] = ModuleType(self._before + name)
            vars(module)["__builtins__"] = self._builtins
            exec(compile(self.sources[name], f"<{name}>", "exec"), vars(module))
        return self._loaded[name]

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Return the module that ``from name import ...`` needs: one of these modules, or else what
        Python's own import finds. A plain ``import name`` and relative imports always use Python's
        own. Raise ImportError if it finds none.
        """
        if name in self.sources and fromlist and not level:
            return self.load(name)
        return __import__(name, globals, locals, fromlist or (), level)


@cached_by_identity
def load_codecs(plan: Plan) -> tuple[Codecs | None, tuple[Diagnostic, ...]]:
    """Return the codecs of a plan, generated and compiled in memory, and ``()``. Return None and
    diagnostics if a schema file's name cannot be a module name, or target construct cannot express
    a layout of the plan or of a used directory. Nothing gets into ``sys.modules``. The same plan
    gives the same codecs.
    """
    for file, things in plan.modules().items():
        # Code is about to be run: what names it must be names, whether or not a check has said so.
        if not all(part.isidentifier() for part in module_path(file)):
            message = "the name of the file cannot be that of a module"
            return None, (Diagnostic("C027", message, things[0].span),)
    sources: dict[str, str] = {}
    used = [(make_plan(other.model), other.place) for other in plan.model.uses.values()]
    for made, place in ((plan, ""), *used):
        emitted = construct.emit(made)
        if emitted.diagnostics:
            return None, tuple(_seen_from_here(d, place) for d in emitted.diagnostics)
        for path, source in emitted.files.items():
            if path.endswith(".py"):
                sources[path.removesuffix(".py").replace("/", ".")] = source
    modules = _Modules(sources)
    loaded = {home[1:]: modules.load(".".join(home)) for home in _homes(plan)}
    for module in loaded.values():
        _set_fast_paths(module, modules)
    return Codecs(loaded), ()


def _set_fast_paths(module: ModuleType, modules: _Modules) -> None:
    """Give each layout of a module its fast parser and builder, or None if there are none, so that
    it does not look for them in ``sys.modules``.
    """
    name = getattr(module, "__fast__", None)
    paths = {} if name is None else modules.load(name).FAST_PATHS
    for layout in vars(module).values():
        if isinstance(layout, Layout):
            layout.__dict__["fast_path"] = paths.get(layout.full_name)


def _homes(plan: Plan) -> list[tuple[str, ...]]:
    """Return the parts of the name of each module that declares codecs, with the package, sorted."""
    return sorted((plan.manifest.package, *module_path(file)) for file in plan.modules())


def _seen_from_here(d: Diagnostic, place: str) -> Diagnostic:
    """Return a diagnostic about a used directory at the place that names the directory."""
    return replace(d, span=replace(d.span, file=place + d.span.file))
