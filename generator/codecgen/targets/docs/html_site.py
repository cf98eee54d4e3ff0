"""Pages in HTML: a site to open from disk, from templates over the same data as the pages in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from codecgen.targets.docs import html
from codecgen.targets.docs.examples import Worked, WorkedText
from codecgen.targets.docs.hexdump_rows import Dump, dump
from codecgen.targets.docs.linking import Uses, linked
from codecgen.targets.docs.pages import Page, folder_title, folders, pages
from codecgen.targets.docs.search import entries
from codecgen.targets.docs.sections import StreamSection
from codecgen.targets.docs.site import Site
from codecgen.targets.docs.text import Phrase, link, relative, release
from codecgen.targets.escaping import html_text, json_text
from codecgen.targets.rendering import Renderer, packaged

FOLDER = "templates/html"
NAMES = "names.html"
ASSETS = ("site.css", "site.js")
SEARCH = "search.js"


def template_names() -> frozenset[str]:
    """The templates that may be replaced."""
    return frozenset(packaged("codecgen.targets.docs", FOLDER))


@dataclass(frozen=True, slots=True)
class Edition:
    """A release, as the switch between them shows it."""

    label: str
    title: str
    href: str
    here: bool
    there: bool


@dataclass(frozen=True, slots=True)
class NavFolder:
    """Pages of one folder, in the list of contents."""

    title: str
    pages: tuple[Page, ...]


class HtmlPages:
    """Writes the sites of a plan: that of today first, then those as of old releases."""

    def __init__(self, templates: Mapping[str, str], sites: Sequence[Site]) -> None:
        known = packaged("codecgen.targets.docs", FOLDER)
        self._renderer = Renderer({**known, **templates}, _finalize, _FILTERS)
        self._sites = sites

    def assets(self) -> Iterator[tuple[str, str]]:
        """The files that all pages share."""
        for name in ASSETS:
            yield f"{self._sites[0].root}/{name}", self._renderer.render(f"{name}.j2")

    def site(
        self, site: Site, worked: Mapping[str, Sequence[Worked | WorkedText]], old: Sequence[Site]
    ) -> Iterator[tuple[str, str]]:
        """The files of one site."""
        index, plain = pages(site, worked, old)
        found, uses = linked(site, plain)
        of_file = {page.file: page for page in found}
        nav = tuple(
            NavFolder(folder_title(site, name), tuple(of_file[file] for file in files))
            for name, files in folders(site).items()
        )
        shared = {"site_title": site.plan.manifest.title, "index": index, "nav": nav}
        data = tuple(entries(site, (page for folder in nav for page in folder.pages)))
        yield index.path, self._page(site, index.path, "index.html.j2", None, uses, shared)
        names = f"{site.root}/{NAMES}"
        listed = {**shared, "entries": data}
        yield names, self._page(site, names, "names.html.j2", None, uses, listed)
        yield f"{site.root}/{SEARCH}", self._renderer.render(f"{SEARCH}.j2", entries=data)
        for page in found:
            yield page.path, self._page(site, page.path, "page.html.j2", page, uses, shared)

    def _page(
        self,
        site: Site,
        path: str,
        template: str,
        page: Page | None,
        uses: Uses,
        shared: Mapping[str, object],
    ) -> str:
        def to(target: str) -> Markup:
            """The address of a file, as seen from this page."""
            return Markup(html.href(relative(target, path)))

        def uses_of(anchor: str) -> tuple[Phrase, ...]:
            """Links to where a field is named."""
            return tuple(
                link(use.label, f"#{use.anchor}")
                if use.page == path
                else link(f"{use.layout}.{use.label}", f"{relative(use.page, path)}#{use.anchor}")
                for use in uses.get(anchor, ())
            )

        def bytes_of(layout: str, stream: StreamSection) -> Dump:
            """The bytes of an example, with links to their fields."""
            return dump(site, path, layout, stream.stream)

        values: dict[str, object] = {
            **shared,
            "page": page,
            "path": path,
            "to": to,
            "heading": _marked(html.heading),
            "uses_of": uses_of,
            "bytes_of": bytes_of,
            "editions": tuple(self._editions(site, path)),
            "root": self._sites[0].root,
            "site_root": site.root,
        }
        return self._renderer.render(template, **values).strip("\n") + "\n"

    def _editions(self, site: Site, path: str) -> Iterator[Edition]:
        """The same page in each site, or the first page of that where there is none."""
        file = path.removeprefix(f"{site.root}/")
        for other in reversed(self._sites):
            there = f"{other.root}/{file}"
            known = there in other.pages.values() or file in (NAMES, site.index_name)
            number = other.plan.release
            title = "Today" if number is None else f"As of {release(other.plan, number).plain}"
            target = there if known else other.index
            where = html.href(relative(target, path))
            yield Edition(number or "now", title, where, other is site, known)


def _finalize(value: object) -> Markup:
    """What is printed is data, unless a filter made it."""
    return value if isinstance(value, Markup) else Markup(html.html(value))


def _marked(function: Callable[..., str]) -> Callable[..., Markup]:
    """A filter whose result is HTML."""

    def filtered(*arguments: Any, **named: Any) -> Markup:
        return Markup(function(*arguments, **named))

    return filtered


def _commas(items: Iterable[object]) -> str:
    return ", ".join(html.html(item) for item in items)


def _address(target: str) -> str:
    """`row.href | address`: a path, perhaps with an anchor, as an attribute."""
    return html.href(target)


def _lines(text: str) -> str:
    """`example.derived | lines`: text that has lines, for a block of code."""
    return "\n".join(html_text(line) for line in text.split("\n"))


def _anchor(name: str) -> str:
    """`"record_batch-crc" | anchor`: the address of a place of this page."""
    return html.href(f"#{name}")


def _table(rows: Sequence[object], **columns: object) -> str:
    """`rows | table(name="Name")`: a column for each attribute, with its head."""
    return html.table(
        list(columns.values()), [[getattr(row, name) for name in columns] for row in rows]
    )


def _table_of(rows: Sequence[Sequence[object]], heads: Sequence[object]) -> str:
    return html.table(heads, rows)


_MADE: Mapping[str, Callable[..., str]] = {
    "address": _address,
    "anchor": _anchor,
    "bullets": html.bullets,
    "commas": _commas,
    "lines": _lines,
    "json": lambda value: json_text(str(value)),
    "svg": html.svg,
    "table": _table,
    "table_of": _table_of,
}
_FILTERS = {name: _marked(function) for name, function in _MADE.items()}
