"""Codec of a section of tagged fields: their number, then tag, size and bytes of each."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import construct

from codecgen.runtime.arrays import Array
from codecgen.runtime.bits import Bits
from codecgen.runtime.byte_strings import Bytes, Text
from codecgen.runtime.errors import BuildError, CodecError, LengthError, LimitError, ValueRefused
from codecgen.runtime.fields import Field, Fields, contain
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.nullable import Nullable
from codecgen.runtime.parsed import TaggedField
from codecgen.runtime.primitives import Boolean, Codec, Float64, Uuid, Varint

HIGHEST = (1 << 31) - 1
"""The highest tag."""
MAX_COUNT = 10_000
"""The most tagged fields in one section. Each is a Python object."""
_LEAST = 2
"""The fewest bytes of a tagged field: a tag and a size."""


class Tags(Codec):
    """The section of tagged fields at the end of a layout. Its value is the list of the fields that the layout does
    not know.

    ``other`` are tags of fields that only other versions have; they are refused. With ``loose``, lenient readers
    take tags in any order and more than once, and a size that differs from that of a known field.
    """

    needs_layout = True

    def __init__(
        self, other: tuple[int, ...] = (), overlong: bool = False, loose: bool = False
    ) -> None:
        super().__init__()
        self.other = other
        self.loose = loose
        self.number = Varint(32, signed=False, overlong=overlong)

    def read_count(self, source: Source) -> int:
        """Return the number of tagged fields, read at the head of ``source``. Raise CodecError if
        it does not parse; LengthError if it is above 2**31 - 1 or more than the bytes left can hold
        (then the pending error, if there is one); LimitError above 10,000 or the session's limit of
        elements.
        """
        start = source.pos
        count = self.number.read(source, None)
        if count > HIGHEST:
            reason = f"the number of tagged fields is {count - (1 << 32)}: it cannot be negative"
            raise LengthError(reason, source.where(start))
        if count * _LEAST > source.left:
            reason = f"the number of tagged fields is {count}, but {count_noun(source.left, 'byte is', 'bytes are')} left"
            raise source.missing_bytes_error(reason, start)
        limit = min(MAX_COUNT, source.session.limits.elements)
        if count > limit:
            reason = f"the number of tagged fields is {count}, more than the limit of {limit}"
            raise LimitError(reason, source.where(start))
        return count

    def read_tag(self, source: Source, seen: set[int], last: int) -> int:
        """Return the next tag. Raise CodecError if it does not parse. Raise ValueRefused if only
        other versions have it, or it repeats one of ``seen``, is below ``last`` or above 2**31 - 1;
        a lenient session adds all but the first case to its findings if the section is ``loose``.
        """
        start = source.pos
        tag = self.number.read(source, None)
        if tag in self.other:
            reason = f"tag {tag} is that of a field that this version does not have"
            raise ValueRefused(reason, source.where(start))
        if tag in seen or tag < last:
            why = "stands there twice" if tag in seen else f"stands after tag {last}"
            self.tolerate_if_loose(ValueRefused(f"tag {tag} {why}", source.where(start)), source)
        if tag > HIGHEST:
            reason = f"tag {tag} is higher than any, {HIGHEST}"
            self.tolerate_if_loose(ValueRefused(reason, source.where(start)), source)
        return tag

    def tolerate_if_loose(self, error: ValueRefused, source: Source) -> None:
        """Take an error as a finding if the section is ``loose`` and the session of ``source``
        lenient; raise it otherwise.
        """
        if not self.loose:
            raise error
        source.session.tolerate(error)

    def read_known(self, f: Field, size: int, source: Source, this: Any) -> Any:
        """Return the value of a field of the layout from the ``size`` bytes at the head of
        ``source``. Raise CodecError if it does not parse or takes another number of bytes (a
        finding for a lenient session if ``loose``). A value that is the default is a ValueRefused
        in a strict session, and a finding in a lenient one.
        """
        start = source.pos
        if self.loose and not source.session.strict:  # the field says itself where it ends
            value = f.codec.read(source, this)
            if source.pos - start != size:
                reason = (
                    f"size is {size}, but the field has {count_noun(source.pos - start, 'byte')}"
                )
                source.session.tolerate(LengthError(reason, source.where(start)))
        else:
            window = source.window(size, "size")
            value = f.codec.read(window, this)
            if window.left:
                reason = f"{count_noun(window.left, 'byte is', 'bytes are')} left of the {size} that are its size"
                raise LengthError(reason, window.where())
        if source.data[start : source.pos] == default_of(f):
            reason = "a field that holds its default is not written"
            source.session.tolerate(ValueRefused(reason, source.where(start)))
        return value

    def read_unknown(self, tag: int, source: Source) -> TaggedField:
        """Read size and bytes of a tagged field that the layout does not know, and return them with
        the tag. Raise CodecError if the size does not parse; LengthError, or the pending error, if
        it exceeds the bytes that are left.
        """
        start = source.pos
        size = self.number.read(source, None)
        if size > source.left:
            reason = f"tag {tag}: size is {size}, but {count_noun(source.left, 'byte is', 'bytes are')} left"
            raise source.missing_bytes_error(reason, start)
        return TaggedField(tag=tag, data=source.take(size))

    def section_bytes(self, known: Mapping[int, bytes], unknown: Any, fields: Fields) -> bytes:
        """Return the bytes of the section: the count, then ``known`` and ``unknown`` fields by
        ascending tag. Raise BuildError if an unknown tag is that of a field or does not ascend, an
        item is not exactly a tag and its bytes, or there are more than 10,000 fields.

        Args:
            known: Bytes of fields of the layout, by tag.
            unknown: Tagged fields that the layout does not know.
            fields: The fields of the layout.
        """
        taken = {f.tag for f in fields.tagged} | set(self.other)
        parts = dict(known)
        last = -1
        for i, (tag, data) in enumerate(_pairs(unknown)):
            if tag in taken:
                raise BuildError(f"tag {tag} is that of a field").located(path=f"[{i}]")
            if tag <= last:
                reason = f"tag {tag} stands after tag {last}: they ascend"
                raise BuildError(reason).located(path=f"[{i}]")
            parts[tag] = data
            last = tag
        if len(parts) > MAX_COUNT:
            raise BuildError(f"{len(parts)} tagged fields, more than the limit of {MAX_COUNT}")
        out = [self.varint(len(parts))]
        for tag in sorted(parts):
            out += [self.varint(tag), self.varint(len(parts[tag])), parts[tag]]
        return b"".join(out)

    def varint(self, number: int) -> bytes:
        """Return a tag, size or count as the bytes of an unsigned 32-bit varint. Raise BuildError
        if it does not fit.
        """
        return self.number.write(number, None, Session())


@dataclass(frozen=True, slots=True)
class SectionReader:
    """Reads the section of tagged fields of one layout, with errors that name the field."""

    fields: Fields
    section: Field
    codec: Tags

    def read(self, source: Source, obj: Any) -> None:
        """Read the section of tagged fields at the head of ``source`` into ``obj``: missing fields
        get their defaults, and unknown ones go into a list. Raise CodecError if the count, a tag or
        a value is invalid, or tags do not ascend (a lenient session tolerates that if the section
        is ``loose``).
        """
        known = {f.tag: f for f in self.fields.tagged}
        values: dict[str, Any] = {}
        unknown = construct.ListContainer()
        seen: set[int] = set()
        last = -1
        start = source.pos
        try:
            with self.locate_errors(self.section, source):
                number = self.codec.read_count(source)
            for _ in range(number):
                with self.locate_errors(self.section, source):
                    last = self.codec.read_tag(source, seen, last)
                seen.add(last)
                f = known.get(last)
                if f is None:
                    with self.locate_errors(self.section, source):
                        unknown.append(self.codec.read_unknown(last, source))
                else:
                    with self.locate_errors(f, source):
                        values[f.name] = self.read_known(f, source, obj)
        finally:
            if source.session.trace is not None:
                source.session.prefix.append(self.section.name)
                source.session.trace.append((source.session.path, start, source.pos, source.inner))
                source.session.prefix.pop()
        for f in self.fields.tagged:
            found = f.name in values
            obj[f.name] = values[f.name] if found else decode_default(default_of(f), f)
        obj[self.section.name] = unknown

    def read_known(self, f: Field, source: Source, obj: Any) -> Any:
        """Read the size and the value of a field of the layout after its tag, and return the value;
        add it to the session's trace, if there is one. Raise CodecError, whose message begins with
        the tag, if it does not parse.
        """
        session = source.session
        session.prefix.append(f.name)
        try:
            size = self.codec.number.read(source, None)
            start = source.pos
            value = self.codec.read_known(f, size, source, obj)
            if session.trace is not None:
                session.trace.append((session.path, start, source.pos, source.inner))
            return value
        except CodecError as error:
            error.reason = f"tag {f.tag}: {error.reason}"
            raise
        finally:
            session.prefix.pop()

    @contextmanager
    def locate_errors(self, f: Field, source: Source) -> Iterator[None]:
        """Add the path, YAML line and position of a field to a CodecError that is raised inside the
        ``with`` block, which is raised again, and the path to findings that are added there (only
        if no error is raised).
        """
        findings = source.session.findings
        noticed = len(findings)
        try:
            yield
        except CodecError as error:
            raise self.fields.locate(error, f, source) from None
        for finding in findings[noticed:]:
            self.fields.locate(finding, f)


def default_of(f: Field) -> bytes:
    """Return the encoded default of a tagged field, without tag and size; it is computed once. A
    field with these bytes is left out.
    """
    if f.default_bytes is None:
        # Field by field: modules of fast builders ask for it while they are loaded.
        f.default_bytes = f.codec.write(contain(_default(f)), construct.Container(), Session())
    return f.default_bytes


def decode_default(data: bytes, f: Field) -> Any:
    """Return the value of the field ``f`` that ``data``, its encoded default, holds."""
    return f.codec.read(Source(data, Session()), construct.Container())


def _default(f: Field) -> Any:
    """Return the default value of a tagged field: the declared one, else the empty value of its
    type: ``[]``, ``""``, ``b""``, None for a nullable layout, False, 0, the defaults of its bits,
    or zeros for text or bytes of fixed size and uuids.
    """
    codec = f.codec
    if f.default is not None:
        return f.default(construct.Container())
    if isinstance(codec, Array):
        return []
    if isinstance(codec, Text):
        return "" if not isinstance(codec.length, int) else "\0" * codec.length
    if isinstance(codec, Bytes):
        return bytes(codec.length) if isinstance(codec.length, int) else b""
    if isinstance(codec, Nullable):
        return None
    if isinstance(codec, Bits):
        return codec.filled(construct.Container(), construct.Container())
    if isinstance(codec, Boolean):
        return False
    if isinstance(codec, Float64):
        return 0.0
    return uuid.UUID(int=0) if isinstance(codec, Uuid) else 0


def _pairs(unknown: Any) -> Iterator[tuple[int, bytes]]:
    """Yield (tag, bytes) of each item in ``unknown``, in order. Raise BuildError if it is no list;
    with the index as its path if an item is no dict, lacks a tag of 0 to 2**31 - 1 or bytes
    ``data``, or has another name not beginning with ``_``.
    """
    if not isinstance(unknown, list | tuple):
        raise BuildError(f"a list of tagged fields is needed, not {unknown!r}")
    for i, item in enumerate(unknown):
        tag = item.get("tag") if isinstance(item, dict) else None
        data = item.get("data") if isinstance(item, dict) else None
        well = isinstance(tag, int) and not isinstance(tag, bool) and 0 <= tag <= HIGHEST
        if not well or not isinstance(data, bytes | bytearray | memoryview):
            reason = f"a tag (0 to {HIGHEST}) and its data, bytes, are needed, not {item!r}"
            raise BuildError(reason).located(path=f"[{i}]")
        if set(item) - {"tag", "data"} - {name for name in item if str(name).startswith("_")}:
            raise BuildError("a tagged field has tag and data only").located(path=f"[{i}]")
        assert isinstance(tag, int)
        yield tag, bytes(data)


__all__ = ["SectionReader", "Tags", "decode_default", "default_of"]
