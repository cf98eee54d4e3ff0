"""Reads and writes a next batch, in one log with all other versions, with everything that there is.

    python -m tests.codecs.use_next_batch NAME DIRECTORY

Runs in a process of its own, with the codecs of a tree to which ``tests.codecs.next_batches`` has added the batch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from codecgen.runtime.errors import BuildError, CodecError
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
    shown = ["record_times[0].delta", "records[0].key"]
    path, data = read_everywhere(directory, "columnar", columnar_batch, shown)

    def change(batch: bytearray) -> None:
        """A count that is not that of the timestamps."""
        place = LOG_ENTRY.cases[MAGIC].offset_of("record_count")
        batch[place : place + 4] = (ROWS - 1).to_bytes(4, "big")

    damaged(path, data, change)


def dictionary(directory: Path) -> None:
    """Records whose headers are indexes of names in front of them. The version is read by the reference codecs, and not written."""
    shown = ['"h0", "h1", "h2", "h3"', "records[1].headers[0].name_index"]
    path, data = read_everywhere(directory, "dictionary", dictionary_batch, shown)
    layout = LOG_ENTRY.cases[MAGIC]
    batch = next(b for b in SegmentReader(path) if b.magic == MAGIC)
    parsed = layout.parse(data[batch.position : batch.position + batch.size])
    keys = [[header.key for header in record.headers] for record in parsed.records]
    assert keys == [[f"h{i % 4}"] * (i % 3) for i in range(ROWS, 2 * ROWS)]
    header = parsed.records[1].headers[0]
    header.name_index = 4
    with pytest.raises(BuildError, match="name_index is 4, but names has elements 0 to 3") as wrong:
        layout.build(parsed)
    assert wrong.value.where.path == "records[1].headers[0].name_index"

    def change(batch: bytearray) -> None:
        """The index of a name that is not there."""
        trace: list[tuple[str, int, int, bool]] = []
        layout.parse(bytes(batch), trace=trace)
        (place,) = (at for path, at, _, _ in trace if path == "records[1].headers[0].name_index")
        batch[place] = 4

    damaged(path, data, change)


def read_everywhere(
    directory: Path,
    name: str,
    build: Callable[[list[dict[str, Any]], str], bytes],
    shown: list[str],
) -> tuple[Path, bytes]:
    """Read a log of all versions, with batches that ``build`` makes of rows, in every way and expect its rows. ``shown`` are
    paths that a dump of their bytes has. Return the path of the log and its bytes.
    """
    path = directory / f"{name}-0" / f"{0:020}.log"
    path.parent.mkdir()
    data, expected = b"", []
    for i, (magic, codec) in enumerate(
        [(2, "none"), (MAGIC, "none"), (1, "gzip"), (MAGIC, "zstd"), (0, "none"), (MAGIC, "gzip")]
    ):
        table = rows(i * ROWS, magic)
        expected += table.to_pylist()
        if magic == MAGIC:
            data += build(table.to_pylist(), codec)
        else:
            data += b"".join(encode(table, magic=magic, codec=codec, batch_bytes=3000))
    path.write_bytes(data)
    times = [row.get("timestamp", NO_TIME) for row in expected]
    values = [row["value"] for row in expected]
    headers = [row.get("headers", []) for row in expected]
    for engine in ENGINES:
        found = read_table(path, ALL, engine=engine)
        assert found.column("headers").to_pylist() == headers
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
        assert {json.loads(line)["severity"] for line in lines} == {"note"}
    dumped = [json.loads(line) for line in said("dump", logs, "--format", "jsonl").splitlines()]
    assert [row["offset"] for row in dumped] == list(range(6 * ROWS))
    assert said("dump", logs, "--batches").count(f"magic: {MAGIC} ") == 3
    said("export", logs, "--format", "parquet", "--out", str(directory / "export"))
    (exported,) = (directory / "export").rglob("*.parquet")
    assert pq.read_table(exported).column("timestamp").to_pylist() == times
    for kind, options in {"kept": [], "gzip": ["--codec", "gzip"]}.items():
        said("convert", logs, *options, "--out", str(directory / kind))
        kept = read_table(directory / kind / path.parent.name, ["timestamp", "value", "headers"])
        assert kept.column("headers").to_pylist() == headers
        assert kept.column("timestamp").to_pylist() == times
        assert kept.column("value").to_pylist() == values
    assert "[--magic {2}]" in said("convert", "--help")
    said("convert", logs, "--magic", str(MAGIC), "--out", str(directory / "new"), code=2)
    for batch in SegmentReader(path, policy="strict"):
        if batch.magic == MAGIC:
            dump = said("hexdump", str(path), "--byte", str(batch.position))
            assert all(one in dump for one in shown)
    return path, data


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


def dictionary_batch(table: list[dict[str, Any]], codec: str) -> bytes:
    """Return a batch with the rows of a table, and each name of their headers once."""
    first = table[0]
    names = sorted({header["key"] for row in table for header in row["headers"]})
    records = [
        {
            "offset": row["offset"],
            "timestamp": milliseconds(row),
            "key": row["key"],
            "value": row["value"],
            "headers": [
                {"name_index": names.index(header["key"]), "value": header["value"]}
                for header in row["headers"]
            ],
        }
        for row in table
    ]
    built: bytes = LOG_ENTRY.cases[MAGIC].build(
        {
            "base_offset": first["offset"],
            "base_timestamp": milliseconds(first),
            "attributes": {"compression": codec},
            "header_names": names,
            "records": records,
        }
    )
    return built


def damaged(path: Path, data: bytes, change: Callable[[bytearray], None]) -> None:
    """Change the first batch of the version: both engines refuse it alike, and a check finds it."""
    third = [b for b in SegmentReader(path) if b.magic == MAGIC]
    at, size = third[0].position, third[0].size
    layout = LOG_ENTRY.cases[MAGIC]
    batch = bytearray(data[at : at + size])
    change(batch)
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


BATCHES = {"flagged": flagged, "columnar": columnar, "dictionary": dictionary}
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
