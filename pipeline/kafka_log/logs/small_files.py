"""Files that are never large: bounded, whatever a disk says of their size."""

from __future__ import annotations

from pathlib import Path

from kafka_log.segment.regular_files import open_regular

MAX_BYTES = 64 << 20
"""Larger ones are not read: more than a million entries of a snapshot or an index, of lines of text more than a broker has partitions."""

_PIECE = 1 << 20


class TooLargeError(OSError):
    """A file with more bytes than any file of its kind has."""

    def __init__(self, path: Path, most: int) -> None:
        self.path = path
        self.most = most
        super().__init__(f"{path}: {self.reason}")

    @property
    def reason(self) -> str:
        return f"it has more than {self.most} bytes"


def small_file(path: Path, most: int = MAX_BYTES) -> bytes:
    """The bytes of a file. Raises OSError; :class:`TooLargeError` when there are more than ``most``."""
    data = bytearray()
    with open_regular(path, -1) as file:
        # Python makes room for all that is asked for, which may be more than a process may have.
        while part := file.read(min(_PIECE, most + 1 - len(data))):
            data += part
    if len(data) > most:
        raise TooLargeError(path, most)
    return bytes(data)
