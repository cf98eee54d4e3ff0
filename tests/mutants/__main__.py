"""Changes one fact of the schemas at a time, and looks for a test that notices: ``python -m tests.mutants --help``."""

from __future__ import annotations

import argparse
import importlib
import os
import random
import sys
import time
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from tests.changes import changed_files
from tests.mutants import equivalent
from tests.mutants.edits import Mutant
from tests.mutants.outcome import Outcome
from tests.mutants.pool import outcomes
from tests.mutants.subjects import GROUPS, Subject, subjects
from tests.mutants.trial import Task, run_task
from tests.paths import SCHEMAS

GOOD, SURVIVORS, COULD_NOT_RUN = 0, 1, 2
SLOW_IMPORTS = ("numpy", "pyarrow", "pyarrow.compute", "hypothesis", "construct", "yaml", "lz4.frame", "cramjam", "zstandard", "crc32c", "codecgen.targets", "codecgen.runtime.construct")  # fmt: skip
ENDS = ("rejected", "examples", "crashed", "killed", "equivalent", "survived")


def main(argv: Sequence[str] | None = None) -> int:
    """Try mutants. 0: all were noticed or are listed; 1: some were not, the generator crashed, or the list is wrong;
    2: the tests fail without a mutant."""
    arguments = _arguments(argv)
    of: dict[str, Subject] = {}
    every: list[Mutant] = []
    for subject in subjects(arguments.of):
        made = subject.mutants()
        of |= dict.fromkeys((m.name for m in made), subject)
        every += made
    reasons = equivalent.read()
    chosen = _chosen(every, arguments)
    if arguments.list:
        print("\n".join(f"{m.kind:16} {m.name}" for m in chosen))
        return GOOD
    print(f"{len(chosen)} of {len(every)} mutants, {arguments.jobs} at a time", flush=True)
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # the kernels run as plain Python
    for name in SLOW_IMPORTS:
        importlib.import_module(name)
    tasks = [Task(m, of[m.name], of[m.name].select(m)) for m in chosen]
    unchanged = {
        (task.subject.directory, task.selection): replace(task, mutant=None) for task in tasks
    }
    for task, outcome, seconds in outcomes(list(unchanged.values()), arguments.jobs, run_task):
        if outcome.end != "survived":
            print(
                f"without a mutant: {outcome.end} by {outcome.by}; {task.subject.directory}, {task.selection}"
            )
            return COULD_NOT_RUN
        print(
            f"without a mutant all pass in {seconds:.1f} s: {task.subject.directory}, {task.selection.paths[0]} ..."
        )
    sys.dont_write_bytecode = True
    begin = time.monotonic()
    ended: list[tuple[Mutant, str, Outcome]] = []
    for task, outcome, seconds in outcomes(tasks, arguments.jobs, run_task):
        assert task.mutant is not None
        listed = equivalent.reason(task.mutant.name, reasons) is not None
        end = "equivalent" if listed and outcome.end == "survived" else outcome.end
        if listed and outcome.end != "survived":
            end = "survived"
            outcome = Outcome("survived", f"listed as equivalent, but {outcome.end}: {outcome.by}")
        ended.append((task.mutant, end, outcome))
        if arguments.verbose or end in ("survived", "crashed"):
            by = f" ({outcome.by})" if outcome.by else ""
            print(f"[{len(ended)}/{len(tasks)}] {seconds:4.1f} s {end}: {task.mutant.name}{by}", flush=True)  # fmt: skip
        elif len(ended) % 50 == 0:
            print(f"[{len(ended)}/{len(tasks)}] {time.monotonic() - begin:.0f} s", flush=True)
    stale = (
        []
        if arguments.of != "all" or len(chosen) < len(every)
        else equivalent.unused([m.name for m in every], reasons)
    )
    _report(ended, stale, time.monotonic() - begin)
    bad = any(end in ("survived", "crashed") for _, end, _ in ended)
    return SURVIVORS if stale or bad else GOOD


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", metavar="PART", help="mutants with this in their names, such as schemas/records or limit")  # fmt: skip
    parser.add_argument(
        "--of",
        choices=GROUPS,
        default="kafka",
        help="whose facts: Kafka's formats (default), foreign formats of the tests, next versions of batches, or all",
    )
    parser.add_argument("--sample", metavar="N", type=int, help="so many mutants, chosen by the seed")  # fmt: skip
    parser.add_argument(
        "--seed",
        metavar="S",
        type=int,
        help="of the sample; by default one that changes only with the mutants",
    )
    parser.add_argument("--changed", action="store_true", help="of the files that differ from the last landed commit, if any do")  # fmt: skip
    parser.add_argument("--jobs", metavar="N", type=int, default=2, help="how many at a time")
    parser.add_argument("--verbose", action="store_true", help="a line for each mutant")
    parser.add_argument("--list", action="store_true", help="name the mutants, try none")
    return parser.parse_args(argv)


def _chosen(every: Sequence[Mutant], arguments: argparse.Namespace) -> list[Mutant]:
    wanted = (arguments.only or "").removeprefix("schemas/")
    chosen: Sequence[Mutant] = [m for m in every if wanted in f"{m.kind}: {m.name}"]
    if arguments.changed:
        chosen = of_changed_files(chosen, changed_files())
    if arguments.sample is not None and arguments.sample < len(chosen):
        # The order in which they are made changes with hashes: that of their names does not.
        names = sorted(f"{m.kind}: {m.name}" for m in every)
        seed = zlib.crc32("\n".join(names).encode()) if arguments.seed is None else arguments.seed
        chosen.sort(key=lambda m: (m.kind, m.name))
        print(f"seed {seed}")
        chosen = random.Random(seed).sample(chosen, arguments.sample)
    return chosen


def of_changed_files(every: Sequence[Mutant], changed: Collection[str]) -> Sequence[Mutant]:
    """Return the mutants of the schema files among `changed`; all if there are none."""
    return [m for m in every if f"{SCHEMAS.name}/{m.file}" in changed] or every


def _report(
    ended: Sequence[tuple[Mutant, str, Outcome]], stale: Sequence[str], seconds: float
) -> None:
    for title, keys in (
        ("kind", [mutant.kind for mutant, _, _ in ended]),
        ("file", [mutant.file for mutant, _, _ in ended]),
    ):
        counts = Counter(zip(keys, (end for _, end, _ in ended), strict=True))
        print(f"\n{title:36}" + "".join(f"{end:>11}" for end in ENDS))
        for key in sorted(set(keys)):
            print(f"{key:36}" + "".join(f"{counts[key, end] or '.':>11}" for end in ENDS))
    total = Counter(end for _, end, _ in ended)
    print(f"{'all':36}" + "".join(f"{total[end]:>11}" for end in ENDS))
    killers = Counter(Path(o.by.partition("::")[0]).name for _, end, o in ended if end == "killed")
    print("\nkilled by " + ", ".join(f"{name} {n}" for name, n in killers.most_common()))
    crashes = Counter(o.by for _, end, o in ended if end == "crashed")
    for what, n in crashes.most_common():
        print(f"the generator crashes on {n}: {what}")
    for name in stale:
        print(f"listed as equivalent, but no such mutant: {name}")
    survivors = sorted(m.name for m, end, _ in ended if end == "survived")
    print(f"{len(survivors)} survived; {seconds:.0f} s")
    for name in survivors:
        print(f"  {name}")


if __name__ == "__main__":
    sys.exit(main())
