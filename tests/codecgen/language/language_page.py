"""docs/schema-language.md: its table of keys is written from the grammar. `python -m tests.codecgen.language.language_page`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codecgen.schema import grammar, key_types
from tests.paths import ROOT

PAGE = ROOT / "docs" / "schema-language.md"
HEADING = "## Every key\n"
_TITLES = {
    "manifest": "The manifest, codecgen.yaml",
    "documents": "documents, in the manifest",
    "layout": "A layout",
    "version_note": "A version, under version_notes",
    "field": "A field",
    "bit": "Bits, under members",
    "field_range": "A range, under measures",
    "covered_range": "A range, under covers",
    "compressed": "compressed",
    "variant": "A codec, under variants",
    "derived": "A derived value",
    "formerly": "formerly",
    "misprint": "misprint",
    "example": "An example",
    "overhead": "overhead",
    "overhead_column": "A column, under columns",
    "text": "A text",
    "line": "A line, under lines",
    "line_value": "A value of a line, under each",
    "property": "A key, under properties",
    "text_example": "An example of a text",
    "choice": "A choice",
    "enums": "Enums",
    "enum": "An enum",
    "enum_value": "A value of an enum",
    "view": "A view",
    "column": "A column, under columns",
    "rows": "Rows, under rows",
    "write": "write, under rows",
    "since": "since, until and draft",
}


def blocks() -> Iterator[tuple[int, str]]:
    """The YAML on the page, with the line where each block begins."""
    text = PAGE.read_text(encoding="utf-8")
    for found in re.finditer(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield text[: found.start()].count("\n") + 2, found[1]


def keys() -> str:
    """The section on every key, from the grammar."""
    lines = [HEADING, "Keys with * must be there. What takes a list also takes a single value.", ""]
    for name, form in grammar.FORMS.items():
        lines += [f"### {_title(name)}", "", form.doc]
        for group in form.one_of:
            lines[-1] += f" Exactly one of {', '.join(f'`{key}`' for key in group)}."
        lines.append("")
        if form.keys:
            lines += ["| key | what it says | value |", "| --- | --- | --- |"]
        for key, spec in form.keys.items():
            needs = form.together.get(key)
            tail = f" Goes with {' or '.join(f'`{need}`' for need in needs)}." if needs else ""
            star = "*" if spec.required else ""
            lines.append(f"| `{key}`{star} | {spec.doc}{tail} | {words(spec.kind)} |")
        lines += [""] if form.keys else []
    return "\n".join(lines)


def _title(form: str) -> str:
    return _TITLES.get(form, form.replace("_", " ").capitalize())


def words(kind: key_types.Kind) -> str:
    """What a key takes."""
    match kind:
        case key_types.OneOf(options):
            return ", ".join(f"`{option}`" for option in options)
        case key_types.Use(form):
            return f"a mapping: {_title(form).split(',')[0]}"
        case key_types.ListOf(item):
            return f"list of {words(item)}"
        case key_types.MapOf(item):
            return f"mapping of names to {words(item)}"
        case key_types.ByVersion(item):
            return f"a mapping of versions to {words(item)}"
        case key_types.Either(options) if isinstance(options[-1], key_types.ByVersion):
            return " or ".join(words(one) for one in options[:-1]) + ", or that by version"
        case key_types.Either(options):
            return " or ".join(words(one) for one in options)
        case _:
            return {
                "Text": "text",
                "Name": "name",
                "Declared": "name",
                "Directory": "installed package, or `../path`",
                "Word": "word",
                "Integer": "number",
                "Boolean": "`true` or `false`",
                "Code": "expression",
                "Constant": "number, `true`, `false`, text, `{hex: ..}`, name of an enum's value",
                "Default": "expression, text in quotes, `{hex: ..}`, `[]`",
                "Range": "versions: `1`, `0-2`, `1+`",
                "Bits": "bits: `3`, `0-2`",
                "LayoutName": "layout, or `layout@1`",
                "Release": "release",
                "Hex": "hexadecimal digits",
                "Anything": "any YAML",
            }[type(kind).__name__]


def with_keys(text: str) -> str:
    """The page with its table of keys written anew."""
    return text[: text.index(HEADING)] + keys()


if __name__ == "__main__":
    PAGE.write_text(with_keys(PAGE.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
