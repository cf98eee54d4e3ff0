"""Markdown pages from the templates of the target docs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from codecgen.targets.docs import markdown
from codecgen.targets.docs.pages import Index, Page
from codecgen.targets.docs.text import Anchor, Phrase, relative
from codecgen.targets.rendering import Renderer, package_templates

FOLDER = "templates/markdown"
_GAP = re.compile(r"\n{3,}")


class MarkdownPages:
    """Renders the Markdown pages of a site from templates. ``pictures`` is the folder of the
    pictures, None for pages without pictures.
    """

    def __init__(self, templates: Mapping[str, str], pictures: str | None) -> None:
        self._pictures = pictures
        known = package_templates("codecgen.targets.docs", FOLDER)
        self._renderer = _renderer(tuple({**known, **templates}.items()))

    def index(self, index: Index) -> str:
        """Return the text of the index page."""
        return self._render("index.md.j2", index.path, index=index)

    def page(self, page: Page) -> str:
        """Return the text of a page."""
        return self._render("page.md.j2", page.path, page=page)

    def _render(self, template: str, path: str, **values: object) -> str:
        """Return the text of a page at ``path`` from a template: at most one empty line in a row,
        none at the start, one line feed at the end. Raise RenderError if the template cannot be
        rendered.
        """

        def picture(name: str, label: str) -> Markup:
            """Return the Markdown of the picture ``name``."""
            return Markup(markdown.picture(relative(f"{self._pictures}/{name}.svg", path), label))

        shown = {"pictures": self._pictures is not None, "picture": picture}
        text = self._renderer.render(template, **shown, **values)
        return _GAP.sub("\n\n", text).strip("\n") + "\n"


@lru_cache(maxsize=2)  # compiling the templates takes longer than rendering the pages of a release
def _renderer(templates: tuple[tuple[str, str], ...]) -> Renderer:
    """Return a renderer of templates, given as (name, text)."""
    return Renderer(dict(templates), _finalize, _FILTERS)


def template_names() -> frozenset[str]:
    """Return the names of the templates that may be replaced."""
    return frozenset(package_templates("codecgen.targets.docs", FOLDER))


def _finalize(value: object) -> Markup:
    """Return printed values escaped; the output of filters is Markdown already."""
    return value if isinstance(value, Markup) else Markup(markdown.markdown(value))


def _marked(function: Callable[..., str]) -> Callable[..., Markup]:
    """Return a function that calls ``function`` and marks its result as Markdown, so that a
    template does not escape it again.
    """

    def filtered(*arguments: Any, **named: Any) -> Markup:
        """Return the result of the filter."""
        return Markup(function(*arguments, **named))

    return filtered


def _table(rows: Sequence[object], **columns: str) -> str:
    """Return ``rows | table(name="Name")``: a table with a column for each named attribute."""
    return markdown.table(
        columns.values(), [[getattr(row, name) for name in columns] for row in rows]
    )


def _table_of(rows: Iterable[Iterable[object]], headings: Iterable[object]) -> str:
    """Return a table of rows of cells."""
    return markdown.table(headings, rows)


def _anchor(name: str) -> str:
    """Return an anchor of that name."""
    return markdown.markdown(Phrase((Anchor(name),)))


def _hashes(level: int) -> str:
    """Return the marks of a heading of a level from 1 to 6."""
    return "#" * max(1, min(level, 6))


_MADE: Mapping[str, Callable[..., str]] = {
    "anchor": _anchor,
    "bullets": markdown.bullets,
    "comment": markdown.comment,
    "fence": markdown.fence,
    "hashes": _hashes,
    "table": _table,
    "table_of": _table_of,
}
_FILTERS = {name: _marked(function) for name, function in _MADE.items()}
