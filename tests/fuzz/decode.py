"""Mutated batches through the kernels, with guard pages around all memory, and with every access checked.

    python -m tests.fuzz.decode --batches 2000000 --seed 1
    python -m tests.fuzz.decode --batches 500000 --seed 2 --checks on     every load and store looks for its range
    NUMBA_DISABLE_JIT=1 python -m tests.fuzz.decode --batches 100000 --checks on     the kernels as plain Python
    python -m tests.fuzz.decode --seed 1 --chunk 4711                     one chunk of a run again
    python -m tests.fuzz.decode --replay failed.bin                       bytes of a file, in every way

It ends without a crash, a hang, a step beyond memory or an allocation beyond the limits, or says what broke, with a file
of the bytes. Of one in so many chunks the rows are compared with those of the reference codecs (``--compare``).
Chunks are made from the seed and their number, so any of them can be made again. Linux only.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import itertools
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.fuzz.checked import Broken
from tests.fuzz.guards import AVAILABLE
from tests.fuzz.mutants import Mutant, Mutants
from tests.fuzz.probe import COLUMN_SETS, DECOMPRESSED, Outcome, Probes, Settings
from tests.fuzz.watch import Memory, Shared, watched
from tests.support.random_segments import entries
from tests.support.scanned_rows import reference, scanned, unpacked

MOST_MEMORY = 192 << 20
"""Resident memory beyond what there is after the start: the outputs, Construct's objects of 20 000 elements, zstd's."""
POLICIES = ("strict", "kafka", "salvage")
COUNTS = ("batches", "rows", "rejected", "compared", "needless")


@dataclass(frozen=True, slots=True)
class Job:
    """What a process does: chunks of a seed from ``first`` on, or the bytes that are given."""

    seed: int
    first: int = 0
    batches: int = 0
    seconds: float = float("inf")
    checks: bool = False
    compare: int = 20
    given: tuple[tuple[bytes, tuple[int, ...], Settings], ...] = ()


def chunk(mutants: Mutants, seed: int, number: int, checks: bool) -> tuple[list[Mutant], Settings]:
    """A chunk of a run: most often one mutant alone, which has the guard page right after it."""
    r = random.Random(seed << 40 | number)
    count = 1 if r.random() < 0.9 else r.choice((2, 3, 9, 17, 60))
    return [mutants.one(r) for _ in range(count)], Settings.drawn(r, checks)


def joined(parts: Sequence[Mutant]) -> tuple[bytes, tuple[int, ...]]:
    at = 0
    starts: list[int] = []
    for part in parts:
        starts += [at + start for start in part.starts]
        at += len(part.data)
    return b"".join(part.data for part in parts), tuple(starts)


# ------------------------------------------------------------ the process that may crash


def work(job: Job, shared: Shared) -> None:
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        probes = Probes(Path(folder))
        path = Path(folder) / "00000000000000000000.log"
        if job.given:
            for number, (data, starts, settings) in enumerate(job.given):
                shared.set("chunk", number)
                _one(probes, path, data, starts, settings, compare=True, shared=shared)
            return
        _warm_up(probes, path, job)
        _make(probes, path, job, shared)


def _make(probes: Probes, path: Path, job: Job, shared: Shared) -> None:
    mutants = Mutants(decompressed=DECOMPRESSED)
    shapes: Counter[str] = Counter()
    until = time.monotonic() + job.seconds
    memory = Memory()
    for number in itertools.count(job.first):
        if shared["batches"] >= job.batches or (number % 256 == 0 and time.monotonic() > until):
            break
        shared.set("chunk", number)
        parts, settings = chunk(mutants, job.seed, number, job.checks)
        data, starts = joined(parts)
        bomb = any(part.shape == "bombs" for part in parts)
        compare = not bomb and len(parts) < 4 and number % job.compare == 0
        _one(probes, path, data, starts, settings, compare, shared)
        shared.add("batches", len(parts))
        shapes.update(part.shape for part in parts)
        if number % 1024 == 0:
            gc.collect()  # errors and what raised them hold each other, and a scanner's memory
            peak = memory.peak()
            shared.set("memory", peak)
            if peak > MOST_MEMORY:
                raise Broken(f"{peak >> 20} MiB more memory than at the start")
            shared.shapes.value = ", ".join(f"{n} {s}" for s, n in shapes.most_common()).encode()
    shared.set("memory", memory.peak())
    shared.shapes.value = ", ".join(f"{n} {s}" for s, n in shapes.most_common()).encode()


def _one(
    probes: Probes,
    path: Path,
    data: bytes,
    starts: Sequence[int],
    settings: Settings,
    compare: bool,
    shared: Shared,
) -> None:
    outcome = probes.run(data, starts, settings, full=compare)
    shared.add("rows", outcome.rows)
    shared.add("rejected", outcome.rejected)
    if compare:
        shared.add("compared")
        shared.add("needless", compared(path, data, starts, settings, outcome))


def compared(
    path: Path, data: bytes, starts: Sequence[int], settings: Settings, outcome: Outcome
) -> int:
    """Hold what was read against the reference codecs: 1 if the kernels refused a batch that these find nothing odd in.

    Raises Broken."""
    path.write_bytes(data)
    limits = settings.limits
    for policy in POLICIES:
        found, expected = scanned(path, policy, limits=limits), reference(path, policy, limits)
        if found != expected:
            raise Broken(f"under {policy}: {found}\nthe reference codecs: {expected}")
    if len(starts) > 1 or settings.heads:
        return 0
    policy = "strict" if settings.full_check else "kafka"
    expected = reference(path, policy, limits)
    if outcome.rejected == 0 and outcome.batches:
        names = outcome.batches[0].schema.names
        rows = [row for batch in outcome.batches for row in unpacked(batch)]
        wanted = [{name: row[name] for name in names} for row in expected.rows]
        if rows != wanted:
            raise Broken(f"between guard pages: {rows}\nthe reference codecs: {wanted}")
    if settings.full_check:
        return 0  # which leaves sound batches to the reference codecs too
    strict = reference(path, "strict", limits)
    return int(outcome.rejected > 0 and strict.error is None and not expected.noted)


def _warm_up(probes: Probes, path: Path, job: Job) -> None:
    """Compile, and load every library."""
    mutants = Mutants(decompressed=DECOMPRESSED, bases=50)
    for number in range(400):
        parts, settings = chunk(mutants, 0, number, job.checks)
        settings = replace(settings, columns=COLUMN_SETS[0])
        _one(probes, path, *joined(parts), settings, number % 20 == 0, Shared(COUNTS))


# ------------------------------------------------------------ the process that looks on


def fuzz(job: Job, folder: Path, quiet: bool = False) -> str | None:
    """Run a job. Where it fails: what happened, and how to see it again."""
    shared = Shared(COUNTS)
    begun = time.monotonic()
    wrong = watched(work, job, shared, quiet)
    print(f"seed {job.seed}, checks {'on' if job.checks else 'off'}:", end=" ")
    print(shared.summary(time.monotonic() - begun))
    print(f"made: {shared.shapes.value.decode()}", flush=True)
    if wrong is None:
        return None
    number = shared["chunk"]
    mutants = Mutants(decompressed=DECOMPRESSED)
    parts, settings = chunk(mutants, job.seed, number, job.checks)
    if len(parts) > 1:
        parts = _narrowed(parts, settings, job)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"failed-{job.seed}-{number}.bin"
    path.write_bytes(joined(parts)[0])
    checks = " --checks on" if job.checks else ""
    return (
        f"{wrong} in chunk {number} of seed {job.seed}: {settings}\n"
        f"shapes: {', '.join(part.shape for part in parts)}\n"
        f"again: python -m tests.fuzz.decode --seed {job.seed} --chunk {number}{checks}\n"
        f"the bytes: python -m tests.fuzz.decode --replay {path}"
    )


def _narrowed(parts: list[Mutant], settings: Settings, job: Job) -> list[Mutant]:
    """The one mutant that fails alone too, if there is one."""
    given = tuple((part.data, part.starts, settings) for part in parts)
    shared = Shared(COUNTS)
    if watched(work, replace(job, given=given), shared, quiet=True) is None:
        return parts
    return [parts[shared["chunk"]]]


def every_way(data: bytes) -> Iterator[tuple[bytes, tuple[int, ...], Settings]]:
    """Bytes with all settings."""
    starts = (0, *(start for start, _ in entries(data) if start))
    for where, checks, full_check, heads in itertools.product(
        ("end", "start"), (False, True), (False, True), (False, True)
    ):
        for columns in COLUMN_SETS[:1] if heads else COLUMN_SETS:
            yield data, starts, Settings(where, checks, columns, full_check, heads=heads)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checks", choices=("on", "off"), default="off")
    parser.add_argument("--compare", type=int, default=20, help="compare one chunk in so many")
    parser.add_argument("--chunk", type=int, help="only this chunk of the seed")
    parser.add_argument("--replay", type=Path, nargs="+", help="files of bytes")
    parser.add_argument("--failures", type=Path, default=Path(), help="where to put bytes")
    options = parser.parse_args(arguments)
    if not AVAILABLE:
        parser.error("guard pages are there on Linux only")
    if options.replay:
        for path in options.replay:
            job = Job(0, given=tuple(every_way(path.read_bytes())))
            wrong = watched(work, job, shared := Shared(COUNTS))
            if wrong:
                print(f"{path}: {wrong}, with {job.given[shared['chunk']][2]}")
                return 1
        return 0
    job = Job(
        options.seed,
        options.chunk or 0,
        1 if options.chunk is not None else options.batches,
        options.seconds,
        options.checks == "on",
        1 if options.chunk is not None else options.compare,
    )
    wrong = fuzz(job, options.failures)
    if wrong:
        print(wrong)
    return int(wrong is not None)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    sys.exit(main())
