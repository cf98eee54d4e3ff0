"""Errors that explain a wrong CRC: the arithmetic of polynomials modulo 2 and modulo the polynomial P of a CRC.

A CRC is linear. The syndrome (stored checksum XOR computed checksum) depends on the error alone: an error E, as a polynomial whose
constant term is the last bit of the message, has the syndrome E * x^width mod P. Division by x^8 moves an error by one byte, so a
syndrome that is divided by x^width and then k times by x^8 is the error itself if the error ends k bytes before the end of the
message. All positions are tried, which takes time linear in the length, and no table for a length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from codecgen.runtime.checksums import Crc

STEP = 64
"""Number of positions that one lane of the search goes through."""

MAX_PAIR_BITS = 1 << 16
"""Maximum length in bits of a message in which pairs of bits are searched. In longer ones most syndromes have pairs."""


@dataclass(frozen=True, slots=True)
class Window:
    """An error in at most two adjacent bytes of a message.

    Attributes:
        last: Index of the last wrong byte.
        flipped: Flipped bits of that byte, not 0.
        before: Flipped bits of the byte before it.
    """

    last: int
    flipped: int
    before: int


def find_windows(crc: Crc, syndrome: int, length: int) -> list[Window]:
    """Return all errors within two adjacent bytes of a message of ``length`` bytes that have a
    syndrome, the last ones first; ``[]`` if there are none, also for a syndrome of 0. A CRC of 16
    bits or less has one at most positions.
    """
    found: list[Window] = []
    if not length or not syndrome:
        return found
    field = _field(crc)
    starts = field.multiply(field.lane_starts(-(-length // STEP)), field.shifted_out(syndrome))
    lanes = starts.copy()
    at = np.arange(len(lanes)) * STEP
    for step in range(STEP):
        fits = np.flatnonzero((lanes >> field.sixteen == 0) & (lanes & field.byte != 0))
        for lane in fits.tolist():
            last = length - 1 - int(at[lane]) - step
            low, high = int(lanes[lane]) & 0xFF, int(lanes[lane]) >> 8
            if last > 0 or (last == 0 and not high):
                found.append(Window(last, field.to_byte(low), field.to_byte(high)))
        lanes = (lanes >> field.eight) ^ field.divided[lanes & field.byte]
    return sorted(found, key=lambda window: -window.last)


def count_pairs(crc: Crc, syndrome: int, length: int) -> int | None:
    """Return the number of pairs of flipped bits, in a message of ``length`` bytes or in its stored
    checksum, that have a syndrome, which must not be 0. Return None, without a search, for a
    message above 8 KiB.
    """
    if 8 * length > MAX_PAIR_BITS:
        return None
    field = _field(crc)
    own = np.array([1 << bit for bit in range(crc.width)], field.kind)
    bits = np.concatenate([field.bit_syndromes(8 * length), own])
    wanted = bits ^ field.kind(field.to_polynomial(syndrome))
    return int(np.isin(wanted, bits).sum()) // 2


@cache
def _field(crc: Crc) -> _Field:
    return _Field(crc)


class _Field:
    """Polynomials modulo the polynomial of a CRC, as integers whose bit i is the coefficient of x^i."""

    def __init__(self, crc: Crc) -> None:
        self.crc = crc
        self.kind: Any = np.uint32 if crc.width <= 32 else np.uint64
        self.sixteen, self.eight, self.byte = self.kind(16), self.kind(8), self.kind(0xFF)
        if crc.width <= 16:
            self.sixteen = self.kind(crc.width)  # every remainder fits
        self._top, self._mask = 1 << crc.width - 1, (1 << crc.width) - 1
        self._halved = (1 << crc.width | crc.poly) >> 1
        divided = list(range(256))
        for _ in range(8):
            divided = [self._divide(value) for value in divided]
        self.divided = np.array(divided, self.kind)
        self._starts = np.array([1], self.kind)
        self._bits = np.array([self._power(crc.width)], self.kind)

    def _divide(self, value: int) -> int:
        """Return a polynomial divided by x."""
        return value >> 1 ^ (self._halved if value & 1 else 0)

    def _power(self, exponent: int) -> int:
        """Return the polynomial x^``exponent`` in the field of the CRC, as a number. A negative
        exponent gives the inverse; the time is proportional to the exponent.
        """
        value = 1
        for _ in range(abs(exponent)):
            if exponent < 0:
                value = self._divide(value)
            else:
                value = (value << 1 & self._mask) ^ (self.crc.poly if value & self._top else 0)
        return value

    def multiply(self, values: Any, factor: int) -> Any:
        """Return an array with the product of each polynomial in ``values`` and the polynomial
        ``factor``, modulo that of the CRC.
        """
        product = np.zeros_like(values)
        one, top = self.kind(1), self.kind(self.crc.width - 1)
        poly, mask = self.kind(self.crc.poly), self.kind(self._mask)
        for bit in range(self.crc.width - 1, -1, -1):
            product = ((product << one) & mask) ^ ((product >> top) * poly)
            if factor >> bit & 1:
                product = product ^ values
        return product

    def lane_starts(self, count: int) -> Any:
        """Return the powers of x^(-8 * STEP) from exponent 0 to ``count`` - 1."""
        self._starts = self._double(self._starts, count, self._power(-8 * STEP))
        return self._starts[:count]

    def bit_syndromes(self, count: int) -> Any:
        """Return the syndromes of single bits in polynomial form, from the last bit of a message to the one with index ``count`` - 1."""
        self._bits = self._double(self._bits, count, self._power(1))
        return self._bits[:count]

    def _double(self, powers: Any, count: int, base: int) -> Any:
        """Return a geometric sequence with the ratio ``base`` that has at least ``count`` elements and begins with ``powers``."""
        while len(powers) < count:
            factor = 1
            for bit in f"{len(powers):b}":
                factor = self._times(factor, factor)
                factor = self._times(factor, base) if bit == "1" else factor
            powers = np.concatenate([powers, self.multiply(powers, factor)])
        return powers

    def _times(self, a: int, b: int) -> int:
        """Return the product of two polynomials."""
        return int(self.multiply(np.array([a], self.kind), b)[0])

    def to_polynomial(self, syndrome: int) -> int:
        """Return a syndrome as a polynomial: the CRC may store its bits in reversed order."""
        return _reverse(syndrome, self.crc.width) if self.crc.refout else syndrome

    def shifted_out(self, syndrome: int) -> int:
        """Return the polynomial of a syndrome divided by x^width."""
        return self._times(self.to_polynomial(syndrome), self._power(-self.crc.width))

    def to_byte(self, value: int) -> int:
        """Return eight coefficients as the bits of a byte of the message."""
        return _reverse(value, 8) if self.crc.refin else value


def _reverse(value: int, width: int) -> int:
    """Return a number of ``width`` bits with the order of its bits reversed."""
    return int(f"{value:0{width}b}"[::-1], 2)
