"""What the classes of parsed values are called: names that nothing else in a generated package has."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Mapping

from codecgen.runtime import construct
from codecgen.schema.model import Model
from codecgen.targets.construct.homes import class_name, symbols

Key = tuple[str, int | None]
"""A declaration and a version of it. Without one: a layout that has none, the union of all versions, a choice, a text."""

OTHERS = frozenset(["Any", "Container", "Literal", "Parsed", "Sequence", "TaggedField", "UUID"])
"""What modules and stubs import beside the names of the runtime."""


class ClassNames:
    """The names of the classes of one package, and those that were given to what lies inside of them."""

    def __init__(self, model: Model) -> None:
        self._taken = {*construct.__all__, *OTHERS, *dir(builtins), *keyword.kwlist}
        self._taken |= symbols(model)
        self._names: dict[Key, str] = {}
        for layout in model.layouts.values():
            wanted = class_name(layout.name)
            self._names[layout.name, None] = self.free(wanted)
            for version in layout.all_versions():
                if version is not None:
                    self._names[layout.name, version] = self.free(f"{wanted}V{version}")
        for name in (*model.choices, *model.texts):
            self._names[name, None] = self.free(class_name(name))

    def __getitem__(self, key: Key) -> str:
        return self._names[key]

    @property
    def taken(self) -> frozenset[str]:
        """All names that something has."""
        return frozenset(self._taken)

    def free(self, wanted: str) -> str:
        """The name, or one that nothing has yet."""
        while wanted in self._taken:
            wanted += "_"
        self._taken.add(wanted)
        return wanted


def class_names(model: Model) -> Mapping[str, ClassNames]:
    """The names of each package: of the directories that are used too, by the names before the dots."""
    used = {alias: ClassNames(directory.model) for alias, directory in model.uses.items()}
    return {"": ClassNames(model), **used}
