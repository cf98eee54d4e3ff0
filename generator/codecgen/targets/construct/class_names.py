"""Names of the classes of parsed values, unique in a generated package."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Sequence

from codecgen.plan import Plan
from codecgen.runtime import construct
from codecgen.schema.model import Choice, Model
from codecgen.targets.construct.homes import class_name, symbols
from codecgen.targets.python_source import WIDTH

Key = tuple[str, int | None]
"""A declaration and a version of it. Without one: a layout that has none, the union of all versions, a choice, a text."""

OTHERS = frozenset(
    [
        "Any",
        "Container",
        "Literal",
        "Parsed",
        "Required",
        "Sequence",
        "TaggedField",
        "TypedDict",
        "UUID",
    ]
)
"""What modules and stubs import beside the names of the runtime."""


class ClassNames:
    """Unique names of the classes of one package, for layouts by version, choices and texts."""

    def __init__(self, model: Model) -> None:
        self._taken = {*construct.__all__, *OTHERS, *dir(builtins), *keyword.kwlist}
        self._taken |= symbols(model)
        self._names: dict[Key, str] = {}
        for layout in model.layouts.values():
            wanted = class_name(layout.name)
            self._names[layout.name, None] = self.reserve(wanted)
            for version in layout.all_versions():
                if version is not None:
                    self._names[layout.name, version] = self.reserve(f"{wanted}V{version}")
        for name in (*model.choices, *model.texts):
            self._names[name, None] = self.reserve(class_name(name))
        self._values = {key: self.reserve(f"{name}Values") for key, name in self._names.items()}

    def __getitem__(self, key: Key) -> str:
        return self._names[key]

    def values(self, key: Key) -> str:
        """Return the name of the type of the values that a builder takes, for type checkers alone."""
        return self._values[key]

    @property
    def reserved_names(self) -> frozenset[str]:
        """Return every name that the package uses so far."""
        return frozenset(self._taken)

    def reserve(self, wanted: str) -> str:
        """Return ``wanted``, with underscores appended until it is unique in the package, and reserve it."""
        while wanted in self._taken:
            wanted += "_"
        self._taken.add(wanted)
        return wanted


class Classes:
    """Class names of a package and of the packages that it uses, by declaration (``weather.reading``) and version."""

    def __init__(self, model: Model) -> None:
        self.own = ClassNames(model)
        self._used = {alias: ClassNames(directory.model) for alias, directory in model.uses.items()}

    def __getitem__(self, key: Key) -> str:
        package, _, name = key[0].rpartition(".")
        return (self._used[package] if package else self.own)[name, key[1]]

    def values(self, key: Key) -> str:
        """Return the name of the type of the values that a builder takes."""
        package, _, name = key[0].rpartition(".")
        return (self._used[package] if package else self.own).values((name, key[1]))


def cases(plan: Plan, choice: Choice) -> list[Key]:
    """Return the layouts of a choice as keys: a layout appears once for each version that a case may have."""
    refs = [ref for _, ref in choice.cases]
    return list(dict.fromkeys((p.name, p.version) for ref in refs for p in plan.of(ref)))


def merge_versions(plan: Plan, keys: Sequence[Key]) -> list[Key]:
    """Return ``keys`` (layouts with versions) in order, each once. If every version of a layout is
    in ``keys``, one key with the version None replaces them, in the place of the first.
    """
    out: dict[Key, None] = {}
    for name, version in keys:
        every = all((one.name, one.version) in keys for one in plan.versions[name])
        out[name, None if every else version] = None
    return list(out)


def union_alias(name: str, types: Sequence[str]) -> str:
    """Return the assignment ``name = A | B``: on one line, or in parentheses if it exceeds 100
    characters. In parentheses, the types share one line if they fit; otherwise each has its own.
    """
    one = f"{name} = {' | '.join(types)}"
    if len(one) <= WIDTH:
        return one
    one = f"    {' | '.join(types)}"
    lines = one if len(one) <= WIDTH else "    " + "\n    | ".join(types)
    return f"{name} = (\n{lines}\n)"
