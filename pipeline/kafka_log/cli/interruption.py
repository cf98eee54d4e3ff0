"""Ctrl-C: messages about what a command had done before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Interrupted(KeyboardInterrupt):
    """Raised for Ctrl-C with a description of what was done before."""


@contextmanager
def describe_on_interrupt(describe_done: Callable[[], str]) -> Iterator[None]:
    """Turn a KeyboardInterrupt in the ``with`` block into Interrupted with the text of
    ``describe_done``. An Interrupted from the block passes unchanged.
    """
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted(describe_done()) from None


def format_message(interrupt: KeyboardInterrupt) -> str:
    """Return the message that a command prints when Ctrl-C interrupts it: ``interrupted:`` and the
    text of an Interrupted; for another KeyboardInterrupt that the output is incomplete.
    """
    text = (
        str(interrupt) if isinstance(interrupt, Interrupted) else "the output above is incomplete"
    )
    return f"interrupted: {text}"
