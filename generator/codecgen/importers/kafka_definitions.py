"""Kafka's message definitions as values: messages, structs, fields and version ranges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from codecgen.diagnostics import Span

LAST = 32767
"""The version that an open range ends with: versions are 16 bits with a sign."""

MESSAGE_TYPES = (
    "request",
    "response",
    "header",
    "metadata",
    "data",
    "coordinator-key",
    "coordinator-value",
)
INTEGERS = ("int8", "int16", "uint16", "int32", "uint32", "int64")
SCALARS = ("bool", *INTEGERS, "uuid", "float64")
LENGTHY = ("string", "bytes", "records")
_RANGE = re.compile(r"(\d{1,5})(?:(\+)|-(\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class Range:
    """Versions from ``low`` to ``high`` (included); empty if ``low`` is larger."""

    low: int
    high: int

    @property
    def empty(self) -> bool:
        """Return whether the range has no version."""
        return self.low > self.high

    @property
    def is_open(self) -> bool:
        """Return whether the range has no last version."""
        return self.high == LAST

    def intersect(self, other: Range) -> Range:
        """Return the versions that are in both ranges, :data:`NONE` if there are none."""
        found = Range(max(self.low, other.low), min(self.high, other.high))
        return NONE if found.empty else found

    def is_within(self, other: Range) -> bool:
        """Return whether every version is in another range; an empty range always is."""
        return self.empty or self.intersect(other) == self

    def __str__(self) -> str:
        if self.empty:
            return "none"
        if self.low == self.high:
            return str(self.low)
        return f"{self.low}+" if self.is_open else f"{self.low}-{self.high}"


NONE = Range(0, -1)


def range_of(text: str) -> Range | None:
    """Return the range of ``2``, ``0-3``, ``1+`` or ``none``. Return None if ``text`` is none of
    these, descends, or exceeds ``LAST``.
    """
    text = text.strip()
    if text == "none":
        return NONE
    found = _RANGE.fullmatch(text)
    if found is None:
        return None
    low = int(found[1])
    high = LAST if found[2] else low if found[3] is None else int(found[3])
    return Range(low, high) if low <= high <= LAST else None


@dataclass(frozen=True, slots=True)
class FieldType:
    """A scalar, a type with a length, or the name of a struct; or an array of one of these."""

    name: str
    is_array: bool = False

    @property
    def is_struct(self) -> bool:
        """Return whether the type, or that of the elements, is a struct."""
        return self.name not in SCALARS and self.name not in LENGTHY

    @property
    def non_array_name(self) -> str:
        """Return the name of a type that is no array, or ``""``."""
        return "" if self.is_array else self.name

    def __str__(self) -> str:
        return f"[]{self.name}" if self.is_array else self.name


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a definition.

    Attributes:
        default: The text of the default.
        flexible: The versions with compact lengths, if they differ from those of the message.
        left_out: Keys that mean something that YAML does not express.
        spans: Places of the keys.
    """

    name: str
    type: FieldType
    versions: Range
    span: Span
    spans: Mapping[str, Span]
    nullable: Range = NONE
    tagged: Range = NONE
    tag: int | None = None
    flexible: Range | None = None
    default: str = ""
    about: str = ""
    fields: tuple[Field, ...] | None = None
    comments: tuple[str, ...] = ()
    entity: str = ""
    is_map_key: bool = False
    is_zero_copy: bool = False
    left_out: tuple[str, ...] = ()

    def span_of(self, key: str) -> Span:
        """Return the place of a key, or of the field if it does not have the key."""
        return self.spans.get(key, self.span)


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct that several fields of a message may hold."""

    name: str
    versions: Range
    fields: tuple[Field, ...]
    span: Span
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """A message: one file. ``comments`` are those before its keys."""

    name: str
    type: str
    file: str
    valid: Range
    flexible: Range
    fields: tuple[Field, ...]
    structs: tuple[Struct, ...]
    span: Span
    spans: Mapping[str, Span]
    api_key: int | None = None
    listeners: tuple[str, ...] = ()
    is_latest_unstable: bool = False
    comments: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def is_retired(self) -> bool:
        """Return whether the message has no valid version."""
        return self.valid.empty

    def span_of(self, key: str) -> Span:
        """Return the place of a key, or of the message if it does not have the key."""
        return self.spans.get(key, self.span)

    def struct(self, name: str) -> Struct | None:
        """Return a common struct by name, or None."""
        return next((s for s in self.structs if s.name == name), None)

    def all_fields(self) -> Iterator[Field]:
        """Yield every field of the message, each followed by the fields inside it: first those of
        the common structs, the last struct first, then those of the message itself.
        """
        stack = [*reversed(self.fields), *(f for s in self.structs for f in reversed(s.fields))]
        while stack:
            one = stack.pop()
            yield one
            stack += reversed(one.fields or ())
