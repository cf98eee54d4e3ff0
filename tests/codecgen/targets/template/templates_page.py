"""docs/template-reference.md, from the classes that templates see. ``python -m tests.codecgen.targets.template.templates_page`` writes it."""

from __future__ import annotations

import dataclasses
import textwrap
import types
import typing

from codecgen.targets.template.outputs import PATHS
from codecgen.targets.template.view import REFERENCE
from codecgen.targets.template.writing import ESCAPES, FILTERS
from tests.paths import ROOT

PAGE = ROOT / "docs" / "templates.md"
REFERENCE_PAGE = ROOT / "docs" / "template-reference.md"
HEAD = """\
# Reference of templates

The data and the filters that a [template](templates.md) has. `python -m tests.codecgen.targets.template.templates_page` writes this page.

These names are stable: names are added, and none is renamed. Conditions and values are text of the
[schema language](schema-language/README.md).
"""


def reference() -> str:
    """Return the text of the page."""
    parts = [
        HEAD,
        f"In the name of a file: {', '.join(f'`{{{{{name}}}}}`' for name in PATHS)}.",
        _filters(),
    ]
    parts += [_kind(kind) for kind in REFERENCE]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _filters() -> str:
    rows = []
    for function in FILTERS.values():
        example, _, words = " ".join((function.__doc__ or "").split()).partition("`: ")
        rows.append(f"| {example.replace('|', chr(92) + '|')}` | {words[:1].upper()}{words[1:]} |")
    endings = ", ".join(f"`{ending}`" for ending in ESCAPES)
    tail = f"Words are printed without a filter in files that end in {endings}."
    return "\n".join(["| Filter | What it gives |", "| --- | --- |", *rows, "", tail])


def _kind(kind: type) -> str:
    title = "What every template sees" if kind.__name__ == "Root" else kind.__name__
    doc = kind.__doc__ or ""
    about = "" if doc.startswith(f"{kind.__name__}(") else " ".join(doc.split())
    hints = typing.get_type_hints(kind, include_extras=True)
    rows = []
    for field in dataclasses.fields(kind):
        type_, words = typing.get_args(hints[field.name])
        rows.append(f"| `{field.name}` | {_type(type_)} | {words} |")
    head = [f"## {title}", *([textwrap.fill(about, 120)] if about else [])]
    return "\n\n".join(
        [*head, "\n".join(["| Name | Type | What it is |", "| --- | --- | --- |", *rows])]
    )


def _type(type_: object) -> str:
    """A type in words, with links to the kinds of things."""
    if typing.get_origin(type_) is tuple:
        return f"list of {_type(typing.get_args(type_)[0])}"
    if isinstance(type_, types.UnionType):
        return " or ".join(_type(part) for part in typing.get_args(type_))
    if type_ is type(None):
        return "none"
    name = type_.__name__ if isinstance(type_, type) else str(type_)
    if type_ in REFERENCE:
        return f"[{name}](#{name.lower()})"
    return {"str": "text", "int": "number", "bool": "yes or no", "Words": "words"}[name]


def main() -> None:
    text = reference()
    if REFERENCE_PAGE.read_text(encoding="utf-8") != text:
        print(f"writing {REFERENCE_PAGE.name}")
        REFERENCE_PAGE.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
