"""Standard output as a binary stream."""

from __future__ import annotations

import codecs
import io
import sys
from typing import Any, BinaryIO, TextIO, cast


class _BytesOfText(io.RawIOBase):
    """Binary stream of UTF-8 that writes to a text stream, for callers that replaced
    ``sys.stdout``."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._text.write(self._decoder.decode(bytes(data)))
        return memoryview(data).nbytes

    def flush(self) -> None:
        if not self.closed:
            self._text.flush()


def has_bytes() -> bool:
    """Return whether the standard output takes bytes: it does, unless somebody has replaced it by a stream of text."""
    return hasattr(sys.stdout, "buffer")


def binary_stdout() -> BinaryIO:
    """Return the standard output as a stream of bytes, after what was printed. Text in UTF-8 may be written to any; other bytes only if :func:`has_bytes`."""
    sys.stdout.flush()
    return sys.stdout.buffer if has_bytes() else cast(BinaryIO, _BytesOfText(sys.stdout))


__all__ = ["binary_stdout", "has_bytes"]
