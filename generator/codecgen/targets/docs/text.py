"""Phrases: words, code and links of which pages are made, independent of the output format.

Text of a schema stays unchanged in a phrase; the renderers (:mod:`markdown`, :mod:`html`) escape it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from codecgen.plan import Plan
from codecgen.plan.as_of import release_key
from codecgen.schema.expression import Node, Path, pieces
from codecgen.schema.types import Since
from codecgen.targets.escaping import printable as printable


@dataclass(frozen=True, slots=True)
class PlainText:
    """Words without a special meaning."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A name, a number or an expression as code. Paths in it name fields of the layout that the page describes."""

    parts: tuple[str | Path | Link, ...]

    @property
    def text(self) -> str:
        """Return the code as plain text."""
        return "".join(p.label if isinstance(p, Link) else str(p) for p in self.parts)


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a place in a document (``target``), or with ``outside`` to a web page."""

    label: str
    target: str
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place to which links lead."""

    name: str


@dataclass(frozen=True, slots=True)
class Break:
    """A line break."""


Piece = PlainText | Code | Link | Anchor | Break


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sequence of pieces for a page: plain text, code, links, anchors and line breaks. A phrase
    without pieces is false.
    """

    pieces: tuple[Piece, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pieces)

    @property
    def plain(self) -> str:
        """Return the phrase as plain text."""
        return "".join(_piece_text(piece) for piece in self.pieces)


def _piece_text(piece: Piece) -> str:
    """Return a piece of a phrase as plain text: the text, code or label of the piece, a space for a
    line break, ``""`` for an anchor.
    """
    match piece:
        case PlainText(text):
            return text
        case Code():
            return piece.text
        case Link(label):
            return label
        case Break():
            return " "
        case Anchor():
            return ""


BREAK = Phrase((Break(),))


def as_phrase(text: object) -> Phrase:
    """Return ``str(text)`` as a Phrase of plain text, with white space reduced to single spaces; an
    empty Phrase for blank text, but ``None`` as text for None. A Phrase is returned unchanged.
    """
    if isinstance(text, Phrase):
        return text
    words = " ".join(str(text).split())
    return Phrase((PlainText(words),) if words else ())


def code(text: object) -> Phrase:
    """Return a value as code."""
    return Phrase((Code((str(text),)),))


def formula(node: Node) -> Phrase:
    """Return an expression as code, in which paths are known as fields."""
    return Phrase((Code(tuple(pieces(node))),))


def field_name(*names: str) -> Phrase:
    """Return the name of a field, or of a bit of it, as code."""
    return formula(Path(names))


def link(label: str, target: str) -> Phrase:
    """Return a link to a path below the documents, perhaps with an anchor."""
    return Phrase((Link(label, target),))


def web_link(label: str, address: str) -> Phrase:
    """Return a Phrase that links ``label`` to a web page; plain text if the address is not ``http``
    or ``https`` with a host.
    """
    try:
        parts = urlsplit(address)
    except ValueError:  # such as a bracket without its other one
        return as_phrase(label)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return as_phrase(label)
    return Phrase((Link(label, address, outside=True),))


def anchor(name: str) -> Phrase:
    """Return an anchor."""
    return Phrase((Anchor(name),))


def phrase(*parts: str | Phrase) -> Phrase:
    """Return one Phrase of all parts, joined without anything between them. Text is kept with its
    blanks; empty text adds nothing.
    """
    out: list[Piece] = []
    for part in parts:
        out += part.pieces if isinstance(part, Phrase) else [PlainText(part)] if part else []
    return Phrase(tuple(out))


def join(parts: Iterable[str | Phrase], between: str | Phrase = " ") -> Phrase:
    """Return one Phrase of the parts with ``between`` between them. Empty and blank parts are left
    out, with their ``between``; white space in text parts is reduced to single spaces. No parts
    give an empty Phrase.
    """
    out: list[str | Phrase] = []
    for part in parts:
        if words := as_phrase(part):
            out += [between, words] if out else [words]
    return phrase(*out)


def join_list(parts: Iterable[str | Phrase], word: str = "and") -> Phrase:
    """Return ``a, b and c`` as a Phrase; ``word`` stands before the last item. Two items are joined
    by ``word`` only, one item is returned alone, none gives an empty Phrase.
    """
    items = [as_phrase(part) for part in parts]
    if len(items) < 2:
        return phrase(*items)
    return phrase(join(items[:-1], ", "), f" {word} ", items[-1])


def relative(target: str, page: str) -> str:
    """Return the path of a document as seen from a page."""
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def release(plan: Plan, number_: str) -> Phrase:
    """Return the name of a release: ``Kafka 3.1.0``."""
    line = plan.manifest.release_line
    return as_phrase(f"{line[:1].upper()}{line[1:]} {number_}" if line else number_)


def references(plan: Plan, since: Since | None) -> list[Phrase]:
    """Return links, such as ``KIP-98``, to the documents of a ``since``, in order; plain text if
    the manifest has no web address for a kind of document. Return ``[]`` for None.
    """
    out = []
    for kind, numbers in since.references if since else ():
        for n in numbers:
            label = f"{kind.upper()}-{n}"
            out.append(web_link(label, plan.manifest.links.get(kind, "").replace("{}", str(n))))
    return out


def since_words(plan: Plan, since: Since | None) -> Phrase:
    """Return a ``since`` (a release and documents) in words: ``Kafka 3.1.0 (KIP-534)``, with links
    to the documents; only the documents if it has no release; an empty Phrase for None.
    """
    if since is None:
        return Phrase()
    links = references(plan, since)
    if since.release is None:
        return join_list(links)
    return phrase(release(plan, since.release), bracketed(links))


def bracketed(links: list[Phrase]) -> Phrase:
    """Return `` (KIP-98 and KIP-110)``, or an empty phrase without links."""
    return phrase(" (", join_list(links), ")") if links else Phrase()


def newest_first(releases: Iterable[str]) -> list[str]:
    """Return the distinct releases, newest first."""
    return sorted(set(releases), key=release_key, reverse=True)
