"""Escape text of schemas for other languages, so that it has no special meaning there."""

from __future__ import annotations

import html
import json
import re
import textwrap
from functools import lru_cache

from codecgen import diagnostics

_SPECIAL = re.compile(r"[\\`*\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_LINE_START = re.compile(r"(?:[-+#=](?=\s|#|=|-|$)|\d{1,9}[.)](?=\s|$))")
# What stands in front is bounded: looking for it again from each letter of a long word would take for ever.
_ADDRESS = re.compile(
    r"(?i)[a-z][a-z0-9+.-]{0,63}://[^\s|`]*|www\.[^\s|`]*|[^\s|`<>]{1,255}@[^\s|`]+"
)
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})


def printable(text: str) -> str:
    """Return ``text`` with characters that control a terminal or the writing direction replaced by U+FFFD."""
    return diagnostics.printable(text, "\N{REPLACEMENT CHARACTER}")


@lru_cache(maxsize=16_384)
def markdown_text(text: str) -> str:
    """Return text as one line of Markdown that reads as written: marks of Markdown and HTML are
    escaped, also a list or heading mark at the start of the text and a ``#`` at its end. Control
    characters, line feeds included, become U+FFFD. Web and mail addresses become code spans, so
    that renderers make no links of them.
    """
    text = printable(text)
    out = []
    at = 0
    for found in _ADDRESS.finditer(text):
        out += [_marks_escaped(text[at : found.start()]), markdown_code(found.group())]
        at = found.end()
    out.append(_marks_escaped(text[at:]))
    line = "".join(out)
    if line.endswith("#"):
        line = line[:-1] + "\\#"  # the end of a heading is no decoration
    start = _LINE_START.match(line)
    if start:
        line = f"{line[: start.end() - 1]}\\{line[start.end() - 1 :]}"
    return line


def _marks_escaped(text: str) -> str:
    """Return text with the marks of Markdown and HTML escaped."""
    return _SPECIAL.sub(lambda found: "\\" + found.group(), text).translate(_ENTITIES)


def markdown_code(text: object) -> str:
    """Return ``text`` as a Markdown code span that is also valid inside a table. Text that is
    empty, begins or ends with blanks, or contains a backquote or ``|`` becomes a ``<code>`` element
    with entities. Control characters become U+FFFD.
    """
    word = printable(str(text))
    if word and word == word.strip() and not re.search(r"[`|]", word):
        return f"`{word}`"
    entities = "".join(c if c.isalnum() or c == " " else f"&#{ord(c)};" for c in word)
    return f"<code>{entities}</code>"


def html_text(text: str) -> str:
    """Return text for HTML, SVG or XML, also inside quoted attributes."""
    return html.escape(printable(text))


_JSON_MARKS = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&"})


def json_text(text: str) -> str:
    """Return a quoted string that JSON, YAML and JavaScript read alike: ASCII only, and safe inside HTML."""
    return json.dumps(printable(text)).translate(_JSON_MARKS)


# Between these, a space: what ends and begins comments in C, SQL, HTML, Pascal, Haskell, Lua, Python and their like.
_COMMENT_MARKS = re.compile(
    r"""(?<=\*)(?=[/)])|(?<=[/(])(?=\*)|(?<=-)(?=[-}])|(?<=[{-])(?=-)|(?<=")(?=")|(?<=')(?=')"""
    r"""|(?<=\#)(?=[|}>])|(?<=[|{<])(?=\#)|(?<=\])(?=\])|(?<=%)(?=})"""
)


def comment_text(text: str, prefix: str, width: int) -> str:
    """Return text as comment lines that begin with ``prefix``, wrapped to ``width`` with the prefix
    included, but to at least 20 characters of text; longer words are broken. White space becomes
    single spaces, and blank text gives one line, the prefix. Spaces separate characters that end or
    begin a comment in common languages. Control characters become U+FFFD; blanks and backslashes at
    line ends are dropped.
    """
    apart = _COMMENT_MARKS.sub(" ", printable(" ".join(text.split())))
    lines = textwrap.wrap(apart, max(20, width - len(prefix)), break_on_hyphens=False)
    return "\n".join(f"{prefix}{line.rstrip(chr(92) + ' ')}".rstrip() for line in lines or [""])
