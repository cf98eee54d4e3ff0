"""Values as text: how a number, a word, the rest of a line, a uuid is spelled, and what else readers take for one."""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

BLANKS = " \t\n\x0b\f\r"
"""What readers that are lenient about blanks take for one."""

_BLANK = re.compile(f"[{BLANKS}]")
_PLAIN = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER = re.compile(r"([+-]?)(\d+)")
_LONGEST = 20


class Spelled(NamedTuple):
    """A value that was read. ``usual`` is whether a writer would spell it so."""

    value: Any
    usual: bool


class Unreadable(Exception):
    """Text that is no such value, or a value that has no such text; the argument says why."""


class TextValue(Protocol):
    """How values of a kind are spelled."""

    def read(self, text: str) -> Spelled:
        """The value of a text. Raises :class:`Unreadable`."""

    def write(self, value: Any) -> str:
        """The text of a value. Raises :class:`Unreadable`."""


@dataclass(frozen=True, slots=True)
class Decimal:
    """A whole number in decimal digits, from ``low`` to ``high``."""

    low: int
    high: int

    def read(self, text: str) -> Spelled:
        found = _NUMBER.fullmatch(text)
        if found is None:
            raise Unreadable(f"{_short(text)} is no decimal number")
        digits = found[2].lstrip("0") or "0"
        if len(digits) > _LONGEST:
            raise Unreadable(f"a number of {len(digits)} digits is not in {self.low}..{self.high}")
        number = int(found[1] + digits)
        self.fit(number)
        return Spelled(number, _PLAIN.fullmatch(text) is not None)

    def write(self, value: Any) -> str:
        if not isinstance(value, int) or isinstance(value, bool):
            raise Unreadable(f"a number is needed, not {value!r}")
        self.fit(value)
        return str(int(value))

    def fit(self, number: int) -> None:
        if not self.low <= number <= self.high:
            raise Unreadable(f"{number} is not in {self.low}..{self.high}")


@dataclass(frozen=True, slots=True)
class Word:
    """Text without blanks, at least a character of it."""

    def read(self, text: str) -> Spelled:
        if not text:
            raise Unreadable("a word is needed, and there is nothing")
        if _BLANK.search(text):
            raise Unreadable(f"{_short(text)} has a blank in it")
        return Spelled(text, True)

    def write(self, value: Any) -> str:
        if not isinstance(value, str):
            raise Unreadable(f"text is needed, not {value!r}")
        self.read(value)
        return _encodable(value)


@dataclass(frozen=True, slots=True)
class RestOfLine:
    """Any text that is left of the line."""

    def read(self, text: str) -> Spelled:
        return Spelled(text, True)

    def write(self, value: Any) -> str:
        if not isinstance(value, str):
            raise Unreadable(f"text is needed, not {value!r}")
        return _encodable(value)


@dataclass(frozen=True, slots=True)
class Base64Uuid:
    """A uuid as the 22 characters of its Base64 form for addresses (``-`` and ``_``), without padding."""

    def read(self, text: str) -> Spelled:
        bare = text[:-2] if len(text) == 24 and text.endswith("==") else text
        try:
            if len(bare) != 22 or not re.fullmatch("[A-Za-z0-9_-]*", bare):
                raise Unreadable(f"{_short(text)} is no uuid in 22 characters of Base64")
            data = base64.urlsafe_b64decode(bare + "==")
        except binascii.Error as error:  # pragma: no cover - the characters were looked at
            raise Unreadable(str(error)) from None
        found = uuid.UUID(bytes=data)
        return Spelled(found, self.write(found) == text)

    def write(self, value: Any) -> str:
        if not isinstance(value, uuid.UUID):
            raise Unreadable(f"a uuid is needed, not {value!r}")
        return base64.urlsafe_b64encode(value.bytes).decode("ascii").rstrip("=")


def _encodable(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Unreadable(f"character {error.start} is half of a surrogate pair") from None
    return text


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
