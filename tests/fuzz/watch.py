"""A process that may crash, hang or take too much memory, and the one that looks on. What fuzzers share; Linux only."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HANGS_AFTER_S = 60
"""CPU time for one chunk, or for compiling and loading everything."""
BLOCKED_AFTER_S = 1200


class Shared:
    """Counts that outlive the process that keeps them: ``chunk``, which is what is worked on, some more, and ``memory``."""

    def __init__(self, counts: Sequence[str]) -> None:
        self.counts = ("chunk", *counts, "memory")
        self.numbers = multiprocessing.RawArray("q", len(self.counts))
        self.shapes = multiprocessing.RawArray("c", 4096)

    def __getitem__(self, name: str) -> int:
        return int(self.numbers[self.counts.index(name)])

    def add(self, name: str, n: int = 1) -> None:
        self.numbers[self.counts.index(name)] += n

    def set(self, name: str, n: int) -> None:
        self.numbers[self.counts.index(name)] = n

    def summary(self, seconds: float) -> str:
        counts = ", ".join(f"{self[name]:,} {name}" for name in self.counts[:-1])
        return f"{seconds:.0f} s: {counts}; {self['memory'] >> 20} MiB more than at the start"


def watched(
    work: Callable[[Any, Shared], None], job: object, shared: Shared, quiet: bool = False
) -> str | None:
    """Do a job in a process of its own. What went wrong, if anything did."""
    process: Any = multiprocessing.get_context("spawn").Process(target=work, args=(job, shared))
    process.start()
    begun = seen_at = said = time.monotonic()
    seen, used = [-1], 0.0
    while process.is_alive():
        process.join(0.5)
        now = time.monotonic()
        state = list(shared.numbers)
        if state != seen:
            seen, seen_at, used = state, now, _cpu_time(process.pid)
        elif _cpu_time(process.pid) - used > HANGS_AFTER_S or now - seen_at > BLOCKED_AFTER_S:
            process.kill()
            process.join()
            return f"no end within {HANGS_AFTER_S} s of CPU time"
        if not quiet and now - said > 10:
            said = now
            print(shared.summary(now - begun), flush=True)
    if process.exitcode == 0:
        return None
    return f"the process ended with {process.exitcode}"


def _cpu_time(process: int) -> float:
    """What a process has used; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Memory:
    """How much more memory this process takes than when this was made. Addresses are bound from then on."""

    def __init__(self) -> None:
        self.base = _restart_peak()
        _bound_addresses()

    def peak(self) -> int:
        return _status("VmHWM") - self.base


def _status(name: str) -> int:
    """Bytes, from what the kernel says of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def _restart_peak() -> int:
    """Begin a new peak of the memory; what there is now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass  # the peak is then that since the start
    return _status("VmRSS")


def _bound_addresses() -> None:
    """Let no allocation go far beyond what there is, be it touched or not."""
    import resource  # not everywhere

    most = _status("VmSize") + (1 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
