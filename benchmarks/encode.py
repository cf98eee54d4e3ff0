"""How fast Arrow becomes segments, beside peers and limits, in one process.

    python benchmarks/encode.py [--mib 16] [--rounds 9] [--output benchmarks/results/encode.md]

The candidates take turns, round by round; the table has medians of the CPU time of the thread. ``encode`` starts from a
table of Arrow with all default columns, and each piece is dropped when the next one comes; the others start from Python
tuples that were made beforehand, and make the same batches. kafka-python and Construct write a small part. memcpy copies
the bytes of the segment within memory that was touched before; crc32c takes the checksum of every batch.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder as AiokafkaLegacy
from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatchBuilder as PythonBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder as PythonLegacy

from benchmarks import shapes
from codecgen.runtime.arrow.buffers import arrow_type
from kafka_codecs import LOG_ENTRY, RECORD_BATCH
from kafka_codecs.arrow.records import RECORDS
from kafka_log import encode

NOW = 1_700_000_000_000
SMALL = 4000
"""Rows that the slow ones write."""

Candidate = Callable[[], object]
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


def peer(builder: Callable[[], Any], rows: list[Row]) -> Callable[[], list[bytes]]:
    """What a client's builder makes."""

    def run() -> list[bytes]:
        out = []
        made = builder()
        n = 0
        for stamp, key, value, headers in rows:
            if made.append(n, stamp, key, value, headers) is None:
                out.append(made.build())
                made = builder()
                n = 0
                made.append(n, stamp, key, value, headers)
            n += 1
        out.append(made.build())
        return out

    return run


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


def measured(candidates: dict[str, Candidate], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for candidate in candidates.values():
        candidate()
    gc.disable()
    for _ in range(rounds):
        for name, candidate in candidates.items():
            start = time.thread_time()
            result = candidate()
            times[name].append(time.thread_time() - start)
            del result
    gc.enable()
    return {name: statistics.median(found) for name, found in times.items()}


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
    title: str, name: str, size: int, total: int, rounds: int, codec: str = "none", magic: int = 2
) -> str:
    rows = rows_of(name, total)
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
    part = rows[:SMALL]
    candidates: dict[str, Candidate] = {
        "encode": run,
        "aiokafka": peer(made["aiokafka"], rows),
        "kafka-python": peer(made["kafka-python"], part),
        "memcpy": lambda: np.copyto(touched, source),
        "crc32c": lambda: [crc32c(view[at : at + size]) for at in range(0, len(data), size)],
    }
    counts = dict.fromkeys(candidates, len(rows)) | {"kafka-python": len(part)}
    if magic == 2:
        few = rows[:500]
        candidates["construct"] = construct(few, codec)
        counts["construct"] = len(few)
    found = measured(candidates, rounds)
    ns = {candidate: taken / counts[candidate] * 1e9 for candidate, taken in found.items()}
    own = ns["encode"]
    cells = [
        title,
        f"{len(data) / len(rows):.0f}",
        f"{own:.1f}",
        f"{1e3 / own:.1f}",
        f"{ns['aiokafka']:.0f}",
        f"{ns['aiokafka'] / own:.1f}",
        f"{ns['kafka-python'] / own:.0f}",
        f"{ns['construct'] / own:.0f}" if "construct" in ns else "",
        f"{ns['memcpy'] / own:.2f}",
        f"{ns['crc32c'] / own:.2f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=16, help="MiB of each segment, uncompressed")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    total, rounds = options.mib << 20, options.rounds
    lines = [
        "# Encoding from Arrow",
        "",
        f"`python benchmarks/encode.py --mib {options.mib} --rounds {rounds}` on {platform.machine()}, "
        f"{os.cpu_count()} CPUs, Python {platform.python_version()}, pyarrow {pa.__version__}. Medians of CPU time.",
        "",
        "| records | bytes each | ns each | million/s | aiokafka, ns each | x aiokafka | x kafka-python | x Construct "
        "| of memcpy's rate | of CRC-32C's rate |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]

    def add(text: str) -> None:
        lines.append(text)
        print(text, flush=True)

    for name, title in shapes.NAMES.items():
        for size in (16 << 10, 1 << 20):
            add(line(f"{title}, {size >> 10} KiB batches", name, size, total, rounds))
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        for size in (16 << 10, 1 << 20):
            title = f"{shapes.NAMES['A']}, {codec}, {size >> 10} KiB batches"
            add(line(title, "A", size, total, rounds, codec))
    title = shapes.NAMES["A"]
    add(line(f"{title}, version 1", "A", 16 << 10, total, rounds, magic=1))
    add(line(f"{title}, version 1, lz4, 16 KiB wrappers", "A", 16 << 10, total, rounds, "lz4", 1))
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
