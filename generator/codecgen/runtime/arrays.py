"""Codec of arrays, perhaps compressed, and the condition that ends some of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import construct

from codecgen.runtime.compressed_section import Compressed
from codecgen.runtime.compression.base import PASSES_PAUSE
from codecgen.runtime.errors import (
    BuildError,
    CodecError,
    LengthError,
    LimitError,
    TrailingError,
    TruncatedError,
    ValueRefused,
    prefix_path,
)
from codecgen.runtime.fields import Field
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.primitives import Codec

_TOO_DEEP = "elements of this array must not hold such an array themselves"


@dataclass(frozen=True, slots=True)
class Until:
    """A condition on an element, given the fields before the array, that holds for the last element only. ``text`` is
    for messages.
    """

    text: str
    holds: Callable[[Any, Any], Any]

    def check(self, items: Sequence[Any], this: Any) -> None:
        """Raise BuildError unless the condition holds for the last of ``items`` and for no other;
        the path of the error begins with the index of the wrong item. Raise BuildError also if
        there are no items. ``this`` has the fields before the array.
        """
        for i, item in enumerate(items):
            if bool(self.holds(this, item)) != (i == len(items) - 1):
                reason = f"the element fulfils {self.text}, which only the last one may: more elements follow"
                if i == len(items) - 1:
                    reason = f"the element is the last: it must fulfil {self.text}"
                raise prefix_path(BuildError(reason), f"[{i}]")
        if not items:
            raise BuildError(
                f"the array must end with an element that meets the condition {self.text}"
            )


class Array(Codec):
    """Codec of an array: elements one after another, perhaps behind a count or a length in bytes,
    compressed, or ended by a condition. ``this`` has the fields of the layout around it.

    Attributes:
        element: Codec of the elements.
        count: Codec of the number of elements before them; it is larger by ``plus``.
        counted_by: The field before that holds the number of elements, larger by ``plus``.
        fixed: The number of elements, if it is always the same.
        until: The condition on the last element. Without any of these, elements reach to the end of the section.
        length: Codec of the length in bytes of the section, before it.
        compressed: Compression of the section.
        closes: Nothing may follow the last element in the section.
        nesting: Maximum depth of such arrays in each other.
        at_least: Minimum number of elements. A null array is exempt.
        null: The number of elements or bytes that means null, as written.
        version: The version that all elements must have.
        accepts: Tolerances of lenient readers: ``bytes_after_none``, ``truncated_tail``, ``negative_null``,
            ``mixed_versions``.
    """

    def __init__(
        self,
        element: Codec,
        *,
        count: Codec | None = None,
        plus: int = 0,
        counted_by: str | None = None,
        fixed: int | None = None,
        length: Codec | None = None,
        compressed: Compressed | None = None,
        closes: bool = False,
        nesting: int | None = None,
        until: Until | None = None,
        at_least: int = 0,
        null: int | None = None,
        version: int | None = None,
        accepts: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__()
        self.element = element
        self.count = count
        self.plus = plus
        self.counted_by = counted_by
        self.fixed = fixed
        if fixed is not None and compressed is None and element.size is not None:
            self.size = fixed * element.size
        self.length = length
        self.compressed = compressed
        self.closes = closes or compressed is not None or length is not None
        self.nesting = nesting
        self.until = until
        self.at_least = at_least
        self.null = null
        self.version = version
        self.accepts = accepts

    @property
    def framed(self) -> bool:
        """Return whether the length of an element is known before it is read: it has a fixed size,
        or its first bytes tell it.
        """
        return self.element.size is not None or getattr(self.element, "framed", False)

    def read(self, source: Source, this: Any) -> construct.ListContainer | None:
        """Read the array at the head of ``source``, and return its elements as a list, or None if
        its count or length is the number for null. Raise CodecError if the count, the length, the
        compression or an element is invalid, or bytes follow the last element in a section that has
        to end with it.
        """
        if self.null is not None and self.is_null(source, this):
            return None
        out = construct.ListContainer()
        if source.session.begun is not None:
            source.session.begun[source.session.path] = out
        for item in self.filled(source, this):
            out.append(item)
        return out

    def is_null(self, source: Source, this: Any) -> bool:
        """Return whether the count or length (at the head of ``source``, or in an earlier field)
        means null. Move ``source`` behind the number if so, else leave it in place. With
        ``negative_null``, a lenient session takes any negative number for null, and a strict one
        raises LengthError. Raise CodecError if the number does not parse; TrailingError if the
        array ``closes`` its section without a length, bytes follow a count of null, and
        ``bytes_after_none`` does not tolerate them.
        """
        start = source.pos
        noticed = len(source.session.findings)
        if self.counted_by is not None:
            number = this[self.counted_by]
        else:
            codec = self.count or self.length
            assert codec is not None
            number = codec.read(source, this)
        null = bool(number == self.null)
        if not null and number < 0 and "negative_null" in self.accepts:
            reason = f"null is written as {self.null}, not as {number}"
            source.session.tolerate(LengthError(reason, source.where(start)))
            null = True
        if not null:  # it is read again
            source.pos = start
            del source.session.findings[noticed:]
        elif self.closes and self.length is None:
            self.refuse_left_bytes(source, "null")
        return null

    def refuse_left_bytes(self, source: Source, what: str) -> None:
        """Raise TrailingError if bytes are left in ``source`` after a count that means no elements;
        return if none are. If the array accepts ``bytes_after_none`` and the session is lenient,
        skip the bytes and add the error to the findings instead. ``what`` is the count for the
        message.
        """
        if not source.left:
            return
        error = TrailingError(
            f"{count_noun(source.left, 'byte follows', 'bytes follow')} a count of {what}",
            source.where(),
        )
        if "bytes_after_none" not in self.accepts:
            raise error
        source.session.tolerate(error)
        source.pos = source.end

    def items(self, source: Source, this: Any, noted: Any = None) -> Iterator[Any]:
        """Yield the elements one by one as they are parsed; nothing for a null or empty array. Set
        ``noted.there`` to True if the array is not null and ``noted`` is given. The iterator raises
        CodecError if the count, the length, the compression or an element is invalid, or (only if
        the array ``closes`` its section) bytes follow the last element.
        """
        if self.null is None or not self.is_null(source, this):
            if noted is not None:
                noted.there = True
            yield from self.filled(source, this)

    def filled(self, source: Source, this: Any) -> Iterator[Any]:
        """Yield the elements of an array that is not null, read from its count on. If a number or a
        condition tells the last one, it is yielded only after the bytes behind it were checked.
        Raise CodecError if the count, the length, the compression or an element is invalid, or
        (only if the array ``closes`` its section) bytes follow the last element.
        """
        number = self.number(source, this)
        section = self.section(source, this, number)
        if section is None:
            return
        section.session.depth += 1
        try:
            yield from self.elements(section, this, number)
        finally:
            section.session.depth -= 1

    def number(self, source: Source, this: Any) -> int | None:
        """Return the number of elements: fixed, read from the count at the head of ``source``, or
        an earlier field's value. Return None if only the section's end or a condition tells. Raise
        LengthError if it is negative, 0 below a minimum, or (read here, for uncompressed elements)
        more than the bytes left can hold; then the pending error, if there is one. Raise LimitError
        above the session's limit, unless a lenient session reads a whole section. A fixed number is
        not checked.
        """
        start = source.pos
        if self.fixed is not None:
            return self.fixed
        if self.count is not None:
            number = self.count.read(source, this) - self.plus
        elif self.counted_by is not None:
            number = this[self.counted_by] - self.plus
        else:
            return None
        if number < 0:
            raise LengthError(f"count is {number}: it cannot be negative", source.where(start))
        if number == 0 and self.at_least:
            reason = f"0 elements, where at least {self.at_least} must be"
            raise LengthError(reason, source.where(start))
        min_size = getattr(self.element, "min_size", self.element.size) or 1
        plain = (
            self.count is not None and self.compressed is None
        )  # compressed elements may take less
        if plain and number * min_size > source.left:
            raise source.missing_bytes_error(
                f"count is {number}, but {count_noun(source.left, 'byte is', 'bytes are')} left",
                start,
            )
        limit = source.session.limits.elements
        if number > limit and (source.session.strict or not self.closes):
            raise LimitError(
                f"count is {number}, more than the limit of {limit} (Limits.elements)",
                source.where(start),
            )
        return int(number)

    def section(self, source: Source, this: Any, number: int | None) -> Source | None:
        """Read the length prefix, if there is one, and return the elements' bytes as a Source,
        decompressed. Return None for a count of 0 if the array fills its section without a length;
        bytes that follow are a TrailingError then (with ``bytes_after_none``, a finding of a
        lenient session). Raise CodecError if the length is negative or too large (a lenient
        ``torn`` session takes what is left), arrays nest too deep, or the codec is unknown. A
        damaged compressed stream raises nothing here: reading raises its error where the data ends.
        """
        start = source.pos
        if number == 0 and self.closes and self.length is None:
            self.refuse_left_bytes(source, "0")
            return None
        if self.length is not None:
            n = self.length.read(source, this)
            if n < 0:
                raise LengthError(
                    f"length is {n}: a compressed section cannot be null or negative in length",
                    source.where(start),
                )
            if n > source.left and source.session.torn:
                reason = (
                    f"length is {n}, but {count_noun(source.left, 'byte is', 'bytes are')} left"
                )
                source.session.tolerate(LengthError(reason, source.where(start)))
                n = source.left
            source = source.window(n, "length")
        if self.too_deep(source.session) and (number is None or number) and source.left:
            raise ValueRefused(_TOO_DEEP, source.where(start))
        return source if self.compressed is None else self.compressed.open(source, this)

    def too_deep(self, session: Session) -> bool:
        """Return whether elements would lie deeper in such arrays than ``nesting`` allows, since
        the session is in as many of them already. False without a limit.
        """
        return self.nesting is not None and session.nesting >= self.nesting

    def elements(self, section: Source, this: Any, number: int | None) -> Iterator[Any]:
        """Yield ``number`` elements of a section; if it is None, all up to its end or to the
        element that fulfills the ``until`` condition. If a number or a condition tells the last
        one, it comes after the check of what follows. Raise CodecError if an element cannot be read
        or has the wrong version, there are too few or more than the limit, or (if the array
        ``closes`` the section) bytes follow the last one.
        """
        session = section.session
        i = 0
        item = None
        ended = False
        # A session that takes what is torn goes on after a pause: the bytes there are as good as the others.
        pauses = [] if session.torn else sorted(section.pauses)
        while not ended and (i != number if number is not None else self.has_more(section)):
            try:
                noticed = len(session.findings)
                if self.nesting is not None:
                    session.nesting += 1
                if session.trace is not None:
                    session.prefix.append(f"[{i}]")
                start = section.pos
                item = self.element.read(section, this)
                if pauses:
                    self.refuse_pause(pauses, item, start, section)
                for finding in session.findings[noticed:]:
                    prefix_path(finding, f"[{i}]")
            except CodecError as error:
                for finding in session.findings[noticed:]:
                    prefix_path(finding, f"[{i}]")
                raise prefix_path(error, f"[{i}]") from None
            finally:
                if self.nesting is not None:
                    session.nesting -= 1
                if session.trace is not None:
                    session.prefix.pop()
            if self.version is not None:
                self.check_parsed_version(item, i, section)
            ended = self.until is not None and bool(self.until.holds(this, item))
            i += 1
            if i > session.limits.elements:
                raise LimitError(
                    f"more than {count_noun(session.limits.elements, 'element')}, the limit (Limits.elements)",
                    section.where(),
                )
            if i != number and not ended:
                yield item
        if i < self.at_least:
            raise LengthError(
                f"{count_noun(i, 'element')}, where at least {self.at_least} must be",
                section.where(),
            )
        if self.closes and section.pos not in section.pauses:
            if section.left:
                reason = f"{count_noun(section.left, 'byte follows', 'bytes follow')} the last of {count_noun(i, 'element')}"
                raise TrailingError(reason, section.where())
            if section.pending is not None:
                raise section.pending
        if number or ended:
            yield item  # the last one, now that nothing follows it

    def has_more(self, section: Source) -> bool:
        """Return whether another element follows in a section without a count: always if an
        ``until`` condition ends the array, else if bytes are left and no empty compressed block
        lies here. With ``truncated_tail``, and elements whose length is known before they are read,
        a lenient session skips a cut-off last element, adds a finding and gets False; a strict one
        raises TrailingError. Raise LengthError if the element's length is invalid.
        """
        if self.until is not None:
            return True
        if not section.left or section.pos in section.pauses:
            return False
        if "truncated_tail" in self.accepts and self.framed and section.pending is None:
            size = (
                self.element.size if self.element.size is not None else self.element.frame(section)
            )
            if size is None or size > section.left:
                error = TrailingError(
                    f"the last element is cut off after {count_noun(section.left, 'byte')}",
                    section.where(),
                )
                section.session.tolerate(error)
                section.pos = section.end
                return False
        return True

    def refuse_pause(self, pauses: list[int], item: Any, start: int, section: Source) -> None:
        """Raise TruncatedError if an empty block of the compressed stream (one of ``pauses``,
        positions in the section) lies where the reference reader would stop inside the element
        ``item`` from ``start`` to the position of ``section``: before the element's body, or fewer
        than 2048 bytes before its end. Return otherwise.

        The reference reads the length of an element byte by byte, and then at once the bytes that this length
        measures. ``pauses`` are in ascending order.
        """
        end = section.pos
        first, after = bisect_left(pauses, start), bisect_left(pauses, end)
        if first == after:
            return
        fields: Sequence[Field] = getattr(self.element, "fields", ())
        measures = fields[0].measures if fields else None
        is_framed = measures is not None and measures[1] is None
        body = end - item[fields[0].name] if is_framed else end
        for pause in (pauses[first], pauses[after - 1]):
            if pause < body or end - pause < PASSES_PAUSE:
                reason = f"the stream holds an empty block {count_noun(end - pause, 'byte')} before the end of this"
                raise TruncatedError(reason, section.where(pause))

    def check_parsed_version(self, item: Any, i: int, section: Source) -> None:
        """Raise ValueRefused if the parsed element ``item`` (with the index ``i``) states another
        version than the array. If the array accepts ``mixed_versions`` and the session of
        ``section`` is lenient, add the error to the findings instead. An element without a version
        field passes. Call it only if the array has a version.
        """
        found = item.get(getattr(self.element, "by", ""), self.version)
        if found != self.version:
            reason = f"element of version {found} inside version {self.version}"
            error = ValueRefused(reason, section.where()).located(path=f"[{i}]")
            if "mixed_versions" not in self.accepts:
                raise error
            section.session.tolerate(error)

    def check_version(self, item: Any, session: Session) -> None:
        """Raise BuildError if an element to build states another version than the array; None as a
        version is another one. Accept it if the array has no version, the element is no dict or
        lacks the version field, or the array accepts ``mixed_versions`` and the session is not
        strict.
        """
        if self.version is None or not isinstance(item, dict):
            return
        by = getattr(self.element, "by", "")
        given = item.get(by, self.version)
        is_same = (
            given == self.version
        ) is True  # an array of NumPy is neither the same nor another
        if not is_same and (session.strict or "mixed_versions" not in self.accepts):
            reason = f"an element of version {given} cannot be inside version {self.version}"
            raise BuildError(reason).located(path=by)

    def write(self, value: Any, this: Any, session: Session) -> bytes:
        """Return the bytes of a list or tuple, with its count, length and compression; None is
        written as null if the array has a null. An empty array whose elements are counted is not
        compressed. Raise BuildError if the value is no list, or its number of elements is wrong or
        means null. Raise it also if an element cannot be written, arrays nest too deep, or the
        ``until`` condition does not hold for exactly the last element. Raise UnsupportedCodec if
        the package of the compression codec is not installed.
        """
        if value is None and self.null is not None:
            return self.write_null(self.null, this, session)
        if not isinstance(value, list | tuple):
            raise BuildError(f"a list is needed, not {value!r}")
        if self.fixed is not None and len(value) != self.fixed:
            raise BuildError(
                f"{count_noun(self.fixed, 'element is', 'elements are')} needed, not {len(value)}"
            )
        if len(value) < self.at_least:
            raise BuildError(
                f"at least {count_noun(self.at_least, 'element is', 'elements are')} needed"
            )
        if self.counted_by and len(value) + self.plus != this[self.counted_by]:
            given = this[self.counted_by]
            reason = f"{count_noun(given - self.plus, 'element is', 'elements are')} needed, not {len(value)}: {self.counted_by} is {given}"
            if given < self.plus:
                reason = f"no number of elements fits: {self.counted_by} is {given}"
            raise BuildError(reason)
        if value and self.too_deep(session):
            raise BuildError(_TOO_DEEP)
        if self.length is None:
            self.refuse_null_number(len(value) + self.plus, "elements")
        data = b"".join(self.element_bytes(value, this, session))
        if self.until is not None:  # what builders work out is there now
            self.until.check(value, this)
        counted = self.counted_by or self.count or self.fixed
        if self.compressed is not None and (value or not counted):
            data = self.compressed.pack(data, this, session)
            if data and self.too_deep(session):
                raise BuildError(_TOO_DEEP)
        if self.length is not None:
            self.refuse_null_number(len(data), "bytes")
            data = self.length.write(len(data), this, session) + data
        if self.count is not None:
            data = self.count.write(len(value) + self.plus, this, session) + data
        return data

    def write_null(self, null: int, this: Any, session: Session) -> bytes:
        """Return the bytes of a null array: its count or length with the number ``null``, or
        ``b""`` if an earlier field counts the elements. Raise BuildError if that field has another
        value than ``null``.
        """
        if self.counted_by is None:
            codec = self.count or self.length
            assert codec is not None
            return codec.write(null, this, session)
        if this[self.counted_by] != null:
            raise BuildError(
                f"a list is needed, not null: {self.counted_by} is {this[self.counted_by]}, and null needs {null} there"
            )
        return b""

    def refuse_null_number(self, number: int, what: str) -> None:
        """Raise BuildError for a number that would be read as null."""
        if number == self.null:
            raise BuildError(f"{number} {what} cannot be written: that number means null")

    def element_bytes(self, value: Sequence[Any], this: Any, session: Session) -> Iterator[bytes]:
        """Yield the bytes of each element of ``value``, in order. Raise BuildError, whose path
        begins with the index, if an element cannot be written, or states another version than the
        array and that is not allowed.
        """
        session.depth += 1
        session.nesting += self.nesting is not None
        try:
            for i, item in enumerate(value):
                try:
                    self.check_version(item, session)
                    yield self.element.write(item, this, session)
                except BuildError as error:
                    raise prefix_path(error, f"[{i}]") from None
        finally:
            session.depth -= 1
            session.nesting -= self.nesting is not None
