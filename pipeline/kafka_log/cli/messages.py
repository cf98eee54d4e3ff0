"""Messages for people on the standard error."""

from __future__ import annotations

import sys


def print_message(message: object) -> None:
    """Print ``kafka-log: TEXT`` on one line of the standard error. Escape what a terminal would not print, such as control characters in a path."""
    text = str(message)
    if not text.isprintable():
        from kafka_log.report.printing import printable  # takes time to load

        text = printable(text)
    print(f"kafka-log: {text}", file=sys.stderr)
