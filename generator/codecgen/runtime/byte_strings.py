"""Codecs of bytes and text: after a length, of a fixed size, or to the end of the window."""

from __future__ import annotations

import re
from typing import Any

from codecgen.runtime.errors import BuildError, LengthError, ValueRefused
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.primitives import Codec

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Half of a UTF-16 pair as if it were a character, or what there is of it. It reads as one U+FFFD, not as one for each byte."""


class Bytes(Codec):
    """Bytes after a length (``length`` a codec), of a fixed size (an int), or all that are left (None).

    ``null`` is the length that means null; with ``any_negative``, lenient readers take every negative length for
    null. The written length is larger by ``plus`` than the number of bytes (1 for compact lengths).
    """

    def __init__(
        self,
        length: Codec | int | None,
        null: int | None = None,
        plus: int = 0,
        any_negative: bool = False,
    ) -> None:
        super().__init__()
        self.length = length
        self.null = null
        self.plus = plus
        self.any_negative = any_negative
        if isinstance(length, int):
            self.size = length

    def read(self, source: Source, this: Any) -> Any:
        """Read the length, if one precedes, and return the value; None if the length means null.
        Raise LengthError, or the pending error, if the length is larger than the bytes that are
        left. Raise LengthError if it is negative (``any_negative`` makes that null for a lenient
        session); CodecError if it does not parse. Raise TruncatedError, or the pending error, if
        bytes of a fixed size are missing; ValueRefused for invalid text.
        """
        length = self.length
        if length is None:
            start = source.pos
            return self.value(source.take(source.left), source, start)
        if isinstance(length, int):
            return self.value(source.take(length), source, source.pos - length)
        start = source.pos
        n = length.read(source, this)
        if n == self.null:
            return None
        n -= self.plus
        if n < 0:
            error = LengthError(f"length is {n}: it cannot be negative", source.where(start))
            if self.null is None or not self.any_negative:
                raise error
            error.reason = f"null is written as {self.null}, not as {n}"
            source.session.tolerate(error)
            return None
        if n > source.end - source.pos:
            raise source.missing_bytes_error(
                f"length is {n}, but {count_noun(source.left, 'byte is', 'bytes are')} left", start
            )
        return self.value(source.take(n), source, source.pos - n)

    def value(self, data: bytes, source: Source, pos: int) -> Any:
        """Return the value for the bytes that were read at ``pos``: here the bytes themselves.
        Subclasses decode them, and note or raise errors in ``source``.
        """
        return data

    def data(self, value: Any) -> bytes:
        """Return the bytes of a bytes, bytearray or memoryview; raise BuildError for another type."""
        if not isinstance(value, bytes | bytearray | memoryview):
            raise BuildError(f"bytes are needed, not {_kind_of(value)}")
        return bytes(value)

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of a value behind its length. Raise BuildError for a value of another
        type, for None if there is no null, for a number of bytes that means null or does not fit
        the length, and for another number than a fixed size.
        """
        length = self.length
        if value is None:
            if self.null is None or not isinstance(length, Codec):
                raise BuildError("null is not allowed here")
            return length.write(self.null, this, session)
        data = self.data(value)
        if isinstance(length, Codec):
            if len(data) + self.plus == self.null:
                raise BuildError(
                    f"{count_noun(len(data), 'byte')} cannot be written: that length means null"
                )
            return length.write(len(data) + self.plus, this, session) + data
        if length is not None and len(data) != length:
            raise BuildError(
                f"{count_noun(length, 'byte is', 'bytes are')} needed, not {len(data)}"
            )
        return data


class OuterLength(Codec):
    """Codec of a length that is not in the bytes: the value ``name`` that the layout gets from
    outside.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name_outside = name
        self.size = 0

    def read(self, source: Source, this: Any) -> int:
        """Return the value from outside."""
        found: int = this[self.name_outside]
        return found

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return no bytes. Raise BuildError if the value from outside is not ``value``."""
        if this[self.name_outside] != value:
            raise BuildError(
                f"the number of bytes does not fit: {self.name_outside} is {this[self.name_outside]}, and would have to be {value}"
            )
        return b""


class Text(Bytes):
    """Text in UTF-8. With ``lossy``, lenient readers replace invalid bytes by U+FFFD."""

    def __init__(
        self,
        length: Codec | int | None,
        null: int | None = None,
        plus: int = 0,
        any_negative: bool = False,
        lossy: bool = False,
    ) -> None:
        super().__init__(length, null, plus, any_negative)
        self.lossy = lossy

    def value(self, data: bytes, source: Source, pos: int) -> str:
        """Return ``data`` decoded from UTF-8. Raise ValueRefused if it is invalid. With ``lossy``,
        a lenient session adds a finding and gets the text with U+FFFD for invalid bytes.
        """
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as bad:
            error = ValueRefused(f"byte {bad.start} of the text is not UTF-8", source.where(pos))
            if not self.lossy:
                raise error from None
            source.session.tolerate(error)
            return _SURROGATE.sub(b"\xef\xbf\xbd", data).decode("utf-8", "replace")

    def data(self, value: Any) -> bytes:
        """Return the UTF-8 bytes of a text. Raise BuildError if the value is no str or has a lone
        surrogate.
        """
        if not isinstance(value, str):
            raise BuildError(f"text is needed, not {_kind_of(value)}")
        try:
            return value.encode("utf-8")
        except UnicodeEncodeError:
            raise BuildError(
                "the text has a lone surrogate, which UTF-8 cannot hold: replace or remove it"
            ) from None


def _kind_of(value: Any) -> str:
    """Return the type of a value for a message: "a mapping" for a dict, "a list" for a list, else
    the name of its class.

    A build replaces mappings and lists by classes of its own, whose names mean nothing to the caller.
    """
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else type(value).__name__
