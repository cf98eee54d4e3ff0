"""Files that templates produce: one, or one for each declaration of the kind in the template's name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from codecgen.targets.template.view import Root

SUFFIX = ".j2"
_NAME = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")

Things = Iterator[tuple[str, dict[str, object]]]


def _layouts(root: Root) -> Things:
    """Yield the name of each layout, and the values for its template."""
    for layout in root.layouts:
        yield layout.name, {"layout": layout}


def _versions(root: Root) -> Things:
    """Yield the name of each version of a layout, and the values for its template."""
    for layout in root.layouts:
        for version in layout.versions:
            yield version.name, {"layout": layout, "version": version}


def _modules(root: Root) -> Things:
    """Yield the name of each YAML file, and the values for its template."""
    for module in root.modules:
        yield module.path, {"module": module}


def _enums(root: Root) -> Things:
    """Yield the name of each enum, and the values for its template."""
    for enum in root.enums:
        yield enum.name, {"enum": enum}


def _choices(root: Root) -> Things:
    """Yield the name of each choice, and the values for its template."""
    for choice in root.choices:
        yield choice.name, {"choice": choice}


def _texts(root: Root) -> Things:
    """Yield the name of each text file, and the values for its template."""
    for text in root.texts:
        yield text.name, {"text": text}


def _views(root: Root) -> Things:
    """Yield the name of each view, and the values for its template."""
    for view in root.views:
        yield view.name, {"view": view}


PATHS: Mapping[str, Callable[[Root], Things]] = {
    "layout": _layouts,
    "version": _versions,
    "module": _modules,
    "enum": _enums,
    "choice": _choices,
    "text": _texts,
    "view": _views,
}
"""Placeholders in the name of a template, and the names and values that replace each."""


@dataclass(frozen=True, slots=True)
class Output:
    """A file to write: its path, its template, and the values that the template sees in addition to :class:`Root`."""

    path: str
    template: str
    values: Mapping[str, object]


def unknown_names(template: str) -> list[str]:
    """Return the placeholders in the name of a template that are unknown, or differ from the first one."""
    names = _NAME.findall(template)
    return [name for name in names if name not in PATHS or name != names[0]]


def outputs(root: Root, templates: Iterable[str]) -> tuple[Output, ...]:
    """Return an Output for each file that templates produce, sorted by template; its path lacks the
    suffix ``.j2``. A placeholder such as ``{{layout}}`` in the name gives one file for each
    declaration of that kind, otherwise one in all. Skip templates whose file name begins with
    ``_``. Raise KeyError if the first placeholder is unknown; the caller checks further
    placeholders, and paths that collide.
    """
    out: list[Output] = []
    for template in sorted(templates):
        if template.rpartition("/")[2].startswith("_"):
            continue
        path = template.removesuffix(SUFFIX)
        names = _NAME.findall(path)
        if not names:
            out.append(Output(path, template, {}))
            continue
        for thing, values in PATHS[names[0]](root):
            out.append(Output(_NAME.sub(lambda _, thing=thing: thing, path), template, values))  # type: ignore[misc]
    return tuple(out)
