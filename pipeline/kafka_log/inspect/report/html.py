"""Elements of an HTML page. Every text is escaped when the page is written, because names and values come from files."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, tostring

from kafka_log.segment.printable import escape_unprintable

Child = Element | str | int | None
"""Content of an element: another element, a text or number, or None for nothing."""

MAX_CHARACTERS = 600
"""Maximum length of a text from a file. A longer one is cut, and says how long it is."""

GENERATOR = "kafka-log report"
"""Name in the head of each page, by which an existing page is recognized."""


def element(tag: str, *children: Child, **attributes: str | float | None) -> Element:
    """Return an element with its children in order; None is left out, of attributes too. In names
    of attributes ``_`` stands for ``-``, and a ``_`` at the end is dropped (``class_``).
    Unprintable characters in texts and attributes are escaped.
    """
    named = {
        name.rstrip("_").replace("_", "-"): escape_unprintable(str(value))
        for name, value in attributes.items()
        if value is not None
    }
    made = Element(tag, named)
    for child in children:
        append_child(made, child)
    return made


def append_child(parent: Element, child: Child) -> None:
    """Append an element, or a text after the last child, with unprintable characters escaped. Do
    nothing for None.
    """
    if child is None:
        return
    if isinstance(child, Element):
        parent.append(child)
        return
    text = escape_unprintable(str(child))
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text


def shorten(text: str, max_characters: int = MAX_CHARACTERS) -> str:
    """Return the text if it has at most ``max_characters``. Else return as many of its first ones,
    followed by ``...`` and its full length.
    """
    if len(text) <= max_characters:
        return text
    return f"{text[:max_characters]}... ({len(text):,} characters)"


def make_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[Child]],
    *,
    kinds: str = "",
    caption: str | None = None,
    has_cards: bool = False,
) -> Element:
    """Return a table in a box that scrolls sideways on a narrow screen; with ``has_cards`` each row is a
    card of headings and cells there. ``kinds`` has a letter for
    each column: ``n`` a number, aligned to the right; ``k`` a short text, kept on one line; ``w`` a
    long text, which gets room; ``.`` (also for columns after the last letter) anything else.
    ``caption`` is a label for screen readers. Raise ValueError if a row has more or fewer cells
    than ``headings``.
    """
    letters = kinds.ljust(len(headings), ".")[: len(headings)]
    classes = [None if letter == "." else letter for letter in letters]
    head = element("tr")
    for heading, name in zip(headings, classes, strict=True):
        head.append(element("th", heading, scope="col", class_=name))
    body = element("tbody")
    for row in rows:
        line = element("tr")
        for heading, cell, name in zip(headings, row, classes, strict=True):
            label = heading or None if has_cards else None
            line.append(element("td", cell, class_=name, data_label=label))
        body.append(line)
    table = element("table", element("thead", head), body)
    kind = "scroll cards" if has_cards else "scroll"
    return element("div", table, class_=kind, tabindex="0", role="region", aria_label=caption)


def make_policy(style: str, *, has_forms: bool = False) -> str:
    """Return the content security policy of a page: it allows only ``style``, by its digest, no
    script and no request; with ``has_forms`` also forms that are sent to the origin of the page.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    target = "'self'" if has_forms else "'none'"
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action {target}"


def write_page(
    title: str,
    style: str,
    *body: Element,
    generator: str = GENERATOR,
    has_forms: bool = False,
) -> bytes:
    """Return a complete HTML page as UTF-8, with the content security policy of
    :func:`make_policy`. ``generator`` is its name in the head.
    """
    policy = make_policy(style, has_forms=has_forms)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="robots", content="noindex"),
        element("meta", name="generator", content=generator),
        element("title", title),
    )
    sheet = Element("style")
    sheet.text = style  # our own file, byte for byte as its digest
    head.append(sheet)
    page = element("html", head, element("body", *body), lang="en")
    text: bytes = tostring(page, encoding="utf-8", method="html")
    return b"<!DOCTYPE html>\n" + text + b"\n"


def is_page(start: bytes) -> bool:
    """Return whether a file that begins with ``start`` was written by :func:`write_page`."""
    return start.startswith(b"<!DOCTYPE html>") and GENERATOR.encode() in start
