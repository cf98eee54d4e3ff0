"""Spelling of values in text files: numbers, words, the rest of a line, uuids."""

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
    """A value that was read. ``usual`` says whether a writer would spell it like this."""

    value: Any
    usual: bool


class Unreadable(Exception):
    """Raised for text that is no such value, or a value without such a text."""


class TextValue(Protocol):
    """Reads and writes the text of values of one kind."""

    def read(self, text: str) -> Spelled:
        """Return the value of a text; raise :class:`Unreadable` if it has none."""

    def write(self, value: Any) -> str:
        """Return the text of a value; raise :class:`Unreadable` if it has none."""


@dataclass(frozen=True, slots=True)
class Decimal:
    """A whole number in decimal digits, from ``low`` to ``high`` (included)."""

    low: int
    high: int

    def read(self, text: str) -> Spelled:
        """Return the number; leading zeros and a plus sign are unusual spellings. Raise Unreadable
        if the text is no decimal number, or out of range.
        """
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
        """Return the digits of a number. Raise Unreadable if the value is no integer, or out of
        range.
        """
        if not isinstance(value, int) or isinstance(value, bool):
            raise Unreadable(f"a number is needed, not {value!r}")
        self.fit(value)
        return str(int(value))

    def fit(self, number: int) -> None:
        """Raise :class:`Unreadable` for a number out of range."""
        if not self.low <= number <= self.high:
            raise Unreadable(f"{number} is not in {self.low}..{self.high}")


@dataclass(frozen=True, slots=True)
class Word:
    """Text without blanks, of at least one character."""

    def read(self, text: str) -> Spelled:
        """Return the word; raise :class:`Unreadable` if it is empty or has a blank."""
        if not text:
            raise Unreadable("a word is needed, and there is nothing")
        if _BLANK.search(text):
            raise Unreadable(f"{_short(text)} has a blank in it")
        return Spelled(text, True)

    def write(self, value: Any) -> str:
        """Return the word; raise :class:`Unreadable` if it is no word."""
        if not isinstance(value, str):
            raise Unreadable(f"text is needed, not {value!r}")
        self.read(value)
        return _encodable(value)


@dataclass(frozen=True, slots=True)
class RestOfLine:
    """Any text to the end of the line."""

    def read(self, text: str) -> Spelled:
        """Return the text itself."""
        return Spelled(text, True)

    def write(self, value: Any) -> str:
        """Return the text itself; raise :class:`Unreadable` for another type."""
        if not isinstance(value, str):
            raise Unreadable(f"text is needed, not {value!r}")
        return _encodable(value)


@dataclass(frozen=True, slots=True)
class Base64Uuid:
    """A uuid as 22 characters of URL-safe Base64 (``-`` and ``_``) without padding."""

    def read(self, text: str) -> Spelled:
        """Return the uuid; padding and unused bits that are set are unusual spellings. Raise
        Unreadable if the text is not a uuid in Base64.
        """
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
        """Return the 22 characters of a uuid. Raise Unreadable if the value is no UUID object."""
        if not isinstance(value, uuid.UUID):
            raise Unreadable(f"a uuid is needed, not {value!r}")
        return base64.urlsafe_b64encode(value.bytes).decode("ascii").rstrip("=")


def _encodable(text: str) -> str:
    """Return a text; raise :class:`Unreadable` for half of a surrogate pair."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Unreadable(f"character {error.start} is half of a surrogate pair") from None
    return text


def _short(text: str) -> str:
    """Return the quoted text for a message, shortened to 40 characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
