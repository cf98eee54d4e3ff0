"""Bytes beside the fields that they are of: one layout, as far as it can be read, and its compressed section."""

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
from kafka_log.text.values import escape_unprintable, format_time

Note = Callable[[str, Any, Any], str | None]
"""Says more about a field, or nothing: by its name, the values of the layout that it is in, and those of the one around it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes ``start`` to ``end`` (not included) of a stream, the field that they are of, and what they say. ``left_out``: the
    bytes are not shown, only how many there are."""

    start: int
    end: int
    path: str
    value: str
    left_out: bool = False
    kind: str | None = None
    """The type of the field, as of :func:`kafka_log.inspect.hexdump.byte_fields.kind_of`; None where no field has the bytes."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Bytes with pieces for all of them, in their order, each once. ``origin`` is the place of the first one in the file; a section that
    was decompressed has a ``heading`` and a place of its own, 0."""

    data: bytes
    origin: int
    pieces: tuple[Piece, ...]
    heading: str = ""


def streams(
    layout: Layout,
    data: bytes,
    origin: int,
    limits: Limits,
    most: int,
    note: Note,
    begin: int = 0,
) -> tuple[list[Stream], CodecError | None]:
    """The bytes of one layout, and those of its last array when that is compressed. Of the array ``most`` elements are shown, from the
    number ``begin`` on, and one that cannot be read. The error is what ended the reading."""
    walk = _Walk(layout, data, origin, limits, most, note, begin)
    error = walk.run()
    left = "passed over" if error is None else "not read"
    found = [Stream(data, origin, whole(walk.outer, 0, len(data), left))]
    if walk.section is not None:
        heading, inner = walk.section
        pieces = whole(walk.inner, 0, len(inner), left)
        found.append(Stream(inner, 0, pieces, heading))
    return found, error


def elements(
    element: Codec, data: bytes, origin: int, first: int, path: str, note: Note
) -> tuple[Stream, CodecError | None]:
    """Elements one after the other; ``first`` is the number of the first one."""
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
    parts = _Parts(session.trace or [], session.begun or {}, data, note)
    for here, value in values:
        if value is not None:
            pieces += parts.of(element, value, here)
    left = "not read"
    return Stream(data, origin, whole(pieces, 0, len(data), left)), error


def whole(pieces: Sequence[Piece], first: int, last: int, left: str) -> tuple[Piece, ...]:
    """The pieces, with others for the bytes between that no field has."""
    out: list[Piece] = []
    at = first
    for piece in pieces:
        if piece.start > at:
            out.append(Piece(at, piece.start, "", left))
        out.append(piece)
        at = max(at, piece.end)
    if last > at:
        out.append(Piece(at, last, "", left))
    return tuple(out)


class _Walk:
    """One reading of a layout, field by field, without regard to lengths and checksums that do not fit: the fields in front are
    shown even when what they say is wrong."""

    def __init__(
        self,
        layout: Layout,
        data: bytes,
        origin: int,
        limits: Limits,
        most: int,
        note: Note,
        begin: int,
    ) -> None:
        self.layout = layout
        self.data = data
        self.most = most
        self.begin = begin
        self.note = note
        self.session = Session(strict=False, limits=limits, trace=[], begun={})
        self.source = Source(data, self.session, origin=origin)
        self.obj = construct.Container()
        self.outer: list[Piece] = []
        self.inner: list[Piece] = []
        self.section: tuple[str, bytes] | None = None

    def run(self) -> CodecError | None:
        try:
            for f in self.layout.fields:
                if f.when is not None and not f.when(self.obj):
                    self.obj[f.name] = None
                elif isinstance(f.codec, Array):
                    self.array(f, f.codec)
                else:
                    self.field(f)
        except CodecError as error:
            return error
        return None

    def field(self, f: Field) -> None:
        start = self.source.pos
        value = self.obj[f.name] = f.codec.read(self.source, self.obj)
        parts = _Parts([], {}, self.data, self.note)
        self.outer += parts.field(f, value, self.obj, f.name, start, self.source.pos)

    def array(self, f: Field, codec: Array) -> None:
        """The array that ends the layout."""
        start = at = self.source.pos
        for prefix in (codec.count, codec.length):
            if prefix is not None:
                number, after = _number(prefix, self.data, at)
                what = "count" if prefix is codec.count else "length"
                self.outer.append(
                    Piece(at, after, f.name, f"{what} {number}", kind=kind_of(prefix))
                )
                at = after
        data, pieces = self.data, self.outer
        if codec.compressed is not None:
            inner = self.opened(f, codec, at)
            if inner is not None:
                at, data, pieces = 0, inner, self.inner
        self.source.pos = start
        kept, end, read, error = self.items(f, codec, at)
        trace, begun = self.session.trace or [], self.session.begun or {}
        partial = begun.get(f"{f.name}[{read}]") if error is not None else None
        parts = _Parts([*kept.trace, *trace], begun, data, self.note, self.obj)
        before = min(self.begin, read)
        if before:
            pieces.append(Piece(at, kept.start, f.name, f"{before} before", left_out=True))
        for i, item in enumerate(kept.values, before):
            pieces += parts.of(codec.element, item, f"{f.name}[{i}]")
        more = read - before - len(kept.values)
        if more:
            pieces.append(Piece(kept.end, end, f.name, f"{more} more", left_out=True))
        if partial is not None:
            pieces += parts.of(codec.element, partial, f"{f.name}[{read}]")
        if error is not None:
            raise error

    def opened(self, f: Field, codec: Array, start: int) -> bytes | None:
        """What a compressed section holds, as far as it can be decompressed; None when it is not compressed."""
        compressed = codec.compressed
        assert compressed is not None
        name = compressed.codec(self.obj)
        data = self.data[start:]
        if name is None or not data:
            return None
        limit = self.session.limits.decompressed
        variant = compressed.variants[name][1] if name in compressed.variants else None
        says = f"{len(data)} bytes, compressed with {name}"
        self.outer.append(Piece(start, len(self.data), f.name, says, kind=kind_of(codec)))
        limit = compressed.limit if limit is None else limit
        inner = bytes(decompress(name, data, limit=limit, variant=variant).data)
        self.section = f"{f.name}, decompressed with {name}, {len(inner)} bytes", inner
        return inner

    def items(self, f: Field, codec: Array, at: int) -> tuple[_Items, int, int, CodecError | None]:
        """The elements that are shown, where the last one that was read ends, how many were read, and what ended it."""
        kept, end, read = _Items([], [], at, at), at, 0
        trace, begun = self.session.trace, self.session.begun
        assert trace is not None
        assert begun is not None
        self.session.prefix.append(f.name)
        try:
            for item in codec.items(self.source, self.obj):
                end = max([end, *(span[2] for span in trace if span[0] != f.name)])
                if read < self.begin:
                    kept.start = kept.end = end
                elif len(kept.values) < self.most:
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
class _Items:
    """Elements that are shown, with the places of their fields, and where they begin and end."""

    values: list[Any]
    trace: list[tuple[str, int, int, bool]]
    start: int
    end: int


class _Parts:
    """Makes the pieces of values whose fields' places are known."""

    def __init__(
        self,
        trace: Sequence[tuple[str, int, int, bool]],
        begun: dict[str, Any],
        data: bytes,
        note: Note,
        around: Any = None,
    ) -> None:
        self.spans = {path: (start, end) for path, start, end, _ in trace}
        self.begun = begun
        self.data = data
        self.note = note
        self.around = around

    def of(self, codec: Any, value: Any, path: str) -> Iterator[Piece]:
        """The pieces of one layout, in the order of the bytes; fields that were not read are left out."""
        if hasattr(codec, "cases"):
            codec = codec.case_of(value.get(codec.by))
        for f in () if codec is None else codec.fields:
            here = f"{path}.{f.name}"
            found = value.get(f.name, self.begun.get(here, self))
            if here in self.spans and found is not self:
                yield from self.field(f, found, value, here, *self.spans[here])

    def field(
        self, f: Field, value: Any, obj: Any, path: str, start: int, end: int
    ) -> Iterator[Piece]:
        codec = f.codec
        if isinstance(codec, Bytes) and isinstance(codec.length, Codec):
            after = _number(codec.length, self.data, start)[1]
            says = "null" if value is None else f"length {end - after}"
            yield Piece(start, after, path, says, kind=kind_of(codec.length))
            if end > after:
                yield Piece(after, end, path, shown(value), kind=kind_of(codec))
        elif isinstance(codec, Array) and codec.count is not None and value is not None:
            number, after = _number(codec.count, self.data, start)
            yield Piece(start, after, path, f"count {number}", kind=kind_of(codec.count))
            for i in range(len(value) + 1):
                here = f"{path}[{i}]"
                item = value[i] if i < len(value) else self.begun.get(here)
                if item is not None:
                    yield from self.of(codec.element, item, here)
        elif value is not None or end > start:
            more = self.note(f.name, obj, self.around)
            says = words(f, value) + (f", {more}" if more else "")
            yield Piece(start, end, path, says, kind=kind_of(codec))


def _number(codec: Codec, data: bytes, start: int) -> tuple[int, int]:
    """The number at a place, and the byte after it."""
    source = Source(data, Session(strict=False), pos=start)
    return codec.read(source, None), source.pos


LONGEST = 60
"""Characters of a text that are shown at most."""

TIME_BYTES = 8
"""Milliseconds in so many bytes are counted from 1970: fewer have no room for them, and are durations or differences."""


def words(field: Field, value: Any) -> str:
    """What a field says that is no bytes and has no parts of its own."""
    if field.checksum is not None and isinstance(value, int):
        return f"0x{value:08x}"
    if isinstance(field.codec, Bits):
        return _bits(field.codec, value)
    if field.absent is not None and value == field.absent:
        return f"{value} (none)"
    if field.unit == "ms" and field.codec.size == TIME_BYTES:
        return f"{value}, {format_time(value)}"
    return shown(value)


def kind_of(codec: Any) -> str:
    """What kind of value a codec reads: ``int64``, ``varint``, ``bytes``, ``uuid``, ..."""
    label = getattr(codec, "label", None)
    if isinstance(label, str):
        return label
    base = getattr(codec, "base", None)
    return type(codec).__name__.lower() if base is None else kind_of(base)


def shown(value: Any) -> str:
    """A value; text is in quotes, and bytes that cannot be printed are a number of bytes."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if not text.isprintable():
            return f"{len(value)} bytes"
        value = text
    if isinstance(value, str):
        cut = value if len(value) <= LONGEST else value[: LONGEST - 3] + "..."
        return escape_unprintable(json.dumps(cut, ensure_ascii=False))
    label = getattr(value, "label", None)
    return str(value) if label is None else f"{int(value)} {label}"


def _bits(bits: Bits, value: Any) -> str:
    """The bits that are set, and the values of enums; ``0`` when there is nothing to tell."""
    parts = []
    for bit in sorted(bits.bits, key=lambda bit: bit.low):
        part = value[bit.name]
        if bit.enum is not None:
            parts.append(f"{bit.name} {shown(part)}")
        elif bit.flag:
            parts += [bit.name] if part else []
        elif part:
            parts.append(f"{bit.name} {part}")
    return ", ".join(parts) or "0"
