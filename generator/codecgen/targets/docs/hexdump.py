"""Annotated hex dumps: bytes beside the fields and values that they hold, stream by stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from codecgen.diagnostics import printable
from codecgen.plan import FieldPlan, LayoutPlan, Plan
from codecgen.plan.cases import find_held_plan
from codecgen.runtime.compression import decompress
from codecgen.runtime.errors import CodecError
from codecgen.runtime.nouns import count_noun
from codecgen.schema.expression import Path
from codecgen.schema.lookup import enum_of
from codecgen.schema.model import Field
from codecgen.schema.scalars import find_scalar, fixed_size
from codecgen.schema.types import (
    ArrayType,
    BitsType,
    BytesType,
    ChoiceType,
    Compression,
    Element,
    PaddingType,
    Reference,
    ScalarType,
    StructType,
    TagsType,
)

PER_LINE = 8
MAX_FIELD_BYTES = 256
"""Bytes of one field that a dump shows; the rest is left out."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes ``start`` to ``end`` (exclusive) of a stream, with the path of their field and their
    value in words.
    """

    start: int
    end: int
    path: str
    value: str


@dataclass(frozen=True, slots=True)
class Stream:
    """Bytes of an example (``path`` is empty), or of a compressed section in it after
    decompression, split into pieces.
    """

    path: str
    codec: str
    data: Bytes
    pieces: tuple[Piece, ...]

    def text(self) -> str:
        """Return an annotated hex dump: lines with the position, up to 8 bytes, and, on a piece's
        first line, its path and value. Of a piece, at most 256 bytes are shown, followed by the
        number of bytes left out.
        """
        wide = max((len(p.path) for p in self.pieces), default=0)
        digits = max(4, len(str(len(self.data))))
        lines: list[str] = []
        for piece in self.pieces:
            lines += _lines(self.data, piece, digits, wide)
        return "\n".join(lines)


def _lines(data: Bytes, piece: Piece, digits: int, wide: int) -> Iterator[str]:
    """Yield the dump lines of a piece of ``data``, 8 bytes each: the position, padded to
    ``digits``, the bytes in hexadecimal, and on the first line the path, padded to ``wide``, and
    the value. After 256 bytes, yield a line with the number of bytes left out. A piece without
    bytes gives one line.
    """
    shown = min(piece.end, piece.start + MAX_FIELD_BYTES)
    for start in range(piece.start, max(shown, piece.start + 1), PER_LINE):
        part = data[start : min(start + PER_LINE, shown)].hex(" ")
        note = f"{piece.path:{wide}}  {piece.value}" if start == piece.start else ""
        yield f"{start:>{digits}}  {part:{PER_LINE * 3 - 1}}  {note}".rstrip()
    if shown < piece.end:
        yield f"{'':>{digits}}  .. {count_noun(piece.end - shown, 'byte')} more"


def streams(
    plan: Plan,
    layout: LayoutPlan,
    data: Bytes,
    value: Any,
    trace: Sequence[tuple[str, int, int, bool]],
) -> list[Stream]:
    """Return the bytes of a parsed value as a Stream with a piece for each field, then a Stream for
    each compressed section in it, decompressed, the outer sections first. ``trace`` has the path,
    first byte and end of each field that was parsed; others are skipped. Sections whose codec is
    not installed are left out; a damaged section shows the bytes before the damage.

    The last item of an entry of ``trace`` tells whether the field is in a decompressed stream; it is not used.
    """
    dumper = _Dumper(plan, trace)
    out = []
    todo: list[tuple[str, str, Bytes, Iterator[Piece]]] = [
        ("", "", data, dumper.layout_pieces(layout, value, "", data))
    ]
    while todo:
        path, codec, data, pieces = todo.pop(0)
        found = list(pieces)
        out.append(Stream(path, codec, data, tuple(found)))
        for inner in dumper.compressed:
            with suppress(CodecError):  # it said so when the value was parsed
                todo.append(dumper.open_section(inner, data))
        dumper.compressed = []
    return out


@dataclass(frozen=True, slots=True)
class _Section:
    """Bytes ``start`` to ``end`` (excluded) of a stream with the elements of the array ``field``; ``fields`` are the
    values around it.
    """

    path: str
    codec: str
    variant: str | None
    limit: int
    start: int
    end: int
    element: Element
    around: LayoutPlan
    field: FieldPlan
    fields: Any
    items: Any
    endian: Endian


class _Dumper:
    """Splits the bytes of a parsed value into pieces: a byte range with its field path and its
    value in words each. ``compressed`` collects the compressed sections on the way. ``obj`` is the
    parsed layout around a field, ``path`` the field's path, ``data`` the whole stream.
    """

    def __init__(self, plan: Plan, trace: Sequence[tuple[str, int, int, bool]]) -> None:
        self.plan = plan
        self.spans = {path: (start, end) for path, start, end, _ in trace}
        self.ends = {(path, start): end for path, start, end, _ in trace}
        self.compressed: list[_Section] = []

    def open_section(
        self, section: _Section, data: Bytes
    ) -> tuple[str, str, Bytes, Iterator[Piece]]:
        """Decompress a compressed section of ``data``, and return its path, codec name,
        decompressed bytes and an iterator of the pieces in them. Damage, or more bytes than its
        limit, raise nothing: the bytes before are returned. Raise UnsupportedCodec, a CodecError,
        if the codec or variant does not exist or its package is not installed.
        """
        stream = decompress(
            section.codec,
            data[section.start : section.end],
            limit=section.limit,
            variant=section.variant,
        )
        pieces = self.element_pieces(section, 0, stream.data)
        return section.path, section.codec, stream.data, pieces

    def layout_pieces(
        self, plan: LayoutPlan, value: Any, prefix: str, data: Bytes
    ) -> Iterator[Piece]:
        """Yield the pieces of a parsed layout, in the order of the bytes. ``prefix`` is the path of
        the layout. Fields that were not parsed, because they are absent or after an error, are
        skipped.
        """
        for fp in plan.in_order:
            path = f"{prefix}.{fp.name}" if prefix else fp.name
            if path in self.spans and fp.name in value:
                start, end = self.spans[path]
                yield from self.field_pieces(
                    plan, fp, value, value[fp.name], path, start, end, data
                )

    def field_pieces(
        self,
        plan: LayoutPlan,
        fp: FieldPlan,
        obj: Any,
        value: Any,
        path: str,
        start: int,
        end: int,
        data: Bytes,
    ) -> Iterator[Piece]:
        """Yield the pieces of a field whose bytes are ``start`` to ``end`` (exclusive) of ``data``.
        A length or presence number is a piece of its own. ``obj`` is the layout value around the
        field. Empty bytes and padding yield no piece.
        """
        f = fp.field
        match f.type:
            case PaddingType():
                if end > start:
                    yield Piece(start, end, path, "padding")
            case BytesType(prefix=prefix):
                after = start if prefix is None else start + scalar_size(prefix, data, start)
                if after > start:
                    words = "null" if value is None else f"length {end - after}"
                    yield Piece(start, after, path, words)
                if end > after:
                    yield Piece(after, end, path, value_text(value))
            case ArrayType() as array:
                yield from self.array_pieces(plan, fp, array, obj, value, path, start, end, data)
            case StructType(_, str(present)) if value is None:
                yield Piece(start, start + scalar_size(present, data, start), path, "null")
            case StructType(ref, present):
                if present is not None:
                    after = start + scalar_size(present, data, start)
                    yield Piece(start, after, path, "present")
                held = find_held_plan(self.plan, plan, fp, obj, value)
                yield from self.layout_pieces(
                    held or self.version(ref, plan, value), value, path, data
                )
            case ChoiceType() as choice:
                yield from self.choice_pieces(plan, fp, choice, obj, value, path, start, end, data)
            case TagsType():
                yield from self.tag_pieces(plan, obj, value, path, start, data)
            case BitsType():
                yield Piece(start, end, path, bits_words(f.type, value))
            case ScalarType():
                yield Piece(start, end, path, scalar_words(f, value))

    def tag_pieces(
        self, plan: LayoutPlan, obj: Any, unknown: Any, path: str, start: int, data: Bytes
    ) -> Iterator[Piece]:
        """Yield the pieces of a section of tagged fields: the count, then for each field its tag
        and size, and its content, for unknown tags as one piece. Of a known tag that appears twice
        only the last is split into its fields. A count of 2^31 or more yields only the count. Raise
        KeyError if the parser did not read a known field.

        A lenient reader may have read fewer or more bytes than the size says.
        """
        known = {fp.field.tag: fp for fp in plan.tagged}
        number, at = uvarint_at(data, start)
        yield Piece(start, at, path, f"count {number}")
        others = 0
        for _ in range(0 if number >> 31 else number):
            tag, after = uvarint_at(data, at)
            size, after = uvarint_at(data, after)
            fp = known.get(tag)
            here = path.removesuffix(plan.fields[-1].name)
            here = f"{path}[{others}]" if fp is None else f"{here}{fp.name}"
            yield Piece(at, after, here, f"tag {tag}, size {size}")
            if fp is None:
                at = after + size
                if size:
                    yield Piece(after, at, here, value_text(unknown[others].data))
                others += 1
                continue
            at = self.ends[here, after]
            if self.spans[here][0] == after:
                yield from self.field_pieces(plan, fp, obj, obj[fp.name], here, after, at, data)
            elif at > after:
                yield Piece(after, at, here, count_noun(at - after, "byte"))

    def choice_pieces(
        self,
        plan: LayoutPlan,
        fp: FieldPlan,
        choice: ChoiceType,
        obj: Any,
        value: Any,
        path: str,
        start: int,
        end: int,
        data: Bytes,
    ) -> Iterator[Piece]:
        """Yield the pieces of a field that holds one of several layouts, bytes ``start`` to ``end``
        (exclusive): the length or null if it has a length, then the layout, or the bytes of an
        unknown case. Yield nothing if even the length was not read completely.
        """
        if choice.length is not None:
            after = start + scalar_size(choice.length, data, start)
            if after > end:  # not read to its end
                return
            words = "null" if value is None else f"length {end - after}"
            yield Piece(start, after, path, words)
            start = after
        held = None if value is None else find_held_plan(self.plan, plan, fp, obj, value)
        if isinstance(value, bytes):
            if end > start:
                yield Piece(start, end, path, value_text(value))
        elif held is not None:
            yield from self.layout_pieces(held, value, path, data)

    def array_pieces(
        self,
        plan: LayoutPlan,
        fp: FieldPlan,
        array: ArrayType,
        obj: Any,
        value: Any,
        path: str,
        start: int,
        end: int,
        data: Bytes,
    ) -> Iterator[Piece]:
        """Yield the pieces of an array in bytes ``start`` to ``end`` (exclusive): its count and
        length, if it has them, then its elements; of a null array only the count or length.
        Compressed elements are one piece, and are noted in ``compressed``. Stop after a count or
        length that was not read completely.
        """
        prefix, endian = array.count or array.length, fp.field.endian
        if value is None:
            if prefix is not None:
                yield Piece(start, start + scalar_size(prefix, data, start), path, "null")
            return
        if array.count is not None:
            after = start + scalar_size(array.count, data, start)
            if after > end:  # not read to its end
                return
            number = scalar_value(array.count, data[start:after], endian)
            yield Piece(start, after, path, f"count {number}")
            start = after
        if array.length is not None:
            after = start + scalar_size(array.length, data, start)
            if after > end:
                return
            number = scalar_value(array.length, data[start:after], endian)
            yield Piece(start, after, path, f"length {number}")
            start = after
        codec = None if array.compression is None else self.codec(plan, array.compression, obj)
        if array.compression is not None and codec is not None and end > start:
            yield Piece(
                start, end, path, f"{count_noun(end - start, 'byte')}, compressed with {codec}"
            )
            variant = next(
                (
                    read
                    for name, versions, _, read in array.compression.variants
                    if name == codec and (versions is None or plan.version in versions)
                ),
                None,
            )
            limit = array.compression.limit
            section = _Section(
                path, codec, variant, limit, start, end, array.element, plan, fp, obj, value, endian
            )
            self.compressed.append(section)
            return
        section = _Section(
            path, "", None, 0, start, end, array.element, plan, fp, obj, value, endian
        )
        yield from self.element_pieces(section, start, data)

    def element_pieces(self, section: _Section, start: int, data: Bytes) -> Iterator[Piece]:
        """Yield the pieces of the elements of an array, which begin at ``start`` of ``data``, with
        paths such as ``records[0]``: of a layout the pieces of its fields, of a choice its length
        and the pieces of its layout, of other elements one piece each.
        """
        element, around, endian = section.element, section.around, section.endian
        for i, item in enumerate(section.items):
            here = f"{section.path}[{i}]"
            if isinstance(element, Reference):
                yield from self.layout_pieces(self.version(element, around, item), item, here, data)
            elif isinstance(element, ChoiceType):
                fp, obj = section.field, section.fields
                end = len(data)
                if element.length is not None:
                    before = BytesType(element.length)
                    end = self.after_bytes(before, endian, item, start, data)
                yield from self.choice_pieces(
                    around, fp, element, obj, item, here, start, end, data
                )
                start = end
            elif isinstance(element, BytesType):
                after = self.after_bytes(element, endian, item, start, data)
                yield Piece(start, after, here, value_text(item))
                start = after
            else:
                after = start + scalar_size(element.name, data, start)
                yield Piece(start, after, here, value_text(item))
                start = after

    def after_bytes(
        self, type_: BytesType, endian: Endian, item: Any, start: int, data: Bytes
    ) -> int:
        """Return the position after an element that is bytes or text and begins at ``start``: after
        its fixed size, after its zero byte, or after its length and content. For a null ``item``,
        return the position after the length. Raise IndexError if the data end without the zero
        byte; sizes and lengths are not compared with the data.
        """
        if isinstance(type_.length, int):
            return start + type_.length
        if type_.prefix is None:
            while data[start]:
                start += 1
            return start + 1
        after = start + scalar_size(type_.prefix, data, start)
        if item is None:
            return after
        return after + scalar_value(type_.prefix, data[start:after], endian)

    def version(self, ref: Reference, around: LayoutPlan, value: Any) -> LayoutPlan:
        """Return the plan of the layout that the reference ``ref`` means inside the layout version
        ``around``. If only the bytes tell the version, it is the version that the parsed ``value``
        contains, or the first possible plan if there is no such version.
        """
        plans = self.plan.held(ref, around)
        by = self.plan.model.layouts[ref.layout].version_is
        if len(plans) > 1 and by is not None:
            plans = tuple(p for p in plans if p.version == value.get(by)) or plans
        return plans[0]

    def codec(self, plan: LayoutPlan, compression: Compression, obj: Any) -> str | None:
        """Return the name of the codec that ``obj``, the layout around a compressed array, names in
        a field. Return None for the codec ``none``, for a number without a name, and if no field
        names the codec.
        """
        path = compression.by.node
        if not isinstance(path, Path):
            return None
        enum = enum_of(path, plan.layout, self.plan.model)
        number = obj
        for name in path.names:
            number = number[name]
        values = self.plan.model.enums[enum].values if enum is not None else ()
        return next((v.name for v in values if v.value == number and v.name != "none"), None)


def value_text(value: Any) -> str:
    """Return a parsed value as short text: ``null``, ``true``, an enum as number and label, text in
    quotes, cut to 60 characters, any other value as ``str`` gives it. Bytes are shown as text if
    they are printable UTF-8, otherwise as ``7 bytes``, their count.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError:
            return count_noun(len(value), "byte")
        if not value.isprintable():
            return count_noun(len(value.encode("utf-8")), "byte")
    if isinstance(value, str):
        return '"' + printable(value if len(value) <= 60 else value[:57] + "...") + '"'
    label = getattr(value, "label", None)
    return str(value) if label is None else f"{int(value)} {label}"


def scalar_words(f: Field, value: Any) -> str:
    """Return the value of a scalar field in words: an enum with its label, a checksum in
    hexadecimal with 8 digits or more, any value with its unit, if declared, and with "(none)" if it
    is the number that means there is none.
    """
    words = value_text(value)
    if f.checksum is not None:
        words = f"0x{value:08x}"
    if f.unit is not None:
        words += f" {f.unit}"
    if f.absent is not None and value == f.absent:
        words += " (none)"
    return words


def bits_words(bits: BitsType, value: Any) -> str:
    """Return the bits that are set, by name and separated by commas, lowest first: enums always
    with their value, wider and reserved members with their number if it is not 0. Return ``0`` if
    there is nothing to show.
    """
    parts = []
    for m in sorted(bits.members, key=lambda m: m.low):
        part = value[m.name]
        if m.enum is not None:
            parts.append(f"{m.name} {value_text(part)}")
        elif m.width == 1 and not m.reserved:
            parts += [m.name] if part else []
        elif part:
            parts.append(f"{m.name} {part}")
    return ", ".join(parts) or "0"


Endian = Literal["big", "little"]
Bytes = bytes | memoryview
"""What a stream is made of: a file may be mapped."""


def uvarint_at(data: Bytes, start: int) -> tuple[int, int]:
    """Return the unsigned varint at ``start`` and the position after it."""
    after = start + scalar_size("uvarint", data, start)
    return scalar_value("uvarint", bytes(data[start:after]), "big"), after


def scalar_size(name: str | int, data: Bytes, start: int) -> int:
    """Return the number of bytes of the number of type ``name`` at index ``start`` of ``data``; a
    varint ends with the first byte below 0x80. If the data end before, return one more than the
    number of bytes left. The data are not compared with a fixed size. Return ``name`` itself if it
    is an int.
    """
    if isinstance(name, int):
        return name
    fixed = fixed_size(name)
    if fixed is not None:
        return fixed
    size = 1
    while start + size <= len(data) and data[start + size - 1] >= 0x80:
        size += 1
    return size


def scalar_value(name: str, data: Bytes, endian: Endian) -> int:
    """Return the number that ``data`` encodes in the integer or varint type ``name``, with the order
    of its groups, and zigzag decoding if it is signed. A compact number is reduced by 1. ``endian`` applies to integers.
    Raise AssertionError for an unknown type.
    """
    scalar = find_scalar(name)
    assert scalar is not None
    if scalar.kind == "integer":
        return int.from_bytes(data, endian, signed=scalar.signed)
    groups = [byte & 0x7F for byte in data]
    if scalar.kind == "bijective_vlq":
        groups = [group + 1 for group in groups[:-1]] + groups[-1:]
    if scalar.kind != "varint":
        groups.reverse()
    number = sum(group << 7 * i for i, group in enumerate(groups)) & (1 << scalar.bits) - 1
    if scalar.signed:
        return (number >> 1) ^ -(number & 1)
    return number - 1 if name == "compact" else number
