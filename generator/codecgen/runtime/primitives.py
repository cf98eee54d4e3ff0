"""Numbers and uuids as Construct classes: bounded, with errors that say which byte."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any, Literal, overload

import construct

from codecgen.runtime.enums import Enumeration
from codecgen.runtime.errors import BuildError, LengthError, ParseError, ValueRefused
from codecgen.runtime.located_bytes import Session, Source

Endian = Literal["big", "little"]


class Codec(construct.Construct):
    """Base of all codecs here: a Construct that reads from a :class:`Source` and writes bytes.

    ``read`` and ``write`` do the work. As a Construct it can stand inside any other, and any stream will do.
    """

    size: int | None = None
    """Length in bytes, when that is fixed."""

    null: int | None = None
    """The number that means null, where one can."""

    needs_layout = False
    """Whether only the layout around it can read and write it."""

    def read(self, source: Source, this: Any) -> Any:
        raise NotImplementedError

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        raise NotImplementedError

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        if isinstance(stream, Source):
            return self.read(stream, context)
        start = stream.tell()
        source = Source(stream.read(), Session(), origin=start)
        value = self.read(source, context)
        stream.seek(start + source.pos)
        return value

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        data = self.write(obj, context, Session())
        construct.stream_write(stream, data, len(data), path)
        return obj

    def _sizeof(self, context: Any, path: str) -> int:
        if self.size is None:
            raise construct.SizeofError(f"{type(self).__name__} has no fixed size", path=path)
        return self.size


STRUCT_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}
"""Codes of :mod:`struct` for signed integers, by their size in bytes. Other sizes have no code."""


class Integer(Codec):
    """An integer of fixed size."""

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
        pos = source.pos
        after = pos + self.size
        if after > source.end:
            raise source.short(self.size)
        source.pos = after
        if self._struct is None:
            return int.from_bytes(source.data[pos:after], self.endian, signed=self.signed)
        return int(self._struct.unpack_from(source.data, pos)[0])

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        number = whole_number(value, self.low, self.high, self.label)
        if self._struct is None:
            return number.to_bytes(self.size, self.endian, signed=self.signed)
        return self._struct.pack(number)


class Varint(Codec):
    """A variable-length integer: 7 bits a byte, least significant first; zigzag when it is signed.

    At most 5 bytes for 32 bits and 10 for 64. Bits of the last byte that do not fit are dropped, as the
    formats' own readers do; with ``overlong`` a lenient reader takes spellings with more bytes than needed.
    """

    def __init__(self, bits: int = 32, signed: bool = True, overlong: bool = False) -> None:
        super().__init__()
        self.bits = bits
        self.signed = signed
        self.overlong = overlong
        self.most = 5 if bits == 32 else 10
        self.mask = (1 << bits) - 1
        self.low = -(1 << (bits - 1)) if signed else 0
        self.high = (1 << (bits - 1)) - 1 if signed else self.mask
        self.label = ("" if signed else "unsigned ") + ("varint" if bits == 32 else "varlong")

    def read(self, source: Source, this: Any) -> int:
        data = source.data
        start = pos = source.pos
        end = source.end
        raw = shift = 0
        while True:
            if pos >= end:
                source.pos = pos
                raise source.short(1)
            byte = data[pos]
            pos += 1
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if pos - start == self.most:
                raise LengthError(
                    f"{self.label} is longer than {self.most} bytes", source.where(start)
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
        number = whole_number(value, self.low, self.high, self.label)
        raw = ((number << 1) ^ (number >> (self.bits - 1))) & self.mask if self.signed else number
        out = bytearray()
        while raw > 0x7F:
            out.append(raw & 0x7F | 0x80)
            raw >>= 7
        out.append(raw)
        return bytes(out)


class Float64(Codec):
    """An IEEE 754 double."""

    size: int = 8
    code = "d"

    def __init__(self, endian: Endian = "big") -> None:
        super().__init__()
        self.endian = endian
        self._struct = struct.Struct((">" if endian == "big" else "<") + self.code)

    def read(self, source: Source, this: Any) -> float:
        return float(self._struct.unpack(source.take(self.size))[0])

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BuildError(f"a number is needed, not {value!r}")
        try:
            return self._struct.pack(value)
        except OverflowError:
            raise BuildError(f"{value!r} is too large for {self.size} bytes") from None


class Float32(Float64):
    """An IEEE 754 number of 4 bytes. What lies between two of them is written as the nearest one."""

    size = 4
    code = "f"


class Boolean(Codec):
    """A byte: 0 is false, 1 is true. Other values read as true by lenient readers."""

    size = 1

    def read(self, source: Source, this: Any) -> bool:
        byte = source.take(1)[0]
        if byte > 1:
            error = ValueRefused(f"a boolean is 0 or 1, not {byte}", source.where(source.pos - 1))
            source.session.tolerate(error)
        return byte != 0

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        if not isinstance(value, bool):
            raise BuildError(f"true or false is needed, not {value!r}")
        return b"\1" if value else b"\0"


class Uuid(Codec):
    """A uuid: 16 bytes, most significant first."""

    size = 16

    def read(self, source: Source, this: Any) -> uuid.UUID:
        return uuid.UUID(bytes=source.take(16))

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        if not isinstance(value, uuid.UUID):
            raise BuildError(f"a uuid.UUID is needed, not {value!r}")
        return value.bytes


class EnumField(Codec):
    """An integer that stands for a value of an enum.

    A number without a name is refused by strict readers, unless ``keep_unknown``; lenient readers give the
    bare number. ``only`` are the values that may stand here.
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
        pos = source.pos
        return self.member(self.base.read(source, this), source, pos)

    def member(self, number: int, source: Source, pos: int) -> int:
        """The enum's member for a number."""
        member = self.enum.of(number)
        if member is not None and (self.only is None or member in self.only):
            return member
        if not self.keep_unknown:
            source.session.tolerate(self.unknown(number, source, pos))
        return number if member is None else member

    def unknown(self, number: int, source: Source, pos: int) -> ParseError:
        name = self.enum.__name__
        return ValueRefused(
            f"{number} is not a {name} that may stand here ({self.known})", source.where(pos)
        )

    @property
    def known(self) -> str:
        """The values that may stand here, in words."""
        return ", ".join(f"{m.value} {m.label}" for m in self.only or self.enum)

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        return self.base.write(self.number(value), this, session)

    def number(self, value: Any) -> int:
        """The number of a member, of a name, or of a number."""
        member = self.enum.of(value)
        if member is not None:
            if self.only is not None and member not in self.only:
                raise BuildError(f"{member.label} may not stand here")
            return int(member)
        if self.keep_unknown and isinstance(value, int) and not isinstance(value, bool):
            return value
        raise BuildError(f"{value!r} is not a {self.enum.__name__} ({self.known})")


def whole_number(value: Any, low: int, high: int, label: str) -> int:
    """``value`` as an int in a range, or :class:`BuildError`."""
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
    """``value`` in two's complement of that many bits: how sums behave in the formats' own programs."""
    if value is None:
        return None
    half = 1 << (bits - 1)
    return (value + half & (1 << bits) - 1) - half


Number = Callable[[Any], int]
