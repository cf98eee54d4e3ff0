"""Fill in templates: printing of values by kind of file, and the filters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import PurePosixPath
from typing import Any

from jinja2 import Undefined
from markupsafe import Markup

from codecgen.plan.generated_names import identifier
from codecgen.targets.escaping import comment_text, html_text, json_text, markdown_text, printable
from codecgen.targets.rendering import Renderer
from codecgen.targets.template.outputs import Output
from codecgen.targets.template.schema_text import Words, text_of
from codecgen.targets.template.view import Root
from codecgen.targets.template.view_types import Place

_WIDEST = 200


class Writer:
    """Renders the files of a set of user templates. ``warnings`` has what templates say that they
    leave out.
    """

    def __init__(self, root: Root, templates: Mapping[str, str]) -> None:
        self._templates = templates
        self._values = {field.name: getattr(root, field.name) for field in fields(root)}
        self._renderers: dict[str, Renderer] = {}
        self._warnings: dict[str, None] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the distinct warnings, in order."""
        return tuple(self._warnings)

    def write(self, output: Output) -> str:
        """Return the text of the file ``output``, rendered from its template, with printed values
        escaped as the suffix of its path requires. Raise RenderError if the template is missing or
        fails, prints None or another value that is no text or integer (such as a float), or prints
        schema text without a filter in a file of a kind without escaping. Its warnings are added to
        ``warnings``.
        """
        suffix = PurePosixPath(output.path).suffix.lower()
        if suffix not in self._renderers:
            finalize = _printer(ESCAPES.get(suffix))
            self._renderers[suffix] = Renderer(self._templates, finalize, FILTERS)
        values = {**self._values, "warn": self._warn, **output.values}
        return self._renderers[suffix].render(output.template, **values)

    def _warn(self, thing: Any, *words: object) -> str:
        """Add a warning with the text ``words`` at the place of the declaration ``thing``, once,
        and return ``""``. Raise TypeError if ``thing`` has no place in a schema file. Templates
        call this function as ``warn``.
        """
        place = getattr(thing, "place", None)
        if not isinstance(place, Place):
            raise TypeError(
                "warn() needs something with a place in the schema, such as a field or a layout"
            )
        text = printable("".join(text_of(word) for word in words))
        self._warnings[f"{text_of(place.file)}:{place.line}: {text}"] = None
        return ""


def _printer(escape: Callable[[str], str] | None) -> Callable[[Any], Markup]:
    """Return the function that prints values in templates. It escapes text, integers and schema text
    with ``escape``, or, if that is None, prints text and integers unchanged and raises TypeError for
    schema text. Markup stays unchanged. It raises TypeError for None and values of other types, such
    as floats, and UndefinedError for unknown names.
    """

    def printed(value: Any) -> Markup:
        """Return a value as markup; raise TypeError for None and for values that are no text or integer."""
        if isinstance(value, Markup):
            return value
        if value is None:
            raise TypeError("the template prints a value that is None: test for it with an if")
        if not isinstance(value, str | int | Words | Undefined):
            raise TypeError(f"a {type(value).__name__} is printed, which is not text")
        if escape is not None:
            return Markup(escape(text_of(value)))
        return Markup(str(value))

    return printed


ESCAPES: Mapping[str, Callable[[str], str]] = {
    ".htm": html_text,
    ".html": html_text,
    ".md": markdown_text,
    ".svg": html_text,
    ".txt": printable,
    ".xml": html_text,
}
"""Ending of a file -> how what is printed in it is escaped. In all other files words go through filters."""


# ---------------------------------------------------------------- filters


def _comment(value: object, prefix: str = "# ", width: int = 100) -> Markup:
    """`doc | comment("// ")`: words as lines that begin so, at most `width` wide (100). Nothing in them ends a comment."""
    return Markup(comment_text(text_of(value), prefix, min(width, _WIDEST)))


def _json(value: object) -> Markup:
    """`doc | json`: words, a name or a number as JSON, which YAML, JavaScript and many others read too."""
    if isinstance(value, int):
        return Markup(json.dumps(value))
    return Markup(json_text(text_of(value)))


def _html(value: object) -> Markup:
    """`doc | html`: words in HTML, SVG or XML, in whatever file."""
    return Markup(html_text(text_of(value)))


def _md(value: object) -> Markup:
    """`doc | md`: words in Markdown, in whatever file."""
    return Markup(markdown_text(text_of(value)))


def _camel(name: str) -> str:
    """`name | camel`: `base_offset` as `baseOffset`."""
    head, *rest = _name(name).split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _pascal(name: str) -> str:
    """`name | pascal`: `base_offset` as `BaseOffset`."""
    return "".join(part[:1].upper() + part[1:] for part in _name(name).split("_"))


def _kebab(name: str) -> str:
    """`name | kebab`: `base_offset` as `base-offset`."""
    return _name(name).replace("_", "-")


def _name(name: str) -> str:
    """Return a name without the dots of names of other directories; raise TypeError for other text."""
    if not re.fullmatch("[A-Za-z0-9_.]*", str(name)):
        raise TypeError(f"a name is needed, not {printable(str(name))!r}")
    return identifier(str(name))


def _hex(number: int, digits: int = 0) -> str:
    """`mask | hex(4)`: a number as `0x00ff`."""
    return f"{number:#0{min(digits, 64) + 2}x}"


def _pad(text: object, width: int) -> Markup | str:
    """`name | pad(20)`: text with spaces after it, up to 200."""
    padded = str(text).ljust(min(width, _WIDEST))
    return Markup(padded) if isinstance(text, Markup) else padded


def _indent(text: object, spaces: int = 4) -> Markup | str:
    """`{% filter indent(4) %}`: every line but the first moved in, by at most 200."""
    moved = str(text).replace("\n", "\n" + " " * min(spaces, _WIDEST))
    return Markup(moved) if isinstance(text, Markup) else moved


FILTERS: Mapping[str, Callable[..., object]] = {
    "comment": _comment,
    "json": _json,
    "html": _html,
    "md": _md,
    "camel": _camel,
    "pascal": _pascal,
    "kebab": _kebab,
    "hex": _hex,
    "pad": _pad,
    "indent": _indent,
}
"""The filters beside those of Jinja2."""
