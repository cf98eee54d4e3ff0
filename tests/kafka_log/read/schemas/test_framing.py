"""Frames of many values at once, beside the codec for one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from codecgen.runtime.errors import CodecError
from kafka_codecs import CONFLUENT_VALUE
from kafka_log.read.schemas.framing import HEADERS, split_frames
from kafka_log.read.schemas.registry import SchemaId, SchemaRegistry

GUID = bytes(range(1, 17))
FRAMED = [
    b"",
    b"\0",
    b"\0\0\0\0",
    b"\0\0\0\0\7",
    b"\0\0\0\0\7{}",
    b"\0\xff\xff\xff\xff\0",
    b"\1" + GUID,
    b"\1" + GUID + b"data",
    b"\1" + GUID[:-1],
    b"\2\0\0\0\7",
    b"text",
]
VALUES = st.lists(st.none() | st.sampled_from(FRAMED) | st.binary(max_size=20), max_size=12)
NAMES = st.sampled_from([*HEADERS.values(), "other"])
KINDS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def parsed(data: bytes | None) -> tuple[SchemaId | None, bytes | None]:
    """The id and the data of one value, by the codec."""
    if data is None:
        return None, None
    try:
        fields = CONFLUENT_VALUE.parse(data)
    except CodecError:
        return None, data
    if fields.magic == 0:
        return SchemaId(fields.schema_id), fields.data
    return SchemaId(guid=str(fields.schema_guid)), fields.data


def parsed_header(data: bytes | None) -> SchemaId | None:
    """The id in a header, by the codec: after a GUID comes the path of a message."""
    found, rest = parsed(data)
    if found is None or found.guid is None:
        return found
    return SchemaId(guid=found.guid, indexes=rest or b"")


def split(values: Any, headers: Any = None, part: str = "value") -> list[Any]:
    frames = split_frames(values, headers, part, SchemaRegistry())
    ids = [None if code < 0 else frames.ids[code] for code in frames.codes]
    assert [code < 0 for code in frames.codes] == [v is None for v in values.to_pylist()]
    assert len(set(frames.ids)) == len(frames.ids)
    return list(zip(ids, frames.data.to_pylist(), strict=True))


@given(VALUES)
@example([b"\0\0\0\0\7", b"\0\0\0\0\7"])
@example([])
def test_ids_before_values(values: list[bytes | None]) -> None:
    assert split(pa.array(values, pa.binary())) == [parsed(v) for v in values]
    sliced = pa.array([b"\0\0\0\0\1x", None, *values], pa.binary())[2:]
    assert split(sliced) == [parsed(v) for v in values]


@example([(b"", [(HEADERS["key"], b"\1" + GUID + b"data")])], "key")
@given(st.lists(st.tuples(st.none() | st.sampled_from(FRAMED), st.lists(st.tuples(NAMES, st.none() | st.sampled_from(FRAMED)), max_size=3)), max_size=8), st.sampled_from(["key", "value"]))  # fmt: skip
def test_ids_in_headers(rows: list[Any], part: str) -> None:
    """The last header of the part counts, and then all bytes are data."""
    headers = [[{"key": n, "value": v} for n, v in of_row] for _, of_row in rows]
    expected = []
    for value, of_row in rows:
        own = [data for name, data in of_row if name == HEADERS[part]]
        if value is not None and own:
            expected.append((parsed_header(own[-1]), value))
        else:
            expected.append(parsed(value))
    values = pa.array([value for value, _ in rows], pa.binary())
    assert split(values, pa.array(headers, KINDS), part) == expected
    ahead = pa.array([[{"key": HEADERS[part], "value": b"\1" + GUID}], *headers], KINDS)[1:]
    assert split(values, ahead, part) == expected
