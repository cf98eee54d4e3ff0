"""How fast segments become Arrow tables where there is no compiler, beside peers, in one process.

    python -m benchmarks.no_jit [--mib 16] [--rounds 7] [--output benchmarks/results/no_jit.md]

numba is blocked, so that the readers by NumPy decode: all default columns, checksums verified. The candidates take turns,
round by round; figures are medians of the CPU time of the thread.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from benchmarks import measure, peers, shapes
from benchmarks.measure import Report, ratio
from codecgen.runtime.arrow.decoder import load_kernels
from kafka_codecs.arrow.records import RECORDS

NOTES = """
*stream*: each batch of Arrow is dropped before the next. *aiokafka* (Cython) and *kafka-python* verify checksums and
iterate, and build no table; *Construct* is the reference codec. The slow ones read the first batches only.
""".strip()
PART, TINY_PART = 1 << 20, 8 << 10


def rows(total: int) -> Iterator[tuple[str, bytes]]:
    for name, title in shapes.NAMES.items():
        for size in (16 << 10, 1 << 20):
            yield f"{title}, {size >> 10} KiB", shapes.segment(name, size, total)
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        title = f"{shapes.NAMES['A']}, {codec}, 16 KiB"
        yield title, shapes.segment("A", 16 << 10, total, codec)
    yield f"{shapes.NAMES['A']}, version 1", shapes.messages("A", total)


def line(report: Report, title: str, data: bytes, rounds: int) -> None:
    own = peers.Kernels(data)
    count = own.drop()
    part, tiny = peers.part(data, PART), peers.part(data, TINY_PART)
    readers = {"aiokafka": peers.aiokafka(data), "kafka-python": peers.kafka_python(part)}
    counts = {"numpy": count, **{name: reader() for name, reader in readers.items()}}
    assert counts["aiokafka"] == count
    counts["construct"] = peers.aiokafka(tiny)()
    candidates = {"numpy": own.drop, **readers, "construct": peers.construct(tiny)}
    found = measure.rounds(candidates, rounds)
    ns = {name: found[name].median / counts[name] * 1e9 for name in candidates}
    report.row(
        title,
        f"{len(data) / count:.0f}",
        f"{ns['numpy']:.0f}",
        f"{1e3 / ns['numpy']:.2f}",
        ratio(ns["aiokafka"], ns["numpy"]),
        ratio(ns["kafka-python"], ns["numpy"]),
        ratio(ns["construct"], ns["numpy"]),
    )


def main() -> None:
    options = measure.parser(__doc__, rounds=7, mib=16).parse_args()
    sys.modules["numba"] = None  # type: ignore[assignment]  # nothing has imported it yet
    assert load_kernels(RECORDS).__name__.endswith("_numpy")
    command = measure.command("benchmarks.no_jit", options)
    report = Report("Decoding into Arrow without a compiler", command)
    report.add(NOTES)
    names = ("bytes", "stream, ns", "million/s", "x aiokafka", "x kafka-python", "x Construct")
    report.table("records", *names)
    for title, data in rows(options.mib << 20):
        line(report, title, data, options.rounds)
    report.write(options.output)


if __name__ == "__main__":
    main()
