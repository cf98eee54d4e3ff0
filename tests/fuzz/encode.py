"""Tables of any kind through the kernels that write, with guard pages around all memory, and with every access checked.

    python -m tests.fuzz.encode --tables 500000 --seed 1
    python -m tests.fuzz.encode --tables 100000 --seed 2 --checks on     every load and store looks for its range
    NUMBA_DISABLE_JIT=1 python -m tests.fuzz.encode --tables 50 --checks on     the kernels as plain Python
    python -m tests.fuzz.encode --seed 1 --table 4711                    one table of a run again

It ends without a crash, a hang, a step beyond memory or an allocation beyond the limits, or says what broke. What is written
is read again by the kernels that decode, and is the table; what is refused is refused for the row and the column that have no
place. Of one in so many tables the bytes are compared with those of the reference codecs (``--compare``).
Tables are made from the seed and their number, so any of them can be made again. Linux only.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import itertools
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka_codecs.arrow import records_encoders
from tests.fuzz.broken_tables import run_broken
from tests.fuzz.checked import Broken
from tests.fuzz.guards import AVAILABLE
from tests.fuzz.made_tables import Case, case
from tests.fuzz.probe_encode import EncoderProbes, check, compare
from tests.fuzz.watch import Memory, Shared, watched

MOST_MEMORY = 384 << 20
"""Resident memory beyond what there is after the start, most of it pages between guards, which stay."""
COUNTS = ("tables", "rows", "bytes", "refused", "broken", "compared")
WARM_UP = 200
"""Tables of the seed 0 that come first."""
MOST_COMPARED = 150
"""Rows of tables that the reference codecs build."""
BROKEN = 4
"""One table in so many is followed by one whose buffers or types are not what they should be."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a process does: tables of a seed from ``first`` on."""

    seed: int
    first: int = 0
    tables: int = 0
    seconds: float = float("inf")
    checks: bool = False
    compare: int = 20


def work(job: Job, shared: Shared) -> None:
    """The process that may crash."""
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        probes = EncoderProbes(Path(folder))
        first = 0 if records_encoders.JIT else WARM_UP - 10
        for number in range(first, WARM_UP):  # compile, and load every library
            shared.set("chunk", number - WARM_UP)
            one(probes, job, 0, number, Shared(COUNTS), number % 20 == 0)
        shapes: Counter[str] = Counter()
        until = time.monotonic() + job.seconds
        memory = Memory()
        for number in itertools.count(job.first):
            if shared["tables"] >= job.tables or time.monotonic() > until:
                break
            shared.set("chunk", number)
            made = one(probes, job, job.seed, number, shared, number % job.compare == 0)
            shapes[shape(made)] += 1
            if number % 1024 == 0:
                gc.collect()  # errors and what raised them hold each other
                shared.set("memory", memory.peak())
                if memory.peak() > MOST_MEMORY:
                    raise Broken(f"{memory.peak() >> 20} MiB more memory than at the start")
                _note(shapes, shared)
        shared.set("memory", memory.peak())
        _note(shapes, shared)


def one(
    probes: EncoderProbes, job: Job, seed: int, number: int, shared: Shared, compared: bool
) -> Case:
    """Write one table, and look at what becomes of it."""
    made = case(seed, number)
    probe = probes.of(made.settings.where, job.checks)
    written = probe.run(made)
    found = check(made, written)
    if compared and made.rows <= MOST_COMPARED:
        compare(made, written, found)
        shared.add("compared")
    if number % BROKEN == 0:
        shared.add("broken", int(run_broken(probe, made, seed, number)))
    shared.add("tables")
    shared.add("rows", made.rows)
    shared.add("bytes", len(written.data))
    shared.add("refused", int(written.error is not None))
    return made


def shape(made: Case) -> str:
    settings = made.settings
    return f"{'mixed' if settings.magic is None else f'v{settings.magic}'} {settings.codec or ''}".strip()


def _note(shapes: Counter[str], shared: Shared) -> None:
    shared.shapes.value = ", ".join(f"{n} {s}" for s, n in shapes.most_common()).encode()


def fuzz(job: Job, quiet: bool = False) -> str | None:
    """Run a job. Where it fails: what happened, and how to see it again."""
    shared = Shared(COUNTS)
    begun = time.monotonic()
    wrong = watched(work, job, shared, quiet)
    print(f"seed {job.seed}, checks {'on' if job.checks else 'off'}:", end=" ")
    print(shared.summary(time.monotonic() - begun))
    print(f"made: {shared.shapes.value.decode()}", flush=True)
    if wrong is None:
        return None
    seed, number = job.seed, shared["chunk"]
    if number < 0:
        seed, number = 0, number + WARM_UP
    made = case(seed, number)
    checks = " --checks on" if job.checks else ""
    return (
        f"{wrong} at table {number} of seed {seed}: {made.rows} rows of {', '.join(made.given)}; "
        f"chunks begin at {made.cuts}; {made.settings}\n"
        f"again: python -m tests.fuzz.encode --seed {seed} --table {number}{checks}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checks", choices=("on", "off"), default="off")
    parser.add_argument("--compare", type=int, default=20, help="compare one table in so many")
    parser.add_argument("--table", type=int, help="only this table of the seed")
    options = parser.parse_args(arguments)
    if not AVAILABLE:
        parser.error("guard pages are there on Linux only")
    job = Job(
        options.seed,
        options.table or 0,
        1 if options.table is not None else options.tables,
        options.seconds,
        options.checks == "on",
        1 if options.table is not None else options.compare,
    )
    wrong = fuzz(job)
    if wrong:
        print(wrong)
    return int(wrong is not None)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    sys.exit(main())
