"""How much faster two threads decode than one, and how much faster they could be.

    python -m benchmarks.threads [--mib 64] [--rounds 15] [--output benchmarks/results/threads.md]

Each round times the same work by one thread and by two, decoders of their own, on halves of the segment; and, before and
after, a control: hashing in one thread and in two, which shows how much of a second core was free just then. Wall time.
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks import measure, peers, shapes
from benchmarks.measure import Candidate, Report, quartiles
from benchmarks.peers import Kernels

NOTES = """
How many times as fast two threads are as one: the median, and between what half of the rounds lie. *stream*: each batch is
dropped before the next; *kept*: all batches are kept. *control* is the lesser of the two around a round; two free cores
give almost 2. Rounds whose control was above {free} stand apart: the others say more about the machine.
""".strip()
FREE = 1.8
_BLOCK = bytes(1 << 20)
_CONTROL = 24
"""MiB that are hashed for a control."""


def seconds(pool: ThreadPoolExecutor, work: Sequence[Candidate]) -> float:
    """Wall time of pieces of work at the same time."""
    start = time.perf_counter()
    for future in [pool.submit(piece) for piece in work]:
        future.result()
    return time.perf_counter() - start


def spin(mib: int) -> Candidate:
    def run() -> None:
        for _ in range(mib):
            hashlib.sha256(_BLOCK)  # without the GIL

    return run


def control(pool: ThreadPoolExecutor) -> float:
    one = seconds(pool, [spin(_CONTROL)])
    return one / seconds(pool, [spin(_CONTROL // 2)] * 2)


def halves(data: bytes) -> list[bytes]:
    middle = next(end for _, end in peers.sizes(data) if end >= len(data) // 2)
    return [data[:middle], data[middle:]]


def rounds(
    pool: ThreadPoolExecutor, one: Candidate, two: Sequence[Candidate], count: int
) -> list[tuple[float, float]]:
    """(speed-up, control) of each round."""
    seconds(pool, two)
    found = []
    before = control(pool)
    for _ in range(count):
        alone = seconds(pool, [one])
        together = seconds(pool, two)
        after = control(pool)
        found.append((alone / together, min(before, after)))
        before = after
    return found


def main() -> None:
    options = measure.parser(__doc__, rounds=15, mib=64).parse_args()
    report = Report("Two threads", measure.command("benchmarks.threads", options))
    report.add(NOTES.format(free=FREE))
    report.table(
        "records", "how", "speed-up", "control", f"rounds above {FREE}", "speed-up in these"
    )
    how: dict[str, Callable[[Kernels], Candidate]] = {
        "stream": lambda kernels: kernels.drop,
        "kept": lambda kernels: kernels.keep,
    }
    with ThreadPoolExecutor(2) as pool:
        for shape in ("A", "C", "E"):
            for codec in ("none", "lz4", "zstd") if shape == "A" else ("none",):
                small = shapes.segment(shape, 16 << 10, min(options.mib, 16) << 20, codec)
                data = small * (options.mib // min(options.mib, 16))
                whole, parts = Kernels(data), [Kernels(half) for half in halves(data)]
                for name, way in how.items():
                    gc.collect()
                    found = rounds(pool, way(whole), [way(part) for part in parts], options.rounds)
                    free = [speed for speed, spun in found if spun > FREE]
                    label = "" if codec == "none" else f", {codec}"
                    report.row(
                        f"{shapes.NAMES[shape]}, 16 KiB{label}",
                        name,
                        quartiles([speed for speed, _ in found]),
                        quartiles([spun for _, spun in found]),
                        f"{len(free)} of {len(found)}",
                        quartiles(free),
                    )
    report.write(options.output)


if __name__ == "__main__":
    main()
