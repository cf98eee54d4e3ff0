"""Counts with their nouns, for messages."""

from __future__ import annotations


def count_noun(count: int, one: str, many: str | None = None, *, spec: str = "") -> str:
    """Return a count and its noun, such as ``1 batch`` or ``2 batches``. The plural is ``many``, by default
    ``one`` + ``s``. Both may go on with a verb: ``byte is``, ``bytes are``. ``spec`` formats the number: ``","``
    groups its digits by thousands.
    """
    return f"{count:{spec}} {one if count == 1 else many or one + 's'}"
