"""Frames of keys and values: the id or GUID of a schema before the data or in a header, and the data."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.errors import CodecError
from kafka_codecs import (
    APICURIO_ID_HEADER,
    APICURIO_VALUE,
    CONFLUENT_VALUE,
    FRAMED_VALUE,
    GlueCompression,
)
from kafka_log.read.schemas.registry import IdKind, SchemaId, SchemaRegistry

Part = str
"""``key`` or ``value``."""

HEADERS = {"key": "__key_schema_id", "value": "__value_schema_id"}
"""Headers with the GUID of a schema as Confluent's serializers write it, by part of the record."""

APICURIO_HEADERS: dict[str, IdKind | None] = {
    "apicurio.{}.contentId": "contentId",
    "apicurio.{}.contentHash": None,
    "apicurio.{}.globalId": "globalId",
    "apicurio.{}.artifactId": None,
}
"""Headers that name a schema of Apicurio, in the order in which its deserializers use them; {} stands for the part of the record. The
values are the kinds of their ids; None stands for headers without an id.
"""

APICURIO_ENCODING = "apicurio.{}.encoding"
"""Header with the encoding of an Avro value. Without it, the encoding is binary."""

_BINARY = b"BINARY"

MAX_PATH = 200
"""Maximum bytes of a GUID and the path of a message after it."""

MAX_INFLATED = 64 << 20
"""Maximum bytes of a value after decompression, and of the values that are decoded at once, unless one value has more."""

NOT_FRAMED = (
    "it does not begin with the id of a schema: read it as text or bytes (--decode utf8, none)"
)


@dataclass(frozen=True)
class Frames:
    """Frames of the keys or values of rows.

    Attributes:
        ids: The different ids. None stands for bytes that are no frame.
        codes: For each row its index in ``ids``, -1 for null (NumPy int32).
        data: The bytes after the frame, or all bytes if there is none (Arrow binary). They are not decompressed.
    """

    ids: Sequence[SchemaId | None]
    codes: Any
    data: Any

    def rows_by_id(self) -> Iterator[tuple[SchemaId | None, Any]]:
        """Yield each id, None included, with the indexes of its rows, ascending (NumPy int64). Rows
        with null come with no id.
        """
        order = np.argsort(self.codes, kind="stable")
        ends = np.searchsorted(self.codes[order], np.arange(len(self.ids) + 1))
        for i, schema_id in enumerate(self.ids):
            yield schema_id, order[ends[i] : ends[i + 1]]


@cache
def _prefix_lengths() -> dict[int, int]:
    """Return the number of bytes of a frame before its data, by its magic byte, which is counted."""
    no_guid = uuid.UUID(int=0)
    empty: dict[str, Any] = {"schema_id": 0, "schema_guid": no_guid, "data": b""}
    empty |= {"compression": GlueCompression.NONE, "schema_version_id": no_guid}
    found = {}
    for number, layout in FRAMED_VALUE.cases.items():
        values = {f.name: empty[f.name] for f in layout.fields if f.name in empty}
        found[number] = len(layout.build(values))
    return found


@lru_cache(maxsize=8)
def _long_prefixes(numbers: frozenset[int]) -> Any:
    """Return what stands before values with ids of 8 bytes, for each of ``numbers`` (Arrow binary)."""
    return pa.array(
        [APICURIO_VALUE.build({"id": number, "data": b""}) for number in numbers], pa.binary()
    )


def _parse_frame(data: bytes, codec: Any = FRAMED_VALUE) -> SchemaId | None:
    """Return the schema id at the start of ``data``; None if the bytes are no frame, or more than
    200. For a GUID of Confluent, the bytes after it are the path of a Protobuf message,
    ``indexes``; bytes after a number are ignored.
    """
    if len(data) > MAX_PATH:
        return None
    try:
        fields: Any = codec.parse(data)
    except CodecError:
        return None
    version = getattr(fields, "schema_version_id", None)
    if version is not None:
        is_compressed = fields.compression != GlueCompression.NONE
        return SchemaId(guid=str(version), writer="glue", is_compressed=is_compressed)
    guid = getattr(fields, "schema_guid", None)
    return (
        SchemaId(fields.schema_id)
        if guid is None
        else SchemaId(guid=str(guid), indexes=fields.data)
    )


def _parse_long(registry: SchemaRegistry, data: bytes) -> SchemaId:
    """Return the schema id of Apicurio in ``data``, which is 8 bytes after the magic byte."""
    short = _parse_frame(data)
    other = short.number if short is not None else None
    return SchemaId(
        APICURIO_VALUE.parse(data).id,
        writer="apicurio",
        kinds=("globalId", "contentId"),
        other=other if other is not None and registry.has_id(other) else None,
    )


def _parse_id_header(kind: IdKind | None, is_binary: bool, data: bytes) -> SchemaId | None:
    """Return the schema id in a header of Apicurio; None if ``kind`` says that the header has none,
    or it is invalid.
    """
    if kind is None:
        return None
    try:
        number = APICURIO_ID_HEADER.parse(data).id
    except CodecError:
        return None
    return SchemaId(number, writer="apicurio", kinds=(kind,), is_binary=is_binary)


def inflate(data: bytes) -> bytes:
    """Return the decompressed data of a frame. Raise ValueError if it is damaged or cut off, other
    bytes follow, or it has more than 64 MiB.
    """
    inflater = zlib.decompressobj()
    try:
        found = inflater.decompress(data, MAX_INFLATED + 1)
    except zlib.error as error:
        raise ValueError(f"its compressed data is damaged: {error}") from None
    if len(found) > MAX_INFLATED:
        raise ValueError(
            f"its data has more than {MAX_INFLATED:,} bytes after decompression, the most that kafka-log takes"
        )
    if not inflater.eof:
        raise ValueError("its compressed data is cut off")
    if inflater.unused_data:
        raise ValueError("other bytes follow its compressed data")
    return found


def split_frames(values: Any, headers: Any, part: Part, registry: SchemaRegistry) -> Frames:
    """Return the schema id of each key or value, and its bytes without the frame in front. If
    the record has a header that names the schema of ``part``, the id comes from the last such
    header, and all bytes are data. Without a valid id, the id is None and all bytes are data; null
    has no id. Nothing is raised for invalid bytes.

    Args:
        values: Arrow array of the keys or values (binary).
        headers: Arrow array of the headers of the same rows; None: without headers.
        part: ``key`` or ``value``.
        registry: The schemas. An id of 8 bytes counts if a schema has it.
    """
    values = values.cast(pa.binary()) if values.type != pa.binary() else values
    ids: list[SchemaId | None] = []
    known: dict[SchemaId | None, int] = {}
    codes = np.full(len(values), -1, np.int32)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.zeros(len(values), np.int64)
    rest = valid.copy()

    def assign(
        rows: Any,
        texts: Any,
        skip: int,
        parse: Callable[[bytes], SchemaId | None] = _parse_frame,
    ) -> None:
        """Set the ids of rows from the frames in ``texts``, which ``parse`` reads, and take the rows
        out of ``rest``.
        """
        rest[rows] = False
        encoded = pc.fill_null(texts, b"").dictionary_encode()
        numbers = np.empty(len(encoded.dictionary), np.int32)
        framed = np.zeros(len(numbers), np.bool_)
        for i, text in enumerate(encoded.dictionary.to_pylist()):
            found = parse(text)
            if found not in known:
                known[found] = len(ids)
                ids.append(found)
            numbers[i], framed[i] = known[found], found is not None
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        codes[rows] = numbers[indices]
        lengths[rows] = np.where(framed[indices], skip, 0)

    if headers is not None and valid.any():
        listed = _list_headers(headers)
        parsers: list[tuple[str, Callable[[bool, bytes], SchemaId | None]]] = [
            (HEADERS[part], lambda _, data: _parse_frame(data, CONFLUENT_VALUE)),
            *(
                (name.format(part), partial(_parse_id_header, kind))
                for name, kind in APICURIO_HEADERS.items()
            ),
        ]
        is_binary = np.ones(len(values), np.bool_)
        rows, texts = _last_values(listed, APICURIO_ENCODING.format(part))
        is_binary[rows] = pc.fill_null(pc.equal(texts, _BINARY), False)
        for name, parse in parsers:
            rows, texts = _last_values(listed, name)
            for encoding in (True, False):
                chosen = rest[rows] & (is_binary[rows] == encoding)
                if chosen.any():
                    assign(
                        rows[chosen], texts.filter(pa.array(chosen)), 0, partial(parse, encoding)
                    )
    if registry.apicurio_ids and rest.any():
        prefixes = _long_prefixes(registry.apicurio_ids)
        length = len(prefixes[0].as_py())
        starts = pc.binary_slice(values, 0, length)
        begins = pc.is_in(starts, prefixes).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(rest & begins)
        if len(rows):
            assign(rows, starts.take(pa.array(rows)), length, partial(_parse_long, registry))
    first = pc.binary_slice(values, 0, 1)
    for length in sorted(set(_prefix_lengths().values())):
        starts = pa.array(
            [n.to_bytes(1, "big") for n, size in _prefix_lengths().items() if size == length]
        )
        begins = pc.is_in(first, starts).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(rest & begins)
        if len(rows):
            assign(rows, pc.binary_slice(values, 0, length).take(pa.array(rows)), length)
    rows = np.flatnonzero(rest)
    if len(rows):
        codes[rows] = known.setdefault(None, len(ids))
        if known[None] == len(ids):
            ids.append(None)
    return Frames(ids, codes, _drop_prefixes(values, lengths))


def _list_headers(headers: Any) -> tuple[Any, Any, Any]:
    """Return three arrays with an item per header: index of its row, key and value."""
    flat = headers.flatten()
    rows = pc.list_parent_indices(headers).to_numpy(zero_copy_only=False)
    return rows, flat.field("key").cast(pa.string()), flat.field("value").cast(pa.binary())


def _last_values(listed: tuple[Any, Any, Any], name: str) -> tuple[Any, Any]:
    """Return two arrays: the indexes of the rows that have a header ``name``, ascending, and the
    value of the last such header in each of them. ``listed`` is of :func:`_list_headers`.
    """
    rows, keys, values = listed
    chosen = pc.fill_null(pc.equal(keys, name), False).to_numpy(zero_copy_only=False)
    rows, at = rows[chosen], np.flatnonzero(chosen)
    is_last = np.ones(len(rows), np.bool_)
    is_last[:-1] = rows[1:] != rows[:-1]
    return rows[is_last], values.take(pa.array(at[is_last]))


def _drop_prefixes(values: Any, lengths: Any) -> Any:
    """Return binary values without their first bytes, whose number ``lengths`` has for each row;
    null stays null.
    """
    if not lengths.any():
        return values
    end = pc.max(pc.binary_length(values)).as_py()  # without an end, Arrow fails at short values
    cut = values
    for length in np.unique(lengths[lengths > 0]).tolist():
        is_framed = lengths == length
        rest = pc.binary_slice(values, length, end)
        if np.count_nonzero(is_framed) == len(values) - values.null_count:
            return rest
        cut = pc.if_else(pa.array(is_framed), rest, cut)
    return cut
