"""How rows become Parquet: encodings that are chosen by the first of them, and values that are the same whatever was chosen."""

from __future__ import annotations

import gc
import io
import random
from contextlib import suppress
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_log.read import parquet
from kafka_log.read.parquet import HELD_BYTES, ROW_GROUP, SAMPLE_ROWS, Compression, GroupedWriter
from kafka_log.text.output import ParquetRowWriter

SCHEMA = pa.schema([("key", pa.binary()), ("offset", pa.int64())])
ROWS = 3000
random_bytes = random.Random(7).randbytes

KEYS: dict[str, tuple[list[bytes | None], str | None]] = {
    "of one length": ([random_bytes(16) for _ in range(ROWS)], "DELTA_LENGTH_BYTE_ARRAY"),
    "of one length, and nulls": (
        [random_bytes(16) if i % 3 else None for i in range(ROWS)],
        "DELTA_LENGTH_BYTE_ARRAY",
    ),
    "of many lengths": ([b"user-%d" % i for i in range(ROWS)], "PLAIN"),
    "that repeat": ([b"user-%d" % (i % 100) for i in range(ROWS)], None),
    "that are empty": ([b""] * ROWS, None),
    "that are null": ([None] * ROWS, None),
    "one": ([b"key"], "DELTA_LENGTH_BYTE_ARRAY"),
    "of more than is looked at": ([random_bytes(5000) for _ in range(1000)], "PLAIN"),
    "that repeat behind what is looked at": (
        [*(random_bytes(16384) for _ in range(256)), *[bytes(16384)] * 800],
        "PLAIN",
    ),
    "that repeat in rows behind those that are looked at": (
        [*(b"%d" % i for i in range(SAMPLE_ROWS)), *[b"x"] * 2 * SAMPLE_ROWS],
        "PLAIN",
    ),
    "as long as ids are": ([random_bytes(64) for _ in range(1000)], "DELTA_LENGTH_BYTE_ARRAY"),
    "longer": ([random_bytes(65) for _ in range(1000)], "PLAIN"),
    "none": ([], None),
}  # fmt: skip


def rows_of(keys: list[bytes | None], first: int = 0) -> pa.RecordBatch:
    offsets = range(first, first + len(keys))
    return pa.RecordBatch.from_arrays(
        [pa.array(keys, pa.binary()), pa.array(offsets, pa.int64())], SCHEMA.names
    )


def encodings(data: bytes) -> set[str]:
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    return set(metadata.row_group(0).column(0).encodings)


@pytest.mark.slow
@pytest.mark.parametrize("compression", get_args(Compression))
@pytest.mark.parametrize("name", KEYS)
def test_encodings(name: str, compression: Compression) -> None:
    keys, encoding = KEYS[name]
    out = io.BytesIO()
    writer = GroupedWriter(out, SCHEMA, compression)
    batch = rows_of(keys)
    assert writer.hold(batch) == writer.bytes_held == batch.nbytes
    found = writer.close()
    assert found.num_rows == len(keys) and writer.rows_held == writer.bytes_held == 0
    assert pq.read_table(io.BytesIO(out.getvalue())) == pa.Table.from_batches([batch])
    if compression == "none" and encoding == "DELTA_LENGTH_BYTE_ARRAY":
        encoding = "PLAIN"
    if keys:
        wanted = "RLE_DICTIONARY" if encoding is None else encoding
        assert wanted in encodings(out.getvalue())
        assert ("RLE_DICTIONARY" in encodings(out.getvalue())) == (encoding is None)


def test_rows_that_are_not_like_the_first() -> None:
    """What was chosen by the first rows holds any others."""
    parts: list[list[bytes | None]] = [
        [random_bytes(16) for _ in range(100)],
        [None, b"", b"x" * 100_000, *[b"the same"] * (SAMPLE_ROWS + 1)],
        [b"user-%d" % i for i in range(10)],
    ]
    out = io.BytesIO()
    writer = GroupedWriter(out, SCHEMA)
    first = 0
    for part in parts:
        writer.hold(rows_of(part, first))
        writer.flush()
        first += len(part)
    assert writer.close().num_row_groups == 3
    read = pq.read_table(io.BytesIO(out.getvalue()))
    assert read.column("key").to_pylist() == [key for part in parts for key in part]
    assert read.column("offset").to_pylist() == list(range(first))


@pytest.mark.parametrize(
    ("held_bytes", "held_rows", "groups"),
    [
        (HELD_BYTES, ROW_GROUP, 1),
        (7000, ROW_GROUP, 50),
        (2 * 2800, ROW_GROUP, 75),
        (HELD_BYTES, 300, 50),
    ],
)
def test_row_groups_of_many_batches(
    held_bytes: int, held_rows: int, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes in small batches becomes few row groups, and is not held without bound: neither its bytes nor its rows."""
    monkeypatch.setattr(parquet, "HELD_BYTES", held_bytes)
    monkeypatch.setattr(parquet, "ROW_GROUP", held_rows)
    batches = [rows_of([random_bytes(16) for _ in range(100)], 100 * i) for i in range(150)]
    assert {batch.nbytes for batch in batches} == {2800}
    out = io.BytesIO()
    rows = ParquetRowWriter(out, SCHEMA)
    for batch in batches:
        rows.write(batch)
    rows.close()
    metadata = pq.ParquetFile(io.BytesIO(out.getvalue())).metadata
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert sizes == [15_000 // groups] * groups
    assert "DELTA_LENGTH_BYTE_ARRAY" in encodings(out.getvalue())
    assert pq.read_table(io.BytesIO(out.getvalue())) == pa.Table.from_batches(batches)


@pytest.mark.slow
@pytest.mark.parametrize("flushed", [False, True])
def test_it_is_abandoned(flushed: bool) -> None:
    """Nothing more is written: neither held rows, nor an end that would make a whole file of those before."""
    out = io.BytesIO()
    writer = GroupedWriter(out, SCHEMA)
    writer.hold(rows_of([b"a", b"b"]))
    if flushed:
        writer.flush()
        writer.hold(rows_of([b"c"]))
    size = out.tell()
    assert bool(size) is flushed
    writer.abandon()
    del writer
    gc.collect()
    assert out.tell() == size
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(io.BytesIO(out.getvalue()))


@pytest.mark.slow
@pytest.mark.parametrize("is_closed", [False, True])
def test_a_write_that_fails_is_the_last_one(is_closed: bool) -> None:
    """Although the disk has room again: what follows a hole, and the file's end, would make it look whole."""

    class Full(io.BytesIO):
        failures = 0

        def write(self, data: Any) -> int:
            if not self.failures and self.tell() + memoryview(data).nbytes > 500:
                self.failures += 1
                raise OSError(28, "full")
            return super().write(data)

    out = Full()
    writer = GroupedWriter(out, SCHEMA)
    writer.hold(rows_of([random.Random(i).randbytes(100) for i in range(100)]))
    with pytest.raises(OSError, match="full"):
        writer.flush()
    size = out.tell()
    if is_closed:
        with suppress(Exception):
            writer.close()
    del writer
    gc.collect()
    assert (out.failures, out.tell()) == (1, size)
