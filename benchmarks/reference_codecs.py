"""How fast the Construct codecs parse and build record batches, beside their peers, in one process.

    python -m benchmarks.reference_codecs [--records 20000] [--rounds 7] [--output benchmarks/results/reference_codecs.md]

The candidates take turns; the table has medians. Peers: the same layout written with Construct's own classes (which check
no lengths against the bytes), kafka-python and aiokafka (which build no records, but objects), and the checksum alone.
"""

from __future__ import annotations

import argparse
import os
import platform
from pathlib import Path

import construct as c
import crc32c
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from kafka.record.default_records import DefaultRecordBatch as PythonBatch

from benchmarks.measure import rounds, write_result_page
from kafka_codecs import RECORD_BATCH

PLAIN_RECORD = c.Struct(
    "length" / c.ZigZag,
    "attributes" / c.Int8sb,
    "timestamp_delta" / c.ZigZag,
    "offset_delta" / c.ZigZag,
    "key" / c.Prefixed(c.ZigZag, c.GreedyBytes),
    "value" / c.Prefixed(c.ZigZag, c.GreedyBytes),
    "headers" / c.PrefixedArray(c.ZigZag, c.Pass),
)
PLAIN_BATCH = c.Struct(
    "base_offset" / c.Int64sb,
    "batch_length" / c.Int32sb,
    "partition_leader_epoch" / c.Int32sb,
    "magic" / c.Int8sb,
    "crc" / c.Int32ub,
    "attributes" / c.Int16sb,
    "last_offset_delta" / c.Int32sb,
    "base_timestamp" / c.Int64sb,
    "max_timestamp" / c.Int64sb,
    "producer_id" / c.Int64sb,
    "producer_epoch" / c.Int16sb,
    "base_sequence" / c.Int32sb,
    "records" / c.PrefixedArray(c.Int32sb, PLAIN_RECORD),
)


def batch(records: int) -> dict[str, object]:
    """Keys of 16 bytes, values of 100, no headers."""
    return {
        "records": [
            {"offset_delta": i, "timestamp_delta": i, "key": b"k" * 16, "value": b"v" * 100}
            for i in range(records)
        ]
    }


def iterate(reader: type, data: bytes) -> None:
    one = reader(bytearray(data))
    assert one.validate_crc()
    for record in one:
        record.key, record.value  # noqa: B018 - aiokafka and kafka-python make them when asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    values = batch(options.records)
    data = RECORD_BATCH.build(values)
    measured = rounds(
        {
            "ours, parse": lambda: RECORD_BATCH.parse(data),
            "Construct's own classes, parse": lambda: PLAIN_BATCH.parse(data),
            "kafka-python, iterate": lambda: iterate(PythonBatch, data),
            "aiokafka (Cython), iterate": lambda: iterate(AioBatch, data),
            "CRC-32C alone": lambda: crc32c.crc32c(data),
            "ours, build": lambda: RECORD_BATCH.build(values),
        },
        options.rounds,
    )
    found = {name: taken.median for name, taken in measured.items()}
    base = found["ours, parse"]
    lines = [
        f"{options.records} records, {len(data)} bytes, one core; {platform.machine()}, {os.cpu_count()} CPUs, "
        f"Python {platform.python_version()}; medians of {options.rounds} rounds, in which the candidates take turns.",
        "",
        f"    python -m benchmarks.reference_codecs --records {options.records} --rounds {options.rounds}",
        "",
        "| what | records/s | x ours, parse |",
        "| --- | --: | --: |",
    ]
    for name, seconds in found.items():
        lines.append(f"| {name} | {options.records / seconds:,.0f} | {base / seconds:.2f} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if options.output:
        write_result_page(options.output, "# The reference codecs and their peers\n\n" + text)


if __name__ == "__main__":
    main()
