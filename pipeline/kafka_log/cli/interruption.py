"""Ctrl-C: messages about what a command had done before it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

_STOPPED = "Ctrl-C or SIGTERM ended the command; records that were written later are not printed"


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
    """Return the message that a command prints when Ctrl-C interrupts it. It is ``interrupted:``
    with the text of an Interrupted; for another KeyboardInterrupt, that the output is incomplete.
    """
    text = (
        str(interrupt) if isinstance(interrupt, Interrupted) else "the output above is incomplete"
    )
    return f"interrupted: {text}"


class StopOnSignal:
    """Context in which Ctrl-C and SIGTERM end an endless command normally.

    A signal during :meth:`wait` ends the ``with`` block. Otherwise the first one sets ``is_stopped``, so that no output is cut within
    a line; a second one ends the block, also if output is blocked. Outside of the main thread, signals are left alone.
    """

    def __init__(self) -> None:
        self.is_stopped = False
        self._is_waiting = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._stop)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Restore the handlers. Return whether the block was ended by a signal, which is no error."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        return isinstance(error, KeyboardInterrupt)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Set ``is_stopped``. Raise Interrupted during a wait, and at the second signal."""
        is_repeated, self.is_stopped = self.is_stopped, True
        if self._is_waiting or is_repeated:
            raise Interrupted(_STOPPED)

    def wait(self, seconds: float) -> None:
        """Sleep for ``seconds``. Raise Interrupted, which ends the ``with`` block, at once if a
        signal came before, or when one comes meanwhile.
        """
        self._is_waiting = True
        if self.is_stopped:
            raise Interrupted(_STOPPED)
        time.sleep(seconds)
        self._is_waiting = False
