"""Which offsets the name of a segment allows. No checksum covers the first offset of a batch."""

from __future__ import annotations

import os
import re
from pathlib import PurePath

_NAME = re.compile(r"(?P<base>\d{20})(?:-[\w-]+)?\.log(?:\.\w+)?\Z", re.ASCII)

MAX_RELATIVE = (1 << 31) - 1
"""How far an offset may be from the one in the segment's name: index files hold the distance in four bytes."""


def offsets_of(path: str | os.PathLike[str], next_base: int | None = None) -> range | None:
    """Return the offsets that records of a segment may have, by its name and the first offset of the next segment.

    None if the name of the file is not that of a segment.
    """
    found = _NAME.match(PurePath(path).name)
    if found is None:
        return None
    base = int(found["base"])
    end = base + MAX_RELATIVE + 1
    return range(base, end if next_base is None else min(next_base, end))
