"""Schema directories that use other directories: bring their declarations in under qualified names."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from codecgen.diagnostics import Diagnostic, Span
from codecgen.schema.declarations import Declarations, used_of
from codecgen.schema.expression import Expression
from codecgen.schema.model import Choice, Enum, Layout, Manifest, Model, UsedDirectory
from codecgen.schema.types import ChoiceType, Reference, Since, Step

T = TypeVar("T")

Find = Callable[[str], UsedDirectory]
"""Finds the directory that `uses` names. Raises CannotUse."""


class CannotUse(Exception):
    """A directory that cannot be used: the reason, and what to do."""

    def __init__(self, reason: str, help: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.help = help


@dataclass(frozen=True, slots=True)
class Used:
    """The used directories by prefix, and their declarations by qualified name."""

    directories: Mapping[str, UsedDirectory]
    layouts: Mapping[str, Layout]
    enums: Mapping[str, Enum]
    choices: Mapping[str, Choice]
    broken: frozenset[str] = frozenset()
    """The names before the dots, with the dots, of directories that could not be had."""


def load_used(manifest: Manifest, find: Find | None) -> tuple[Used, list[Diagnostic]]:
    """Return the directories that a manifest uses, and a diagnostic for each that cannot be used:
    ``find`` raises CannotUse for it, it is the same as another, or it has the package name of
    another or of this one. Without ``find``, which locates a directory, all are reported. Their
    prefixes are in ``broken``.
    """
    findings = []
    direct: dict[str, UsedDirectory] = {}
    for name, wanted in manifest.uses.items():
        try:
            if find is None:
                raise CannotUse(
                    f"{wanted} cannot be found, because this program looks up no other schema directories"
                )
            found = find(wanted)
            same = next((other for other, known in direct.items() if known.path == found.path), "")
            if same:
                message = f'"{name}" is the directory that "{same}" names already'
                raise CannotUse(message, f'take "{name}" out, and write "{same}." before its names')
            _with_inner({**direct, name: found}, manifest.package)
            direct[name] = found
        except CannotUse as error:
            place = manifest.places.get(f"uses.{name}", manifest.span)
            findings.append(Diagnostic("C040", error.reason, place, help=error.help))
    used = _join_declarations(_with_inner(direct, manifest.package))
    broken = frozenset(f"{name}." for name in manifest.uses if name not in direct)
    return replace(used, broken=broken), findings


def _with_inner(direct: Mapping[str, UsedDirectory], package: str) -> dict[str, UsedDirectory]:
    """Return the directories with those that they use in turn (``kafka.base``), each path once.
    Raise CannotUse if two of them generate a package of the same name, or one of the name
    ``package``, that of the directory which uses them.
    """
    out = dict(direct)
    names = list(out)
    for name in names:  # grows: one level after the other
        directory = out[name]
        for inner, used in directory.model.uses.items():
            if "." in inner or any(used.path == known.path for known in out.values()):
                continue
            out[f"{name}.{inner}"] = replace(used, place=_join_places(directory.place, used.place))
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


def _join_declarations(directories: Mapping[str, UsedDirectory]) -> Used:
    """Return the layouts, enums and choices of all directories under qualified names
    (``kafka.name``), with places that name the directory. Examples, overhead tables and releases
    are dropped.
    """
    layouts: dict[str, Layout] = {}
    enums: dict[str, Enum] = {}
    choices: dict[str, Choice] = {}
    names = {directory.path: name for name, directory in directories.items()}
    for name, directory in directories.items():
        model = directory.model
        inside = {inner: names[used.path] for inner, used in model.uses.items()}
        move = _Move(directory.place, name, inside)
        layouts |= {
            move.qualify(n): move.move(replace(thing, examples=(), overhead=None))
            for n, thing in model.layouts.items()
        }
        enums |= {move.qualify(n): move.move(thing) for n, thing in model.enums.items()}
        choices |= {move.qualify(n): move.move(thing) for n, thing in model.choices.items()}
    return Used(directories, layouts, enums, choices)


def within(model: Model, name: str) -> tuple[Model, str]:
    """Return the model that declares ``name``, and the name in that model: ``model`` itself unless
    the name begins with the prefix of a used directory (the longest one counts). The declaration
    need not exist.

    Places in the model of a used directory name the directory.
    """
    before = [used for used in model.uses if name.startswith(f"{used}.")]
    if not before:
        return model, name
    longest = max(before, key=len)
    return _qualify_places(model.uses[longest]), name.removeprefix(f"{longest}.")


def _qualify_places(directory: UsedDirectory) -> Model:
    """Return the model of a used directory with places (layouts, enums, choices, views, texts,
    files) that name the directory. Names of declarations stay unchanged.
    """
    model = directory.model
    move = _Move(directory.place, None, {})
    uses = {
        n: replace(d, place=_join_places(directory.place, d.place)) for n, d in model.uses.items()
    }
    return replace(
        model,
        layouts=move.move_all(model.layouts),
        enums=move.move_all(model.enums),
        choices=move.move_all(model.choices),
        views={name: move.move(view) for name, view in model.views.items()},
        texts={name: move.move(text) for name, text in model.texts.items()},
        files=file_texts(directory),
        uses=uses,
    )


def file_texts(directory: UsedDirectory) -> dict[str, str]:
    """Return the text of each file of a directory, by its qualified place."""
    return {directory.place + file: text for file, text in directory.model.files.items()}


def _join_places(outer: str, inner: str) -> str:
    """Return ``inner``, a directory (``../weather/``) or file as seen from ``outer``, as seen from
    where ``outer`` is named. A place in an installed package (with ``:``) is returned unchanged.
    """
    if ":" in inner:
        return inner
    package, colon, path = outer.rpartition(":")
    return package + colon + posixpath.normpath(path + inner) + "/" * inner.endswith("/")


class _Move:
    """Rewrites the names and file places in a declaration and everything inside it."""

    def __init__(self, place: str, prefix: str | None, inside: Mapping[str, str]) -> None:
        self.place = place
        self.prefix = prefix
        self.inside = inside

    def qualify(self, name: str) -> str:
        """Return the name of a declaration with the prefix of its directory; a name with a prefix
        of its own gets the one that stands for that directory here. Unchanged if there is no
        prefix.
        """
        if self.prefix is None:
            return name
        directory, dot, own = name.rpartition(".")
        return f"{self.inside[directory]}.{own}" if dot else f"{self.prefix}.{own}"

    def move(self, thing: T) -> T:
        """Return a copy of a declaration with its qualified name, in which the names of
        declarations and the places are rewritten too.
        """
        moved: Any = self.rewrite(thing)
        named: T = replace(moved, name=self.qualify(moved.name))
        return named

    def move_all(self, things: Mapping[str, T]) -> Declarations[T]:
        """Return declarations with qualified places. Used declarations stay apart."""
        used = {name: self.move(thing) for name, thing in used_of(things).items()}
        return Declarations({name: self.move(thing) for name, thing in things.items()}, used)

    def rewrite(self, value: object) -> object:
        """Return ``value`` with qualified names (if there is a prefix) and places, rewritten
        recursively through tuples, mappings and dataclasses. With a prefix, releases (Since) become
        None, because they are of another release line. Other values are returned unchanged.
        """
        if isinstance(value, tuple):
            return tuple([self.rewrite(item) for item in value])
        if isinstance(value, Mapping):
            return {key: self.rewrite(item) for key, item in value.items()}
        if isinstance(value, Since) and self.prefix is not None:
            return None  # releases of another line are not before or after those of this one
        if isinstance(value, Span | Expression):
            return replace(value, file=_join_places(self.place, value.file))
        if not is_dataclass(value) or isinstance(value, type):
            return value
        changed: dict[str, object] = {}
        for f in fields(value):
            before = getattr(value, f.name)
            after = self.rewrite(before)
            if isinstance(before, str) and before and _is_reference(value, f.name):
                after = self.qualify(before)
            if after is not before:
                changed[f.name] = after
        return replace(value, **changed) if changed else value


def _is_reference(holder: object, key: str) -> bool:
    """Return whether the attribute ``key`` of ``holder`` names a declaration."""
    if key == "layout":
        return isinstance(holder, Reference)
    if key == "given":
        return isinstance(holder, Choice)
    return key == "enum" or (key == "choice" and isinstance(holder, ChoiceType | Step))
