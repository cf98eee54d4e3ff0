"""Codecs with zero bytes: as the end of bytes or text, as filling, and as padding between fields."""

from __future__ import annotations

from typing import Any

from codecgen.runtime.byte_strings import Bytes
from codecgen.runtime.errors import BuildError, TruncatedError, ValueRefused
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.primitives import Codec

_FIRST, _MOST = 64, 1 << 16
"""How many bytes are looked at for a zero at once: more and more."""


class ZeroTerminated(Codec):
    """Bytes or text that a zero byte ends; the zero byte is not part of the value."""

    def __init__(self, content: Bytes) -> None:
        super().__init__()
        self.content = content

    def read(self, source: Source, this: Any) -> Any:
        """Return the value before the next zero byte, and move behind that byte. Raise
        TruncatedError, or the pending error, if no zero byte is left in the window; CodecError if
        the bytes before it are no valid value.
        """
        end = _zero_at(source)
        if end is None:
            if source.pending is not None:
                raise source.pending
            reason = f"no zero byte is among the {source.left} bytes that are left"
            raise TruncatedError(reason, source.where())
        value = self.content.read(source.window(end - source.pos, "length"), this)
        source.pos = end + 1
        return value

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of a value and a zero byte. Raise BuildError if the value cannot be
        written or contains a zero byte.
        """
        data = self.content.write(value, this, session)
        if 0 in data:
            raise BuildError(
                f"byte {data.index(0)} of the value is zero, which readers would take for its end: remove it"
            )
        return data + b"\0"


def _zero_at(source: Source) -> int | None:
    """Return the index of the next zero byte from the read position on, without moving it. Return
    None if there is none in the window.
    """
    at, size = source.pos, _FIRST
    while at < source.end:
        found = bytes(source.data[at : min(at + size, source.end)]).find(0)
        if found >= 0:
            return at + found
        at, size = at + size, min(2 * size, _MOST)
    return None


class ZeroFilled(Codec):
    """Bytes or text in a field of ``size`` bytes, filled up with zero bytes that are not part of the value."""

    def __init__(self, content: Bytes, size: int) -> None:
        super().__init__()
        self.content = content
        self.size: int = size

    def read(self, source: Source, this: Any) -> Any:
        """Read ``size`` bytes, and return the value without the zero bytes at their end. Raise
        TruncatedError, or the pending error, if fewer are left; CodecError if the bytes are no
        valid value.
        """
        window = source.window(self.size, "length") if source.left >= self.size else None
        if window is None:
            raise source.truncated_error(self.size)
        start = window.pos
        window.end = start + len(bytes(window.data[start : window.end]).rstrip(b"\0"))
        return self.content.read(window, this)

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of a value, filled up with zero bytes to ``size``. Raise BuildError if
        it cannot be written, is longer than ``size``, or ends in a zero byte.
        """
        data = self.content.write(value, this, session)
        if len(data) > self.size:
            raise BuildError(
                f"{count_noun(len(data), 'byte does', 'bytes do')} not fit the {self.size} of the field"
            )
        if data[-1:] == b"\0":
            raise BuildError(
                "the value ends with a zero byte, which readers would take for padding: remove it"
            )
        return data.ljust(self.size, b"\0")


class Padding(Codec):
    """Zero bytes up to the next multiple of ``multiple`` bytes, counted from the start of the layout. The value is
    None.

    The layout sets ``size`` if the number of bytes is always the same.
    """

    needs_layout = True

    def __init__(self, multiple: int) -> None:
        super().__init__()
        self.multiple = multiple

    def number(self, before: int) -> int:
        """Return the number of padding bytes after ``before`` bytes of the layout: as many as are
        missing to a multiple.
        """
        return -before % self.multiple

    def take(self, source: Source, number: int) -> None:
        """Skip ``number`` bytes. For the first one that is not zero raise ValueRefused in a strict
        session; a lenient one adds a finding. Raise TruncatedError, or the pending error, if fewer
        bytes are left.
        """
        start = source.pos
        data = source.take(number)
        for i, byte in enumerate(data):
            if byte:
                reason = f"{byte} stands where only zero bytes may"
                source.session.tolerate(ValueRefused(reason, source.where(start + i)))
                return

    def padding(self, value: Any, before: int) -> bytes:
        """Return the padding after ``before`` bytes of the layout; raise BuildError if a value is given."""
        if value is not None:
            raise BuildError("padding has no value: leave the field out")
        return bytes(self.number(before))


__all__ = ["Padding", "ZeroFilled", "ZeroTerminated"]
