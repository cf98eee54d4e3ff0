"""Fast parsers of layouts: generated functions that parse regular bytes, and give up on all others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import construct

from codecgen.runtime.compressed_section import Compressed
from codecgen.runtime.compression import decompress
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.parsed import Parsed, TaggedField
from codecgen.runtime.tags import HIGHEST, decode_default, default_of

if TYPE_CHECKING:
    from codecgen.runtime.fields import Field

FastParser = Callable[..., tuple[Any, int]]
"""Takes the data, the first byte, the end of the window, the session, and the values that the layout is given; returns the
value and the byte after it."""

MIN_ELEMENTS = 64
"""The number of elements up to which fast parsers do not look at the limit of the session."""


class Irregular(Exception):
    """Raised by a fast parser for bytes that the field-by-field parser has to judge."""


@dataclass(frozen=True, slots=True)
class FastPath:
    """The fast parser of a layout, and how deep it goes into layouts and arrays, itself included."""

    parse: FastParser
    depth: int

    def read(self, source: Source, *given: Any) -> Any:
        """Return the value at the head of ``source``, and move behind it. Return None, with
        ``source`` and session unchanged, if the generated function fails for any reason, or may not
        run: with a trace, ``begun``, pending error or pauses, inside a window of a buffer that is
        no bytes, near the depth limit, with a limit of fewer than 64 elements, or inside
        :func:`without_fast_paths`. ``given`` are the values that the layout gets from outside, in
        the order of their declaration.
        """
        session = source.session
        data, pos, end = source.data, source.pos, source.end
        if (
            session.trace is not None
            or session.begun is not None
            or source.pending is not None
            or source.pauses
            or session.depth + self.depth > session.limits.depth
            or session.limits.elements < MIN_ELEMENTS
            or not _switch.on
        ):
            return None
        if type(data) is not bytes:
            if pos or end != len(data):
                return None  # a copy of all that follows may be large
            data = bytes(data)
        section = session.section
        try:
            value, source.pos = self.parse(data, pos, end, session, *given)
        except Exception:
            # Whatever it is: the field-by-field parser raises it again, or reads the value.
            session.section = section
            return None
        return value


@dataclass(slots=True)
class _Switch:
    """Whether layouts use their fast parsers."""

    on: bool = True


_switch = _Switch()


@contextmanager
def without_fast_paths() -> Iterator[None]:
    """Switch off all fast parsers inside the ``with`` block, in all threads, so that layouts are
    parsed field by field. Restore the former setting at the end, also after an error.
    """
    before, _switch.on = _switch.on, False
    try:
        yield
    finally:
        _switch.on = before


def find_fast_path(module: str, layout: str) -> FastPath | None:
    """Return the fast path of a layout. Return None if the generated module has no ``__fast__``, is
    not loaded, or its fast parsers do not include the layout.

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


def read_varint(data: bytes, pos: int, most: int, mask: int) -> tuple[int, int]:
    """Return the unsigned number at ``pos``, before zigzag decoding, and the index after it. Raise
    Irregular if it has more than ``most`` bytes or bits outside ``mask``, or is not in its shortest
    form; IndexError if ``data`` ends.
    """
    raw = shift = 0
    for at in range(pos, pos + most):
        byte = data[at]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if (byte == 0 and at > pos) or raw > mask:
                raise Irregular
            return raw, at + 1
        shift += 7
    raise Irregular


def open_section(
    compressed: Compressed, number: int, data: bytes, pos: int, end: int, session: Session
) -> tuple[bytes, int, int]:
    """Return the bytes of the section from ``pos`` to ``end`` in ``data``, decompressed by the
    codec ``number``, as (data, first index, end). An uncompressed section gives ``data`` itself.
    Raise Irregular if it does not decompress cleanly: an error, a note or an empty block; KeyError
    for an unknown codec number; UnsupportedCodec if a package is missing.
    """
    codec = compressed.codecs[number]
    if codec is None:
        session.section = session.section or (end - pos, end - pos)
        return data, pos, end
    limits = session.limits
    limit = compressed.limit if limits.decompressed is None else limits.decompressed
    variant = compressed.variants[codec][1] if codec in compressed.variants else None
    stream = decompress(codec, memoryview(data)[pos:end], limit=limit, variant=variant)
    if stream.error is not None or stream.notes or stream.pauses:
        raise Irregular
    session.section = session.section or (end - pos, len(stream.data))
    return bytes(stream.data), 0, len(stream.data)


def read_tags(
    data: bytes, pos: int, end: int, other: tuple[int, ...] = ()
) -> tuple[list[tuple[int, int, int]], int]:
    """Return the tagged fields of the section at index ``pos`` as (tag, first index, end) each, and
    the index after the section. Raise Irregular if there are 64 or more, a tag does not ascend or
    is in ``other``, a varint is not in its shortest form, or a field ends after ``end``; IndexError
    if ``data`` ends within a varint.
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
    TaggedField, and the index after the section. Raise Irregular if there are 64 or more, a tag
    does not ascend or is in ``other``, a varint is not in its shortest form, or a field ends after
    ``end``; IndexError if ``data`` ends within a varint.
    """
    tags, pos = read_tags(data, pos, end, other)
    fields = (TaggedField({"tag": tag, "data": data[start:stop]}) for tag, start, stop in tags)
    return List(fields), pos


def checksum_of(f: Field) -> Callable[[bytes], int]:
    """Return the function that computes a checksum from the covered bytes. Call it for checksum
    fields only.
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
    "FastPath",
    "Irregular",
    "List",
    "Parsed",
    "TaggedField",
    "checksum_of",
    "decode_default",
    "default_of",
    "default_value",
    "find_fast_path",
    "open_section",
    "read_tags",
    "read_unknown_tags",
    "read_varint",
    "without_fast_paths",
]
