"""Codec of an integer whose bits have names."""

from __future__ import annotations

from typing import Any

import construct

from codecgen.runtime.enums import Enumeration
from codecgen.runtime.errors import BuildError, ValueRefused
from codecgen.runtime.located_bytes import Condition, Session, Source
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.parsed import Parsed
from codecgen.runtime.primitives import Codec, EnumField, Integer, Varint, whole_number


class Bit:
    """Bits ``low`` to ``high`` (included; 0 is the least significant) of an integer.

    A single bit without an enum is a bool, other bits are a number. Strict readers and builders refuse ``reserved``
    bits that are set; lenient ones keep them. ``default`` is a function of the fields of the layout.
    """

    def __init__(
        self,
        name: str,
        low: int,
        high: int | None = None,
        *,
        enum: type[Enumeration] | None = None,
        only: tuple[Enumeration, ...] | None = None,
        keep_unknown: bool = False,
        reserved: bool = False,
        default: Condition | None = None,
    ) -> None:
        self.name = name
        self.low = low
        self.width = (low if high is None else high) - low + 1
        self.mask = (1 << self.width) - 1
        self.reserved = reserved
        self.default = default
        self.flag = self.width == 1 and enum is None and not reserved
        self.enum = None if enum is None else EnumField(Integer(8, False), enum, only, keep_unknown)

    def number(self, value: Any) -> int:
        """Return the value of these bits as an unsigned number, not shifted. A bit with an enum
        takes a member, number, name or label; a single bit without one only a bool, unless it is
        reserved; others an int. Raise BuildError for another type, an unknown member, or a number
        that does not fit.
        """
        if self.enum is not None:
            return whole_number(
                self.enum.number(value), 0, self.mask, count_noun(self.width, "bit")
            )
        if self.flag:
            if not isinstance(value, bool):
                raise BuildError(f"true or false is needed, not {value!r}")
            return int(value)
        return whole_number(value, 0, self.mask, count_noun(self.width, "bit"))


class Bits(Codec):
    """Codec of an integer whose bits have names. It parses to a mapping of the names. ``this`` has
    the fields of the layout around it, from which defaults of bits are computed.
    """

    def __init__(self, base: Integer | Varint, *bits: Bit) -> None:
        super().__init__()
        self.base = base
        self.bits = bits
        self.size = base.size
        self.all = base.high - base.low
        self.by_name = {bit.name: bit for bit in bits}

    def read(self, source: Source, this: Any) -> Parsed:
        """Read the integer at the head of ``source``, and return its bits by name: bools, enum
        members or numbers. Raise CodecError if the integer is cut off or does not parse. In a
        strict session raise ValueRefused for set reserved bits, or a number that is no allowed
        member of its enum (unless its bit has ``keep_unknown``). A lenient session keeps these
        values, with a finding for each.
        """
        pos = source.pos
        raw = self.base.read(source, this) & self.all
        out = Parsed()
        for bit in self.bits:
            part = raw >> bit.low & bit.mask
            if bit.flag:
                out[bit.name] = bool(part)
            elif bit.enum is not None:
                noticed = len(source.session.findings)
                try:
                    out[bit.name] = bit.enum.member(part, source, pos)
                except ValueRefused as error:
                    raise error.located(path=bit.name) from None
                for finding in source.session.findings[noticed:]:
                    finding.located(path=bit.name)
            else:
                if bit.reserved and part:
                    wrong = ValueRefused(f"reserved bits are set ({raw:#x})", source.where(pos))
                    source.session.tolerate(wrong.located(path=bit.name))
                out[bit.name] = part
        return out

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of the integer for a mapping of bits. Missing bits get their defaults;
        None counts as ``{}``. Raise BuildError if ``value`` is no dict, has an unknown name or a
        value that does not fit, and in a strict session for set reserved bits.
        """
        number = self.number(value, this)
        for bit in self.bits if session.strict else ():
            if bit.reserved and number >> bit.low & bit.mask:
                reason = (
                    f"reserved bits are set ({number & self.all:#x}): strict readers refuse them"
                )
                raise BuildError(reason).located(path=bit.name)
        return self.base.write(number, this, session)

    def number(self, value: Any, this: Any = None) -> int:
        """Return the integer that a mapping of bits is written as, signed if the integer is.
        Missing bits get their defaults; None counts as ``{}``. Raise BuildError if ``value`` is no
        dict, or has an unknown name or a value that does not fit.
        """
        given = self.check_names(value)
        raw = 0
        for bit in self.bits:
            try:
                raw |= bit.number(self.effective(bit, given, this)) << bit.low
            except BuildError as error:
                raise error.located(path=bit.name) from None
        if self.base.signed and raw > self.base.high:
            raw -= self.all + 1
        return raw

    def check_names(self, value: Any) -> dict[str, Any]:
        """Return ``value`` itself, or ``{}`` for None. Raise BuildError if it is no dict, or has a
        name that is none of the bits; names that begin with ``_`` are ignored.
        """
        given = {} if value is None else value
        if not isinstance(given, dict):
            raise BuildError(f"a dict of bits is needed, not {value!r}")
        unknown = [name for name in given if name not in self.by_name and name[:1] != "_"]
        if unknown:
            raise BuildError(f"{unknown[0]!r} is not one of the bits {', '.join(self.by_name)}")
        return given

    def raw(self, value: Any) -> int:
        """Return the integer whose bits ``value`` has, signed if the integer is. Raise KeyError if
        a bit is missing; other names are ignored. Reserved bits are kept, enum members are not
        checked, and numbers are cut to their bits.
        """
        raw = 0
        for bit in self.bits:
            raw |= (int(value[bit.name]) & bit.mask) << bit.low
        return raw - (self.all + 1) if self.base.signed and raw > self.base.high else raw

    def effective(self, bit: Bit, given: dict[str, Any], this: Any) -> Any:
        """Return the value of a bit in ``given``; else its default, computed from the layout's
        fields ``this``; else False for a single bit that is read as a bool, and 0 for others.
        """
        if bit.name in given:
            return given[bit.name]
        if bit.default is not None:
            return bit.default(this)
        return False if bit.flag else 0

    def filled(self, value: Any, this: Any) -> construct.Container:
        """Return a container with every bit: the given values, and the defaults of the others. A
        number, name or label of an enum becomes its member, and stays as it is if there is none.
        Raise BuildError if ``value`` is no dict or None, or has an unknown name.
        """
        given = self.check_names(value)
        out = construct.Container()
        for bit in self.bits:
            part = self.effective(bit, given, this)
            if bit.enum is not None:
                member = bit.enum.enum.find(part)
                part = part if member is None else member
            out[bit.name] = part
        return out
