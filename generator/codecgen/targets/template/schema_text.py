"""Words that people wrote in a schema. Nothing prints them by accident."""

from __future__ import annotations


class Words:
    """Words of a schema: printed by a filter (``comment``, ``json``, ``html``, ``md``), or as they are escaped in a
    file that ends in .html, .svg, .xml, .md or .txt. False when there are none.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = " ".join(text.split())

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return other == self._text or (isinstance(other, Words) and other._text == self._text)

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"Words({self._text!r})"

    def __str__(self) -> str:
        raise TypeError(
            "text of the schema is printed without a filter: add comment, json, html or md"
        )


def text_of(words: object) -> str:
    """Return the text of schema words, or any other value as text."""
    return words._text if isinstance(words, Words) else str(words)
