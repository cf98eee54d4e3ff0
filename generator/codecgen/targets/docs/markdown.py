"""Phrases as Markdown. Nothing that comes from a schema becomes a link, a picture, HTML or a table."""

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
    Said,
    printable,
    said,
)

_SPECIAL = re.compile(r"[\\`*\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_LINE_START = re.compile(r"(?:[-+#=](?=\s|#|=|-|$)|\d{1,9}[.)](?=\s|$))")
# What stands in front is bounded: looking for it again from each letter of a long word would take for ever.
_ADDRESS = re.compile(
    r"(?i)[a-z][a-z0-9+.-]{0,63}://[^\s|`]*|www\.[^\s|`]*|[^\s|`<>]{1,255}@[^\s|`]+"
)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}


def markdown(words: object) -> str:
    """A phrase, or any other value as text that reads as it stands."""
    return "".join(_piece(piece) for piece in said(words).pieces)


def _piece(piece: Piece) -> str:
    match piece:
        case Said(text):
            return _said(printable(text))
        case Code(text):
            return code_span(text)
        case Link(label, target, True):
            return f"[{markdown(label)}]({quote(target, safe=':/?#&=%+,;@~-._')})"
        case Link(label, target):
            path, _, mark = target.partition("#")
            return f"[{markdown(label)}]({quote(path)}{'#' + mark if mark else ''})"
        case Anchor(name):
            return f'<a id="{escape(name)}"></a>'
        case Break():
            return "<br>"


def _said(text: str) -> str:
    """Addresses become code, so that no reader of Markdown makes links of them."""
    out = []
    at = 0
    for found in _ADDRESS.finditer(text):
        out += [_escaped(text[at : found.start()]), code_span(found.group())]
        at = found.end()
    out.append(_escaped(text[at:]))
    line = "".join(out)
    if line.endswith("#"):
        line = line[:-1] + "\\#"  # the end of a heading is no decoration
    start = _LINE_START.match(line)
    if start:
        line = f"{line[: start.end() - 1]}\\{line[start.end() - 1 :]}"
    return line


def _escaped(text: str) -> str:
    text = _SPECIAL.sub(lambda found: "\\" + found.group(), text)
    return "".join(_ENTITIES.get(char, char) for char in text)


def code_span(text: object) -> str:
    """A code span, also inside a table."""
    word = printable(str(text))
    if word and word == word.strip() and not re.search(r"[`|]", word):
        return f"`{word}`"
    entities = "".join(c if c.isalnum() or c == " " else f"&#{ord(c)};" for c in word)
    return f"<code>{entities}</code>"


def fence(text: str, language: str = "text") -> str:
    """A block of code that no line of it can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"


def picture(path: str, label: str) -> str:
    return f"![{markdown(label)}]({quote(path)})"


def bullets(items: Iterable[object]) -> str:
    return "\n".join(f"- {markdown(item)}" for item in items)


def table(heads: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """A table. Columns that are empty in all rows are left out."""
    names = [markdown(head) for head in heads]
    lines = [[markdown(cell) for cell in row] for row in rows]
    keep = [i for i in range(len(names)) if any(line[i] for line in lines)]
    out = ["| " + " | ".join(names[i] for i in keep) + " |", "|" + " --- |" * len(keep)]
    out += ["| " + " | ".join(line[i] for i in keep) + " |" for line in lines]
    return "\n".join(out)


def comment(text: str) -> str:
    """Words that cannot end the comment that they stand in."""
    return re.sub("[^A-Za-z0-9_./ ]|-(?=-)", "_", text)
