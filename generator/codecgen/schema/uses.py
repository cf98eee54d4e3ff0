"""Schema directories that use others: their declarations under the names that they have there."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from codecgen.diagnostics import Diagnostic
from codecgen.schema.declarations import Declarations, used_of
from codecgen.schema.expression import Expression
from codecgen.schema.model import Choice, Enum, Layout, Manifest, Model, UsedDirectory
from codecgen.schema.types import ChoiceType, Reference, Since, Span, Step

T = TypeVar("T")

Find = Callable[[str], UsedDirectory]
"""Finds the directory that `uses` names. Raises CannotUse."""


class CannotUse(Exception):
    """A directory that cannot be used: why, and what to do about it."""

    def __init__(self, reason: str, help: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.help = help


@dataclass(frozen=True, slots=True)
class Used:
    """The directories that are used, by the names before the dots, and what they declare under its whole names."""

    directories: Mapping[str, UsedDirectory]
    layouts: Mapping[str, Layout]
    enums: Mapping[str, Enum]
    choices: Mapping[str, Choice]
    broken: frozenset[str] = frozenset()
    """The names before the dots, with the dots, of directories that could not be had."""


def use(manifest: Manifest, find: Find | None) -> tuple[Used, list[Diagnostic]]:
    """The directories that a manifest names, and what is wrong with them."""
    findings = []
    direct: dict[str, UsedDirectory] = {}
    for name, wanted in manifest.uses.items():
        try:
            if find is None:
                raise CannotUse(f"{wanted} cannot be looked for here")
            found = find(wanted)
            same = next((other for other, known in direct.items() if known.path == found.path), "")
            if same:
                raise CannotUse(f'"{name}" is the directory that "{same}" names already')
            _with_inner({**direct, name: found}, manifest.package)
            direct[name] = found
        except CannotUse as error:
            place = manifest.places.get(f"uses.{name}", manifest.span)
            findings.append(Diagnostic("C040", error.reason, place, help=error.help))
    used = _join(_with_inner(direct, manifest.package))
    broken = frozenset(f"{name}." for name in manifest.uses if name not in direct)
    return replace(used, broken=broken), findings


def _with_inner(direct: Mapping[str, UsedDirectory], package: str) -> dict[str, UsedDirectory]:
    """The directories, and those that they use in turn (``kafka.base``), each once. Raises CannotUse where two of them
    would be one package."""
    out = dict(direct)
    names = list(out)
    for name in names:  # grows: one level after the other
        directory = out[name]
        for inner, used in directory.model.uses.items():
            if "." in inner or any(used.path == known.path for known in out.values()):
                continue
            out[f"{name}.{inner}"] = replace(used, place=_place(directory.place, used.place))
            names.append(f"{name}.{inner}")
    packages = {package: ""}
    for name, directory in out.items():
        if directory.package in packages:
            other = packages[directory.package]
            whose = f'as that of "{other}"' if other else "as that of this directory"
            message = f'the package of "{name}" is called {directory.package}, {whose}'
            raise CannotUse(message, "give one of them another name under `package`")
        packages[directory.package] = name
    return out


def _join(directories: Mapping[str, UsedDirectory]) -> Used:
    """What the directories declare, under whole names and with places that tell the directory."""
    layouts: dict[str, Layout] = {}
    enums: dict[str, Enum] = {}
    choices: dict[str, Choice] = {}
    names = {directory.path: name for name, directory in directories.items()}
    for name, directory in directories.items():
        model = directory.model
        inside = {inner: names[used.path] for inner, used in model.uses.items()}
        move = _Move(directory.place, name, inside)
        layouts |= {
            move.name(n): move.thing(replace(thing, examples=(), overhead=None))
            for n, thing in model.layouts.items()
        }
        enums |= {move.name(n): move.thing(thing) for n, thing in model.enums.items()}
        choices |= {move.name(n): move.thing(thing) for n, thing in model.choices.items()}
    return Used(directories, layouts, enums, choices)


def within(model: Model, name: str) -> tuple[Model, str]:
    """The model that describes what has a name, with places that tell its directory, and the name there."""
    before = [used for used in model.uses if name.startswith(f"{used}.")]
    if not before:
        return model, name
    longest = max(before, key=len)
    return _placed(model.uses[longest]), name.removeprefix(f"{longest}.")


def _placed(directory: UsedDirectory) -> Model:
    model = directory.model
    move = _Move(directory.place, None, {})
    uses = {n: replace(d, place=_place(directory.place, d.place)) for n, d in model.uses.items()}
    return replace(
        model,
        layouts=move.declarations(model.layouts),
        enums=move.declarations(model.enums),
        choices=move.declarations(model.choices),
        views={name: move.thing(view) for name, view in model.views.items()},
        texts={name: move.thing(text) for name, text in model.texts.items()},
        files=texts(directory),
        uses=uses,
    )


def texts(directory: UsedDirectory) -> dict[str, str]:
    """The text of the files of a directory, by their places."""
    return {directory.place + file: text for file, text in directory.model.files.items()}


def _place(outer: str, inner: str) -> str:
    """A place as seen from further out: a directory (``../weather/``), or a file in one."""
    if ":" in inner:
        return inner
    package, colon, path = outer.rpartition(":")
    return package + colon + posixpath.normpath(path + inner) + "/" * inner.endswith("/")


class _Move:
    """Changes names and places in all that a declaration is made of."""

    def __init__(self, place: str, prefix: str | None, inside: Mapping[str, str]) -> None:
        self.place = place
        self.prefix = prefix
        self.inside = inside

    def name(self, name: str) -> str:
        """The whole name of what is called so in its directory."""
        if self.prefix is None:
            return name
        directory, dot, own = name.rpartition(".")
        return f"{self.inside[directory]}.{own}" if dot else f"{self.prefix}.{own}"

    def thing(self, thing: T) -> T:
        """A declaration under its whole name."""
        moved: Any = self.value(thing)
        named: T = replace(moved, name=self.name(moved.name))
        return named

    def declarations(self, things: Mapping[str, T]) -> Declarations[T]:
        """Declarations that keep their names, and those that they use."""
        used = {name: self.thing(thing) for name, thing in used_of(things).items()}
        return Declarations({name: self.thing(thing) for name, thing in things.items()}, used)

    def value(self, value: object) -> object:
        if isinstance(value, tuple):
            return tuple([self.value(item) for item in value])
        if isinstance(value, Mapping):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, Since) and self.prefix is not None:
            return None  # releases of another line are not before or after those of this one
        if isinstance(value, Span | Expression):
            return replace(value, file=_place(self.place, value.file))
        if not is_dataclass(value) or isinstance(value, type):
            return value
        changed: dict[str, object] = {}
        for f in fields(value):
            before = getattr(value, f.name)
            after = self.value(before)
            if isinstance(before, str) and before and _is_reference(value, f.name):
                after = self.name(before)
            if after is not before:
                changed[f.name] = after
        return replace(value, **changed) if changed else value


def _is_reference(holder: object, key: str) -> bool:
    """Whether a text names a declaration."""
    if key == "layout":
        return isinstance(holder, Reference)
    return key in ("enum", "given") or (key == "choice" and isinstance(holder, ChoiceType | Step))
