"""Read one layout into pieces of bytes with their fields, as far as the bytes can be read, and its compressed section."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import construct

from codecgen.runtime.arrays import Array
from codecgen.runtime.compression import decompress
from codecgen.runtime.construct import Bits, Bytes, Codec, Field, Layout
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits, Session, Source
from codecgen.runtime.nouns import count_noun
from kafka_log.segment.printable import escape_unprintable
from kafka_log.text.values import format_time

Note = Callable[[str, Any, Any], str | None]
"""Returns words to add to a value, or None: from the field's name, the values of its layout, and those of the outer layout."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes ``start`` to ``end`` (not included) of a stream, with the path of their field and its value as text. ``omitted``:
    only the number of bytes is shown.
    """

    start: int
    end: int
    path: str
    value: str
    omitted: bool = False
    kind: str | None = None
    """Type of the field, as :func:`type_name` returns it; None for bytes without a field."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Bytes covered by consecutive pieces. ``origin`` is the position of the first byte in the file. A decompressed section has
    a ``heading`` and positions of its own, from 0.
    """

    data: bytes
    origin: int
    pieces: tuple[Piece, ...]
    heading: str = ""


def read_streams(
    layout: Layout,
    data: bytes,
    origin: int,
    limits: Limits,
    max_elements: int,
    note: Note,
    first_element: int = 0,
) -> tuple[list[Stream], CodecError | None]:
    """Return the streams of one layout, and the CodecError that ended the reading (not raised; None
    if all was read). The first stream has the bytes; a stream of the decompressed bytes of each
    compressed array follows, if it could be decompressed. Checksums are not verified. Bytes that
    were not read are pieces without a field. Of an array ``max_elements`` from ``first_element`` on
    are shown, and one that cannot be read; ``note`` adds words to values.

    Args:
        layout: Layout of the bytes. Each array with compression has a length, or reaches to the end.
        data: The bytes.
        origin: Position of the first byte in the file.
        limits: Limits of decompression and of elements.
        max_elements: Number of array elements with fields of their own; the others become one omitted piece.
        note: Adds words to the value of a field.
        first_element: Number of the first array element that is shown, from 0.
    """
    reader = _LayoutReader(layout, data, origin, limits, max_elements, note, first_element)
    error = reader.read()
    left = "passed over" if error is None else "not read"
    found = [Stream(data, origin, fill_gaps(reader.outer, 0, len(data), left))]
    for section in reader.sections:
        pieces = fill_gaps(section.pieces, 0, len(section.data), left)
        found.append(Stream(section.data, 0, pieces, section.heading))
    return found, error


def read_elements(
    element: Codec, data: bytes, origin: int, first: int, path: str, note: Note
) -> tuple[Stream, CodecError | None]:
    """Return consecutive elements in ``data`` as one stream, and the first CodecError or tolerated
    problem (not raised; None if there is none). ``data`` lies at byte ``origin`` of the file. An
    error ends the reading; the bytes after it are a piece without a field. Paths are ``path`` with
    the element's number, from ``first`` on, such as ``entries[7].position``; ``note`` adds words to
    values.

    ``first`` is the number of the first element, for paths such as ``entries[7].position``.
    """
    session = Session(strict=False, trace=[], begun={})
    source = Source(data, session, origin=origin)
    pieces: list[Piece] = []
    error: CodecError | None = None
    values: list[tuple[str, Any]] = []
    while source.left and error is None:
        here = f"{path}[{first + len(values)}]"
        session.prefix = [here]
        try:
            values.append((here, element.read(source, None)))
        except CodecError as found:
            error = found
            values.append((here, (session.begun or {}).get(here)))
    if error is None and session.findings:
        error = session.findings[0]
    maker = _PieceMaker(session.trace or [], session.begun or {}, data, note)
    for here, value in values:
        if value is not None:
            pieces += maker.layout_pieces(element, value, here)
    left = "not read"
    return Stream(data, origin, fill_gaps(pieces, 0, len(data), left)), error


def fill_gaps(pieces: Sequence[Piece], first: int, last: int, gap_value: str) -> tuple[Piece, ...]:
    """Return ``pieces``, which are sorted by start, with a piece for each gap between ``first``
    (included) and ``last`` (excluded). Such a piece has the value ``gap_value`` and no path.
    """
    out: list[Piece] = []
    at = first
    for piece in pieces:
        if piece.start > at:
            out.append(Piece(at, piece.start, "", gap_value))
        out.append(piece)
        at = max(at, piece.end)
    if last > at:
        out.append(Piece(at, last, "", gap_value))
    return tuple(out)


@dataclass(slots=True)
class _Section:
    """Decompressed bytes of an array, and the pieces of its elements."""

    heading: str
    data: bytes
    pieces: list[Piece]


class _LayoutReader:
    """Reader of one layout, field by field. Wrong lengths and checksums are tolerated, so that the fields before damage are
    shown.
    """

    def __init__(
        self,
        layout: Layout,
        data: bytes,
        origin: int,
        limits: Limits,
        max_elements: int,
        note: Note,
        first_element: int,
    ) -> None:
        self.layout = layout
        self.data = data
        self.max_elements = max_elements
        self.first_element = first_element
        self.note = note
        self.session = Session(strict=False, limits=limits, trace=[], begun={})
        self.source = Source(data, self.session, origin=origin)
        self.obj = construct.Container()
        self.outer: list[Piece] = []
        self.sections: list[_Section] = []

    def read(self) -> CodecError | None:
        """Read the fields of the layout into ``outer`` and ``sections``; absent fields are None.
        Return the CodecError that ended the reading, None if all fields were read.
        """
        try:
            for f in self.layout.fields:
                if f.when is not None and not f.when(self.obj):
                    self.obj[f.name] = None
                elif isinstance(f.codec, Array) and (f.codec.compressed or _has_layouts(f.codec)):
                    self._read_array(f, f.codec)
                else:
                    self._read_field(f)
        except CodecError as error:
            return error
        return None

    def _read_field(self, f: Field) -> None:
        """Read one field that is neither a compressed array nor one of layouts, and append its
        pieces to ``outer``. Raise CodecError if it cannot be read; then it has no piece.
        """
        start = self.source.pos
        value = self.obj[f.name] = f.codec.read(self.source, self.obj)
        maker = _PieceMaker([], {}, self.data, self.note)
        self.outer += maker.field_pieces(f, value, self.obj, f.name, start, self.source.pos)

    def _read_array(self, f: Field, codec: Array) -> None:
        """Read an array, and append the pieces of its prefixes and elements. Those before
        ``first_element``, and those beyond ``max_elements``, are one omitted piece each.
        Decompressed elements go to a new one of ``sections``, others to ``outer``. Raise CodecError
        if a prefix or element cannot be read, or decompression fails; the pieces before the error
        are appended first.
        """
        around = self.source
        self.source = self._window(f)
        start = at = self.source.pos
        for prefix in (codec.count, codec.length):
            if prefix is not None:
                number, after = _read_number(prefix, self.data, at)
                what = "count" if prefix is codec.count else "length"
                self.outer.append(
                    Piece(at, after, f.name, f"{what} {number}", kind=type_name(prefix))
                )
                at = after
        data, pieces = self.data, self.outer
        if codec.compressed is not None:
            inner = self._decompress(f, codec, at)
            if inner is not None:
                at, data, pieces = 0, inner.data, inner.pieces
        self.source.pos = start
        kept, end, read, error = self._read_elements(f, codec, at)
        trace, begun = self.session.trace or [], self.session.begun or {}
        partial = begun.get(f"{f.name}[{read}]") if error is not None else None
        maker = _PieceMaker([*kept.trace, *trace], begun, data, self.note, self.obj)
        before = min(self.first_element, read)
        if before:
            pieces.append(Piece(at, kept.start, f.name, f"{before} before", omitted=True))
        for i, item in enumerate(kept.values, before):
            pieces += maker.layout_pieces(codec.element, item, f"{f.name}[{i}]")
        more = read - before - len(kept.values)
        if more:
            pieces.append(Piece(kept.end, end, f.name, f"{more} more", omitted=True))
        if partial is not None:
            pieces += maker.layout_pieces(codec.element, partial, f"{f.name}[{read}]")
        if error is not None:
            raise error
        if self.source.end != around.end:
            around.pos = self.source.end
        self.source = around

    def _window(self, f: Field) -> Source:
        """Return the source to read an array from. If an earlier field states the size in bytes of
        this array alone, and so many bytes are left, it is a new Source that ends there. Else it is
        the source of the layout; a size that is negative or too large is ignored.
        """
        source = self.source
        for measure in self.layout.fields:
            if measure.measures is None or measure.measures[0] != f.name:
                continue
            alone = measure.measures[1] in (f.name, None) and (
                measure.measures[1] is not None or f is self.layout.fields[-1]
            )
            size = self.obj.get(measure.name)
            if alone and size is not None and 0 <= size <= source.left:
                return Source(
                    source.data,
                    source.session,
                    pos=source.pos,
                    end=source.pos + size,
                    origin=source.origin,
                )
        return source

    def _decompress(self, f: Field, codec: Array, start: int) -> _Section | None:
        """Return the decompressed bytes of an array that begins at ``start``, and append them to
        ``sections``. The compressed bytes become one piece of ``outer``. Return None if there are
        no bytes or the codec is none. Raise CodecError if the codec is unknown, or, after the piece
        was appended, if the bytes cannot be decompressed or exceed the limit.
        """
        compressed = codec.compressed
        assert compressed is not None
        name = compressed.codec(self.obj)
        data = self.data[start : self.source.end]
        if name is None or not data:
            return None
        variant = compressed.variants[name][1] if name in compressed.variants else None
        says = f"{count_noun(len(data), 'byte')}, compressed with {name}"
        self.outer.append(Piece(start, self.source.end, f.name, says, kind=type_name(codec)))
        limit = compressed.remaining_limit(
            self.session.limits, sum(len(section.data) for section in self.sections)
        )
        inner = bytes(decompress(name, data, limit=limit, variant=variant).data)
        heading = f"{f.name}, decompressed with {name}, {count_noun(len(inner), 'byte')}"
        self.sections.append(_Section(heading, inner, []))
        return self.sections[-1]

    def _read_elements(
        self, f: Field, codec: Array, at: int
    ) -> tuple[_ShownElements, int, int, CodecError | None]:
        """Return the elements to show (at most ``max_elements``, from ``first_element`` on), the
        end of the last element read, the number of elements read, and the CodecError that ended the
        reading (not raised; None if all were read).
        """
        kept, end, read = _ShownElements([], [], at, at), at, 0
        trace, begun = self.session.trace, self.session.begun
        assert trace is not None
        assert begun is not None
        self.session.prefix.append(f.name)
        try:
            for item in codec.items(self.source, self.obj):
                end = max([end, *(span[2] for span in trace if span[0] != f.name)])
                if read < self.first_element:
                    kept.start = kept.end = end
                elif len(kept.values) < self.max_elements:
                    kept.values.append(item)
                    kept.trace += trace
                    kept.end = end
                read += 1
                trace.clear()
                begun.clear()
        except CodecError as error:
            return kept, end, read, error
        finally:
            self.session.prefix.pop()
        return kept, end, read, None


@dataclass(slots=True)
class _ShownElements:
    """Elements to show, the ranges of their fields, and the range of bytes that the elements have."""

    values: list[Any]
    trace: list[tuple[str, int, int, bool]]
    start: int
    end: int


class _PieceMaker:
    """Splits values that were read from bytes into Piece objects, by a trace of the byte ranges of
    their fields: a range, the path of its field, and the value as text.
    """

    def __init__(
        self,
        trace: Sequence[tuple[str, int, int, bool]],
        begun: dict[str, Any],
        data: bytes,
        note: Note,
        outer_values: Any = None,
    ) -> None:
        self.spans = {path: (start, end) for path, start, end, _ in trace}
        self.begun = begun
        self.data = data
        self.note = note
        self.outer_values = outer_values

    def layout_pieces(self, codec: Any, value: Any, path: str) -> Iterator[Piece]:
        """Yield the pieces of the fields of one layout, in order; of a choice, those of the case
        that ``value`` selects. Fields that were not read have none; an unknown case, and a value that
        is no layout, have none at all.
        """
        if hasattr(codec, "cases"):
            codec = codec.case_of(value.get(codec.by))
        for f in getattr(codec, "fields", ()):
            here = f"{path}.{f.name}"
            found = value.get(f.name, self.begun.get(here, self))
            if here in self.spans and found is not self:
                yield from self.field_pieces(f, found, value, here, *self.spans[here])

    def field_pieces(
        self, f: Field, value: Any, obj: Any, path: str, start: int, end: int
    ) -> Iterator[Piece]:
        """Yield the pieces of one field: its length or count prefix, if it has one, then its value.
        An array with a count has the fields of each element, or one piece with its first
        MAX_ELEMENTS elements if they are no layouts. A null value has a piece for its prefix only,
        and none if it has no bytes.
        """
        codec = f.codec
        if isinstance(codec, Bytes) and isinstance(codec.length, Codec) and codec.length.size != 0:
            after = _read_number(codec.length, self.data, start)[1]
            says = "null" if value is None else f"length {end - after}"
            yield Piece(start, after, path, says, kind=type_name(codec.length))
            if end > after:
                yield Piece(after, end, path, format_value(value), kind=type_name(codec))
        elif isinstance(codec, Array) and codec.count is not None and value is not None:
            number, after = _read_number(codec.count, self.data, start)
            yield Piece(start, after, path, f"count {number}", kind=type_name(codec.count))
            if not _has_layouts(codec):
                says = ", ".join(map(format_value, value[:MAX_ELEMENTS]))
                says += ", ..." if len(value) > MAX_ELEMENTS else ""
                if value:
                    yield Piece(after, end, path, says, kind=type_name(codec.element))
                return
            for i in range(len(value) + 1):
                here = f"{path}[{i}]"
                item = value[i] if i < len(value) else self.begun.get(here)
                if item is not None:
                    yield from self.layout_pieces(codec.element, item, here)
        elif value is not None or end > start:
            more = self.note(f.name, obj, self.outer_values)
            says = format_field(f, value) + (f", {more}" if more else "")
            yield Piece(start, end, path, says, kind=type_name(codec))


def _has_layouts(codec: Array) -> bool:
    """Return whether the elements of an array are layouts, perhaps of a choice."""
    return hasattr(codec.element, "fields") or hasattr(codec.element, "cases")


def _read_number(codec: Codec, data: bytes, start: int) -> tuple[int, int]:
    """Return the number at ``start``, and the position after it."""
    source = Source(data, Session(strict=False), pos=start)
    return codec.read(source, None), source.pos


MAX_TEXT = 60
"""Maximum number of characters shown of a string."""

MAX_ELEMENTS = 16
"""Maximum number of elements shown of an array whose elements are no layouts."""

TIME_BYTES = 8
"""Size of a field with milliseconds since 1970. Smaller fields in milliseconds are durations or differences."""


def format_field(field: Field, value: Any) -> str:
    """Return the value of a scalar field as text: checksums in hexadecimal, set bits by name,
    8-byte fields in milliseconds also as dates, and ``(none)`` after the number that means "no
    value". All others are as :func:`format_value` returns them.
    """
    if field.checksum is not None and isinstance(value, int):
        return f"0x{value:08x}"
    if isinstance(field.codec, Bits):
        return _format_bits(field.codec, value)
    if field.absent is not None and value == field.absent:
        return f"{value} (none)"
    if field.unit == "ms" and field.codec.size == TIME_BYTES:
        return f"{value}, {format_time(value)}"
    return format_value(value)


def type_name(codec: Any) -> str:
    """Return the name of the type that a codec reads, such as ``int64``, ``varint`` or ``uuid``:
    its label, else that of its base type, else the name of its class in lower case.
    """
    label = getattr(codec, "label", None)
    if isinstance(label, str):
        return label
    base = getattr(codec, "base", None)
    return type(codec).__name__.lower() if base is None else type_name(base)


def format_value(value: Any) -> str:
    """Return a value as text. None is ``null``; strings and printable UTF-8 bytes are in quotes,
    cut to MAX_TEXT (60) characters with ``...`` at the end; other bytes are ``N bytes``; enums have
    number and label; all else is converted by ``str``.
    """
    if value is None:
        return "null"
    if isinstance(value, bytes):
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if not text.isprintable():
            return count_noun(len(value), "byte")
        value = text
    if isinstance(value, str):
        cut = value if len(value) <= MAX_TEXT else value[: MAX_TEXT - 3] + "..."
        return escape_unprintable(json.dumps(cut, ensure_ascii=False))
    label = getattr(value, "label", None)
    return str(value) if label is None else f"{int(value)} {label}"


def _format_bits(bits: Bits, value: Any) -> str:
    """Return the set bits as text, lowest bit first, separated by commas; ``0`` if that is nothing.
    It has the names of set flags, the values of other bit fields that are not 0, and all enum
    fields with their label.
    """
    parts = []
    for bit in sorted(bits.bits, key=lambda bit: bit.low):
        part = value[bit.name]
        if bit.enum is not None:
            parts.append(f"{bit.name} {format_value(part)}")
        elif bit.flag:
            parts += [bit.name] if part else []
        elif part:
            parts.append(f"{bit.name} {part}")
    return ", ".join(parts) or "0"
