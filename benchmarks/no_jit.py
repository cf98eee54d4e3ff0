"""How fast segments become Arrow tables where there is no compiler, beside peers, in one process.

    python benchmarks/no_jit.py [--mib 16] [--rounds 9] [--output benchmarks/results/no_jit.md]

numba is blocked. The candidates take turns, round by round; the table has medians of the CPU time of the thread.
``numpy`` is what the scan uses then: it decodes from memory, all default columns, checksums verified, into fresh Arrow
buffers that are kept to the end of the round. The others verify checksums and iterate, and build no table: aiokafka reads
all, kafka-python and Construct a part of the same bytes.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from kafka.record import MemoryRecords

from benchmarks import shapes
from benchmarks.decode import Candidate, aiokafka, kernels, measured
from codecgen.runtime.arrow.decoder import load_kernels
from kafka_codecs import MESSAGE_V1, RECORD_BATCH
from kafka_codecs.arrow.records import RECORDS

PART = 1 << 20
"""Bytes that kafka-python reads; Construct reads a tenth of them."""


def front(data: bytes, size: int) -> list[bytes]:
    """The first whole entries, about so many bytes of them; one in any case."""
    out = []
    at = 0
    while at < min(size, len(data)):
        end = at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        out.append(data[at:end])
        at = end
    return out


def kafka_python(data: bytes) -> tuple[Candidate, int]:
    """Iteration over the first part, and how many records that has."""
    part = b"".join(front(data, PART))

    def run() -> int:
        count = 0
        records = MemoryRecords(part)
        while (batch := records.next_batch()) is not None:
            assert batch.validate_crc()
            for _ in batch:
                count += 1
        return count

    return run, run()


def construct(data: bytes) -> tuple[Candidate, int]:
    """The first entries by the reference codecs, and how many records they have."""
    parts = front(data, PART // 10)
    layout = RECORD_BATCH if data[16] == 2 else MESSAGE_V1

    def run() -> list[object]:
        return [layout.parse(part) for part in parts]

    count = len(parts)
    if data[16] == 2:
        count = sum(len(RECORD_BATCH.parse(part).records) for part in parts)
    return run, count


def line(title: str, data: bytes, rounds: int) -> str:
    own = kernels(data)
    assert load_kernels(RECORDS).__name__.endswith("_vectors")
    count = sum(batch.num_rows for batch in own())  # type: ignore[attr-defined]
    candidates = {"numpy": own, "aiokafka": aiokafka(data)}
    counts = {"numpy": count, "aiokafka": count}
    assert candidates["aiokafka"]() == count
    candidates["kafka-python"], counts["kafka-python"] = kafka_python(data)
    candidates["construct"], counts["construct"] = construct(data)
    found = measured(candidates, rounds)
    ns = {name: taken / counts[name] * 1e9 for name, taken in found.items()}
    cells = [
        title,
        f"{len(data) / count:.0f}",
        f"{ns['numpy']:.0f}",
        f"{1e3 / ns['numpy']:.2f}",
        f"{len(data) / count / ns['numpy'] * 1e3:.0f}",
        f"{ns['aiokafka'] / ns['numpy']:.2f}",
        f"{ns['kafka-python'] / ns['numpy']:.0f}",
        f"{ns['construct'] / ns['numpy']:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=16, help="MiB of each segment")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    sys.modules["numba"] = None  # type: ignore[assignment]  # nothing has imported it yet
    total = options.mib << 20
    lines = [
        "# Decoding into Arrow without a compiler",
        "",
        f"`python benchmarks/no_jit.py --mib {options.mib} --rounds {options.rounds}` on {platform.machine()}, "
        f"{os.cpu_count()} CPUs, Python {platform.python_version()}, pyarrow {pa.__version__}, NumPy {np.__version__}. "
        "Medians of CPU time, without numba.",
        "",
        "| records | bytes each | ns each | million/s | MB/s | x aiokafka | x kafka-python | x Construct |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, title in shapes.NAMES.items():
        for size in (16 << 10, 1 << 20):
            data = shapes.segment(name, size, total)
            lines.append(line(f"{title}, {size >> 10} KiB batches", data, options.rounds))
            print(lines[-1], flush=True)
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        data = shapes.segment("A", 16 << 10, total, codec)
        lines.append(line(f"{shapes.NAMES['A']}, {codec}, 16 KiB batches", data, options.rounds))
        print(lines[-1], flush=True)
    title = f"{shapes.NAMES['A']}, version 1"
    lines.append(line(title, shapes.messages("A", total), options.rounds))
    print(lines[-1], flush=True)
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
