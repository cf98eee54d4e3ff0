"""Parts of messages: counts with their nouns, and names that may have been meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggest_similar(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean NAME?`` with the name of ``known`` that is most similar to ``name``; ``""`` if none is similar."""
    close = get_close_matches(name, list(known), 1)
    return f"; did you mean {close[0]}?" if close else ""


def count_noun(count: int, one: str, many: str | None = None, *, spec: str = "") -> str:
    """Return a count and its noun, such as ``1 batch`` or ``2 batches``. The plural is ``many``, by default
    ``one`` + ``s``. ``spec`` formats the number: ``","`` groups its digits by thousands.
    """
    return f"{count:{spec}} {one if count == 1 else many or one + 's'}"
