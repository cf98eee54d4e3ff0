"""How much memory the commands take, of directories of very different sizes.

    python -m benchmarks.memory [--mib 128 1024 10240] [--output benchmarks/results/memory.md]

Needs room on the disk for a partition (2 GiB at the most), and once for the largest directory: what ``salvage`` writes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import shapes
from benchmarks.files import repeated
from benchmarks.measure import Report

MIB = 1 << 20
SEGMENT = 128 * MIB
OF_PARTITION = 16
"""Segments that a partition has at the most: more of them are more partitions, of the same files."""
BLOCK = 4 * MIB
BATCH_BYTES = 64 << 10

RUN = """
import sys
from pathlib import Path

if sys.argv[1] == "scan":
    import kafka_log

    count = sum(batch.num_rows for batch in kafka_log.scan(sys.argv[2]))
else:
    from kafka_log.cli import main

    code = main(sys.argv[1:])
    assert code < 2, code
sys.stdout.flush()
status = Path("/proc/self/status").read_text()
print(next(line for line in status.splitlines() if line.startswith("VmHWM")), file=sys.stderr)
"""
VERBS: Mapping[str, Sequence[str]] = {
    "stat": ("stat", "{path}"),
    "stat --deep": ("stat", "--deep", "{path}"),
    "check": ("check", "{path}"),
    "dump --format jsonl": ("dump", "--format", "jsonl", "{path}"),
    "dump --batches": ("dump", "--batches", "{path}"),
    "export": ("export", "{path}", "--out", "{out}"),
    "scan": ("scan", "{path}"),
    "salvage": ("salvage", "{path}", "--out", "{out}"),
    "keys": ("keys", "{path}"),
}

NOTES = f"""
The peak of resident memory (VmHWM) in MiB, and the seconds of the clock, of processes that each run one command over a directory, its output thrown away;
`scan` is the function in Python, whose batches are counted. A segment has {SEGMENT // MIB} MiB of 16-byte keys and 1 KiB values in batches of
{BATCH_BYTES >> 10} KiB, the same batches at offsets that rise; a partition has up to {OF_PARTITION} segments. What a process takes before
it reads anything, Python, NumPy, Arrow and compiled kernels, is some 150 MiB of it; `dump --batches` loads them for many batches only.
Linux only.
""".strip()
ON_KEYS = """
`keys` remembers the newest record of each key that differs, in one partition at a time: 24 bytes a key, and up to six times that while
records are merged in. Here keys come again and again, so that it takes no more for more records; of keys that all differ it takes:
""".strip()


@dataclass(frozen=True)
class Peak:
    """Bytes of memory, and seconds of the clock."""

    memory: int
    seconds: float


def directory(root: Path, segments: Sequence[Path], count: int) -> Path:
    """A directory with ``count`` segments: hard links."""
    for i in range(count):
        source = segments[i % OF_PARTITION]
        partition = root / f"orders-{i // OF_PARTITION}"
        partition.mkdir(parents=True, exist_ok=True)
        os.link(source, partition / source.name)
    return root


def written(folder: Path, count: int, size: int) -> list[Path]:
    """Segments of a partition, named by their first offsets."""
    data = shapes.segment("C", BATCH_BYTES, BLOCK, "none")
    folder.mkdir()
    offset, paths = 0, []
    for _ in range(count):
        paths.append(folder / f"{offset:020d}.log")
        offset = repeated(paths[-1], data, size, offset)
    return paths


def peak(arguments: Sequence[str], path: Path) -> Peak:
    """What a command takes. Raises CalledProcessError when it fails."""
    out = path.parent / "out"
    given = [text.format(path=path, out=out) for text in arguments]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, "-c", RUN, *given],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
    finally:
        shutil.rmtree(out, ignore_errors=True)
    taken = time.perf_counter() - start
    return Peak(int(done.stderr.splitlines()[-1].split()[1]) << 10, taken)


def distinct(path: Path, count: int) -> Path:
    """A directory of one segment whose records all have other keys."""
    import pyarrow as pa

    from kafka_log.write.encoding import encode

    partition = path / "orders-0"
    partition.mkdir(parents=True)
    with (partition / f"{0:020d}.log").open("wb") as file:
        for first in range(0, count, 100_000):
            numbers = range(first, min(first + 100_000, count))
            none = pa.array([b""] * len(numbers), pa.binary())
            times = pa.array([1_700_000_000_000] * len(numbers), pa.timestamp("ms", "UTC"))
            keys = pa.array([b"%016d" % n for n in numbers], pa.binary())
            columns = {"offset": pa.array(numbers, pa.int64()), "timestamp": times}
            table = pa.table(columns | {"key": keys, "value": none})
            file.writelines(encode(table, codec="none", batch_bytes=BATCH_BYTES))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mib", type=int, nargs="+", default=[128, 1024, 10240])
    parser.add_argument("--keys", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--output", type=Path, help="write the page here too")
    options = parser.parse_args()
    sizes = " ".join(map(str, options.mib))
    keys = " ".join(map(str, options.keys))
    report = Report("Memory", f"python -m benchmarks.memory --mib {sizes} --keys {keys}")
    report.add(NOTES)
    report.table("", *(f"{mib:,} MiB" for mib in options.mib), "largest / smallest", "seconds")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counts = [max(1, mib * MIB // SEGMENT) for mib in options.mib]
        size = min(SEGMENT, min(options.mib) * MIB)
        segments = written(folder / "segments", min(max(counts), OF_PARTITION), size)
        paths = [directory(folder / f"{n}" / "logs", segments, n) for n in counts]
        for verb, arguments in VERBS.items():
            found = [peak(arguments, path) for path in paths]
            cells = [f"{one.memory / MIB:.0f}" for one in found]
            growth = f"{found[-1].memory / found[0].memory:.2f}"
            report.row(
                f"`{verb}`", *cells, growth, " / ".join(f"{one.seconds:.1f}" for one in found)
            )
        report.add("", ON_KEYS)
        report.table("keys", "MiB", "seconds")
        for count in options.keys:
            one = peak(VERBS["keys"], distinct(folder / f"keys-{count}" / "logs", count))
            report.row(f"{count:,}", f"{one.memory / MIB:.0f}", f"{one.seconds:.1f}")
    report.write(options.output)


if __name__ == "__main__":
    main()
