"""Versions that generated modules record, and compare with the installed runtime."""

from __future__ import annotations

from codecgen.runtime.version import LANGUAGE, RELEASE, RUNTIME
from codecgen.targets.python_source import Code, call, docstring, flat, string

VERSIONS: list[tuple[str, Code]] = [
    (string("language"), str(LANGUAGE)),
    (string("runtime"), str(RUNTIME)),
    (string("release"), string(RELEASE)),
]
"""Names and values, as Python."""

IMPORT = "from codecgen.runtime.version import made_for"
"""What a package imports to compare them with the runtime."""

COMPARE = flat(
    call(
        "made_for",
        "__name__",
        language=str(LANGUAGE),
        runtime=str(RUNTIME),
        release=string(RELEASE),
    )
)
"""How it compares them."""


def package_text(doc: str) -> str:
    """Return the ``__init__.py`` of a package that only holds modules."""
    return f"{docstring(doc)}\n\n{IMPORT}\n\n{COMPARE}\n"
