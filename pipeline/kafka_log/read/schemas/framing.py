"""Frames of keys and values: the id or GUID of a schema before the data or in a header, and the data."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.errors import CodecError
from kafka_codecs import CONFLUENT_VALUE

Part = str
"""``key`` or ``value``."""

HEADERS = {"key": "__key_schema_id", "value": "__value_schema_id"}
"""Headers with the GUID of a schema, by part of the record."""

MAX_PATH = 200
"""Maximum bytes of a GUID and the path of a message after it."""

NOT_FRAMED = (
    "it does not begin with the id of a schema: read it as text or bytes (--decode utf8, none)"
)


@dataclass(frozen=True, slots=True)
class SchemaId:
    """Id or GUID of a schema as a frame has it. ``indexes`` are the bytes after the GUID in a header: the path of a Protobuf message."""

    number: int | None = None
    guid: str | None = None
    indexes: bytes = b""

    def __str__(self) -> str:
        return str(self.guid if self.number is None else self.number)


@dataclass(frozen=True)
class Frames:
    """Frames of the keys or values of rows.

    Attributes:
        ids: The different ids. None stands for bytes that are no frame.
        codes: For each row its index in ``ids``, -1 for null (NumPy int32).
        data: The bytes after the frame, or all bytes if there is none (Arrow binary).
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
    """Return the number of bytes of a frame before its data, by its magic byte: 0 is the magic byte
    of a frame with a schema id, 1 that of one with a GUID. The magic byte itself is counted.
    """
    empty: dict[str, Any] = {"schema_id": 0, "schema_guid": uuid.UUID(int=0), "data": b""}
    found = {}
    for number, layout in CONFLUENT_VALUE.cases.items():
        values = {f.name: empty[f.name] for f in layout.fields if f.name in empty}
        found[number] = len(layout.build(values))
    return found


def _parse_frame(data: bytes) -> SchemaId | None:
    """Return the schema id at the start of ``data``; None if the bytes are no frame, or more than
    200. For a GUID, the bytes after it are the path of a Protobuf message,
    ``indexes``; bytes after a number are ignored.
    """
    if len(data) > MAX_PATH:
        return None
    try:
        fields: Any = CONFLUENT_VALUE.parse(data)
    except CodecError:
        return None
    guid = getattr(fields, "schema_guid", None)
    return (
        SchemaId(fields.schema_id)
        if guid is None
        else SchemaId(guid=str(guid), indexes=fields.data)
    )


def split_frames(values: Any, headers: Any = None, part: Part = "value") -> Frames:
    """Return the schema id of each key or value, and its bytes without the frame in front. If
    ``headers`` of the rows are given and the record has the header of ``part``, the id comes from
    the last such header, and all bytes are data. Without a valid id, the id is None and all bytes
    are data; null has no id. Nothing is raised for invalid bytes.

    Args:
        values: Arrow array of the keys or values (binary).
        headers: Arrow array of the headers of the same rows; None: without headers.
        part: ``key`` or ``value``.
    """
    values = values.cast(pa.binary()) if values.type != pa.binary() else values
    ids: list[SchemaId | None] = []
    known: dict[SchemaId | None, int] = {}
    codes = np.full(len(values), -1, np.int32)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.zeros(len(values), np.int64)
    rest = valid.copy()

    def assign(rows: Any, texts: Any, skip: int) -> None:
        """Set the ids of rows from the frames in ``texts``."""
        encoded = pc.fill_null(texts, b"").dictionary_encode()
        numbers = np.empty(len(encoded.dictionary), np.int32)
        framed = np.zeros(len(numbers), np.bool_)
        for i, text in enumerate(encoded.dictionary.to_pylist()):
            found = _parse_frame(text)
            if found not in known:
                known[found] = len(ids)
                ids.append(found)
            numbers[i], framed[i] = known[found], found is not None
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        codes[rows] = numbers[indices]
        lengths[rows] = np.where(framed[indices], skip, 0)

    if headers is not None and valid.any():
        rows, texts = _header_values(headers, HEADERS[part])
        chosen = valid[rows]
        rows = rows[chosen]
        if len(rows):
            assign(rows, texts.filter(pa.array(chosen)), 0)
            rest[rows] = False
    first = pc.binary_slice(values, 0, 1)
    for length in sorted(set(_prefix_lengths().values())):
        starts = pa.array(
            [n.to_bytes(1, "big") for n, size in _prefix_lengths().items() if size == length]
        )
        begins = pc.is_in(first, starts).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(rest & begins)
        if len(rows):
            assign(rows, pc.binary_slice(values, 0, length).take(pa.array(rows)), length)
            rest[rows] = False
    rows = np.flatnonzero(rest)
    if len(rows):
        codes[rows] = known.setdefault(None, len(ids))
        if known[None] == len(ids):
            ids.append(None)
    return Frames(ids, codes, _drop_prefixes(values, lengths))


def _header_values(headers: Any, name: str) -> tuple[Any, Any]:
    """Return two arrays: the indexes of the rows that have a header ``name``, ascending, and the
    value of the last such header in each of them.
    """
    flat = headers.flatten()
    rows = pc.list_parent_indices(headers).to_numpy(zero_copy_only=False)
    is_named = pc.fill_null(pc.equal(flat.field("key").cast(pa.string()), name), False)
    chosen = is_named.to_numpy(zero_copy_only=False)
    rows, at = rows[chosen], np.flatnonzero(chosen)
    is_last = np.ones(len(rows), np.bool_)
    is_last[:-1] = rows[1:] != rows[:-1]
    return rows[is_last], flat.field("value").cast(pa.binary()).take(pa.array(at[is_last]))


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
