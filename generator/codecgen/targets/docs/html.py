"""Phrases and pictures as HTML. Text of a schema is escaped; links lead to pages of the site or to the web."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from codecgen.schema.expression import Path
from codecgen.targets.docs.svg import Picture, Shape
from codecgen.targets.docs.text import Anchor, Break, Code, Link, Piece, PlainText, as_phrase
from codecgen.targets.escaping import html_text


def html(words: object) -> str:
    """Return a phrase as HTML, or any other value as escaped text."""
    return "".join(_piece_text(piece) for piece in as_phrase(words).pieces)


def _piece_text(piece: Piece) -> str:
    """Return a piece of a phrase as HTML, with its text escaped: plain text, ``<code>``, a link (to
    a web page with ``rel="noreferrer"``), an anchor, or ``<br>``.
    """
    match piece:
        case PlainText(text):
            return html_text(text)
        case Code(parts):
            return f"<code>{''.join(_part_text(part) for part in parts)}</code>"
        case Link(label, target, True):
            return (
                f'<a class="outside" href="{_address(target)}" rel="noreferrer">{html(label)}</a>'
            )
        case Link():
            return _link(piece)
        case Anchor(name):
            return f'<a id="{html_text(name)}"></a>'
        case Break():
            return "<br>"


def _part_text(part: str | Path | Link) -> str:
    """Return a part of a code piece as HTML."""
    return _link(part) if isinstance(part, Link) else html_text(str(part))


def _link(link: Link) -> str:
    """Return a link to a place of the site."""
    return f'<a href="{href(link.target)}">{html(link.label)}</a>'


def href(target: str) -> str:
    """Return the path of a page, perhaps with an anchor, as the value of an attribute."""
    path, _, mark = target.partition("#")
    return html_text(quote(path) + (f"#{quote(mark)}" if mark else ""))


def _address(address: str) -> str:
    """Return a web address as the value of an attribute."""
    return html_text(quote(address, safe=":/?#&=%+,;@~-._"))


def svg(picture: Picture, layout: str, field: str = "") -> str:
    """Return a picture as inline SVG whose parts link to the descriptions of the fields of
    ``layout``, or, with ``field``, of the bits of that field.
    """
    prefix = f"{layout}-{field}-" if field else f"{layout}-"
    body = "".join(_shape(shape, prefix) for shape in picture.shapes)
    return (
        f'<svg class="picture" viewBox="0 0 {picture.width} {picture.height}" '
        f'width="{picture.width}" height="{picture.height}" role="group" '
        f'aria-label="{html_text(f"{picture.title}. {picture.description}")}">{body}</svg>'
    )


def _shape(shape: Shape, prefix: str) -> str:
    """Return the SVG of a part of a picture; in a link to the anchor ``prefix`` plus its name if it
    belongs to a field or bits.
    """
    if not shape.name:
        return shape.svg
    # The rows of the table are the way for a keyboard: links of pictures would only double them.
    target = href(f"#{prefix}{shape.name}")
    return f'<a href="{target}" tabindex="-1" data-field="{html_text(prefix + shape.name)}">{shape.svg}</a>'


def bullets(items: Iterable[object]) -> str:
    """Return an HTML list."""
    lines = "".join(f"<li>{html(item)}</li>" for item in items)
    return f"<ul>{lines}</ul>"


def heading(level: int, text: object, name: str = "") -> str:
    """Return a heading, ``<h1>`` to ``<h6>``; ``level`` is limited to 1 to 6. With ``name``, it has
    that id and a link to itself.
    """
    tag = f"h{max(1, min(level, 6))}"
    if not name:
        return f"<{tag}>{html(text)}</{tag}>"
    link = f'<a class="anchor" href="{href(f"#{name}")}" aria-hidden="true" tabindex="-1">#</a>'
    return f'<{tag} id="{html_text(name)}">{html(text)} {link}</{tag}>'


def table(headings: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table with the headings ``headings``. Columns whose cells are empty in all rows
    are left out; without rows, all are. Each cell carries its heading in an attribute, for narrow
    screens.
    """
    lines = [[html(cell) for cell in row] for row in rows]
    names = [html(heading) for heading in headings]
    keep = [i for i in range(len(names)) if any(line[i] for line in lines)]
    heading = "".join(f'<th scope="col">{names[i]}</th>' for i in keep)
    body = "".join(f"<tr>{''.join(_cell(names[i], line[i]) for i in keep)}</tr>" for line in lines)
    return f'<table class="rows"><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table>'


def _cell(heading: str, cell: str) -> str:
    """Return a cell with the heading of its column as an attribute, for narrow screens."""
    return f'<td data-head="{re.sub("<[^>]*>", "", heading)}">{cell}</td>'
