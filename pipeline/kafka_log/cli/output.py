"""Standard output as a binary stream."""

from __future__ import annotations

import codecs
import io
import sys
from typing import Any, BinaryIO, TextIO, cast


class _BytesOfText(io.RawIOBase):
    """Binary stream of UTF-8 that writes to a text stream, for callers that replaced
    ``sys.stdout``.
    """

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Decode bytes as UTF-8, write the text, and return the number of bytes. A character may be
        split over calls. Raise UnicodeDecodeError if the bytes are not UTF-8.
        """
        self._text.write(self._decoder.decode(bytes(data)))
        return memoryview(data).nbytes

    def flush(self) -> None:
        if not self.closed:
            self._text.flush()


def has_bytes() -> bool:
    """Return whether standard output accepts bytes. It does not if ``sys.stdout`` was replaced by a text stream."""
    return hasattr(sys.stdout, "buffer")


def binary_stdout() -> BinaryIO:
    """Flush standard output and return it as a binary stream. If ``sys.stdout`` was replaced by a
    text stream (:func:`has_bytes`), the stream decodes UTF-8 and raises UnicodeDecodeError for
    other bytes.
    """
    sys.stdout.flush()
    return sys.stdout.buffer if has_bytes() else cast(BinaryIO, _BytesOfText(sys.stdout))


__all__ = ["binary_stdout", "has_bytes"]
