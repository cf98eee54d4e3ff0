"""Tables to write, and what is read from the bytes that come of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from codecgen.runtime.arrow.decoder import Chunk, Decoder, Rows, choose
from codecgen.runtime.arrow.output_buffers import arrow_type
from kafka_codecs import CONTROL_RECORD_KEY
from kafka_codecs.arrow.records import RECORDS
from kafka_log.write.encoding import encode

DEFAULT = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")
ON_REQUEST = tuple(c.name for c in RECORDS.columns if c.on_request and c.name != "position")
I64 = st.integers(-(1 << 63), (1 << 63) - 1)
BYTES = st.none() | st.binary(max_size=150)
HEADERS = st.lists(st.fixed_dictionaries({"key": st.text(max_size=8), "value": BYTES}), max_size=3)


def table(rows: Sequence[dict[str, Any]], columns: Sequence[str] = DEFAULT) -> pa.Table:
    """Rows as a table in the view's own types."""
    arrays, fields = [], []
    for name in columns:
        kind = arrow_type(RECORDS.column(name))
        values = [row[name] for row in rows]
        if pa.types.is_timestamp(kind):
            array = pa.array(values, pa.int64()).cast(kind)
        else:
            array = pa.array(values, kind)
        arrays.append(array)
        fields.append(pa.field(name, kind, RECORDS.column(name).nullable))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def decoded(data: bytes, columns: Sequence[str] = DEFAULT) -> pa.Table:
    """The rows of a segment, by the kernels; nothing may be odd about it."""
    decoder = Decoder(RECORDS, choose(RECORDS, columns))
    chunk = Chunk(max(len(data), 1))
    chunk.view()[: len(data)] = data
    chunk.size = len(data)
    batches = []
    end = 0
    for item in decoder.decode(chunk, 0):
        assert isinstance(item, Rows), item
        assert item.start == end
        batches.append(item.batch)
        end = item.end
    assert end == len(data)
    return pa.Table.from_batches(batches, decoder.schema)


def written(data: Any, **options: Any) -> bytes:
    return b"".join(encode(data, **options))


def segment(folder: Path, data: bytes) -> Path:
    path = folder / f"{0:020}.log"
    path.write_bytes(data)
    return path


UNKNOWN_CONTROL = bytes(CONTROL_RECORD_KEY.build({"version": 0, "type": 77}))
"""The key of a control record of a type that the schemas do not know: it may have any value."""


@st.composite
def rows_of(draw: st.DrawFn, magic: int, *, most: int = 30) -> list[dict[str, Any]]:
    """Rows that segments of one version can hold, with every column; some of them change from row to row. Producers are as
    the rules of batches want them."""
    count = draw(st.integers(0, most))
    rows: list[dict[str, Any]] = []
    offset = draw(st.integers(1, 1 << 40) | (I64 if magic == 2 else st.nothing()))
    base: dict[str, Any] = {}
    codecs = (0, 1, 2, 3, 4) if magic == 2 else (0, 1, 2, 3)
    changing = st.sampled_from((0, 0, 0, 1))
    for _ in range(count):
        if not rows or draw(changing):
            stamp = draw(st.integers(-1, 1 << 42) | I64)
            producer = draw(I64) if magic == 2 else -1
            is_control = draw(st.booleans()) if magic == 2 else False
            base = {
                "timestamp_type": draw(st.integers(0, 1)) if magic else -1,
                "codec": draw(st.sampled_from(codecs)),
                "base_offset": offset,
                "producer_id": producer,
                "producer_epoch": draw(
                    st.integers(0 if producer >= 0 else -(1 << 15), (1 << 15) - 1)
                )
                if magic == 2
                else -1,
                "leader_epoch": draw(st.integers(-(1 << 31), (1 << 31) - 1)) if magic == 2 else -1,
                "is_transactional": draw(st.booleans()) if producer >= 0 else False,
                "is_control": is_control,
                "delete_horizon": draw(st.none() | I64) if magic == 2 else None,
            }
            sequences = (-1,) if producer < 0 or is_control else ()
            sequence = (
                draw(st.sampled_from((*sequences, 0, 5, (1 << 31) - 2))) if magic == 2 else -1
            )
        row = base | {
            "offset": offset,
            "timestamp": (stamp if base["timestamp_type"] == 1 else draw(st.just(stamp) | I64))
            if magic
            else -1,
            "key": UNKNOWN_CONTROL if base["is_control"] else draw(BYTES),
            "value": draw(BYTES),
            "headers": draw(HEADERS) if magic == 2 else [],
            "sequence": sequence,
            "magic": magic,
        }
        if magic < 2 and base["codec"] == 0:
            row["base_offset"] = offset
        rows.append(row)
        step = draw(st.sampled_from((1, 1, 1, 2, 1000, 1 << 33)))
        before, offset = offset, (offset + step + (1 << 63)) % (1 << 64) - (1 << 63)
        if sequence >= 0:
            sequence = (sequence + step) % (1 << 31)
        if (step > 1 << 31 or offset < before) and magic == 2:
            base = base | {"base_offset": offset}
    return rows
