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
from codecgen.targets.registry import TARGETS
from tests.laws.memory import executed
from tests.laws.world import Facts, World


@dataclass
class Generated:
    """What became of a directory: its files by target, and what targets refused."""

    world: World
    facts: Facts
    plan: Plan
    files: dict[str, str]
    refused: dict[str, list[Diagnostic]]

    @property
    def package(self) -> str:
        return self.world.package


def checked(world: World) -> tuple[Any, str]:
    """The model of a directory, and what `check` finds."""
    texts = world.texts()
    model, found = loader.load(texts)
    if model is not None and not found:
        found = run(model)
    return model, render(found, texts)


def generated(
    world: World, model: Any, targets: Sequence[str] = ("construct", "arrow")
) -> Generated:
    """The files of some targets."""
    plan = make_plan(model)
    files: dict[str, str] = {}
    refused: dict[str, list[Diagnostic]] = {}
    for name in targets:
        result = TARGETS[name](plan)
        files |= result.files
        if result.diagnostics:
            refused[name] = list(result.diagnostics)
    return Generated(world, Facts(world), plan, files, refused)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the modules of a package from texts."""

    def __init__(self, package: str, files: Mapping[str, str]) -> None:
        self.package = package
        self.files = files

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] != self.package:
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
    """The package, while it can be imported."""
    finder = _Finder(made.package, made.files)
    sys.meta_path.insert(0, finder)
    try:
        yield importlib.import_module(made.package)
    finally:
        sys.meta_path.remove(finder)
        for name in [n for n in sys.modules if n.partition(".")[0] == made.package]:
            del sys.modules[name]
