"""Values as text that a terminal takes for text."""

from __future__ import annotations

import base64
from datetime import UTC, datetime


def iso_time(milliseconds: int) -> str:
    """A time in UTC, or the number where a calendar has none."""
    try:
        time = datetime.fromtimestamp(milliseconds // 1000, UTC).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return f"{time.isoformat()}.{milliseconds % 1000:03d}Z"


def short_uuid(value: bytes) -> str:
    """16 bytes as Kafka spells them: URL-safe Base64 without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def printable(text: str) -> str:
    """Text without what a terminal does not print: control characters, and those that change how others are shown."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
