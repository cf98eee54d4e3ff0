"""One walk over the headers of a file of batches: their columns of the view batches, and nothing else of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from codecgen.runtime.errors import ValueRefused
from codecgen.runtime.rows import Place
from codecgen.runtime.source import Session, Source
from kafka_codecs import LOG_ENTRY
from kafka_codecs.rows.batches import BATCHES
from kafka_log import framing

HEAD = max(framing.HEAD, *(layout.head_size for layout in LOG_ENTRY.cases.values()))
"""Bytes of an entry that have all of its header, whatever it is."""


def header(
    head: bytes | memoryview, frame: framing.Frame, position: int, file: str, columns: Sequence[str]
) -> tuple[Any, ...]:
    """Columns of the view batches for the entry that begins with ``head``: as many bytes of it as there are, or
    :data:`HEAD`. Nothing is verified.

    Raises ParseError when the header is cut off, or there is no such row.
    """
    source = Source(
        head, Session(strict=False, file=file), end=min(len(head), frame.size), origin=position
    )
    row = BATCHES.head(frame.layout, source, Place(position, frame.size), columns)
    if row is None:
        raise ValueRefused(f"{frame.layout.layout_name} is no batch", source.where())
    return row


def headers(path: Path, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Columns of the view batches for each entry of a file, in order. Where the bytes end before an entry does, it ends
    quietly; ParseError is raised for what is no entry."""
    name = os.fspath(path)
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        position = 0
        while position + framing.HEAD < size:
            file.seek(position)
            head = file.read(HEAD)
            if len(head) < framing.HEAD:
                return  # the file became shorter
            frame = framing.frame_of(head, position, name)
            if frame.size > size - position:
                return
            yield header(head, frame, position, name, columns)
            position += frame.size
