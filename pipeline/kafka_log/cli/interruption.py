"""Ctrl-C: what a command says of what it has done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with what was done until then."""


@contextmanager
def saying(done: Callable[[], str]) -> Iterator[None]:
    """Make Ctrl-C say what is ``done``, unless something inside has said it."""
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt:
        raise Interrupted(done()) from None


def format_message(interrupt: KeyboardInterrupt) -> str:
    """Return the message that a command prints when Ctrl-C interrupts it."""
    said = str(interrupt) if isinstance(interrupt, Interrupted) else "what was printed is not all"
    return f"interrupted: {said}"
