"""Offsets that the name of a segment allows, as a check for base offsets, which no checksum covers."""

from __future__ import annotations

import os
import re
from pathlib import PurePath

_NAME = re.compile(r"(?P<base>\d{20})(?P<id>-[\w-]+)?\.log(?:\.\w+)?\Z", re.ASCII)

MAX_RELATIVE = (1 << 31) - 1
"""Maximum distance of an offset from the base offset in the segment's name: index files store it in four bytes."""


def offsets_of(path: str | os.PathLike[str], next_base: int | None = None) -> range | None:
    """Return the range of offsets that a segment may hold: from the base offset in its name to the
    first offset of the next segment (excluded), or 2**31 offsets if that is None or farther. It is
    empty if ``next_base`` is not above the base offset. Return None if the file does not have the
    name of a segment: 20 digits and ``.log``, perhaps with a suffix such as ``.deleted``.
    """
    found = _NAME.match(PurePath(path).name)
    if found is None:
        return None
    base = int(found["base"])
    end = base + MAX_RELATIVE + 1
    return range(base, end if next_base is None else min(next_base, end))


def is_copy(path: str | os.PathLike[str]) -> bool:
    """Return whether a file has the name of a segment's copy in tiered storage: an id follows the offset."""
    found = _NAME.match(PurePath(path).name)
    return found is not None and found["id"] is not None
