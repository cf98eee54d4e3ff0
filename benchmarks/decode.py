"""How fast segments become Arrow tables, beside peers and limits, in one process.

    python -m benchmarks.decode [--mib 16] [--rounds 7] [--output benchmarks/results/decode.md]
    python -m benchmarks.decode --rows A16 lz4 v1      only the rows whose names begin so

The candidates take turns, round by round; figures are medians of the CPU time of the thread (Java: wall time by its own
clock, in its own process). Java needs Java 17 and Maven, and is left out where they are missing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks import decompressors, measure, peers, shapes
from benchmarks.java_reader import JavaReader
from benchmarks.measure import Candidate, Report, Seconds, ratio
from benchmarks.peers import Kernels
from tests.brokers.maven import BrokerError

NOTES = """
All of them verify checksums. *kept*: `decode` writes the default columns of all records into fresh Arrow buffers that are
kept until the round ends; Arrow's pool gives back its memory before each turn, so that every page is fresh. *stream*: each
batch is gone before the next, so that the pool's memory is warm. Both are ns for one record.
""".strip()
PEERS = """
How many times as fast as a peer, *kept* / *stream*. *aiokafka* (Cython) and *kafka-python* iterate and build no table;
*→ table* builds the same table from what they give. *Java* is Apache Kafka's reader, warmed up, over a segment in memory.
*Construct* is the reference codec. Slow peers read the first batches only.
""".strip()
LIMITS = """
Which part of the rate of a limit is reached: the limit's time by that of `decode`. For *kept*: *copy alike* copies into as
many buffers of the same sizes, from the same pool, as decoding allocates; *copy, pool* copies the segment into buffers of 4 MiB
from the pool, one after the other; *copy, system* into pages that come from the operating system one by one (mmap). For
*stream*: *copy, touched* copies the segment into memory that was written before. *CRC-32C* of the batches alone, of *stream*.
*faults* are the pages that were met for the first time, for each MiB of the segment: kept, copy alike, copy pool, copy
system (the pool asks for huge pages, 2 MiB each; the others are of 4 KiB).
""".strip()
COMPRESSED = """
*stream* as above. *best* is the fastest decompressor that Python has here, one call for each batch, over the same runs; *own*
is the stream of the same records without compression (version 1: with their checksums), in the same rounds. The last
column is *stream* by the sum of both.
""".strip()
PART, SMALL_PART, TINY_PART = 2 << 20, 256 << 10, 8 << 10
READERS = {
    "aiokafka": "x aiokafka",
    "aiokafka table": "→ table",
    "java": "x Java",
    "kafka-python": "x kafka-python",
    "kafka-python table": "→ table",
    "construct": "x Construct",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line: the bytes of its segment are made when it is its turn."""

    name: str
    title: str
    make: Callable[[], bytes]
    codec: str = "none"
    plain: Callable[[], bytes] | None = None


def rows(total: int) -> Iterator[Row]:
    def v2(name: str, size: int, codec: str = "none") -> Callable[[], bytes]:
        return lambda: shapes.segment(name, size, total, codec)

    def v1(codec: str) -> Callable[[], bytes]:
        return lambda: shapes.wrappers("A", 16 << 10, total, codec)

    def old() -> bytes:
        return shapes.messages("A", total)

    labels = {16 << 10: "16", 1 << 20: "1024"}
    for name, title in shapes.NAMES.items():
        for size, label in labels.items():
            yield Row(f"{name}{label}", f"{title}, {label} KiB", v2(name, size))
    a = shapes.NAMES["A"]
    yield Row("v1", f"{a}, version 1", old)
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        for size, label in labels.items():
            title = f"{a}, {codec}, {label} KiB"
            yield Row(f"{codec}{label}", title, v2("A", size, codec), codec, v2("A", size))
    for codec in ("gzip", "snappy", "lz4"):
        yield Row(f"v1-{codec}", f"{a}, version 1, {codec}, 16 KiB", v1(codec), codec, old)


class Java:
    """The Java reader over the segments of this run, if there is one."""

    def __init__(self, stack: ExitStack, wanted: bool) -> None:
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.reader: JavaReader | None = None
        if not wanted:
            return
        try:
            self.reader = stack.enter_context(JavaReader())
        except (BrokerError, OSError) as error:
            print(f"without Java: {error}")

    def candidate(self, data: bytes, name: str, count: int) -> Candidate | None:
        if self.reader is None:
            return None
        reader, path = self.reader, self.folder / f"{name}.log"
        path.write_bytes(data)
        for _ in range(5):  # until it is compiled
            assert reader.read(path)[0] == count
        return lambda: Seconds(reader.read(path)[1])


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured of a row: ns for one record, and fresh pages for each MiB."""

    row: Row
    bytes: float
    ns: dict[str, float]
    pages: dict[str, float]
    libraries: list[str]


def measured(row: Row, rounds: int, java: Java) -> Found:
    data = row.make()
    kernels = Kernels(data)
    count = kernels.drop()
    parts = {size: peers.part(data, size) for size in (PART, SMALL_PART, TINY_PART)}
    assert peers.aiokafka(data)() == count
    cold: dict[str, Candidate] = {
        "kept": kernels.keep,
        "alike": peers.memcpy_alike(data),
        "pool": peers.memcpy_pool(data),
        "system": peers.memcpy_system(data),
        "crc": peers.checksum(data),
        "aiokafka": peers.aiokafka(data),
        "aiokafka table": peers.aiokafka_table(parts[PART]),
        "kafka-python": peers.kafka_python(parts[SMALL_PART]),
        "kafka-python table": peers.kafka_python_table(parts[SMALL_PART]),
        "construct": peers.construct(parts[TINY_PART]),
    }
    warm: dict[str, Candidate] = {"stream": kernels.drop, "touched": peers.memcpy_touched(data)}
    counts = {"aiokafka table": Kernels(parts[PART]).drop()}
    counts |= dict.fromkeys(("kafka-python", "kafka-python table"), Kernels(parts[SMALL_PART]).drop())  # fmt: skip
    counts["construct"] = Kernels(parts[TINY_PART]).drop()
    found_java = java.candidate(data, row.name, count)
    if found_java is not None:
        cold["java"] = found_java
    libraries: dict[str, Candidate] = {}
    if row.plain is not None:
        libraries = decompressors.candidates(data, row.codec)
        own = Kernels(row.plain())
        counts["own"] = own.drop()
        warm |= libraries | {"own": own.drop}
    found = measure.rounds(cold, rounds, cold=True) | measure.rounds(warm, rounds)
    return Found(
        row,
        len(data) / count,
        {n: m.median / counts.get(n, count) * 1e9 for n, m in found.items()},
        {n: m.faults[-1] / (len(data) / (1 << 20)) for n, m in found.items()},
        list(libraries),
    )


def peers_row(found: Found) -> list[str]:
    ns = found.ns
    times = [
        f"{ratio(ns[name], ns['kept'])} / {ratio(ns[name], ns['stream'])}" if name in ns else ""
        for name in READERS
    ]
    return [
        found.row.title,
        f"{found.bytes:.0f}",
        f"{ns['kept']:.1f}",
        f"{ns['stream']:.1f}",
        f"{1e3 / ns['kept']:.1f} / {1e3 / ns['stream']:.1f}",
        *times,
    ]


def limits_row(found: Found) -> list[str]:
    ns = found.ns
    return [
        found.row.title,
        *(f"{ns[name] / ns['kept']:.2f}" for name in ("alike", "pool", "system")),
        *(f"{ns[name] / ns['stream']:.2f}" for name in ("touched", "crc")),
        ", ".join(f"{found.pages[name]:.0f}" for name in ("kept", "alike", "pool", "system")),
    ]


def compressed_row(found: Found) -> list[str]:
    ns = found.ns
    ranking = sorted(found.libraries, key=lambda name: ns[name])
    others = ", ".join(f"{name} {ns[name]:.1f}" for name in ranking[1:])
    return [
        found.row.title,
        f"{ns['stream']:.1f}",
        f"{ranking[0]} {ns[ranking[0]]:.1f}",
        others,
        f"{ns['own']:.1f}",
        f"{ns['stream'] / (ns[ranking[0]] + ns['own']):.2f}",
    ]


def main() -> None:
    parser = measure.parser(__doc__, rounds=7, mib=16)
    parser.add_argument("--rows", nargs="+", help="rows whose names begin so")
    parser.add_argument("--without-java", action="store_true")
    options = parser.parse_args()
    report = Report("Decoding into Arrow", measure.command("benchmarks.decode", options))
    report.add(NOTES, "", "## Peers", "", PEERS)
    report.table("records", "bytes", "kept", "stream", "million/s", *READERS.values())
    done = []
    with ExitStack() as stack:
        java = Java(stack, not options.without_java)
        for row in rows(options.mib << 20):
            if not options.rows or row.name.startswith(tuple(options.rows)):
                done.append(measured(row, options.rounds, java))
                report.row(*peers_row(done[-1]))
    report.add("", "## Limits", "", LIMITS)
    report.table("records", "copy alike", "copy, pool", "copy, system", "copy, touched", "CRC-32C", "faults")  # fmt: skip
    for found in done:
        if not found.libraries:
            report.row(*limits_row(found))
    report.add("", "## Compressed: ns for each record", "", COMPRESSED)
    report.table("records", "stream", "best", "others", "own", "of the sum")
    for found in done:
        if found.libraries:
            report.row(*compressed_row(found))
    report.write(options.output)


if __name__ == "__main__":
    main()
