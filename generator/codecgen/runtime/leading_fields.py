"""Read the leading fields of fixed size of a layout at once, if they are ordinary.

Anything unusual (a refused value, reserved bits, a wrong checksum, missing bytes) gives None. The caller then reads
the fields one by one, which reports what is wrong and where.
"""

from __future__ import annotations

import struct
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from codecgen.runtime.arrays import Array
from codecgen.runtime.bits import Bits
from codecgen.runtime.errors import CodecError
from codecgen.runtime.fields import Field, Length
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.primitives import STRUCT_CODES, Codec, Integer

_ORDERS = {"big": ">", "little": "<"}
_tuple = cast("Callable[[str, Sequence[str]], Any]", namedtuple)  # its fields are not known before


class LeadingFields:
    """Reader of the leading integers and bits of a layout. ``fields`` has their names, ``size`` their bytes."""

    def __init__(
        self, of_layout: Sequence[Field], offsets: Mapping[str, int], length: Length | None
    ) -> None:
        """Take the fields of a layout, the offsets of those at fixed places, and its length."""
        fields: list[Field] = []
        endian: str | None = None
        codes = ""
        for f in of_layout:
            number = f.codec.base if isinstance(f.codec, Bits) else f.codec
            if f.tag is not None or f.when is not None or not isinstance(number, Integer):
                break
            if number.size not in STRUCT_CODES or (
                number.size > 1 and endian not in (None, number.endian)
            ):
                break
            endian = number.endian if number.size > 1 else endian
            codes += _code(number)
            fields.append(f)
        self.fields = frozenset(f.name for f in fields)
        self._struct = struct.Struct(_ORDERS[endian or "big"] + codes)
        self.size = self._struct.size
        self._unpack = self._struct.unpack_from
        self._make: Callable[[Sequence[Any]], Any] = _tuple(
            "LeadingFields", [f.name for f in fields]
        )._make
        self._bits = [
            (i, _bits_parser(f.codec)) for i, f in enumerate(fields) if isinstance(f.codec, Bits)
        ]
        self._consts = [(i, f.const) for i, f in enumerate(fields) if f.const is not None]
        self._rules = _rules(fields)
        self._covered = _leading_checksums(of_layout, fields, offsets, length)
        self._length = length
        self.leaves_an_array = (
            len(fields) == len(of_layout) - 1
            and isinstance(of_layout[-1].codec, Array)
            and self._covered is not None
        )
        """Whether what follows is an array to the end of the layout, and nothing but its length and checksums relates the
        fields to it."""

    def values(self, data: bytes | memoryview, pos: int, end: int) -> Any | None:
        """Return the leading fields of the layout at index ``pos`` of ``data`` as a named tuple,
        without checks of rules, constants and checksums. Return None if they are cut off by
        ``end``, or a field of bits has a value that a strict reader refuses.
        """
        if end - pos < self.size:
            return None
        found: Any = self._unpack(data, pos)
        if self._bits:
            found = list(found)
            for i, plain in self._bits:
                bits = plain(found[i])
                if bits is None:
                    return None
                found[i] = bits
        return self._make(found)

    def checked(self, data: bytes | memoryview, pos: int, end: int) -> Any | None:
        """Return the leading fields of the layout from ``pos`` to ``end`` (excluded) as a named
        tuple. Return None if they are cut off, or a constant, a rule of a field, the length or a
        checksum is wrong. Call it only if :attr:`leaves_an_array`.
        """
        found = self.values(data, pos, end)
        if found is None:
            return None
        for i, const in self._consts:
            if found[i] != const:
                return None
        for holds, wanted in self._rules:
            if bool(holds(found)) is not wanted:
                return None
        length = self._length
        if length is not None and length.before + getattr(found, length.field.name) != end - pos:
            return None
        for i, at, checksum in self._covered or ():
            if checksum(data[pos + at : end]) != found[i]:
                return None
        return found


Frames = Callable[[bytes | memoryview, int], tuple[Any, int, int] | None]
"""From bytes and a place: the layout that begins there, the number that says it, and its length in bytes. None for what takes
more to say, is not there or is wrong."""


def frames(
    by: Codec, offset: int, length: Length, cases: Mapping[int, tuple[Any, Length]]
) -> Frames:
    """Return a function ``frame(data, at)`` that returns the layout at ``at``, its number and the
    length in bytes that it states, which may go beyond ``data``. The function returns None if the
    first bytes are cut off, have no case, or a length that is too small or refused. It always
    returns None unless number and length are integers of 1, 2, 4 or 8 bytes in one byte order.

    Args:
        by: Codec of the number that selects a case, at byte ``offset``.
        offset: Its offset in all cases.
        length: Where all cases have their length.
        cases: For each number the layout and its length.
    """
    if not isinstance(by, Integer):
        return lambda data, at: None
    framings = {number: _framing_of(*case) for number, case in cases.items()}
    own = Integer(length.size, length.signed, "big" if length.endian == "big" else "little")
    places = sorted([(offset, by, 0), (length.offset, own, 1)], key=lambda place: place[0])
    (first, low, _), (second, high, _) = places
    gap = second - first - low.size
    if gap < 0 or not {low.size, high.size} <= STRUCT_CODES.keys() or low.endian != high.endian:
        return lambda data, at: None
    code = f"{_ORDERS[low.endian]}{first}x{_code(low)}{gap}x{_code(high)}"
    start = struct.Struct(code)
    unpack, needed = start.unpack_from, start.size
    is_number_first, before = places[0][2] == 0, length.before

    def frame(data: bytes | memoryview, at: int) -> tuple[Any, int, int] | None:
        """Return the layout at ``at``, its number and its length, or None."""
        if len(data) - at < needed:
            return None
        one, other = unpack(data, at)
        number, size = (one, other) if is_number_first else (other, one)
        case = framings.get(number)
        if case is None:
            return None
        layout, min_size, refuse, make = case
        if size < min_size or (refuse is not None and refuse(make((size,)))):
            return None
        return layout, number, before + size

    return frame


def _framing_of(layout: Any, length: Length) -> tuple[Any, int, Any, Any]:
    """Return a layout, the minimum of its length field, the length's ``refuse`` condition (or
    None), and a function that makes its argument.
    """
    f = length.field
    refuse = None if f.refuse is None else f.refuse.holds
    return layout, f.own_bytes, refuse, _tuple("Length", [f.name])._make


def _code(number: Integer) -> str:
    """Return the letter of :mod:`struct` for the size and sign of an integer, such as ``i`` or
    ``I``, without byte order.
    """
    code = STRUCT_CODES[number.size]
    return code if number.signed else code.upper()


def _rules(fields: Sequence[Field]) -> list[tuple[Callable[[Any], Any], bool]]:
    """Return the functions of the rules of fields, each with the result that it must have: True for
    ``valid``, False for ``refuse``.
    """
    rules = [(f.valid.holds, True) for f in fields if f.valid is not None]
    return rules + [(f.refuse.holds, False) for f in fields if f.refuse is not None]


def _leading_checksums(
    of_layout: Sequence[Field],
    fields: Sequence[Field],
    offsets: Mapping[str, int],
    length: Length | None,
) -> list[tuple[int, int, Callable[[Any], int]]] | None:
    """Return the checksums among the fields ``of_layout``, each as (index of its field, first covered byte, function);
    ``[]`` without checksums. Return None if one is not a leading field, counts a field as zeros, or
    does not cover all bytes from one leading field to the end. Return None also if the layout has
    checksums and no length, or a length of only a part of it.
    """
    out = []
    names = [f.name for f in fields]
    for f in of_layout:
        if f.measures is not None and (length is None or f is not length.field):
            return None
        if not f.covers:
            continue
        (first, last), *more = f.covers
        if f.checksum is None or more or last or f.zero or first not in names or f not in fields:
            return None
        if length is None:
            return None  # where it ends is not known before all of it is parsed
        out.append((names.index(f.name), offsets[first], f.checksum))
    return out


def _bits_parser(codec: Bits) -> Callable[[int], Any | None]:
    """Return a function from a number to an object with the bits of ``codec`` as attributes. The
    function returns None if a strict reader refuses the number, and remembers the last 1024
    numbers.
    """
    kind = type("PlainBits", (PlainBits,), {"__slots__": tuple(codec.by_name)})

    @lru_cache(1 << 10)  # few of them are in use
    def parse_bits(number: int) -> Any | None:
        data = codec.base.write(number, None, Session())
        try:
            parsed = codec.read(Source(data, Session()), None)
        except CodecError:
            return None
        bits = kind(codec.raw(parsed))
        for name, value in parsed.items():
            setattr(bits, name, value)
        return bits

    return parse_bits


class PlainBits:
    """Bits as attributes, with the number that they come from."""

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        self._number = number

    @staticmethod
    def number_of(bits: PlainBits) -> int:
        """Return the number from which bits were parsed."""
        return bits._number
