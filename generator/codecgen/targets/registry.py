"""The targets by their names on the command line.

Each is one package with a function ``emit(plan) -> Emitted``, and one line here. Every Python module says at its end what
it was made for; packages compare it with the runtime when they are imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from codecgen.plan import Plan
from codecgen.targets import arrow, construct, docs, template
from codecgen.targets.made_for import VERSIONS
from codecgen.targets.python_source import flat, mapping
from codecgen.targets.target_output import Emitted

Emit = Callable[[Plan], Emitted]
EmitTemplated = Callable[[Plan, Mapping[str, str]], Emitted]


def _with_versions(emit: Emit) -> Emit:
    """Return ``emit`` with ``__made_for__`` appended to each Python module: the versions of the language and the
    runtime.
    """

    def emit_with_versions(plan: Plan) -> Emitted:
        """Return the files of the target with their versions."""
        emitted = emit(plan)
        line = f"\n\n__made_for__ = {flat(mapping(VERSIONS))}\n"
        files = {
            path: text + line if path.endswith(".py") else text
            for path, text in emitted.files.items()
        }
        return replace(emitted, files=files)

    return emit_with_versions


TARGETS: Mapping[str, Emit] = {
    "construct": _with_versions(construct.emit),
    "docs": docs.emit,
    "arrow": _with_versions(arrow.emit),
}
"""Name on the command line -> target. These are made unless others are named."""

ON_REQUEST: Mapping[str, EmitTemplated] = {
    "html": docs.emit_html,
    "kaitai": template.emit_kaitai,
    "template": template.emit,
}
"""Targets that are made only when they are named."""

TEMPLATED: Mapping[str, EmitTemplated] = {"docs": docs.emit, **ON_REQUEST}
"""Targets that are made of templates, and take others for them (file name -> text)."""
