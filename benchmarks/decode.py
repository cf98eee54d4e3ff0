"""How fast segments become Arrow tables, beside peers and limits, in one process.

    python benchmarks/decode.py [--mib 16] [--rounds 9] [--output benchmarks/results/decode.md]

The candidates take turns, round by round; the table has medians of the CPU time of the thread. ``kernels`` decode from
memory, all default columns, checksums verified, into fresh Arrow buffers that are kept to the end of the round. aiokafka
verifies checksums and iterates, and builds no table; Construct reads a small part. memcpy copies the bytes of the
segment into fresh memory, chunk by chunk.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from aiokafka.record._crecords import MemoryRecords
from crc32c import crc32c

from benchmarks import shapes
from codecgen.runtime.arrow.decoder import Chunk, Decoder, Rows, choose
from kafka_codecs import RECORD_BATCH
from kafka_codecs.arrow.records import RECORDS

STEP = 8 << 20

Candidate = Callable[[], object]


def kernels(data: bytes) -> Candidate:
    decoder = Decoder(RECORDS, choose(RECORDS, None))
    whole = np.zeros(len(data) + 64, np.uint8)
    whole[: len(data)] = np.frombuffer(data, np.uint8)
    chunk = Chunk(0)

    def run() -> list[pa.RecordBatch]:
        kept = []
        at = 0
        while at < len(data):
            chunk.size = min(STEP, len(data) - at)
            chunk.array = whole[at : at + chunk.size + 64]
            for item in decoder.decode(chunk, at):
                assert isinstance(item, Rows), item
                kept.append(item.batch)
                at = item.end
        return kept

    return run


def aiokafka(data: bytes) -> Candidate:
    def run() -> int:
        count = 0
        records = MemoryRecords(data)
        while (batch := records.next_batch()) is not None:
            assert batch.validate_crc()
            for _ in batch:
                count += 1
        return count

    return run


def memcpy(data: bytes) -> Candidate:
    source = np.frombuffer(data, np.uint8)

    def run() -> list[object]:
        kept: list[object] = []
        for at in range(0, len(data), STEP):
            part = source[at : at + STEP]
            buffer = pa.allocate_buffer(len(part))
            np.frombuffer(buffer, np.uint8)[:] = part
            kept.append(buffer)
        return kept

    return run


def checksum(data: bytes) -> Candidate:
    view = memoryview(data)
    return lambda: [crc32c(view[at : at + 16384]) for at in range(0, len(data), 16384)]


def construct(data: bytes) -> tuple[Candidate, int]:
    """The first batch alone, and how many records it has."""
    size = 12 + int.from_bytes(data[8:12], "big")
    first = data[:size]
    return lambda: RECORD_BATCH.parse(first), len(RECORD_BATCH.parse(first).records)


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


def line(title: str, data: bytes, rounds: int) -> str:
    candidates = {
        "kernels": kernels(data),
        "aiokafka": aiokafka(data),
        "memcpy": memcpy(data),
        "crc32c": checksum(data),
    }
    count = candidates["aiokafka"]()
    assert isinstance(count, int)
    assert sum(batch.num_rows for batch in candidates["kernels"]()) == count  # type: ignore[attr-defined]
    slow = 0.0
    if data[16] == 2:
        candidates["construct"], per = construct(data)
    found = measured(candidates, rounds)
    if "construct" in found:
        slow = found["construct"] / per
    ns = {name: taken / count * 1e9 for name, taken in found.items()}
    own = ns["kernels"]
    cells = [
        title,
        f"{len(data) / count:.0f}",
        f"{own:.1f}",
        f"{1e3 / own:.1f}",
        f"{ns['aiokafka'] / own:.1f}",
        f"{slow * 1e9 / own:.0f}" if slow else "",
        f"{ns['memcpy'] / own:.2f}",
        f"{ns['crc32c'] / own:.2f}",
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
    total = options.mib << 20
    lines = [
        "# Decoding into Arrow",
        "",
        f"`python benchmarks/decode.py --mib {options.mib} --rounds {options.rounds}` on {platform.machine()}, "
        f"{os.cpu_count()} CPUs, Python {platform.python_version()}, pyarrow {pa.__version__}. Medians of CPU time.",
        "",
        "| records | bytes each | ns each | million/s | x aiokafka | x Construct | of memcpy's rate | of CRC-32C's rate |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, title in shapes.NAMES.items():
        for size in (16 << 10, 1 << 20):
            data = shapes.segment(name, size, total)
            lines.append(line(f"{title}, {size >> 10} KiB batches", data, options.rounds))
            print(lines[-1], flush=True)
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        for size in (16 << 10, 1 << 20):
            data = shapes.segment("A", size, total, codec)
            title = f"{shapes.NAMES['A']}, {codec}, {size >> 10} KiB batches"
            lines.append(line(title, data, options.rounds))
            print(lines[-1], flush=True)
    lines.append(
        line(f"{shapes.NAMES['A']}, version 1", shapes.messages("A", total), options.rounds)
    )
    print(lines[-1], flush=True)
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
