"""Fast parsers and builders of layouts: generated functions for regular bytes and values, which give up on all others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import construct

from codecgen.runtime.compressed_section import Compressed
from codecgen.runtime.compression import compress, decompress
from codecgen.runtime.fields import Field, Fill
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.parsed import InArray, Parsed, TaggedField, link_elements, set_place
from codecgen.runtime.tags import HIGHEST, decode_default, default_of

FastBuilder = Callable[[Any, bytearray, int | None], None]
"""Takes the values, the bytes to which it appends theirs, and the compression level."""

FastParser = Callable[..., tuple[Any, int]]
"""Takes the data, the first byte, the end of the window, the session, and the values that the layout is given; returns the
value and the byte after it."""

MIN_ELEMENTS = 64
"""The number of elements up to which fast parsers do not look at the limit of the session."""


SECOND_BYTES = (None, *((byte << 7) - 128 for byte in range(1, 128)), *[None] * 128)
"""What the second byte of a varint adds to the first one; None if it is no last byte or needless."""

SEQUENCES = frozenset([list, tuple, construct.ListContainer])
"""The types of regular arrays. Other sequences may change while they are read."""


class Irregular(Exception):
    """Raised by a fast parser for bytes that the field-by-field parser has to judge, and by a fast
    builder for values that the field-by-field builder has to judge.
    """


@dataclass(frozen=True, slots=True)
class FastPath:
    """The fast parser of a layout and its fast builder, if it has one, and how deep they go into
    layouts and arrays, the layout itself included.
    """

    parse: FastParser
    build: FastBuilder | None
    depth: int

    def read(self, source: Source, *given: Any) -> Any:
        """Return the value at the head of ``source``, and move behind it. Return None, with
        ``source`` and session unchanged, if :meth:`read_bytes` does, with a pending error or
        pauses, or inside a window of a buffer that is no bytes. ``given`` are the values that the
        layout gets from outside, in the order of their declaration.
        """
        data, pos, end = source.data, source.pos, source.end
        if source.pending is not None or source.pauses:
            return None
        if type(data) is not bytes:
            if pos or end != len(data):
                return None  # a copy of all that follows may be large
            data = bytes(data)
        found = self.read_bytes(data, pos, end, source.session, *given)
        if found is None:
            return None
        value, source.pos = found
        return value

    def read_bytes(
        self, data: bytes, pos: int, end: int, session: Session, *given: Any
    ) -> tuple[Any, int] | None:
        """Return the value at index ``pos`` of ``data``, and the index after it. Return None, with
        the session unchanged, if the generated function fails for any reason, or may not run: with
        a trace or ``begun``, near the depth limit, with a limit of fewer than 64 elements, or
        inside :func:`without_fast_paths`. ``end`` is the end of the window.
        """
        limits, depth = session.limits, session.depth
        if (
            session.trace is not None
            or session.begun is not None
            or depth + self.depth > limits.depth
            or limits.elements < MIN_ELEMENTS
            or not _switch.on
        ):
            return None
        section, section_depth = session.section, session.section_depth
        session.depth = depth + 1
        try:
            return self.parse(data, pos, end, session, *given)
        except Exception:
            # Whatever it is: the field-by-field parser raises it again, or reads the value.
            session.section, session.section_depth = section, section_depth
            return None
        finally:
            session.depth = depth

    def write(self, value: Any, level: int | None, depth: int) -> bytes | None:
        """Return the bytes of a value, as a strict session builds it. Return None if the generated
        function fails for any reason, or may not run: if the layout nests deeper than ``depth``, or
        inside :func:`without_fast_paths`. ``level`` is the compression level.
        """
        if self.build is None or self.depth > depth or not _switch.on:
            return None
        out = bytearray()
        try:
            self.build(value, out, level)
        except Exception:
            # Whatever it is: the field-by-field builder raises it again, or builds the value.
            return None
        return bytes(out)


@dataclass(slots=True)
class _Switch:
    """Whether layouts use their fast parsers and builders."""

    on: bool = True


_switch = _Switch()


@contextmanager
def without_fast_paths() -> Iterator[None]:
    """Switch off all fast parsers and builders inside the ``with`` block, in all threads, so that
    layouts are parsed and built field by field. Restore the former setting at the end, also after
    an error.
    """
    before, _switch.on = _switch.on, False
    try:
        yield
    finally:
        _switch.on = before


def find_fast_path(module: str, layout: str) -> FastPath | None:
    """Return the fast path of a layout. Return None if the generated module has no ``__fast__``, is
    not loaded, or its fast parsers do not include the layout. Raise ImportError if the module with
    the fast parsers cannot be imported.

    Args:
        module: Name of the generated module that declares the layout. Its ``__fast__`` names the module with the
            fast parsers.
        layout: Full name of the layout.
    """
    name = getattr(sys.modules.get(module), "__fast__", None)
    if name is None:
        return None
    found: FastPath | None = import_module(name).FAST_PATHS.get(layout)
    return found


# ------------------------------------------------------------ what generated functions call


def first_of(parse_each: Callable[..., tuple[list[Any], int]]) -> FastParser:
    """Return the fast parser of a layout that calls the fast parser of arrays of it."""

    def parse(data: bytes, pos: int, end: int, session: Session) -> tuple[Any, int]:
        """Return the value and the byte after it. Raise an exception if the bytes are not regular."""
        items, pos = parse_each(1, data, pos, end, session)
        return items[0], pos

    return parse


def read_varint(data: bytes, pos: int, max_size: int, mask: int) -> tuple[int, int]:
    """Return the unsigned number at ``pos``, before zigzag decoding, and the index after it. Raise
    Irregular if it has more than ``max_size`` bytes or bits outside ``mask``, or is not in its shortest
    form; IndexError if ``data`` ends.
    """
    raw = shift = 0
    for at in range(pos, pos + max_size):
        byte = data[at]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if (byte == 0 and at > pos) or raw > mask:
                raise Irregular
            return raw, at + 1
        shift += 7
    raise Irregular


def read_vlq(data: bytes, pos: int, max_size: int, mask: int, step: int) -> tuple[int, int]:
    """Return the number at ``pos`` whose high bits come first, and the index after it. ``step`` is
    1 if each byte that another one follows also counts 1, otherwise 0. Raise Irregular if the
    number has more than ``max_size`` bytes or bits outside ``mask``, or is not in its shortest form;
    IndexError if ``data`` ends.
    """
    raw = 0
    for at in range(pos, pos + max_size):
        byte = data[at]
        raw = raw << 7 | byte & 0x7F
        if byte < 0x80:
            if raw > mask or (not step and data[pos] == 0x80):
                raise Irregular
            return raw, at + 1
        raw += step
    raise Irregular


def open_section(
    compressed: Compressed,
    number: int,
    data: bytes,
    pos: int,
    end: int,
    session: Session,
    before: int = 0,
) -> tuple[bytes, int, int]:
    """Return the bytes of the section from ``pos`` to ``end`` in ``data``, decompressed by the
    codec ``number``, as (data, first index, end). An uncompressed section gives ``data`` itself.
    Count both sizes in ``session``. ``before`` is the number of bytes to which sections before it
    in the layout decompressed: the limit is for all together. Raise Irregular if ``pos`` is after
    ``end``, or the section does not decompress cleanly: an error, more bytes than the limit, a note
    or an empty block; KeyError for an unknown codec number; UnsupportedCodec if a package is
    missing.
    """
    if pos > end:
        raise Irregular
    codec = compressed.codecs[number]
    if codec is None:
        session.count_section(end - pos, end - pos)
        return data, pos, end
    limit = compressed.remaining_limit(session.limits, before)
    variant = compressed.variants[codec][1] if codec in compressed.variants else None
    stream = decompress(codec, memoryview(data)[pos:end], limit=limit, variant=variant)
    if stream.error is not None or stream.notes or stream.pauses:
        raise Irregular
    session.count_section(end - pos, len(stream.data))
    return bytes(stream.data), 0, len(stream.data)


def read_tags(
    data: bytes, pos: int, end: int, other: tuple[int, ...] = ()
) -> tuple[list[tuple[int, int, int]], int]:
    """Return the tagged fields of the section at index ``pos`` as (tag, first index, end) each, and
    the index after the section. Raise Irregular if there are 64 or more, a varint is not in its
    shortest form, or a field ends after ``end``. Raise it also if a tag does not ascend, is above
    2**31 - 1 or in ``other``; IndexError if ``data`` ends within a varint.
    """
    count, pos = read_varint(data, pos, 5, 0xFFFFFFFF)
    if count >= MIN_ELEMENTS:
        raise Irregular
    out = []
    last = -1
    for _ in range(count):
        tag, pos = read_varint(data, pos, 5, 0xFFFFFFFF)
        if tag <= last or tag > HIGHEST or tag in other:
            raise Irregular
        last = tag
        size, pos = read_varint(data, pos, 5, 0xFFFFFFFF)
        out.append((tag, pos, pos + size))
        pos += size
        if pos > end:
            raise Irregular
    return out, pos


def read_unknown_tags(
    data: bytes, pos: int, end: int, other: tuple[int, ...] = ()
) -> tuple[construct.ListContainer, int]:
    """Return the tagged fields of the section at index ``pos``, all taken as unknown, as a list of
    TaggedField, and the index after the section. Raise Irregular if there are 64 or more, a varint
    is not in its shortest form, or a field ends after ``end``. Raise it also if a tag does not
    ascend, is above 2**31 - 1 or in ``other``; IndexError if ``data`` ends within a varint.
    """
    tags, pos = read_tags(data, pos, end, other)
    fields = (TaggedField({"tag": tag, "data": data[start:stop]}) for tag, start, stop in tags)
    return List(fields), pos


def getter(value: Any, names: frozenset[str]) -> Callable[..., Any]:
    """Return the method ``get`` of a mapping of fields. Raise Irregular if the value is no plain
    dict, Container of construct or Parsed, or has a name that is not among ``names``.
    """
    kind = type(value)
    known = kind is dict or kind is construct.Container or issubclass(kind, Parsed)
    if not known or not names.issuperset(value):
        raise Irregular
    get: Callable[..., Any] = value.get
    return get


no_bits = dict[str, Any]().get
"""The method ``get`` of a word of bits of which none is given."""


def write_varint(out: bytearray, raw: int, mask: int) -> None:
    """Append an unsigned number in its shortest form. Raise Irregular if it is negative or has bits
    outside ``mask``.
    """
    if not 0 <= raw <= mask:
        raise Irregular
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)


def write_vlq(out: bytearray, number: int, mask: int, step: int) -> None:
    """Append a number in its shortest form, high bits first. ``step`` is 1 if each byte that
    another one follows also counts 1, otherwise 0. Raise Irregular if it is negative or has bits
    outside ``mask``.
    """
    if not 0 <= number <= mask:
        raise Irregular
    groups = [number & 0x7F]
    while number > 0x7F:
        number = (number >> 7) - step
        groups.append(number & 0x7F | 0x80)
    groups.reverse()
    out += bytes(groups)


def find_base(value: Any, name: str, items: Any, given: str, default: Any) -> Any:
    """Return the value of the field ``name``, which numbers of the elements ``items`` are relative
    to: the given one, else the number ``given`` of the first element, else ``default``. Raise
    Irregular if it is given as None and the first element does not tell it.
    """
    base = value.get(name)
    if base is None and items:
        base = items[0].get(given)
    if base is None:
        if name in value:
            raise Irregular
        return default
    return base


def fill_elements(items: Any, fills: tuple[Fill, ...], bases: tuple[Any, ...]) -> Any:
    """Return a list of the elements of an array with the numbers that builders work out, each
    relative to the one of ``bases`` at its index. Elements that lack none are not copied. Raise
    Irregular if ``items`` is no list or tuple, TypeError if an element is no mapping. Raise
    BuildError if the numbers of an element contradict, or a needed base is no int.
    """
    if type(items) not in SEQUENCES:
        raise Irregular
    out = []
    pairs = tuple(zip(fills, bases, strict=True))
    for i, item in enumerate(items):
        filled = item
        for fill, base in pairs:
            if fill.given in filled or filled.get(fill.field) is None:
                if filled is item:
                    filled = dict(item)
                fill.apply(filled, i, base)
        out.append(filled)
    return out


def pack_section(compressed: Compressed, number: int, data: bytearray, level: int | None) -> Any:
    """Return the bytes of a section, compressed by a codec; ``data`` itself if the number means no
    compression. Raise KeyError for an unknown codec number, BuildError if the codec lacks the
    level, UnsupportedCodec if its package is missing.
    """
    codec = compressed.codecs[number]
    if codec is None:
        return data
    variant = compressed.variants[codec][0] if codec in compressed.variants else None
    return compress(codec, bytes(data), level=level, variant=variant)


def refuse_linked(items: Any) -> None:
    """Raise Irregular if an element was parsed with a derived value that depends on others: a
    builder compares it with what the value is now.
    """
    for item in items or ():
        if isinstance(item, Parsed) and "_as_parsed" in item.__dict__:
            raise Irregular


def checksum_of(f: Field) -> Callable[[bytes | bytearray], int]:
    """Return the function that computes a checksum from the covered bytes, as the unsigned number
    that the field stores. Its call raises UnsupportedCodec if the package of the checksum is not
    installed. Call it for checksum fields only: it raises AssertionError for others.
    """
    assert f.checksum is not None
    return f.checksum


def default_value(f: Field) -> Any:
    """Return the value that a tagged field has if it is not given: its default, encoded and read
    again.
    """
    return decode_default(default_of(f), f)


List = construct.ListContainer
"""The class of parsed arrays."""

__all__ = [
    "SECOND_BYTES",
    "SEQUENCES",
    "FastPath",
    "InArray",
    "Irregular",
    "List",
    "Parsed",
    "TaggedField",
    "checksum_of",
    "decode_default",
    "default_of",
    "default_value",
    "fill_elements",
    "find_base",
    "find_fast_path",
    "first_of",
    "getter",
    "link_elements",
    "no_bits",
    "open_section",
    "pack_section",
    "read_tags",
    "read_unknown_tags",
    "read_varint",
    "read_vlq",
    "refuse_linked",
    "set_place",
    "without_fast_paths",
    "write_varint",
    "write_vlq",
]
