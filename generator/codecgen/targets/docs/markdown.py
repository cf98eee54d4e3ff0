"""Phrases as Markdown. Text of a schema cannot become a link, a picture, HTML or a table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from urllib.parse import quote

from codecgen.targets.docs.text import (
    Anchor,
    Break,
    Code,
    Link,
    Piece,
    PlainText,
    as_phrase,
)
from codecgen.targets.escaping import markdown_code, markdown_text


def markdown(words: object) -> str:
    """Return a phrase as Markdown, or any other value as escaped text."""
    return "".join(_piece_text(piece) for piece in as_phrase(words).pieces)


def _piece_text(piece: Piece) -> str:
    """Return a piece of a phrase as Markdown, with its text escaped: plain text, a code span, a
    link, an anchor, or ``<br>``.
    """
    match piece:
        case PlainText(text):
            return markdown_text(text)
        case Code():
            return markdown_code(piece.text)
        case Link(label, target, True):
            return f"[{markdown(label)}]({quote(target, safe=':/?#&=%+,;@~-._')})"
        case Link(label, target):
            path, _, mark = target.partition("#")
            return f"[{markdown(label)}]({quote(path)}{'#' + mark if mark else ''})"
        case Anchor(name):
            return f'<a id="{escape(name)}"></a>'
        case Break():
            return "<br>"


def fence(text: str, language: str = "text") -> str:
    """Return a code block that no line of the text can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"


def picture(path: str, label: str) -> str:
    """Return a picture with its label."""
    return f"![{markdown(label)}]({quote(path)})"


def bullets(items: Iterable[object]) -> str:
    """Return a Markdown list."""
    return "\n".join(f"- {markdown(item)}" for item in items)


def table(headings: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table with the headings ``headings``; cells are escaped. Columns whose cells
    are empty in all rows are left out; without rows, all are.
    """
    names = [markdown(heading) for heading in headings]
    lines = [[markdown(cell) for cell in row] for row in rows]
    keep = [i for i in range(len(names)) if any(line[i] for line in lines)]
    out = ["| " + " | ".join(names[i] for i in keep) + " |", "|" + " --- |" * len(keep)]
    out += ["| " + " | ".join(line[i] for i in keep) + " |" for line in lines]
    return "\n".join(out)


def comment(text: str) -> str:
    """Return text that cannot end the comment around it."""
    return re.sub("[^A-Za-z0-9_./ ]|-(?=-)", "_", text)
