"""Schemas loaded, checked, generated and executed, all in memory."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from codecgen.check import run
from codecgen.diagnostics import Diagnostic, render
from codecgen.plan import Plan, make_plan
from codecgen.schema import loader
from codecgen.schema.model import UsedDirectory
from codecgen.schema.uses import CannotUse, Find
from codecgen.targets.registry import TARGETS
from tests.laws import apart
from tests.laws.memory import executed
from tests.laws.world import Facts, World


@dataclass
class Generated:
    """The files of a directory, what each target refused, and what they left out of single views."""

    world: World
    facts: Facts
    plan: Plan
    files: dict[str, str]
    refused: dict[str, list[Diagnostic]]
    notes: list[Diagnostic]

    @property
    def package(self) -> str:
        return self.world.package


def checked(world: World) -> tuple[Any, str]:
    """The model of a directory, and what `check` finds."""
    texts = world.texts()
    own = {name: text for name, text in texts.items() if not name.startswith(apart.PLACE)}
    inner = {
        name.removeprefix(apart.PLACE): text for name, text in texts.items() if name not in own
    }

    def find(wanted: str) -> UsedDirectory:
        model, found = _checked(inner)
        if model is None or found:
            raise CannotUse(render(found, inner).partition("\n")[0])
        return UsedDirectory(model, apart.ALIAS, apart.PLACE)

    model, found = _checked(own, find)
    return model, render(found, texts)


def _checked(texts: dict[str, str], find: Find | None = None) -> tuple[Any, list[Diagnostic]]:
    model, found = loader.load(texts, find)
    if model is not None and not found:
        found = run(model)
    return model, found


def generated(
    world: World, model: Any, targets: Sequence[str] = ("construct", "arrow")
) -> Generated:
    """The files of some targets."""
    plan = make_plan(model)
    files: dict[str, str] = {}
    refused: dict[str, list[Diagnostic]] = {}
    notes: list[Diagnostic] = []
    for name in targets:
        result = TARGETS[name](plan)
        notes += result.notes
        files |= result.files
        if result.diagnostics:
            refused[name] = list(result.diagnostics)
    for directory in model.uses.values():
        result = TARGETS["construct"](make_plan(directory.model))
        files |= result.files
        if result.diagnostics:
            refused["construct"] = list(result.diagnostics)
    return Generated(world, Facts(world), plan, files, refused, notes)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the modules of packages from texts."""

    def __init__(self, packages: Sequence[str], files: Mapping[str, str]) -> None:
        self.packages = packages
        self.files = files

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] not in self.packages:
            return None
        base = name.replace(".", "/")
        for file, package in ((f"{base}/__init__.py", True), (f"{base}.py", False)):
            if file in self.files:
                spec = importlib.machinery.ModuleSpec(name, self, origin=file, is_package=package)
                return spec
        if any(file.startswith(f"{base}/") for file in self.files):
            return importlib.machinery.ModuleSpec(name, None, is_package=True)
        return None

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None and module.__spec__.origin is not None
        text = self.files[module.__spec__.origin]
        if module.__name__.endswith(("_kernels", "_encoders")) and ".arrow." in module.__name__:
            module.__dict__.update(executed(module.__name__, text))
        else:
            exec(compile(text, module.__spec__.origin, "exec"), module.__dict__)


@contextmanager
def imported(made: Generated) -> Iterator[ModuleType]:
    """The package, while it can be imported. It has what the package that it uses has, too."""
    packages = (made.package, apart.PACKAGE)
    names = packages if "uses" in made.world.manifest else packages[:1]
    finder = _Finder(packages, made.files)
    sys.meta_path.insert(0, finder)
    try:
        yield _Everything(made, [importlib.import_module(name) for name in names])
    finally:
        sys.meta_path.remove(finder)
        for name in [n for n in sys.modules if n.partition(".")[0] in packages]:
            del sys.modules[name]


class _Everything(ModuleType):
    """What packages declare, and what modules of them do that packages leave out: drafts."""

    def __init__(self, made: Generated, packages: Sequence[ModuleType]) -> None:
        super().__init__(made.package)
        self._made = made
        self._packages = packages

    def __getattr__(self, name: str) -> Any:
        for package in self._packages:
            if hasattr(package, name):
                return getattr(package, name)
        for path, text in self._made.files.items():
            if path.endswith(".py") and f"\n{name} = " in text:
                return getattr(importlib.import_module(path[:-3].replace("/", ".")), name)
        raise AttributeError(name)
