"""How fast ``ls``, ``txn``, ``producers``, ``stat`` and ``check`` are, beside a scan of all columns and a read of the bytes.

    python -m benchmarks.verbs [--mib 256] [--partitions 2000] [--rounds 5] [--output benchmarks/results/verbs.md]

One segment of ``--mib`` MiB for each codec, and a broker's directory with ``--partitions`` partitions of three small segments
each, with indexes and checkpoints. All of it is in the page cache.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import files, measure, shapes
from benchmarks.measure import Report, ratio
from kafka_log import LogDirectory, scan, scan_batches

NOTES = """
Seconds of CPU time of the process, medians. *bytes* reads the segments with a buffer of 1 MiB, *scan* is `kafka_log.scan` of
all columns, *headers* is `kafka_log.scan_batches`, *txn* and *producers* read batch headers too; *stat* and *check* verify the checksums of all batches, *--deep* decodes all
records. The last column is the rate of *check* beside that of *scan*.
""".strip()

SEGMENTS = 3


def read(path: Path) -> int:
    """All bytes of the segments, as ``cat`` reads them."""
    total, buffer = 0, bytearray(1 << 20)
    for segment in sorted(path.rglob("*.log")):
        with segment.open("rb", buffering=0) as file:
            while n := file.readinto(buffer):
                total += n
    return total


CANDIDATES: dict[str, Callable[[Path], object]] = {
    "bytes": read,
    "scan": lambda path: sum(batch.num_rows for batch in scan(path)),
    "headers": lambda path: sum(batch.num_rows for batch in scan_batches(path)),
    "ls": lambda path: LogDirectory(path).ls(segments=True),
    "txn": lambda path: LogDirectory(path).txn(),
    "producers": lambda path: LogDirectory(path).producers(),
    "stat": lambda path: LogDirectory(path).stat(),
    "stat --deep": lambda path: LogDirectory(path).stat(deep=True),
    "check": lambda path: LogDirectory(path).check(),
    "check --deep": lambda path: LogDirectory(path).check(deep=True),
}


def broker(root: Path, partitions: int) -> Path:
    """A log directory with many small partitions."""
    root.mkdir()
    (root / "meta.properties").write_text("version=1\ncluster.id=a\nnode.id=1\n", encoding="utf-8")
    r = random.Random(1)
    records = [shapes.record(i, shapes.shape("A", r)) for i in range(10)]
    segments = []
    for i in range(SEGMENTS):
        bases = (20 * i, 20 * i + 10)
        segments.append((bases[0], b"".join(shapes.batch(base, records, "lz4") for base in bases)))
    for number in range(partitions):
        directory = root / f"topic{number // 20:05d}-{number % 20}"
        directory.mkdir()
        for base, data in segments:
            (directory / f"{base:020d}.log").write_bytes(data)
            for suffix in ("index", "timeindex"):
                (directory / f"{base:020d}.{suffix}").touch()
        (directory / "leader-epoch-checkpoint").write_text("0\n0\n", encoding="utf-8")
    return root


def main() -> None:
    parser = measure.parser(__doc__, rounds=5, mib=256)
    parser.add_argument("--partitions", type=int, default=2000, help="of the directory (2000)")
    options = parser.parse_args()
    report = Report("Verbs", measure.command("benchmarks.verbs", options))
    report.add(NOTES)
    report.table("directory", *CANDIDATES, "check / scan")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for codec, size in (("none", 16 << 10), ("lz4", 64 << 10), ("zstd", 16 << 10)):
            directory = root / f"{codec}-0"
            directory.mkdir()
            data = shapes.segment("A", size, min(options.mib, 16) << 20, codec)
            files.repeated(directory / f"{0:020d}.log", data, options.mib << 20)
            title = f"one segment of {options.mib} MiB, {codec} in batches of {size >> 10} KiB"
            line(report, title, directory, options.rounds)
        many = broker(root / "many", options.partitions)
        title = f"{options.partitions:,} partitions of {SEGMENTS} small segments, lz4"
        line(report, title, many, options.rounds)
    report.write(options.output)


def line(report: Report, title: str, path: Path, rounds: int) -> None:
    found: dict[str, list[float]] = {name: [] for name in CANDIDATES}
    for turn in range(rounds + 1):
        for name, candidate in CANDIDATES.items():
            start = time.process_time()
            candidate(path)
            if turn or rounds == 1:  # the first one loads kernels
                found[name].append(time.process_time() - start)
    medians = {name: statistics.median(seconds) for name, seconds in found.items()}
    cells = (f"{seconds:.3f}" for seconds in medians.values())
    report.row(title, *cells, ratio(medians["scan"], medians["check"]))


if __name__ == "__main__":
    main()
