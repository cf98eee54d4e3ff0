"""Reads and writes a next batch, in one log with all other versions, with everything that there is.

    python -m tests.codecs.use_next_batch NAME DIRECTORY

Runs in a process of its own, with the codecs of a tree to which ``tests.codecs.next_batches`` has added the batch.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from codecgen.runtime.errors import CodecError
from kafka_codecs import LOG_ENTRY
from kafka_log import SegmentReader, encode, read_table, write_segment
from kafka_log.segment.scanner import Scanner
from tests.codecs import use_random_format
from tests.codecs.next_batches import MAGIC
from tests.codecs.use_random_format import ALL, ENGINES, ROWS, rows, said

NO_TIME = datetime.fromtimestamp(-0.001, UTC)
"""The timestamp of records that have none."""


def flagged(directory: Path) -> None:
    """Records with and without a schema: each batch has only one kind, and its flag says which."""
    path = directory / "flagged-0" / f"{0:020}.log"
    path.parent.mkdir()
    data, expected = b"", []
    for i, magic in enumerate((2, MAGIC, 1, MAGIC)):
        table = rows(i * ROWS, magic)
        ids = [None if magic != MAGIC or n % 50 < 20 else n % 3 - 1 for n in range(ROWS)]
        expected += ids
        if magic == MAGIC:
            table = table.append_column("schema_id", pa.array(ids, pa.int32()))
        codec = "zstd" if i == 3 else "none"
        data += b"".join(encode(table, magic=magic, codec=codec, batch_bytes=3000))
    path.write_bytes(data)
    for engine in ENGINES:
        found = read_table(path, ["offset", "schema_id"], engine=engine)
        assert found.column("offset").to_pylist() == list(range(4 * ROWS))
        assert found.column("schema_id").to_pylist() == expected
    third = [b for b in SegmentReader(path, policy="strict") if b.magic == MAGIC]
    parsed = [LOG_ENTRY.parse(data[b.position : b.position + b.size]) for b in third]
    assert {batch.attributes.has_schema for batch in parsed} == {False, True}
    for batch in parsed:
        assert {record.schema_id is not None for record in batch.records} == {
            batch.attributes.has_schema
        }
    copy = directory / "flagged.log"
    write_segment(copy, read_table(path, ALL))
    assert read_table(copy, ["schema_id"]).column("schema_id").to_pylist() == expected
    found = said("check", str(path.parent), "--deep", "--format", "jsonl").splitlines()
    assert [f for f in map(json.loads, found) if f["severity"] == "error"] == []


def columnar(directory: Path) -> None:
    """Records whose timestamps stand in front of them. The version is read by the reference codecs, and not written."""
    path = directory / "columnar-0" / f"{0:020}.log"
    path.parent.mkdir()
    data, expected = b"", []
    for i, (magic, codec) in enumerate(
        [(2, "none"), (MAGIC, "none"), (1, "gzip"), (MAGIC, "zstd"), (0, "none"), (MAGIC, "gzip")]
    ):
        table = rows(i * ROWS, magic)
        expected += table.to_pylist()
        if magic == MAGIC:
            data += columnar_batch(table.to_pylist(), codec)
        else:
            data += b"".join(encode(table, magic=magic, codec=codec, batch_bytes=3000))
    path.write_bytes(data)
    times = [row.get("timestamp", NO_TIME) for row in expected]
    values = [row["value"] for row in expected]
    for engine in ENGINES:
        found = read_table(path, ALL, engine=engine)
        assert found.column("timestamp").to_pylist() == times
        assert found.column("value").to_pylist() == values
        some = read_table(
            path, ["offset", "timestamp"], engine=engine, offsets=(ROWS + 3, 4 * ROWS)
        )
        assert some.column("timestamp").to_pylist() == times[ROWS + 3 : 4 * ROWS]
        scanner = Scanner(path, ["timestamp"], "strict", engine=engine)
        assert sum(batch.num_rows for batch in scanner) == len(expected)
        assert scanner.fallbacks == (3 if engine == "arrow" else 0)
    logs = str(path.parent)
    for deep in ([], ["--deep"]):
        lines = said("check", logs, *deep, "--format", "jsonl").splitlines()
        assert {json.loads(line)["severity"] for line in lines} <= {"note"}
    dumped = [json.loads(line) for line in said("dump", logs, "--format", "jsonl").splitlines()]
    assert [row["offset"] for row in dumped] == list(range(6 * ROWS))
    assert said("dump", logs, "--batches").count(f"magic: {MAGIC} ") == 3
    said("export", logs, "--format", "parquet", "--out", str(directory / "export"))
    (exported,) = (directory / "export").rglob("*.parquet")
    assert pq.read_table(exported).column("timestamp").to_pylist() == times
    for name, options in {"kept": [], "gzip": ["--codec", "gzip"]}.items():
        said("convert", logs, *options, "--out", str(directory / name))
        kept = read_table(directory / name / path.parent.name, ["timestamp", "value"])
        assert kept.column("timestamp").to_pylist() == times
        assert kept.column("value").to_pylist() == values
    assert "[--magic {2}]" in said("convert", "--help")
    said("convert", logs, "--magic", str(MAGIC), "--out", str(directory / "new"), code=2)
    for batch in SegmentReader(path, policy="strict"):
        if batch.magic == MAGIC:
            shown = said("hexdump", str(path), "--byte", str(batch.position))
            assert "record_times[0].delta" in shown and "records[0].key" in shown
    damaged_times(path, data)


def columnar_batch(table: list[dict[str, Any]], codec: str) -> bytes:
    """Return a batch with the rows of a table."""
    first = table[0]
    built: bytes = LOG_ENTRY.cases[MAGIC].build(
        {
            "base_offset": first["offset"],
            "base_timestamp": milliseconds(first),
            "attributes": {"compression": codec},
            "record_times": [{"timestamp": milliseconds(row)} for row in table],
            "records": [{key: row[key] for key in ("key", "value", "headers")} for row in table],
        }
    )
    return built


def milliseconds(row: dict[str, Any]) -> int:
    """Return the timestamp of a row in milliseconds since 1970."""
    return round(row["timestamp"].timestamp() * 1000)


def damaged_times(path: Path, data: bytes) -> None:
    """A count that is not that of the timestamps: the batch is refused by both engines alike, and a check finds it."""
    third = [b for b in SegmentReader(path) if b.magic == MAGIC]
    at, size = third[0].position, third[0].size
    layout = LOG_ENTRY.cases[MAGIC]
    batch = bytearray(data[at : at + size])
    place = layout.offset_of("record_count")
    batch[place : place + 4] = (ROWS - 1).to_bytes(4, "big")
    crc, covered = layout.offset_of("crc"), layout.offset_of("attributes")
    checksum = layout.by_name["crc"].checksum
    assert checksum is not None
    batch[crc : crc + 4] = checksum(bytes(batch[covered:])).to_bytes(4, "big")
    path.write_bytes(data[:at] + bytes(batch) + data[at + size :])
    for engine in ENGINES:
        with pytest.raises(CodecError) as error:
            list(Scanner(path, ["timestamp"], "strict", engine=engine))
        assert error.value.where.position is not None
        assert at <= error.value.where.position < at + size
    findings = said("check", str(path.parent), "--deep", "--format", "jsonl", code=1).splitlines()
    assert any(json.loads(line)["severity"] == "error" for line in findings)


BATCHES = {"flagged": flagged, "columnar": columnar}
WRITTEN = ("flagged",)
"""The batches that views say how to write."""


def main() -> None:
    name, directory = sys.argv[1], Path(sys.argv[2])
    BATCHES[name](directory)
    if name in WRITTEN:
        sys.argv[1:] = [str(directory)]
        use_random_format.main()
    else:
        print("all of it")


if __name__ == "__main__":
    main()
