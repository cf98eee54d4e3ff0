"""How fast Arrow becomes segments, beside peers and limits, in one process.

    python -m benchmarks.encode [--mib 16] [--rounds 7] [--output benchmarks/results/encode.md]

The candidates take turns, round by round; the table has medians of the CPU time of the thread. ``encode`` starts from a
table of Arrow with all default columns, and each piece is dropped when the next one comes; the others start from Python
tuples that were made beforehand, and make the same batches; aiokafka from the table as well. kafka-python and Construct
write a small part. memcpy copies the bytes of the segment within memory that was touched before; crc32c takes the checksum
of every batch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder as AiokafkaLegacy
from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatchBuilder as PythonBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder as PythonLegacy

from benchmarks import measure, shapes
from benchmarks.measure import Candidate, Report, ratio
from codecgen.runtime.arrow.output_buffers import arrow_type
from kafka_codecs import LOG_ENTRY, RECORD_BATCH
from kafka_codecs.arrow.records import RECORDS
from kafka_log import encode

NOW = 1_700_000_000_000
NOTES = """
ns for one record: *encode* from a table of Arrow, *aiokafka*'s (Cython) and *kafka-python*'s builders and *Construct* from Python
tuples that were made before; *table →* is aiokafka's builder from the table that *encode* starts from. The last columns say
which part of the rate of a limit is reached: of a memcpy of the segment into memory that was touched before, and of the
checksums of its batches.
""".strip()
SMALL = 4000
"""Rows that the slow ones write."""

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def rows_of(name: str, total: int) -> list[Row]:
    """About ``total`` bytes of rows: the time, the key, the value, the headers."""
    r = random.Random(1)
    rows: list[Row] = []
    done = 0
    while done < total:
        key, value, headers = shapes.shape(name, r)
        named = [(key.decode(), content) for key, content in headers]
        rows.append((NOW + len(rows), key, value, named))
        done += 10 + len(key or b"") + len(value or b"")
        done += sum(2 + len(key) + len(content or b"") for key, content in headers)
    return rows


def table_of(rows: list[Row]) -> pa.Table:
    columns: dict[str, Any] = {
        "offset": range(len(rows)),
        "timestamp": [row[0] for row in rows],
        "timestamp_type": [0] * len(rows),
        "key": [row[1] for row in rows],
        "value": [row[2] for row in rows],
        "headers": [[{"key": key, "value": value} for key, value in row[3]] for row in rows],
    }
    kinds = {name: arrow_type(RECORDS.column(name)) for name in columns}
    return pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()})


def peer(
    builder: Callable[[], Any], rows: Callable[[], Iterable[Row]]
) -> Callable[[], list[bytes]]:
    """What a client's builder makes."""

    def run() -> list[bytes]:
        out = []
        made = builder()
        n = 0
        for stamp, key, value, headers in rows():
            if made.append(n, stamp, key, value, headers) is None:
                out.append(made.build())
                made = builder()
                n = 0
                made.append(n, stamp, key, value, headers)
            n += 1
        out.append(made.build())
        return out

    return run


def rows_in(table: pa.Table) -> Iterator[Row]:
    """The rows of a table as Python objects, some thousand at a time."""
    for batch in table.to_batches(max_chunksize=8192):
        stamps = batch.column("timestamp").cast(pa.int64())
        columns = (stamps, batch.column("key"), batch.column("value"), batch.column("headers"))
        for stamp, key, value, headers in zip(*(c.to_pylist() for c in columns), strict=True):
            yield stamp, key, value, [(h["key"], h["value"]) for h in headers]


def without_headers(make: Callable[[], Any]) -> Callable[[], Any]:
    """A builder of messages, which takes no headers."""

    class Builder:
        def __init__(self) -> None:
            made = make()
            self.build = made.build
            self.append = lambda n, stamp, key, value, headers: made.append(n, stamp, key, value)

    return Builder


def peers(magic: int, codec: str, size: int) -> dict[str, Callable[[], Any]]:
    number = shapes.CODECS[codec]
    if magic < 2:
        return {
            "aiokafka": without_headers(lambda: AiokafkaLegacy(magic, number, size)),
            "kafka-python": without_headers(lambda: PythonLegacy(magic, number, size)),
        }
    return {
        "aiokafka": lambda: AiokafkaBuilder(2, number, 0, -1, -1, -1, size),
        "kafka-python": lambda: PythonBuilder(2, number, False, -1, -1, -1, size),
    }


def construct(rows: list[Row], codec: str) -> Candidate:
    value = {
        "attributes": {"compression": codec},
        "base_timestamp": NOW,
        "max_timestamp": rows[-1][0],
        "records": [
            {
                "offset_delta": i,
                "timestamp_delta": i,
                "key": key,
                "value": content,
                "headers": [{"key": k, "value": v} for k, v in headers],
            }
            for i, (_, key, content, headers) in enumerate(rows)
        ],
    }
    return lambda: RECORD_BATCH.build(value)


def check(data: bytes, rows: list[Row], magic: int) -> None:
    """The first entry has the first rows."""
    entry = LOG_ENTRY.parse(data[: 12 + int.from_bytes(data[8:12], "big")])
    if magic < 2:
        first = entry if entry.value is not None else entry.messages[0]
        assert (first.key, first.value) == (rows[0][1], rows[0][2])
        return
    for record, row in zip(entry.records, rows, strict=False):
        assert (record.key, record.value) == (row[1], row[2])
        assert [(h.key, h.value) for h in record.headers] == row[3]


def line(
    report: Report,
    title: str,
    name: str,
    size: int,
    options: Any,
    codec: str = "none",
    magic: int = 2,
) -> None:
    rows = rows_of(name, options.mib << 20)
    table = table_of(rows)

    def run() -> int:
        pieces = encode(table, magic=magic, codec=codec, batch_bytes=size)
        return sum(len(piece) for piece in pieces)

    data = b"".join(encode(table, magic=magic, codec=codec, batch_bytes=size))
    check(data, rows, magic)
    source = np.frombuffer(data, np.uint8)
    touched = np.zeros(len(data), np.uint8)
    view = memoryview(data)
    made = peers(magic, codec, size)
    part, some = rows[:SMALL], table.slice(0, 8 * SMALL)
    candidates: dict[str, Candidate] = {
        "encode": run,
        "aiokafka": peer(made["aiokafka"], lambda: rows),
        "aiokafka table": peer(made["aiokafka"], lambda: rows_in(some)),
        "kafka-python": peer(made["kafka-python"], lambda: part),
        "memcpy": lambda: np.copyto(touched, source),
        "crc32c": lambda: [crc32c(view[at : at + size]) for at in range(0, len(data), size)],
    }
    counts = dict.fromkeys(candidates, len(rows)) | {"kafka-python": len(part)}
    counts["aiokafka table"] = some.num_rows
    if magic == 2:
        few = rows[:500]
        candidates["construct"] = construct(few, codec)
        counts["construct"] = len(few)
    found = measure.rounds(candidates, options.rounds)
    ns = {candidate: found[candidate].median / counts[candidate] * 1e9 for candidate in counts}
    own = ns["encode"]
    report.row(
        title,
        f"{len(data) / len(rows):.0f}",
        f"{own:.1f}",
        f"{1e3 / own:.1f}",
        f"{ns['aiokafka']:.0f}",
        ratio(ns["aiokafka"], own),
        ratio(ns["aiokafka table"], own),
        ratio(ns["kafka-python"], own),
        ratio(ns["construct"], own) if "construct" in ns else "",
        f"{ns['memcpy'] / own:.2f}",
        f"{ns['crc32c'] / own:.2f}",
    )


def main() -> None:
    options = measure.parser(__doc__, rounds=7, mib=16).parse_args()
    report = Report("Encoding from Arrow", measure.command("benchmarks.encode", options))
    report.add(NOTES)
    report.table(
        "records",
        "bytes",
        "ns",
        "million/s",
        "aiokafka, ns",
        "x aiokafka",
        "table →",
        "x kafka-python",
        "x Construct",
        "of memcpy",
        "of CRC-32C",
    )
    for name, title in shapes.NAMES.items():
        for size in (16 << 10, 1 << 20):
            line(report, f"{title}, {size >> 10} KiB", name, size, options)
    title = shapes.NAMES["A"]
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        for size in (16 << 10, 1 << 20):
            line(report, f"{title}, {codec}, {size >> 10} KiB", "A", size, options, codec)
    line(report, f"{title}, version 1", "A", 16 << 10, options, magic=1)
    line(report, f"{title}, version 1, lz4, 16 KiB wrappers", "A", 16 << 10, options, "lz4", 1)
    report.write(options.output)


if __name__ == "__main__":
    main()
