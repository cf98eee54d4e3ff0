"""The whole path from a file in the page cache to Arrow, beside peers that read the same file into a table.

python -m benchmarks.file_to_arrow [--mib 64] [--rounds 5] [--output benchmarks/results/file_to_arrow.md]
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from benchmarks import measure, peers, shapes
from benchmarks.decode import Java
from benchmarks.files import Scanner, written
from benchmarks.measure import Candidate, Report, ratio

NOTES = """
Medians of CPU time, with that of the kernel of the operating system. *table*: all default columns of all records, checksums
verified, in memory that is fresh; *stream*: each batch is dropped before the next. *views* are the same two with
`zero_copy`: keys and values are views of the bytes that were read. *aiokafka* and *kafka-python* read the
file, or its first batches (as a file of their own), into the same table, *Construct* are the reference codecs. *Java* is Apache
Kafka's reader, warmed up, over the segment in memory, by its own clock; it builds no table. *read* reads the file into one buffer of 4 MiB
again and again, *read, kept* into one of its size. Those columns are the time of the peer, or of the limit, by that of
*table* (*read*: by that of *stream*).
""".strip()
PART, SMALL_PART, TINY_PART = 2 << 20, 256 << 10, 32 << 10
CASES = [
    *((shape, size, "none") for shape in shapes.NAMES for size in (16 << 10, 1 << 20)),
    *((shape, 16 << 10, codec) for shape in "AE" for codec in ("gzip", "snappy", "lz4", "zstd")),
    ("A", 0, "none"),
]
"""Shape, bytes of a batch (0: messages of version 1), codec."""


def table(path: Path, *, zero_copy: bool = False) -> Callable[[], pa.Table]:
    return lambda: Scanner(path, engine="arrow", zero_copy=zero_copy).to_reader().read_all()


def stream(path: Path, *, zero_copy: bool = False) -> Candidate:
    return lambda: sum(b.num_rows for b in Scanner(path, engine="arrow", zero_copy=zero_copy))


def read(path: Path) -> Candidate:
    """Into one buffer, piece by piece."""
    buffer = bytearray(4 << 20)

    def run() -> None:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass

    return run


def line(
    report: Report, folder: Path, rounds: int, total: int, case: tuple[str, int, str], java: Java
) -> None:
    shape, size, codec = case
    data = shapes.segment(shape, size, total, codec) if size else shapes.messages(shape, total)
    path = written(folder, "whole", data)
    part = written(folder, "part", peers.part(data, PART))
    small = written(folder, "small", peers.part(data, SMALL_PART))
    tiny = written(folder, "tiny", peers.part(data, TINY_PART))
    candidates: dict[str, Candidate] = {
        "table": table(path),
        "stream": stream(path),
        "table of views": table(path, zero_copy=True),
        "stream of views": stream(path, zero_copy=True),
        "aiokafka": lambda: peers.aiokafka_table(part.read_bytes())(),
        "kafka-python": lambda: peers.kafka_python_table(small.read_bytes())(),
        "construct": lambda: Scanner(tiny, engine="construct").to_reader().read_all(),
        "read": read(path),
        "read, kept": path.read_bytes,
    }
    count = table(path)().num_rows
    counts = {"aiokafka": table(part)().num_rows, "kafka-python": table(small)().num_rows}
    counts["construct"] = table(tiny)().num_rows
    reader = java.candidate(data, f"{shape}{size}{codec}", count)
    if reader is not None:
        candidates["java"] = reader
    found = measure.rounds(candidates, rounds, cold=True)
    ns = {name: m.median / counts.get(name, count) * 1e9 for name, m in found.items()}
    label = "" if codec == "none" else f", {codec}"
    batches = f"{size >> 10} KiB{label}" if size else "version 1"
    report.row(
        f"{shapes.NAMES[shape]}, {batches}",
        f"{ns['table']:.1f}",
        f"{ns['stream']:.1f}",
        f"{len(data) / count / ns['stream']:.2f}",
        f"{ns['table of views']:.1f}",
        f"{ns['stream of views']:.1f}",
        ratio(ns["aiokafka"], ns["table"]),
        ratio(ns["kafka-python"], ns["table"]),
        ratio(ns["construct"], ns["table"]),
        ratio(ns["java"], ns["table"]) if "java" in ns else "",
        f"{ns['read'] / ns['stream']:.2f}",
        f"{ns['read, kept'] / ns['table']:.2f}",
    )


def main() -> None:
    made = measure.parser(__doc__, rounds=5, mib=64)
    made.add_argument("--without-java", action="store_true")
    options = made.parse_args()
    report = Report("From a file to Arrow", measure.command("benchmarks.file_to_arrow", options))
    report.add(NOTES)
    report.table("file", "table, ns a record", "stream, ns", "stream, GB/s", "views, table", "views, stream", "x aiokafka", "x kafka-python", "x Construct", "x Java", "read", "read, kept")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        java = Java(stack, not options.without_java)
        for case in CASES:
            line(report, Path(folder), options.rounds, options.mib << 20, case, java)
    report.write(options.output)


if __name__ == "__main__":
    main()
