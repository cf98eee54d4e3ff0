"""The HTML site: its pages, the annotated bytes of examples, and the search index."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from codecgen.targets.docs import html
from codecgen.targets.docs.examples import Worked, WorkedText
from codecgen.targets.docs.hexdump import MAX_FIELD_BYTES, PER_LINE, Bytes, Stream
from codecgen.targets.docs.linking import Uses, field_target, link_fields
from codecgen.targets.docs.pages import Page, folder_title, folders, pages
from codecgen.targets.docs.sections import EnumSection, LayoutSection, Section, StreamSection
from codecgen.targets.docs.site import Site
from codecgen.targets.docs.text import Phrase, link, relative, release
from codecgen.targets.docs.texts import TextSection
from codecgen.targets.escaping import html_text, json_text
from codecgen.targets.rendering import Renderer, package_templates

FOLDER = "templates/html"
NAMES = "names.html"
ASSETS = ("site.css", "site.js")
SEARCH = "search.js"
MAX_SEARCH_WORDS = 140
"""Characters of a description in the search index."""


def template_names() -> frozenset[str]:
    """Return the names of the templates that may be replaced."""
    return frozenset(package_templates("codecgen.targets.docs", FOLDER))


@dataclass(frozen=True, slots=True)
class Edition:
    """A release in the switch between releases. ``here``: it is the current one; ``there``: it has this page."""

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
    """Renders the HTML sites of a plan: the current site, and the sites as of old releases, newest
    first.
    """

    def __init__(self, templates: Mapping[str, str], sites: Sequence[Site]) -> None:
        known = package_templates("codecgen.targets.docs", FOLDER)
        self._renderer = Renderer({**known, **templates}, _finalize, _FILTERS)
        self._sites = sites

    def assets(self) -> Iterator[tuple[str, str]]:
        """Yield the path and text of the files that all pages share."""
        for name in ASSETS:
            yield f"{self._sites[0].root}/{name}", self._renderer.render(f"{name}.j2")

    def site(
        self, site: Site, worked: Mapping[str, Sequence[Worked | WorkedText]], old: Sequence[Site]
    ) -> Iterator[tuple[str, str]]:
        """Yield the path and text of each file of one site: the index, the list of names, the
        search index and the pages. ``worked`` has the examples by declaration, ``old`` the sites of
        old releases. Raise RenderError if a template cannot be rendered, SizeError if an overhead
        size cannot be computed.
        """
        index, plain = pages(site, worked, old)
        found, uses = link_fields(site, plain)
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
        """Return the text of the page at ``path``, rendered from the template named ``template``
        with the values ``shared``, functions for links, and the switch between releases. ``page``
        is None for the index and the list of names; ``uses`` has the places that name each field.
        Raise RenderError if the template cannot be rendered.
        """

        def href_to(target: str) -> Markup:
            """Return the address of a file as seen from this page."""
            return Markup(html.href(relative(target, path)))

        def uses_of(anchor: str) -> tuple[Phrase, ...]:
            """Return links to the places that name a field."""
            return tuple(
                link(use.label, f"#{use.anchor}")
                if use.page == path
                else link(f"{use.layout}.{use.label}", f"{relative(use.page, path)}#{use.anchor}")
                for use in uses.get(anchor, ())
            )

        def bytes_of(layout: str, stream: StreamSection) -> Dump:
            """Return the bytes of an example with links to their fields."""
            return dump(site, path, layout, stream.stream)

        values: dict[str, object] = {
            **shared,
            "page": page,
            "path": path,
            "to": href_to,
            "heading": _marked(html.heading),
            "uses_of": uses_of,
            "bytes_of": bytes_of,
            "editions": tuple(self._editions(site, path)),
            "root": self._sites[0].root,
            "site_root": site.root,
        }
        return self._renderer.render(template, **values).strip("\n") + "\n"

    def _editions(self, site: Site, path: str) -> Iterator[Edition]:
        """Yield an Edition (a link in the switch between releases) for each site, oldest release
        first, the current site last. It leads to the page of that site that corresponds to
        ``path``, a page of ``site``, or to the site's index if it lacks the page.
        """
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
    """Return printed values escaped; the output of filters is HTML already."""
    return value if isinstance(value, Markup) else Markup(html.html(value))


def _marked(function: Callable[..., str]) -> Callable[..., Markup]:
    """Return a function that calls ``function`` and marks its result as HTML, so that a template
    does not escape it again.
    """

    def filtered(*arguments: Any, **named: Any) -> Markup:
        """Return the result of the filter."""
        return Markup(function(*arguments, **named))

    return filtered


def _commas(items: Iterable[object]) -> str:
    """Return values separated by commas."""
    return ", ".join(html.html(item) for item in items)


def _address(target: str) -> str:
    """Return ``row.href | address``: a path, perhaps with an anchor, as an attribute."""
    return html.href(target)


def _lines(text: str) -> str:
    """Return ``example.derived | lines``: text with line breaks, for a block of code."""
    return "\n".join(html_text(line) for line in text.split("\n"))


def _anchor(name: str) -> str:
    """Return ``"record_batch-crc" | anchor``: the address of a place of this page."""
    return html.href(f"#{name}")


def _table(rows: Sequence[object], **columns: object) -> str:
    """Return ``rows | table(name="Name")``: a table with a column for each named attribute."""
    return html.table(
        list(columns.values()), [[getattr(row, name) for name in columns] for row in rows]
    )


def _table_of(rows: Sequence[Sequence[object]], headings: Sequence[object]) -> str:
    """Return a table of rows of cells."""
    return html.table(headings, rows)


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


@dataclass(frozen=True, slots=True)
class ByteRun:
    """Adjacent bytes in a row that belong to the same piece."""

    piece: int
    hex: str


@dataclass(frozen=True, slots=True)
class ByteRow:
    """A row of bytes. ``left_out`` counts the bytes before it that are not shown."""

    offset: int
    runs: tuple[ByteRun, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class PieceRow:
    """A piece: its number, its byte range, its field with a link, and its value in words."""

    piece: int
    bytes: str
    path: str
    href: str
    value: str


@dataclass(frozen=True, slots=True)
class Dump:
    """The bytes of a stream in rows, and the pieces that the bytes belong to."""

    rows: tuple[ByteRow, ...]
    pieces: tuple[PieceRow, ...]


def dump(site: Site, page: str, layout: str, stream: Stream) -> Dump:
    """Return a Dump of a stream (the bytes of an example of ``layout``, or of a compressed section
    in it): its bytes in rows, and its pieces, numbered from 0, with a link, relative to ``page``,
    to the field of each or, if there is none, to the layout.
    """
    pieces = tuple(
        PieceRow(
            i,
            str(piece.start) if piece.end - piece.start == 1 else f"{piece.start}–{piece.end - 1}",
            piece.path,
            _href(site, page, layout, piece.path),
            piece.value,
        )
        for i, piece in enumerate(stream.pieces)
    )
    return Dump(tuple(_rows(stream)), pieces)


def _href(site: Site, page: str, layout: str, path: str) -> str:
    """Return the address of the description of a field by its path (``records[0].key``)."""
    names = tuple(re.sub(r"\[\d+\]", "", path).split("."))
    found = field_target(site, layout, names) or (layout,)
    return site.href(page, found[0], *found[1:])


def _rows(stream: Stream) -> Iterator[ByteRow]:
    """Yield the bytes of a stream in rows that end at multiples of 8. Of each piece only the first
    256 bytes are shown; a row after a gap begins at the next shown byte and states how many bytes
    were left out.
    """
    shown = [
        (at, i)
        for i, piece in enumerate(stream.pieces)
        for at in range(piece.start, min(piece.end, piece.start + MAX_FIELD_BYTES))
    ]
    begin, after = 0, 0
    while begin < len(shown):
        first = shown[begin][0]
        row = first - first % PER_LINE
        end = begin
        while end < len(shown) and shown[end][0] == first + end - begin < row + PER_LINE:
            end += 1
        yield ByteRow(first, tuple(_byte_runs(stream.data, shown[begin:end])), first - after)
        begin, after = end, shown[end - 1][0] + 1


def _byte_runs(data: Bytes, shown: list[tuple[int, int]]) -> Iterator[ByteRun]:
    """Yield the bytes of one row, given as (position, piece number) pairs, as a ByteRun for each
    sequence of bytes of the same piece.
    """
    begin = 0
    for end in range(1, len(shown) + 1):
        if end == len(shown) or shown[end][1] != shown[begin][1]:
            first, last = shown[begin][0], shown[end - 1][0]
            yield ByteRun(shown[begin][1], data[first : last + 1].hex(" "))
            begin = end


@dataclass(frozen=True, slots=True)
class Entry:
    """A name in the search index: what it is, its address as seen from the index page, and the start of its
    description.
    """

    name: str
    kind: str
    href: str
    words: str


def entries(site: Site, pages: Iterable[Page]) -> Iterator[Entry]:
    """Yield an Entry of the search index for each declaration and view of the pages, followed by
    its rows with an anchor: fields, bits, enum values, text values and derived values. Addresses
    are relative to the index page; descriptions are cut to 140 characters.
    """
    for page in pages:
        path = relative(page.path, site.index)
        for thing in page.sections:
            name = thing.name.removesuffix("--view")
            yield Entry(name, thing.kind, f"{path}#{thing.name}", _short(thing.doc.plain))
            for anchor, kind, words in _named_rows(thing):
                name = anchor.removesuffix("-derived").replace("-", ".")
                yield Entry(name, kind, f"{path}#{anchor}", _short(words))


def _named_rows(thing: Section) -> Iterator[tuple[str, str, str]]:
    """Yield the anchor, kind and description of each row of a section that has an anchor: values of
    an enum or text; fields, bits and derived values of a layout. Yield nothing for choices and
    views.
    """
    if isinstance(thing, EnumSection):
        for value in thing.rows:
            yield value.anchor, "value", value.doc.plain
    if isinstance(thing, TextSection):
        yield from ((row.anchor, "value of a text", row.meaning.plain) for row in thing.rows)
    if isinstance(thing, LayoutSection):
        rows = [row for group in thing.groups for row in group.rows if row.anchor]
        yield from ((row.anchor, "field", row.meaning.plain) for row in rows)
        bits = [bit for table in thing.bits for bit in table.rows if bit.anchor]
        yield from ((bit.anchor, "bit", bit.meaning.plain) for bit in bits)
        derived = [row for part in thing.derived for row in part.rows]
        yield from ((row.anchor, "derived value", row.meaning.plain) for row in derived)


def _short(words: str) -> str:
    """Return text, cut at the last space within MAX_SEARCH_WORDS characters and with ``…`` after it
    if it is longer.
    """
    if len(words) <= MAX_SEARCH_WORDS:
        return words
    return words[:MAX_SEARCH_WORDS].rpartition(" ")[0] + "…"
