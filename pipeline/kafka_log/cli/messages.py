"""Messages for people on the standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka_log.logs.discovery import AllSegmentsExcluded
from kafka_log.segment.printable import escape_unprintable

PREFIX = "kafka-log: "
"""Prefix of all messages and warnings of kafka-log."""


def print_message(message: object) -> None:
    """Print ``kafka-log: TEXT`` as one line to stderr. Escape unprintable characters, such as control characters in a path."""
    print(f"{PREFIX}{escape_unprintable(str(message))}", file=sys.stderr)


@contextmanager
def warnings_as_messages() -> Iterator[None]:
    """Print warnings whose text begins with PREFIX as messages on stderr, each text once, during
    the ``with`` block; ignore AllSegmentsExcluded. Other warnings are shown as before.
    """
    printed: set[str] = set()

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        """Print a warning of kafka-log unless its text was printed before; pass other warnings on."""
        text = str(message)
        if not text.startswith(PREFIX):
            shown(message, *where, **more)
        elif text not in printed:
            printed.add(text)
            print_message(text.removeprefix(PREFIX))

    with warnings.catch_warnings():
        warnings.filterwarnings("always", f"{PREFIX}.*")
        warnings.simplefilter("ignore", AllSegmentsExcluded)  # commands name what they leave out
        shown, warnings.showwarning = warnings.showwarning, show
        yield
