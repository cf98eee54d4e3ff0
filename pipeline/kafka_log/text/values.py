"""Times, UUIDs and text in the form in which a terminal prints them."""

from __future__ import annotations

import base64
from datetime import UTC, datetime


def format_time(milliseconds: int) -> str:
    """Return a time in milliseconds since 1970 as ISO 8601 in UTC, such as
    ``2026-11-22T00:00:00.000Z``; the number as text if it is before the year 1 or after 9999.
    """
    try:
        time = datetime.fromtimestamp(milliseconds // 1000, UTC).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return f"{time.isoformat()}.{milliseconds % 1000:03d}Z"


def format_uuid(value: bytes) -> str:
    """Return the 16 bytes of a UUID as Kafka spells them: URL-safe Base64 without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")
