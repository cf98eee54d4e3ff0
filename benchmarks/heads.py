"""How fast the heads of batches are read, beside decoding everything, from files in the page cache.

    python benchmarks/heads.py [--mib 256] [--rounds 7] [--output benchmarks/results/heads.md]

The candidates take turns, round by round; the table has medians of the CPU time of the thread. ``decode`` reads all default
columns with checksums verified, ``read`` and ``map`` are ``scan_batches`` without and with ``mmap``. ``copy`` reads all
bytes into memory that is used again, 4 MiB at a time: what the page cache gives.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from benchmarks import shapes
from kafka_log import scan, scan_batches

SIZES = (1 << 10, 16 << 10, 64 << 10, 1 << 20)


def copy(path: Path) -> int:
    memory = memoryview(bytearray(4 << 20))
    with path.open("rb", buffering=0) as file:
        while file.readinto(memory):
            pass
    return 0


def rows(reader: pa.RecordBatchReader) -> int:
    return sum(batch.num_rows for batch in reader)


def measured(path: Path, rounds: int) -> tuple[dict[str, float], int]:
    candidates: dict[str, Callable[[], int]] = {
        "decode": lambda: rows(scan(path)),
        "read": lambda: rows(scan_batches(path)),
        "map": lambda: rows(scan_batches(path, mmap=True)),
        "copy": lambda: copy(path),
    }
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(rounds + 1):
        for name, candidate in candidates.items():
            start = time.thread_time()
            candidate()
            if number:
                times[name].append(time.thread_time() - start)
    return {name: statistics.median(found) for name, found in times.items()}, candidates["read"]()


def line(title: str, path: Path, rounds: int) -> str:
    taken, count = measured(path, rounds)
    size = path.stat().st_size
    cells = [title, f"{size / count / 1024:.1f}", f"{count:,}"]
    cells += [f"{taken[name] * 1e3:.1f}" for name in ("decode", "copy", "read", "map")]
    cells += [f"{taken['decode'] / taken[name]:.1f}" for name in ("read", "map")]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=256, help="MiB of each segment")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    lines = [
        "# Heads of batches",
        "",
        f"`python benchmarks/heads.py --mib {options.mib} --rounds {options.rounds}` on {platform.machine()}, "
        f"{os.cpu_count()} CPUs, Python {platform.python_version()}, pyarrow {pa.__version__}. Medians of CPU time, milliseconds.",
        "",
        "| records | KiB a batch | batches | decode | copy | read | map | read: x decode | map: x decode |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.log"
        for codec in ("none", "lz4"):
            for size in SIZES:
                # A few MiB, again and again: the same bytes do as well.
                part = shapes.segment("A", size, 8 << 20, codec)
                path.write_bytes(part * ((options.mib << 20) // len(part)))
                title = f"{shapes.NAMES['A']}, {codec}, {size >> 10} KiB of records"
                lines.append(line(title, path, options.rounds))
                print(lines[-1], flush=True)
    if options.output is not None:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
