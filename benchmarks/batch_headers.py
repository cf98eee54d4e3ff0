"""How fast batch headers are read, beside a full decode of the same files, which are in the page cache.

    python -m benchmarks.batch_headers [--mib 1024] [--rounds 9] [--output benchmarks/results/batch_headers.md]

Nothing is decompressed and no checksum verified for a view of batch headers, so it costs what its pages cost: the limits
touch one byte of each header, once in a mapped file, once by a ``pread`` of its 61 bytes. Segments have 1 GiB (before they are
compressed), as Kafka makes them unless told otherwise.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks import measure, peers, shapes
from benchmarks.files import Scanner, header_scanner, written
from benchmarks.java_reader import HEADERS, JavaReader
from benchmarks.measure import Candidate, Report, ratio

NOTES = """
Microseconds for each batch, medians of CPU time: *headers* is the view of batches with all its columns, read as a
file is by default, *by map* the same with `mmap=True`, *full* the decode of
all default columns in a stream. *mapped* touches a byte of each header's page in a new map of the file, *pread* reads each
header alone; both know where the headers are. *Java* is Kafka's own reader of files, `FileRecords`, all that a header says asked for, in a
warm JVM, by the processor time of its thread. The last column says which part of the rate of *mapped* the view reaches *by map*.
""".strip()
HEADER_START = 61


def headers(path: Path) -> Candidate:
    return lambda: sum(batch.num_rows for batch in header_scanner(path))


def headers_of_map(path: Path) -> Candidate:
    return lambda: sum(batch.num_rows for batch in header_scanner(path, mmap=True))


def full(path: Path) -> Candidate:
    return lambda: sum(batch.num_rows for batch in Scanner(path, engine="arrow"))


def mapped(path: Path, places: list[int]) -> Candidate:
    def run() -> int:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
            return sum(pages[at] for at in places)

    return run


def pread(path: Path, places: list[int]) -> Candidate:
    def run() -> None:
        with path.open("rb", buffering=0) as file:
            number = file.fileno()
            for at in places:
                os.pread(number, HEADER_START, at)

    return run


def java(path: Path, reader: JavaReader, batches: int) -> Candidate:
    def run() -> measure.Seconds:
        found, seconds = reader.read(path)
        assert found == batches
        return measure.Seconds(seconds)

    return run


def main() -> None:
    parser = measure.parser(__doc__, rounds=9, mib=1024)
    parser.add_argument("--without-java", action="store_true")
    options = parser.parse_args()
    report = Report("Batch headers", measure.command("benchmarks.batch_headers", options))
    report.add(NOTES)
    report.table(
        "file",
        "batches",
        "headers",
        "by map",
        "full",
        "x full",
        "by map x full",
        "mapped",
        "pread",
        "Java",
        "Java / headers",
        "of the limit",
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        reader = None if options.without_java else stack.enter_context(JavaReader(HEADERS))
        for shape in ("A", "E"):
            for size in (16 << 10, 64 << 10, 1 << 20):
                for codec in ("none", "lz4", "zstd") if shape == "A" else ("none",):
                    what = (shape, size, codec)
                    line(report, folder, reader, options.rounds, options.mib << 20, what)
    report.write(options.output)


def line(
    report: Report,
    folder: Path,
    reader: JavaReader | None,
    rounds: int,
    total: int,
    what: tuple[str, int, str],
) -> None:
    shape, size, codec = what
    title = f"{shapes.NAMES[shape]}, {size >> 10} KiB" + ("" if codec == "none" else f", {codec}")
    data = shapes.segment(shape, size, min(total, 16 << 20), codec)
    path = written(folder, "segment", data * (total // min(total, 16 << 20)))
    places = [start for start, _ in peers.sizes(path.read_bytes())]
    candidates = {
        "headers": headers(path),
        "by map": headers_of_map(path),
        "full": full(path),
        "mapped": mapped(path, places),
        "pread": pread(path, places),
    }
    if reader is not None:
        candidates["java"] = java(path, reader, len(places))
    assert candidates["headers"]() == len(places)
    found = measure.rounds(candidates, rounds)
    us = {name: m.median / len(places) * 1e6 for name, m in found.items()}
    report.row(
        title,
        f"{len(places):,}",
        f"{us['headers']:.3f}",
        f"{us['by map']:.3f}",
        f"{us['full']:.2f}",
        ratio(us["full"], us["headers"]),
        ratio(us["full"], us["by map"]),
        f"{us['mapped']:.3f}",
        f"{us['pread']:.3f}",
        f"{us['java']:.2f}" if reader else "",
        ratio(us["java"], us["headers"]) if reader else "",
        f"{us['mapped'] / us['by map']:.2f}",
    )


if __name__ == "__main__":
    main()
