"""Codec of a field, or an element of an array, that holds one of several layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from codecgen.runtime.enums import describe_number, list_numbers
from codecgen.runtime.errors import (
    BuildError,
    CodecError,
    LengthError,
    TrailingError,
    ValueRefused,
)
from codecgen.runtime.given import values_from
from codecgen.runtime.layout import Choice, Layout
from codecgen.runtime.located_bytes import Condition, Session, Source
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.primitives import Codec

Versioned = Layout | Choice | Mapping[int, Layout]
"""A layout: with versions that are told from outside it is one for each."""


class Chosen(Codec):
    """One of several layouts, chosen by a value or by a version. ``this`` has the fields of the
    layout around it.

    Attributes:
        find: Returns the candidates: a :class:`Choice` that decides by its own value; with ``given``, layouts by
            number; else one layout.
        given: Returns the number that decides from the fields before.
        version: Returns the version from the fields before.
        around: The version of the layout around the field.
        length: Codec of the length in bytes before the layout.
        null: The length that means null; with ``any_negative``, lenient readers take every negative one.
        unknown: A value without a case is the bytes that are left.
        gives: Returns each value that the layout is given from the fields before, by name.
    """

    def __init__(
        self,
        find: Callable[[], Choice | Mapping[Any, Versioned] | Versioned],
        *,
        given: Condition | None = None,
        version: Condition | None = None,
        around: int | None = None,
        length: Codec | None = None,
        null: int | None = None,
        any_negative: bool = False,
        unknown: bool = False,
        gives: Mapping[str, Condition] | None = None,
    ) -> None:
        super().__init__()
        self.gives = gives
        self.find = find
        self.given = given
        self.version = version
        self.around = around
        self.length = length
        self.null = null
        self.any_negative = any_negative
        self.unknown = unknown

    @property
    def min_size(self) -> int:
        """Return the minimum size in bytes: that of the length, else 0, since a case may be empty."""
        return 0 if self.length is None else self.length.size or 1

    # ------------------------------------------------------------ which one

    def case(self, this: Any, number: Callable[[Choice], int]) -> Layout | Choice | str:
        """Return the layout (or a choice between versions) that an earlier field or a discriminator
        selects. Return a message instead, as a str, if the field is None, no case or version has
        the number, or nothing tells the version. ``number`` returns the discriminator of a Choice;
        its errors are let through.
        """
        found: Any = self.find()
        if self.given is not None:
            value = self.given(this)
            if value is None:
                return "the case is not known"
            if int(value) not in found:
                return f"{describe_number(value)} has no case: the cases are {list_numbers(found)}"
            found = found[int(value)]
        elif isinstance(found, Choice):
            case = _find_case(found, number(found))
            if isinstance(case, str):
                return case
            found = case
        while isinstance(found, Choice) and not found.is_of_versions:
            case = _find_case(found, number(found))
            if isinstance(case, str):
                return case
            found = case
        return self.in_version(found, this, number)

    def in_version(
        self, found: Versioned, this: Any, number: Callable[[Choice], int]
    ) -> Layout | Choice | str:
        """Return the layout in ``found``, a mapping from versions to layouts, for the version that
        an earlier field or, without one, the layout around states. Without such a field, a mapping
        of one layout gives that one. Return any other ``found`` itself. Return a message, as a str,
        if a mapping gets no version, the version is unknown, or ``found`` (a choice by what
        ``number`` returns for it) states another one than the field.
        """
        version = self.around if self.version is None else self.version(this)
        if isinstance(found, Mapping) and len(found) == 1 and self.version is None:
            return next(iter(found.values()))
        if isinstance(found, Mapping):
            if version is None:
                return "the version is not known"
            layout = found.get(int(version))
            return _no_version(version, found) if layout is None else layout
        if self.version is None or version is None:
            return found
        if isinstance(found, Choice) and int(version) not in found.cases:
            return _no_version(version, found.cases)
        own = number(found) if isinstance(found, Choice) else found.version
        if own not in (None, int(version)):
            return f"it is in version {own}, where version {version} is told"
        return found

    def given_to_case(self, this: Any) -> Any:
        """Return the values that the layout is given, or the fields before if it is given none."""
        return this if self.gives is None else values_from(self.gives, this)

    # ------------------------------------------------------------ parsing

    def read(self, source: Source, this: Any) -> Any:
        """Read the length, if one precedes, and return the parsed layout; None if the length means
        null; bytes if no case matches and ``unknown`` is set. Raise CodecError if the length is
        negative (null for a lenient session with ``any_negative``) or too large, no case matches,
        the case does not parse, or bytes within the length follow it.
        """
        if self.length is None:
            return self.read_case(source, this)
        start = source.pos
        n = self.length.read(source, this)
        if n == self.null:
            return None
        if n < 0:
            error = LengthError(f"length is {n}: it cannot be negative", source.where(start))
            if self.null is None or not self.any_negative:
                raise error
            error.reason = f"null is written as {self.null}, not as {n}"
            source.session.tolerate(error)
            return None
        if n > source.left:
            raise source.missing_bytes_error(
                f"length is {n}, but {count_noun(source.left, 'byte is', 'bytes are')} left", start
            )
        return self.read_case(source.window(n, "length"), this, whole=True)

    def read_case(self, source: Source, this: Any, *, whole: bool = False) -> Any:
        """Return the layout at the head of ``source``. If no case matches, return all bytes that
        are left with ``unknown``, else raise ValueRefused. With ``whole``, raise TrailingError if
        bytes follow the layout; a lenient session takes that as a finding if the layout has
        ``trailing``. Raise CodecError if the case does not parse.
        """
        start = source.pos
        case = self.case(this, lambda choice: choice.peek(source))
        if isinstance(case, str):
            if not self.unknown:
                raise ValueRefused(case, source.where(start))
            return source.take(source.left)
        value = case.read(source, self.given_to_case(this))
        if whole and source.left:
            layout = case.case_of(value.get(case.by)) if isinstance(case, Choice) else case
            error = TrailingError(
                f"{count_noun(source.left, 'byte follows', 'bytes follow')} the last field of what the length is about",
                source.where(),
            )
            if not getattr(layout, "trailing", False):
                raise error
            source.session.tolerate(error)
        return value

    # ------------------------------------------------------------ building

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of a value, behind its length if it has one. A dict is written by the
        case that ``this`` or its own field selects; bytes are written unchanged if ``unknown`` is
        set and no case matches. Raise BuildError for other values, None without a null, and a size
        that means null or does not fit the length.
        """
        if value is None:
            if self.length is None or self.null is None:
                raise BuildError("null is not allowed here")
            return self.length.write(self.null, this, session)
        data = self.case_bytes(value, this, session)
        if self.length is None:
            return data
        if len(data) == self.null:
            raise BuildError(
                f"{count_noun(len(data), 'byte')} cannot be written: that length means null"
            )
        return self.length.write(len(data), this, session) + data

    def case_bytes(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of a value without its length: a dict as its case writes it, bytes
        unchanged if ``unknown`` is set and they have no case. Raise BuildError if the value is of
        another type, no case matches, or the case cannot write it.
        """
        if isinstance(value, bytes | bytearray | memoryview):
            return self.raw(bytes(value), this)
        if not isinstance(value, dict):
            raise BuildError(f"a dict with the fields of a case is needed, not {value!r}")

        case = self.case(this, lambda choice: _deciding_number(choice, value))
        if isinstance(case, str):
            raise BuildError(case)
        return case.write(value, self.given_to_case(this), session)

    def raw(self, data: bytes, this: Any) -> bytes:
        """Return ``data`` unchanged if no case or version matches its discriminator, or the earlier
        field that decides. Raise BuildError if ``unknown`` is not set, a case matches, or the bytes
        end before the discriminator.
        """
        if not self.unknown:
            raise BuildError("a dict with the fields of a case is needed, not bytes")
        source = Source(data, Session())
        try:
            case = self.case(this, lambda choice: choice.peek(source))
        except CodecError as error:
            raise BuildError(f"the bytes do not say which case they are: {error.reason}") from None
        if not isinstance(case, str):
            name = case.layout_name if isinstance(case, Layout) else case.choice_name
            raise BuildError(f"a dict with the fields of {name} is needed, not bytes")
        return data


def _find_case(choice: Choice, number: int) -> Layout | Choice | str:
    """Return the case of a choice for a number. Return a message, as a str, if there is none."""
    case = choice.cases.get(number)
    if case is None:
        return f"{number} has no case: the cases are {list_numbers(choice.cases)}"
    return case


def _deciding_number(choice: Choice, value: Any) -> int:
    """Return the number in the field ``choice.by`` of a value to build. A str is taken as the name
    or label of an enum member. A number is returned even if no case has it. Raise BuildError if the
    field is missing, is no number, or the name has no case.
    """
    given = value.get(choice.by)
    if isinstance(given, str):
        found = choice.case_of(given)
        given = next((key for key, case in choice.cases.items() if case is found), None)
    if not isinstance(given, int):
        error = BuildError(f"{choice.by} decides the case: a value is needed")
        raise error.located(path=choice.by)
    return int(given)


def _no_version(version: int, known: Any) -> str:
    """Return the message that ``version`` is not among the versions ``known``, which it lists."""
    return f"version {version} is not known: there are {list_numbers(known)}"


__all__ = ["Chosen"]
