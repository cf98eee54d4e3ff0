"""The targets by their names on the command line: one record for each.

A target is a module or package with a function ``emit(plan) -> Emitted``, and one record here. The module is imported when
the target runs, so the command line can list targets without loading them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType

from codecgen.plan import Plan
from codecgen.targets.made_for import VERSIONS
from codecgen.targets.python_source import flat, mapping
from codecgen.targets.target_output import Emitted

_NO_TEMPLATES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of output that ``codecgen generate`` can write.

    Attributes:
        name: The name on the command line.
        path: The module and its function: ``"codecgen.targets.docs.emit_html"``.
        is_default: Whether the target runs if ``--targets`` is not given. ``codecgen check`` runs these targets too.
        takes_templates: Whether the function takes templates (text by file name) as a second argument, and
            ``--templates`` can replace them.
    """

    name: str
    path: str
    is_default: bool = False
    takes_templates: bool = False

    def load(self) -> Callable[..., Emitted]:
        """Import the module of the target and return its function."""
        module, _, function = self.path.rpartition(".")
        emit: Callable[..., Emitted] = getattr(import_module(module), function)
        return emit

    def __call__(self, plan: Plan, templates: Mapping[str, str] = _NO_TEMPLATES) -> Emitted:
        """Return the files of the target.

        If the target takes no templates, its Python modules end with the versions of the language and the runtime
        (``__made_for__``). Packages compare them with the runtime when they are imported.
        """
        emit = self.load()
        return emit(plan, templates) if self.takes_templates else _with_versions(emit(plan))


def _with_versions(emitted: Emitted) -> Emitted:
    """Return ``emitted`` with a line ``__made_for__`` (versions of the language, runtime and
    release) appended to each ``.py`` file. Other files, such as stubs, stay unchanged.
    """
    line = f"\n\n__made_for__ = {flat(mapping(VERSIONS))}\n"
    files = {
        path: text + line if path.endswith(".py") else text for path, text in emitted.files.items()
    }
    return replace(emitted, files=files)


_ALL = (
    Target("construct", "codecgen.targets.construct.emit", is_default=True),
    Target("docs", "codecgen.targets.docs.emit", is_default=True, takes_templates=True),
    Target("arrow", "codecgen.targets.arrow.emit", is_default=True),
    Target("html", "codecgen.targets.docs.emit_html", takes_templates=True),
    Target("kaitai", "codecgen.targets.template.emit_kaitai", takes_templates=True),
    Target("template", "codecgen.targets.template.emit", takes_templates=True),
)

TARGETS: Mapping[str, Target] = {target.name: target for target in _ALL if target.is_default}
"""Targets that run if ``--targets`` is not given, by name."""

ON_REQUEST: Mapping[str, Target] = {target.name: target for target in _ALL if not target.is_default}
"""Targets that run only if ``--targets`` names them, by name."""

TEMPLATED: Mapping[str, Target] = {t.name: t for t in _ALL if t.takes_templates}
"""Targets that ``--templates`` can be given for, by name."""
