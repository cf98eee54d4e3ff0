"""Text as Markdown. What comes from a schema is data: nothing in it becomes a link, a picture, HTML or a table."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from html import escape
from urllib.parse import quote, urlsplit

from codecgen.plan import Plan
from codecgen.plan.as_of import release_key
from codecgen.schema.model import Since


class Safe(str):
    """Markdown. Any other text is escaped before it goes into a page."""

    __slots__ = ()


_SPECIAL = re.compile(r"[\\`*\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_LINE_START = re.compile(r"(?:[-+#=](?=\s|#|=|-|$)|\d{1,9}[.)](?=\s|$))")
_ADDRESS = re.compile(r"(?i)[a-z][a-z0-9+.-]*://[^\s|`]*|www\.[^\s|`]*|[^\s|`<>]+@[^\s|`]+")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}


def md(text: str) -> Safe:
    """Text that reads as it stands. Addresses become code, so that no reader of Markdown makes links of them."""
    if isinstance(text, Safe):
        return text
    text = printable(" ".join(str(text).split()))
    out = []
    at = 0
    for found in _ADDRESS.finditer(text):
        out += [_escaped(text[at : found.start()]), code(found.group())]
        at = found.end()
    out.append(_escaped(text[at:]))
    line = "".join(out)
    if line.endswith("#"):
        line = line[:-1] + "\\#"  # the end of a heading is no decoration
    start = _LINE_START.match(line)
    if start:
        line = f"{line[: start.end() - 1]}\\{line[start.end() - 1 :]}"
    return Safe(line)


def _escaped(text: str) -> str:
    text = _SPECIAL.sub(lambda found: "\\" + found.group(), text)
    return "".join(_ENTITIES.get(char, char) for char in text)


def printable(text: str) -> str:
    """The text without characters that control a terminal or the direction of writing."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def code(text: object) -> Safe:
    """A code span, also inside a table."""
    word = printable(str(text))
    if word and word == word.strip() and not re.search(r"[`|]", word):
        return Safe(f"`{word}`")
    entities = "".join(c if c.isalnum() or c == " " else f"&#{ord(c)};" for c in word)
    return Safe(f"<code>{entities}</code>")


def fence(text: str, language: str = "text") -> Safe:
    """A block of code that no line of it can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    ticks = "`" * max(3, longest + 1)
    return Safe(f"{ticks}{language}\n{text.rstrip()}\n{ticks}")


def link(label: str, target: str) -> Safe:
    """A link to a path below the documents, perhaps with an anchor."""
    path, _, anchor = target.partition("#")
    return Safe(f"[{md(label)}]({quote(path)}{'#' + anchor if anchor else ''})")


def outside(label: str, address: str) -> Safe:
    """A link to a web page that the manifest names; plain text when the address is not of the web."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return md(label)
    return Safe(f"[{md(label)}]({quote(address, safe=':/?#&=%+,;@~-._')})")


def picture(label: str, path: str) -> Safe:
    return Safe(f"![{md(label)}]({quote(path)})")


def anchor(name: str) -> Safe:
    return Safe(f'<a id="{escape(name)}"></a>')


def join(parts: Iterable[str], between: str = " ") -> Safe:
    """Parts beside each other; those that are not Markdown yet are escaped."""
    return Safe(between.join(md(part) for part in parts if part))


def listed(parts: Iterable[str], word: str = "and") -> Safe:
    """``a, b and c``."""
    items = [md(part) for part in parts]
    if len(items) < 2:
        return Safe("".join(items))
    return Safe(f"{', '.join(items[:-1])} {word} {items[-1]}")


def relative(target: str, page: str) -> str:
    """The path of a document as seen from a page."""
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def number(value: int) -> str:
    """A number, a long one with its digits in groups of three."""
    return f"{value:,}".replace(",", " ") if abs(value) >= 100_000 else str(value)


def byte_count(n: int) -> str:
    """``1 byte``, ``61 bytes``, ``268 435 456 bytes (256 MiB)``."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size and n % size == 0:
            return f"{number(n)} bytes ({n // size} {unit})"
    return "1 byte" if n == 1 else f"{number(n)} bytes"


def release(plan: Plan, number_: str) -> Safe:
    """``Kafka 3.1.0``."""
    line = plan.manifest.release_line
    return md(f"{line[:1].upper()}{line[1:]} {number_}" if line else number_)


def references(plan: Plan, since: Since | None) -> list[Safe]:
    """Links to the documents that brought something."""
    out = []
    for kind, numbers in since.references if since else ():
        for n in numbers:
            label = f"{kind.upper()}-{n}"
            out.append(outside(label, plan.manifest.links.get(kind, "").replace("{}", str(n))))
    return out


def since_words(plan: Plan, since: Since | None) -> Safe:
    """``Kafka 3.1.0 (KIP-534)``."""
    if since is None:
        return Safe("")
    links = references(plan, since)
    if since.release is None:
        return listed(links)
    bracket = f" ({listed(links)})" if links else ""
    return Safe(release(plan, since.release) + bracket)


def newest_first(releases: Iterable[str]) -> list[str]:
    return sorted(set(releases), key=release_key, reverse=True)


def heading(level: int, text: str, mark: Safe | None = None) -> Safe:
    """A heading; with ``mark`` an anchor in front, which links can lead to whatever the heading says."""
    line = f"{'#' * level} {md(text)}"
    return Safe(f"{mark}\n\n{line}" if mark else line)


def bullets(items: Iterable[str]) -> Safe:
    return Safe("\n".join(f"- {md(item)}" for item in items))


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Safe:
    """A table. Columns that are empty in all rows are left out."""
    lines = [tuple(md(cell) for cell in row) for row in rows]
    keep = [i for i in range(len(heads)) if any(line[i] for line in lines)]
    out = ["| " + " | ".join(md(heads[i]) for i in keep) + " |", "|" + " --- |" * len(keep)]
    out += ["| " + " | ".join(line[i] for i in keep) + " |" for line in lines]
    return Safe("\n".join(out))


def page(*blocks: str) -> str:
    """Blocks as a document, a blank line between them."""
    return "\n\n".join(block.rstrip("\n") for block in blocks if block) + "\n"
