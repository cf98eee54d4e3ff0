"""Pages in Markdown: the templates of the target docs, filled in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from codecgen.targets.docs import markdown
from codecgen.targets.docs.pages import Index, Page
from codecgen.targets.docs.text import Anchor, Phrase, relative
from codecgen.targets.rendering import Renderer, package_templates

FOLDER = "templates/markdown"
_GAP = re.compile(r"\n{3,}")


class MarkdownPages:
    """Writes the pages of a site. ``pictures`` is the folder of the pictures, or None for pages without."""

    def __init__(self, templates: Mapping[str, str], pictures: str | None) -> None:
        self._pictures = pictures
        known = package_templates("codecgen.targets.docs", FOLDER)
        self._renderer = Renderer({**known, **templates}, _finalize, _FILTERS)

    def index(self, index: Index) -> str:
        return self._render("index.md.j2", index.path, index=index)

    def page(self, page: Page) -> str:
        return self._render("page.md.j2", page.path, page=page)

    def _render(self, template: str, path: str, **values: object) -> str:
        def picture(name: str, label: str) -> Markup:
            """The picture of that name, as the page links it."""
            return Markup(markdown.picture(relative(f"{self._pictures}/{name}.svg", path), label))

        shown = {"pictures": self._pictures is not None, "picture": picture}
        text = self._renderer.render(template, **shown, **values)
        return _GAP.sub("\n\n", text).strip("\n") + "\n"


def template_names() -> frozenset[str]:
    """The templates that may be replaced."""
    return frozenset(package_templates("codecgen.targets.docs", FOLDER))


def _finalize(value: object) -> Markup:
    """What is printed is data, unless a filter made it."""
    return value if isinstance(value, Markup) else Markup(markdown.markdown(value))


def _marked(function: Callable[..., str]) -> Callable[..., Markup]:
    """A filter whose result is Markdown."""

    def filtered(*arguments: Any, **named: Any) -> Markup:
        return Markup(function(*arguments, **named))

    return filtered


def _table(rows: Sequence[object], **columns: str) -> str:
    """``rows | table(name="Name")``: a column for each attribute, with its head."""
    return markdown.table(
        columns.values(), [[getattr(row, name) for name in columns] for row in rows]
    )


def _table_of(rows: Iterable[Iterable[object]], heads: Iterable[object]) -> str:
    return markdown.table(heads, rows)


def _anchor(name: str) -> str:
    return markdown.markdown(Phrase((Anchor(name),)))


def _hashes(level: int) -> str:
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
