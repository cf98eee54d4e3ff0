"""What a reader can look for: every name of a site, with its page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from codecgen.targets.docs.pages import Page
from codecgen.targets.docs.sections import EnumSection, LayoutSection, Section
from codecgen.targets.docs.site import Site
from codecgen.targets.docs.text import relative
from codecgen.targets.docs.texts import TextSection

LONGEST = 140


@dataclass(frozen=True, slots=True)
class Entry:
    """A name: what it is called, what it is, where it is described (as seen from the site), and its first words."""

    name: str
    kind: str
    href: str
    words: str


def entries(site: Site, pages: Iterable[Page]) -> Iterator[Entry]:
    """The things, fields, bits, values and derived values of a site, page by page."""
    for page in pages:
        path = relative(page.path, site.index)
        for thing in page.sections:
            name = thing.name.removesuffix("--view")
            yield Entry(name, thing.kind, f"{path}#{thing.name}", _short(thing.doc.plain))
            for anchor, kind, words in _inside(thing):
                name = anchor.removesuffix("-derived").replace("-", ".")
                yield Entry(name, kind, f"{path}#{anchor}", _short(words))


def _inside(thing: Section) -> Iterator[tuple[str, str, str]]:
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
    if len(words) <= LONGEST:
        return words
    return words[:LONGEST].rpartition(" ")[0] + "…"
