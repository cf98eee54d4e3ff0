"""Pages of docs/schema-language. `python -m tests.codecgen.language.language_pages` writes the reference from the grammar."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from codecgen.schema import grammar, key_types
from codecgen.schema.model import TOLERANCES
from codecgen.schema.scalars import INTEGERS, VARINTS
from codecgen.schema.texts import TEXT_TOLERANCES
from tests.paths import ROOT

DIRECTORY = ROOT / "docs" / "schema-language"
REFERENCE = DIRECTORY / "reference.md"
FIELDS = DIRECTORY / "fields.md"

_HEAD = """\
# Reference of the schema language

Every key of each mapping, and every tolerance. `python -m tests.codecgen.language.language_pages` writes this page from the grammar.
[The schema language](README.md) teaches these keys with examples.

- Keys with * are required. A key that takes a list also takes a single value.
- *by version*: the key takes one value, or a mapping of versions to values: `{0-1: i16, 2+: compact}`.

"""
_TITLES = {
    "manifest": "Manifest",
    "documents": "Documents of the manifest",
    "version_note": "Version note",
    "element": "Array element",
    "bit": "Bit member",
    "field_range": "Measured range",
    "covered_range": "Covered range",
    "compressed": "Compressed section",
    "variant": "Codec variant",
    "derived": "Derived value",
    "fill": "Value that a builder computes",
    "layout_documentation": "Documentation of a layout",
    "field_documentation": "Documentation of a field",
    "bit_documentation": "Documentation of a bit",
    "formerly": "Former name",
    "sensitive": "Secret",
    "overhead": "Overhead table",
    "overhead_column": "Column of an overhead table",
    "column": "Column of a view",
    "rows": "Rows of a view",
    "write": "Writing of rows",
    "line_value": "Value of a line",
    "property": "Property",
    "text_example": "Example of a text",
    "enum_value": "Enum value",
    "since": "Since, until and draft",
}
_GROUPS: Mapping[str, Iterable[str]] = {
    "[integer type](README.md#a-first-format)": INTEGERS,
    "[varint type](README.md#a-first-format)": VARINTS,
    "[tolerance](#tolerances)": TOLERANCES,
    "[tolerance](#tolerances-of-texts)": TEXT_TOLERANCES,
}
_WORDS = {
    "Text": "text",
    "Name": "name",
    "Declared": "name",
    "Directory": "installed package, or `../path`",
    "Word": "word",
    "Integer": "number",
    "Boolean": "`true` or `false`",
    "Code": "expression",
    "Constant": "number, `true`, `false`, text, `{hex: ..}`, name of an enum value",
    "Default": "expression, text in quotes, `{hex: ..}`, `[]`",
    "Amount": "earlier field `+` or `-` a number, value from outside",
    "Range": "versions: `1`, `0-2`, `1+`",
    "Bits": "bits: `3`, `0-2`",
    "LayoutName": "layout, or `layout@1`",
    "Release": "release",
    "Hex": "hexadecimal digits",
    "Anything": "any YAML",
}


def blocks(language: str = "yaml") -> Iterator[tuple[str, str]]:
    """Yield each code block of the pages: its page and line, and its text."""
    for page in sorted(DIRECTORY.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for found in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            line = text[: found.start()].count("\n") + 2
            yield f"{page.name}:{line}", found[1]


def reference() -> str:
    """Return the text of reference.md, from the grammar."""
    mappings = ", ".join(f"[{_title(name)}](#{_anchor(name)})" for name in grammar.FORMS)
    lines = [f"Mappings: {mappings}.", ""]
    lines += [
        "Values of `accepts`: [Tolerances](#tolerances), [tolerances of texts](#tolerances-of-texts).",
        "",
    ]
    for name, form in grammar.FORMS.items():
        lines += [f"## {_title(name)}", "", form.doc]
        for group in form.one_of:
            lines[-1] += f" Exactly one of {', '.join(f'`{key}`' for key in group)}."
        lines.append("")
        if form.keys:
            lines += ["| key | meaning | value |", "| --- | --- | --- |"]
        for key, spec in form.keys.items():
            needs = form.together.get(key)
            tail = f" Goes with {' or '.join(f'`{need}`' for need in needs)}." if needs else ""
            star = "*" if spec.required else ""
            lines.append(f"| `{key}`{star} | {spec.doc}{tail} | {_describe_kind(spec.kind)} |")
        lines += [""] if form.keys else []
    for title, tolerances in (("Tolerances", TOLERANCES), ("Tolerances of texts", TEXT_TOLERANCES)):
        lines += [f"## {title}", "", "| name | what lenient readers accept |", "| --- | --- |"]
        lines += [f"| `{name}` | {about} |" for name, about in tolerances.items()]
        lines.append("")
    return _HEAD + "\n".join(lines)


def _title(form: str) -> str:
    return _TITLES.get(form, form.replace("_", " ").capitalize())


def _anchor(form: str) -> str:
    return re.sub(r"[^\w -]", "", _title(form).lower()).replace(" ", "-")


def _describe_options(options: Iterable[str]) -> str:
    """Return the options as code, with a link in the place of each complete group of them."""
    left = list(options)
    words = []
    for link, group in _GROUPS.items():
        if set(group) <= set(left):
            words.append(link)
            left = [option for option in left if option not in group]
    return ", ".join([*words, *(f"`{option}`" for option in left)])


def _describe_kind(kind: key_types.Kind) -> str:
    """Return the words for the values that a key takes."""
    match kind:
        case key_types.OneOf(options):
            return _describe_options(options)
        case key_types.Use(form):
            return f"mapping: [{_title(form).lower()}](#{_anchor(form)})"
        case key_types.ListOf(item):
            return f"list of {_describe_kind(item)}"
        case key_types.MapOf(item):
            return f"mapping of names to {_describe_kind(item)}"
        case key_types.ByVersion(item):
            return f"mapping of versions to {_describe_kind(item)}"
        case key_types.Either(options) if isinstance(options[-1], key_types.ByVersion):
            return " or ".join(_describe_kind(one) for one in options[:-1]) + ", *by version*"
        case key_types.Either(options):
            return " or ".join(_describe_kind(one) for one in options)
        case _:
            return _WORDS[type(kind).__name__]


if __name__ == "__main__":
    REFERENCE.write_text(reference(), encoding="utf-8", newline="\n")
