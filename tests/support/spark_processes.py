"""The processes of a Spark: one of its own, those below it as /proc shows them, and what they have open."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.paths import ROOT

POLL_S = 0.02
WORKER = "pyspark_kafka_log.connector.worker"
"""The module that workers of the connector run, and their daemons."""


def environment() -> dict[str, str]:
    """What a Python with a Spark of its own finds the source roots by."""
    roots = [str(ROOT / name) for name in ("generator", "generated", "pipeline", ".")]
    found = {"PYTHONPATH": os.pathsep.join(roots), "PYSPARK_PYTHON": sys.executable}
    # These JVMs are too short for more. CI names an archive of classes in the variable.
    options = [os.environ.get("SPARK_SUBMIT_OPTS", ""), "-XX:TieredStopAtLevel=1"]
    found["SPARK_SUBMIT_OPTS"] = " ".join(options).strip()
    return {**os.environ, **found, "SPARK_LOCAL_IP": "127.0.0.1"}


@contextmanager
def driver(*arguments: object, stderr: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[str]]:
    """A Python with a JVM of its own; in the end all of its processes are killed."""
    with subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def parents() -> dict[int, int]:
    """Of each process its parent. Those that ended and were not waited for are none."""
    out = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rpartition(") ")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            out[int(entry.name)] = int(parent)
    return out


def below(pid: int) -> set[int]:
    """The processes that one has begun, and theirs."""
    tree = parents()
    found: set[int] = set()
    more = {pid}
    while more:
        more = {child for child, parent in tree.items() if parent in more} - found
        found |= more
    return found


def command(pid: int) -> list[str]:
    """What a process was begun with; nothing where it has ended."""
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_text().split("\0")
    except OSError:
        return []


def holders(pids: set[int], directory: Path) -> set[int]:
    """Those of some processes that have a file below a directory open."""
    return {pid for pid in pids if any(directory in path.parents for path in _opened(pid))}


def _opened(pid: int) -> list[Path]:
    out = []
    try:
        for entry in (Path("/proc") / str(pid) / "fd").iterdir():
            out.append(entry.readlink())
    except OSError:
        pass  # it has ended, or has closed a file meanwhile
    return out


def until(
    true: Callable[[], bool], seconds: float = 60, said: Callable[[], str] = lambda: ""
) -> None:
    """Wait until a condition holds. Where it does not in time, ``said`` tells what goes on instead."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() >= end:
            raise AssertionError(f"it does not come to pass\n{said()}")
        time.sleep(POLL_S)
