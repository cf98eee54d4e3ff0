"""Segments with bad sectors: reads of some bytes fail."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest

from kafka_log.segment import positioned_reads
from kafka_log.segment.positioned_reads import SECTOR, UnreadableError
from tests.support.batches import batch, message

_R = random.Random(5)


PARTS = [
    batch(i * 10, ["none", "lz4"][i % 2], size=_R.choice((1, 40, 900)))
    if i % 3
    else message(i * 10)
    for i in range(60)
]


ENDS = list(accumulate(map(len, PARTS), initial=0))


WHOLE = b"".join(PARTS)


SECTORS = len(WHOLE) // SECTOR


ENGINES = ["construct", "arrow"]


Range = tuple[int, int]


@contextmanager
def bad(path: Path, ranges: list[Range], partial: bool = True) -> Iterator[None]:
    """Bytes of a file cannot be read: a read ends before them, as on Linux, or fails as a whole."""
    plain = positioned_reads.pread

    def pread(file: FileIO, view: memoryview, position: int) -> int:
        if Path(os.fsdecode(file.name)) == path:
            hit = [
                start for start, end in ranges if start < position + len(view) and position < end
            ]
            if hit:
                if not partial or min(hit) <= position:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                view = view[: min(hit) - position]
        return plain(file, view, position)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positioned_reads, "pread", pread)
        patch.setattr("codecgen.runtime.arrow.header_reads.pread", lambda: None)
        yield


def untouched(ranges: list[Range]) -> list[int]:
    """The batches that have no byte in any of the ranges."""
    places = enumerate(pairwise(ENDS))
    return [i for i, (a, b) in places if not any(a < end and start < b for start, end in ranges)]


def until_error(stream: Any) -> tuple[list[int], UnreadableError]:
    found: list[int] = []
    with pytest.raises(UnreadableError) as raised:
        for part in stream:
            found += part.column(0).to_pylist()
    return found, raised.value
