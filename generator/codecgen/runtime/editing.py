"""Change fields of an entry and keep all other bytes; lengths and checksums are computed again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codecgen.runtime.arrays import Array
from codecgen.runtime.bits import Bits
from codecgen.runtime.building import Build
from codecgen.runtime.errors import (
    BuildError,
    ChecksumError,
    CompressionError,
    TrailingError,
)
from codecgen.runtime.fields import Field
from codecgen.runtime.layout import Layout
from codecgen.runtime.located_bytes import Source
from codecgen.runtime.nouns import count_noun
from codecgen.runtime.parsing import Parse


def edit(
    layout: Layout, source: Source, changes: Mapping[str, Any], *, recompress: bool = False
) -> bytes:
    """Return the bytes of the entry in ``source`` with ``changes`` applied, and lengths and
    checksums computed again. With ``recompress``, also compress its last array by the codec that it
    names afterwards. New values of constants, and rules that relate several fields, are not
    checked. Raise ParseError if the entry does not parse, bytes follow it, or a stored checksum is
    wrong; BuildError if a value cannot be written, breaks a field's rule or makes another field
    present or absent, or the array to recompress cannot be compressed. Raise KeyError for an
    unknown field or member of a field; UnsupportedCodec if the package of a codec or checksum is
    not installed.

    Args:
        layout: The layout of the entry.
        source: The bytes of one whole entry.
        changes: Values by the paths of fields (``base_offset``, ``attributes.compression``).
        recompress: Decompress the array that ends the layout with the codec that the entry names, and compress it with the
            codec, and the level of the session, that it names after the changes.
    """
    session = source.session
    noticed = len(session.findings)
    parse = Parse(
        layout.layout_name, layout.related, layout.trailing, source, layout.parsed_class()
    )
    *before, last = layout.fields
    for f in before:
        parse.parse_field(f)
    parse.open_windows(last)
    body = parse.source
    if body.end != source.end:
        reason = f"{count_noun(source.end - body.end, 'byte follows', 'bytes follow')} the {layout.layout_name}"
        raise TrailingError(reason, source.where(body.end))
    start = body.pos
    build = Build(layout.layout_name, layout.related, parse.obj, session, {})
    parts = [_bytes_of(f, parse) for f in before]
    for path, value in changes.items():
        name, _, member = path.partition(".")
        f = layout.by_name[name]
        if member:
            if not isinstance(build.obj[name], dict) or member not in build.obj[name]:
                raise KeyError(path)
            build.obj[name][member] = value
        try:
            if not member:
                is_bits = isinstance(f.codec, Bits)
                build.obj[name] = f.codec.filled(value, build.obj) if is_bits else value
            parts[layout.fields.index(f)] = _changed_field_bytes(f, build)
        except BuildError as error:
            raise layout.related.locate(error, f) from None
    if recompress:
        parts.append(_recompress_array(last, parse, build))
    else:
        parts.append(bytes(body.data[start : body.end]))
    parse.starts[last.name] = start, body.end
    body.pos = body.end
    parse.finish()
    for finding in session.findings[noticed:]:
        if isinstance(finding, ChecksumError):
            raise finding
    for f in layout.fields:
        if f.when is not None and bool(f.when(build.obj)) != bool(f.when(parse.obj)):
            reason = f"{f.name} depends on what is to be changed: {', '.join(changes)}"
            raise BuildError(reason).located(path=f.name)
    build.fill(parts)
    return b"".join(parts)


def _bytes_of(f: Field, parse: Parse) -> bytes:
    """Return the bytes of a field as they were parsed. Return ``b""`` if the field is tagged or
    absent.
    """
    if f.tag is not None or f.name not in parse.starts:
        return b""
    start, end = parse.starts[f.name]
    return bytes(parse.source.data[start:end])


def _changed_field_bytes(f: Field, build: Build) -> bytes:
    """Return the bytes of a field with its new value from ``build.obj``; reserved bits keep theirs.
    Raise BuildError if the value cannot be written, or breaks the field's ``refuse`` or ``valid``
    rule.
    """
    value = build.obj[f.name]
    if isinstance(f.codec, Bits):
        data = f.codec.base.write(f.codec.raw(value), build.obj, build.session)
    else:
        data = f.codec.write(value, build.obj, build.session)
    for rule, is_wrong in ((f.refuse, True), (f.valid, False)):
        if rule is not None and bool(rule.holds(build.obj)) is is_wrong:
            raise BuildError(rule.broken(value) if is_wrong else rule.missed(value))
    return data


def _recompress_array(f: Field, parse: Parse, build: Build) -> bytes:
    """Return the count, length and bytes of the array that ends the layout, decompressed with the
    old codec and compressed with the one that the changed fields name; the count alone if it is 0
    and no length follows. Raise BuildError if the field is no compressible array; CodecError if its
    bytes do not decompress whole or hold an empty block.
    """
    codec, body, session = f.codec, parse.source, build.session
    if not isinstance(codec, Array) or codec.compressed is None:
        raise BuildError("nothing of it can be compressed").located(path=f.name)
    start = body.pos
    number = codec.number(body, parse.obj)
    count = bytes(body.data[start : body.pos])
    stream = codec.section(body, parse.obj, number)
    if stream is None:
        return count
    if stream.pending is not None:
        raise stream.pending
    if stream.pauses:
        where = body.where(start)
        reason = f"the {f.name} may end at byte {min(stream.pauses)} of the stream, where it holds nothing"
        raise CompressionError(reason).located(position=where.position, file=where.file)
    plain = bytes(memoryview(stream.data)[stream.pos : stream.end])
    packed = codec.compressed.pack(plain, build.obj, session)
    if codec.length is not None:
        count += codec.length.write(len(packed), build.obj, session)
    return count + packed
