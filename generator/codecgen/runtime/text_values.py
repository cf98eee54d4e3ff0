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
        """Return the number, with ``usual`` False for leading zeros, a plus sign, ``-0`` or digits
        that are not ASCII. Raise Unreadable if the text is not a decimal number, or not between
        ``low`` and ``high`` (included).
        """
        found = _NUMBER.fullmatch(text)
        if found is None:
            raise Unreadable(f"{_short(text)} is not a decimal number")
        digits = found[2].lstrip("0") or "0"
        if len(digits) > _LONGEST:
            raise Unreadable(f"a number of {len(digits)} digits is not in {self.low}..{self.high}")
        number = int(found[1] + digits)
        self.fit(number)
        return Spelled(number, _PLAIN.fullmatch(text) is not None)

    def write(self, value: Any) -> str:
        """Return the decimal digits of a number. Raise Unreadable if the value is no int (a bool is
        none), or not between ``low`` and ``high`` (included).
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
        """Return the text itself as a usual spelling. Raise Unreadable if it is empty or has a
        blank: a space, tab, line break, vertical tab or form feed.
        """
        if not text:
            raise Unreadable("a word is needed, but the text ends here")
        if _BLANK.search(text):
            raise Unreadable(f"{_short(text)} has a blank in it, but one word is needed")
        return Spelled(text, True)

    def write(self, value: Any) -> str:
        """Return the text itself. Raise Unreadable if the value is no str, is empty, or has a blank
        or half of a surrogate pair.
        """
        if not isinstance(value, str):
            raise Unreadable(f"cannot write {value!r} as text: a str is needed")
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
            raise Unreadable(f"cannot write {value!r} as text: a str is needed")
        return _encodable(value)


@dataclass(frozen=True, slots=True)
class Base64Uuid:
    """A uuid as 22 characters of URL-safe Base64 (``-`` and ``_``) without padding."""

    def read(self, text: str) -> Spelled:
        """Return the UUID, with ``usual`` False for ``==`` at the end and for unused bits that are
        set. Raise Unreadable if the text is not 22 characters of URL-safe Base64 (24 with ``==``).
        """
        bare = text[:-2] if len(text) == 24 and text.endswith("==") else text
        try:
            if len(bare) != 22 or not re.fullmatch("[A-Za-z0-9_-]*", bare):
                raise Unreadable(f"{_short(text)} is not a UUID in 22 characters of Base64")
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
    """Return the text itself. Raise Unreadable if it has half of a surrogate pair, which UTF-8
    cannot encode.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Unreadable(
            f"character {error.start} is half of a surrogate pair, which UTF-8 cannot hold: remove it"
        ) from None
    return text


def _short(text: str) -> str:
    """Return the quoted text for a message, shortened to 40 characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
