"""Read many small files into one chunk of memory and decode them together: the fixed cost of a decoder is paid once for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from codecgen.runtime.arrow.chunks import Chunk
from kafka_log.segment.positioned_reads import open_segment, read_at
from kafka_log.segment.skipping import part_of

SMALL = 256 << 10
"""Maximum size in bytes of a file that is decoded together with others."""

GROUP_BYTES = 4 << 20
GROUP_FILES = 1024
"""Maximum number of bytes, and of files, that are decoded together."""


class ListedFile(Protocol):
    """A file with the size that it had when it was listed."""

    @property
    def path(self) -> Any:
        """Its path or URL."""

    @property
    def size(self) -> int:
        """Its size in bytes."""


F = TypeVar("F", bound=ListedFile)
T = TypeVar("T")


def split_into_groups(files: Iterable[F]) -> Iterator[list[F]]:
    """Yield the files in their order, consecutive ones of at most 256 KiB in one list of at most
    4 MiB and 1024 files. A larger file is alone in its list.
    """
    group: list[F] = []
    size = 0
    for file in files:
        small = file.size <= SMALL
        if group and (not small or size + file.size > GROUP_BYTES or len(group) >= GROUP_FILES):
            yield group
            group, size = [], 0
        if small:
            group.append(file)
            size += file.size
        else:
            yield [file]
    if group:
        yield group


@dataclass(frozen=True, slots=True)
class GroupDecoder(Generic[T]):
    """How the batches of several files are decoded together.

    Attributes:
        decode: Returns the batches of a chunk that begins at a byte of the group; None if the chunk has anything but whole batches.
        positions: Returns the position of each batch in the group, as an array.
        slice_file: Returns the batches of one file: called with all batches, the index of its first one, the index after its last
            one, and the byte of the group at which the file begins, from which the positions are counted then.
    """

    decode: Callable[[Chunk, int], T | None]
    positions: Callable[[T], Any]
    slice_file: Callable[[T, int, int, int], T]


class FileGroups:
    """Reader of groups of small files, one group after another into the same memory."""

    def __init__(self) -> None:
        self._chunk = Chunk(GROUP_BYTES + SMALL)

    def read(self, files: Sequence[F], decoder: GroupDecoder[T]) -> dict[int, T]:
        """Read the files and return the batches of each, by its index in ``files``, a group of :func:`split_into_groups`. Leave out,
        without an error, files that the decoder rejects, that have anything but whole batches, whose size has changed, or that cannot
        be read.
        """
        edges, loaded = [0], []
        for number, file in enumerate(files):
            size = self._load(file, edges[-1])
            if size is not None:
                edges.append(edges[-1] + size)
                loaded.append(number)
        found: dict[int, T] = {}
        self._decode(edges, loaded, decoder, found)
        return found

    def _load(self, file: ListedFile, at: int) -> int | None:
        """Read a file into the chunk at byte ``at``. Return its size; None if the size has changed or it cannot be read."""
        try:
            with open_segment(file.path) as opened:
                view = self._chunk.view()[at : at + file.size + 1]
                return file.size if read_at(opened, view, 0) == file.size else None
        except OSError:
            return None

    def _decode(
        self,
        edges: Sequence[int],
        numbers: Sequence[int],
        decoder: GroupDecoder[T],
        found: dict[int, T],
    ) -> None:
        """Put the batches of the files ``numbers`` into ``found``. File ``numbers[i]`` lies from byte ``edges[i]`` to ``edges[i + 1]``
        of the chunk. If the files do not decode together, halve the range until the damaged files are isolated and left out.
        """
        if not numbers:
            return
        start, stop = edges[0], edges[-1]
        rows = decoder.decode(part_of(self._chunk, start, stop), start)
        if rows is not None:
            positions = decoder.positions(rows)
            if np.isin(edges, np.append(positions, stop)).all():
                cuts = np.searchsorted(positions, edges).tolist()
                for number, edge, (first, last) in zip(
                    numbers, edges, pairwise(cuts), strict=False
                ):
                    found[number] = decoder.slice_file(rows, first, last, edge)
                return
        if len(numbers) > 1:
            middle = len(numbers) // 2
            self._decode(edges[: middle + 1], numbers[:middle], decoder, found)
            self._decode(edges[middle:], numbers[middle:], decoder, found)
