"""Modules and names of the codecs of each declaration, in this package and in the packages that it uses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from codecgen.identity_cache import cached_by_identity
from codecgen.runtime import construct
from codecgen.schema.declarations import is_used, used_of
from codecgen.schema.model import Choice, Enum, Layout, Model

Home = tuple[str, ...]
"""The parts of a module's name, with those of its package."""


def module_path(file: str) -> tuple[str, ...]:
    """Return the module of a YAML file below the package: ``records/header.yaml`` gives ``("records", "header")``."""
    path = PurePosixPath(file).with_suffix("")
    return tuple(part.replace("-", "_").replace(".", "_") for part in path.parts)


def class_name(name: str) -> str:
    """Return the class of an enum or a layout in its own module: ``control_record_type`` gives ``ControlRecordType``."""
    return "".join(part.capitalize() for part in name.rpartition(".")[2].split("_"))


def symbol(name: str, version: int | None = None) -> str:
    """Return the name of the constant that holds a codec in its module: ``MESSAGE`` for the
    declaration ``message``, ``MESSAGE_V1`` for its version 1. Of a name of another directory, only
    the part after its last dot counts.
    """
    name = name.rpartition(".")[2].upper()
    return name if version is None else f"{name}_V{version}"


def homes_of(model: Model) -> Mapping[str, Home]:
    """Return the module of each declaration by name, as a tuple of the parts of its dotted name,
    package included. Declarations of directories that the model uses are included as
    ``alias.name``, except for texts.
    """
    package = model.manifest.package
    homes = {
        thing.name: (package, *module_path(file))
        for file, things in model.modules().items()
        for thing in things
    }
    declared: list[Mapping[str, Layout | Enum | Choice]] = [
        used_of(model.layouts),
        used_of(model.enums),
        used_of(model.choices),
    ]
    for used in declared:
        for name, thing in used.items():
            directory = model.uses[name.rpartition(".")[0]]
            file = thing.span.file.removeprefix(directory.place)
            homes[name] = (directory.package, *module_path(file))
    return homes


class Aliases:
    """Allocates unique names for what a module imports from packages of other schema directories,
    such as ``WEATHER_READING``.
    """

    def __init__(self, model: Model, taken: Collection[str] = ()) -> None:
        self._taken = frozenset((*construct.__all__, *taken)) | symbols(model)
        self._given: dict[tuple[str, str], str] = {}

    def name(self, thing: str, symbol: str) -> str:
        """Return the name by which a module knows ``symbol`` of the declaration ``thing``:
        ``symbol`` if the directory declares it itself; otherwise a unique alias
        (``WEATHER_READING``, ``WeatherReading``), the same for each call.
        """
        if not is_used(thing):
            return symbol
        known = self._given.get((thing, symbol))
        if known is not None:
            return known
        before = thing.rpartition(".")[0].replace(".", "_")
        constant = symbol.isupper()
        alias = f"{before.upper()}_{symbol}" if constant else class_name(before) + symbol
        given = self._given.values()
        while alias in self._taken or alias in given:
            alias += "_"
        self._given[thing, symbol] = alias
        return alias


@cached_by_identity
def symbols(model: Model) -> frozenset[str]:
    """Return the names of enum classes and codecs that the generated modules of a directory
    declare: codecs of choices, texts and layouts, also of each version. Names of parsed classes are
    not included.
    """
    out = {class_name(name) for name in model.enums}
    out |= {symbol(name) for name in (*model.choices, *model.texts)}
    for layout in model.layouts.values():
        out |= {symbol(layout.name), *(symbol(layout.name, v) for v in layout.all_versions())}
    return frozenset(out)


def import_key(name: str) -> tuple[int, str]:
    """Return the sort key of an imported name: constants, then classes, then functions, each without regard to case."""
    own = name.partition(" ")[0]
    kind = 0 if own.isupper() else 1 if own[:1].isupper() else 2
    return kind, name.lower()


def import_line(module: str, names: Collection[str]) -> str:
    """Return the statement ``from module import names`` with names sorted: constants, classes,
    functions. It has one name per line in parentheses if one line exceeds 100 characters.
    """
    ordered = sorted(names, key=import_key)
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= 100:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in ordered), ")"])
