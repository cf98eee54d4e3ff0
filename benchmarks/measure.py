"""How the benchmarks measure, and how they write down what they found.

The candidates of a row take turns, round by round, so that whatever else the machine does meets all of them. What counts
is the CPU time of the thread; a candidate that runs elsewhere returns ``Seconds`` of its own clock. Python's garbage
collector is off meanwhile.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from benchmarks.plots import redraw_plots
from benchmarks.result_page import RESULTS

Candidate = Callable[[], object]


class Seconds(float):
    """What a candidate took by its own clock."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What the rounds of one candidate took, and how many pages each of them met for the first time."""

    seconds: list[float] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def rounds(
    candidates: Mapping[str, Candidate],
    count: int,
    *,
    clock: Callable[[], float] = time.thread_time,
    cold: bool = False,
    warm_up: int = 1,
) -> dict[str, Measured]:
    """Every candidate once a round. ``cold``: Arrow's pool gives back what it keeps before each of them, so that memory
    is fresh. What a candidate returns is dropped after its time is taken."""
    pool = pa.default_memory_pool()
    found = {name: Measured() for name in candidates}
    for candidate in candidates.values():
        for _ in range(warm_up):
            candidate()
    gc.collect()
    gc.disable()
    try:
        for _ in range(count):
            for name, candidate in candidates.items():
                if cold:
                    pool.release_unused()
                faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
                start = clock()
                result = candidate()
                taken = clock() - start
                faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - faults
                found[name].seconds.append(result if isinstance(result, Seconds) else taken)
                found[name].faults.append(faults)
                del result
    finally:
        gc.enable()
    return found


def quartiles(values: Sequence[float]) -> str:
    """The median, and between what half of the values lie."""
    if len(values) < 2:
        return f"{values[0]:.2f}" if values else ""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


class Report:
    """A Markdown page of results, printed as it grows."""

    def __init__(self, title: str, command: str) -> None:
        self.lines: list[str] = []
        self.add(f"# {title}", "", f"`{command}` on {machine()}", "")

    def add(self, *lines: str) -> None:
        self.lines += lines
        for line in lines:
            print(line, flush=True)

    def table(self, *columns: str) -> None:
        """Begin a table; all but the first column are numbers."""
        self.add("", self._row(columns), "|---|" + "--:|" * (len(columns) - 1))

    def row(self, *cells: str) -> None:
        self.add(self._row(cells))

    @staticmethod
    def _row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    def write(self, path: Path | None) -> None:
        if path is not None:
            write_result_page(path, "\n".join(self.lines) + "\n")


def write_result_page(path: Path, text: str) -> None:
    """Write a page of results. If it is one of those in the repository, draw its charts again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    if path.parent.resolve() == RESULTS:
        redraw_plots(path)


def machine() -> str:
    """The machine and the versions, in one line."""
    from importlib.metadata import version

    load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    parts = [f"{name} {version(name)}" for name in ("pyarrow", "numba", "aiokafka", "kafka-python")]
    return (
        f"{_processor()}, {os.cpu_count()} CPUs{load}; {platform.system()}, "
        f"Python {platform.python_version()}, {', '.join(parts)}."
    )


def _processor() -> str:
    """What the processor is called."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        name = next(line for line in text.splitlines() if line.startswith("model name"))
        return f"{name.partition(':')[2].strip()} ({platform.machine()})"
    except (OSError, StopIteration):
        return platform.machine()


def parser(doc: str | None, *, rounds: int, mib: int) -> argparse.ArgumentParser:
    """The arguments that all benchmarks have."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--mib", type=int, default=mib, help=f"MiB of each segment ({mib})")
    made.add_argument("--rounds", type=int, default=rounds, help=f"how many ({rounds})")
    made.add_argument("--output", type=Path, help="write the page here too")
    return made


def command(module: str, options: argparse.Namespace) -> str:
    """The command that makes a page again."""
    given = [
        f"--{name} {value}"
        for name, value in vars(options).items()
        if name != "output" and value is not None and not isinstance(value, (bool, list))
    ]
    return " ".join((Path(sys.executable).name.rstrip("0123456789."), "-m", module, *given))


def ratio(one: float, other: float) -> str:
    """How many times as much, to two digits or so."""
    value = one / other
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 3 else f"{value:.2f}"
