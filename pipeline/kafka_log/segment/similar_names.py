"""Names that may have been meant, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggest_similar(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean NAME?`` with the name of ``known`` that is most similar to ``name``; ``""`` if none is similar."""
    close = get_close_matches(name, list(known), 1)
    return f"; did you mean {close[0]}?" if close else ""
