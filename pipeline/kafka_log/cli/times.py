"""Times on the command line."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST = (1 << 63) - 2
"""The largest time that has a later one."""


def time_argument(text: str) -> int:
    """Milliseconds since the epoch of a time in ISO 8601 (in UTC unless it says otherwise), or of such a number."""
    if re.fullmatch(r"-?[0-9]{1,19}", text):
        found = int(text)
    else:
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text!r} is no time: give one like 2026-11-21T06:46:00Z, or milliseconds since 1970"
            ) from None
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        found = (time - _EPOCH) // timedelta(milliseconds=1)
    if not -_MOST <= found <= _MOST:
        raise argparse.ArgumentTypeError(f"{text} is out of range")
    return found
