"""Codecs of numbers, booleans, uuids and enums as Construct classes, with limits and located errors."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any, Literal, overload

import construct

from codecgen.runtime.enums import Enumeration
from codecgen.runtime.errors import BuildError, LengthError, ParseError, ValueRefused
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.nouns import count_noun

Endian = Literal["big", "little"]


class Codec(construct.Construct):
    """Base of all codecs: a Construct that reads from a :class:`Source` and writes bytes.

    Subclasses implement ``read`` and ``write``. A codec can also stand inside any other Construct, and read from
    any stream.
    """

    size: int | None = None
    """Length in bytes, when that is fixed."""

    null: int | None = None
    """The number that means null, where one can."""

    needs_layout = False
    """Whether only the layout around it can read and write it."""

    def read(self, source: Source, this: Any) -> Any:
        """Return the value at the head of ``source``; ``this`` has the fields parsed before it.
        Raise ParseError if the bytes are not a value of this codec.
        """
        raise NotImplementedError

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of a value; ``this`` has the fields of the layout. Raise BuildError if
        the value cannot be written.
        """
        raise NotImplementedError

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        """Read a value from a stream of the construct library, and leave the stream after it. Any
        stream that can seek will do: its rest is read, and parsed strictly. A Source is read
        directly, in its own session. Raise ParseError if the bytes are no value of this codec.
        """
        if isinstance(stream, Source):
            return self.read(stream, context)
        start = stream.tell()
        source = Source(stream.read(), Session(), origin=start)
        value = self.read(source, context)
        stream.seek(start + source.pos)
        return value

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        """Write a value to a Construct stream, and return the value."""
        data = self.write(obj, context, Session())
        construct.stream_write(stream, data, len(data), path)
        return obj

    def _sizeof(self, context: Any, path: str) -> int:
        """Return the fixed size in bytes; raise ``construct.SizeofError`` if there is none."""
        if self.size is None:
            raise construct.SizeofError(f"{type(self).__name__} has no fixed size", path=path)
        return self.size


STRUCT_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}
"""Codes of :mod:`struct` for signed integers, by their size in bytes. Other sizes have no code."""


class Integer(Codec):
    """An integer of ``size`` bytes."""

    def __init__(self, size: int, signed: bool = True, endian: Endian = "big") -> None:
        super().__init__()
        self.size: int = size
        self.signed = signed
        self.endian: Endian = endian
        code = STRUCT_CODES.get(size)
        self._struct: struct.Struct | None = None
        if code is not None:
            order = ">" if endian == "big" else "<"
            self._struct = struct.Struct(order + (code if signed else code.upper()))
        self.low = -(1 << (8 * size - 1)) if signed else 0
        self.high = (1 << (8 * size - 1)) - 1 if signed else (1 << (8 * size)) - 1
        self.label = f"{'' if signed else 'u'}int{8 * size}"

    def read(self, source: Source, this: Any) -> int:
        """Return the number at the head of ``source``, and move behind it. Raise TruncatedError, or
        the pending error, if fewer bytes are left than it takes.
        """
        pos = source.pos
        after = pos + self.size
        if after > source.end:
            raise source.truncated_error(self.size)
        source.pos = after
        return self.number_at(source.data, pos)

    def number_at(self, data: bytes | memoryview, pos: int) -> int:
        """Return the number at byte ``pos`` of ``data``, which must hold all of its bytes."""
        if self._struct is None:
            return int.from_bytes(data[pos : pos + self.size], self.endian, signed=self.signed)
        return int(self._struct.unpack_from(data, pos)[0])

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of a number. Raise BuildError if it is no int (a bool is none) or out of
        range.
        """
        number = whole_number(value, self.low, self.high, self.label)
        if self._struct is None:
            return number.to_bytes(self.size, self.endian, signed=self.signed)
        return self._struct.pack(number)


class Varint(Codec):
    """A variable-length integer: 7 bits a byte, least significant first, zigzag if it is signed.

    It has at most 5 bytes for 32 bits and 10 for 64. With ``overlong``, lenient readers take spellings with more
    bytes than needed, and drop bits of the last byte that do not fit, as the formats' own readers do.
    """

    def __init__(self, bits: int = 32, signed: bool = True, overlong: bool = False) -> None:
        super().__init__()
        self.bits = bits
        self.signed = signed
        self.overlong = overlong
        self.max_size = 5 if bits == 32 else 10
        self.mask = (1 << bits) - 1
        self.low = -(1 << (bits - 1)) if signed else 0
        self.high = (1 << (bits - 1)) - 1 if signed else self.mask
        self.label = ("" if signed else "unsigned ") + ("varint" if bits == 32 else "varlong")

    def read(self, source: Source, this: Any) -> int:
        """Return the number at the head of ``source``. Raise TruncatedError, or the pending error,
        if the bytes end in it; LengthError if it has more than 5 bytes (10 for 64 bits). Raise
        ValueRefused if it is longer than needed or has too many bits, which ``overlong`` makes a
        finding of a lenient session.
        """
        data = source.data
        start = pos = source.pos
        end = source.end
        raw = shift = 0
        while True:
            if pos >= end:
                source.pos = pos
                raise source.truncated_error(1)
            byte = data[pos]
            pos += 1
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if pos - start == self.max_size:
                raise LengthError(
                    f"{self.label} is longer than {self.max_size} bytes", source.where(start)
                )
        source.pos = pos
        if (byte == 0 and pos - start > 1) or raw > self.mask:
            raw &= self.mask
            error = ValueRefused(
                f"{self.label} is not in its shortest form ({pos - start} bytes)",
                source.where(start),
            )
            if not self.overlong:
                raise error
            source.session.tolerate(error)
        if self.signed:
            return (raw >> 1) ^ -(raw & 1)
        return raw

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the shortest bytes of a number, zigzag encoded if the codec is signed. Raise
        BuildError if it is no int (a bool is none) or out of range.
        """
        number = whole_number(value, self.low, self.high, self.label)
        raw = ((number << 1) ^ (number >> (self.bits - 1))) & self.mask if self.signed else number
        out = bytearray()
        while raw > 0x7F:
            out.append(raw & 0x7F | 0x80)
            raw >>= 7
        out.append(raw)
        return bytes(out)


class Vlq(Varint):
    """An unsigned variable-length quantity: 7 bits a byte, most significant first.

    It has at most 5 bytes for 32 bits and 10 for 64. In the ``bijective`` form each byte that another one follows
    also counts 1, so that every number has one encoding.
    """

    def __init__(self, bits: int = 32, overlong: bool = False, bijective: bool = False) -> None:
        super().__init__(bits, signed=False, overlong=overlong)
        self.step = int(bijective)
        self.label = f"{'bijective ' if bijective else ''}variable-length quantity"

    def read(self, source: Source, this: Any) -> int:
        """Return the number at the head of ``source``. Raise TruncatedError, or the pending error,
        if the bytes end in it; LengthError if it has more than 5 bytes (10 for 64 bits). Raise
        ValueRefused if it begins with bits that are 0 and not needed, or has too many bits, which
        ``overlong`` makes a finding of a lenient session.
        """
        data = source.data
        start = pos = source.pos
        raw = 0
        while True:
            if pos >= source.end:
                source.pos = pos
                raise source.truncated_error(1)
            byte = data[pos]
            pos += 1
            raw = raw << 7 | byte & 0x7F
            if byte < 0x80:
                break
            raw += self.step
            if pos - start == self.max_size:
                raise LengthError(
                    f"{self.label} is longer than {self.max_size} bytes", source.where(start)
                )
        source.pos = pos
        reason = None
        if raw > self.mask:
            reason = f"{self.label} does not fit {count_noun(self.bits, 'bit')}"
        elif not self.step and data[start] == 0x80:
            reason = f"{self.label} is not in its shortest form ({pos - start} bytes)"
        if reason is not None:
            error = ValueRefused(reason, source.where(start))
            if not self.overlong:
                raise error
            source.session.tolerate(error)
        return raw & self.mask

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the shortest bytes of a number. Raise BuildError if it is no int (a bool is none)
        or out of range.
        """
        number = whole_number(value, self.low, self.high, self.label)
        out = bytearray([number & 0x7F])
        while number > 0x7F:
            number = (number >> 7) - self.step
            out.append(number & 0x7F | 0x80)
        out.reverse()
        return bytes(out)


class Float64(Codec):
    """An IEEE 754 number of 8 bytes."""

    size: int = 8
    code = "d"

    def __init__(self, endian: Endian = "big") -> None:
        super().__init__()
        self.endian = endian
        self._struct = struct.Struct((">" if endian == "big" else "<") + self.code)

    def read(self, source: Source, this: Any) -> float:
        """Return the number at the head of ``source``, NaN and infinities included. Raise
        TruncatedError, or the pending error, if too few bytes are left.
        """
        return float(self._struct.unpack(source.take(self.size))[0])

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of a float or int. Raise BuildError for another type, also bool, and for
        a number that is too large for the format.
        """
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BuildError(f"a number is needed, not {value!r}")
        try:
            return self._struct.pack(value)
        except (OverflowError, struct.error):  # the second for integers that no float holds
            shown = repr(value) if isinstance(value, float) else "the integer"
            raise BuildError(f"{shown} is too large for {count_noun(self.size, 'byte')}") from None


class Float32(Float64):
    """An IEEE 754 number of 4 bytes. Other numbers are rounded to the nearest one."""

    size = 4
    code = "f"


class Boolean(Codec):
    """A byte: 0 is false, 1 is true. Lenient readers take other values as true."""

    size = 1

    def read(self, source: Source, this: Any) -> bool:
        """Return False for the byte 0, else True. For a byte above 1 raise ValueRefused in a strict
        session; a lenient one adds a finding. Raise TruncatedError, or the pending error, if no
        byte is left.
        """
        byte = source.take(1)[0]
        if byte > 1:
            error = ValueRefused(f"a boolean is 0 or 1, not {byte}", source.where(source.pos - 1))
            source.session.tolerate(error)
        return byte != 0

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return one byte; raise BuildError unless the value is a bool."""
        if not isinstance(value, bool):
            raise BuildError(f"true or false is needed, not {value!r}")
        return b"\1" if value else b"\0"


class Uuid(Codec):
    """A uuid: 16 bytes, most significant first."""

    size = 16

    def read(self, source: Source, this: Any) -> uuid.UUID:
        """Return the uuid of the next 16 bytes. Raise TruncatedError, or the pending error, if
        fewer are left.
        """
        return uuid.UUID(bytes=source.take(16))

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return 16 bytes; raise BuildError unless the value is a ``uuid.UUID``."""
        if not isinstance(value, uuid.UUID):
            raise BuildError(f"a uuid.UUID is needed, not {value!r}")
        return value.bytes


class EnumField(Codec):
    """An integer that is a member of an enum.

    Strict readers refuse a number without a member, unless ``keep_unknown``; lenient readers return the number.
    ``only`` limits the members.
    """

    def __init__(
        self,
        base: Codec,
        enum: type[Enumeration],
        only: tuple[Enumeration, ...] | None = None,
        keep_unknown: bool = False,
    ) -> None:
        super().__init__()
        self.base = base
        self.enum = enum
        self.only = only
        self.keep_unknown = keep_unknown
        self.size = base.size

    def read(self, source: Source, this: Any) -> int:
        """Return the member for the number at the head of ``source``, or the number itself if it
        has none and is tolerated. For a number without a member, or not in ``only``, raise
        ValueRefused in a strict session and add a finding in a lenient one, unless
        ``keep_unknown``. Raise CodecError if the number itself does not parse.
        """
        pos = source.pos
        return self.member(self.base.read(source, this), source, pos)

    def member(self, number: int, source: Source, pos: int) -> int:
        """Return the enum member for a number that was read at byte ``pos``. For a number without
        one, or not in ``only``, raise ValueRefused in a strict session and add a finding in a
        lenient one, unless ``keep_unknown``; if it is not raised, return the member, or the number
        itself.
        """
        member = self.enum.find(number)
        if member is not None and (self.only is None or member in self.only):
            return member
        if not self.keep_unknown:
            source.session.tolerate(self.unknown(number, source, pos))
        return number if member is None else member

    def unknown(self, number: int, source: Source, pos: int) -> ParseError:
        """Return, without raising it, a ValueRefused for a number at byte ``pos`` that is no
        allowed member; its message lists the allowed ones.
        """
        name = self.enum.__name__
        return ValueRefused(
            f"{number} is not a {name} that may stand here ({self.allowed_values})",
            source.where(pos),
        )

    @property
    def allowed_values(self) -> str:
        """Return the allowed members for a message: numbers with labels."""
        return ", ".join(f"{m.value} {m.label}" for m in self.only or self.enum)

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of a member, given as a member, number, name or label; with
        ``keep_unknown`` also of another number that fits, and of members that are not in ``only``.
        Raise BuildError for anything else, and a number that does not fit.
        """
        return self.base.write(self.number(value), this, session)

    def number(self, value: Any) -> int:
        """Return the number of a member that is given as a member, number, name or label. With
        ``keep_unknown``, ``only`` does not count, and an int without a member is returned too.
        Raise BuildError if there is no such member, or it is not in ``only``.
        """
        member = self.enum.find(value)
        if member is not None:
            if self.keep_unknown or self.only is None or member in self.only:
                return int(member)
            raise BuildError(f"{member.label} may not stand here; allowed: {self.allowed_values}")
        if self.keep_unknown and isinstance(value, int) and not isinstance(value, bool):
            return value
        raise BuildError(f"{value!r} is not a {self.enum.__name__} ({self.allowed_values})")


def whole_number(value: Any, low: int, high: int, label: str) -> int:
    """Return ``value`` as an int. Raise BuildError if it is no int (a bool is none), or not between
    ``low`` and ``high`` (both included); ``label`` names the type in the message.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise BuildError(f"a whole number is needed, not {value!r}")
    if not low <= value <= high:
        raise BuildError(f"{int(value)} does not fit {label} ({low} to {high})")
    return int(value)


@overload
def wrap(value: int, bits: int) -> int: ...
@overload
def wrap(value: int | None, bits: int) -> int | None: ...
def wrap(value: int | None, bits: int) -> int | None:
    """Return ``value`` reduced to a signed number of ``bits`` bits in two's complement, as an
    integer that overflows. Return None for None.
    """
    if value is None:
        return None
    half = 1 << (bits - 1)
    return (value + half & (1 << bits) - 1) - half


Number = Callable[[Any], int]
