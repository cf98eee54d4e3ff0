"""Plans that are kept in a process, as long as the files are those that they were made of."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from kafka_log.read.isolation import Known
from kafka_log.read.plan import Split
from pyspark_kafka_log.logs import Log

Tasks = list[tuple[Split, ...]]


class Planned(NamedTuple):
    """A plan: its tasks, and the transactions by which they were made."""

    tasks: Tasks
    transactions: Known


KEPT = 16
KEPT_SPLITS = 200_000
"""Splits of all plans that are kept, some 100 bytes each."""


def key_of(logs: Sequence[Log], asked: object) -> str:
    """What a plan is made of: files with their sizes and times, and all that is asked. Transactions come also of files beside these; when
    one of them is written anew, so is its directory."""
    files = [
        (
            str(log.directory),
            _time(log.directory),
            [(s.path.name, s.size, s.state, s.offsets, _time(s.path)) for s in log.segments],
        )
        for log in logs
    ]
    return hashlib.sha256(repr((files, asked)).encode()).hexdigest()


def _time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return -1


class Plans:
    """The last plans, some of them. Any thread may ask."""

    def __init__(self, kept: int = KEPT, splits: int = KEPT_SPLITS) -> None:
        self._kept = kept
        self._most = splits
        self._plans: OrderedDict[str, Planned] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str, make: Callable[[], Planned]) -> Planned:
        """The plan of a key, made where it is not kept. What ``make`` raises is raised."""
        with self._lock:
            found = self._plans.get(key)
            if found is not None:
                self._plans.move_to_end(key)
                return found
        made = make()
        with self._lock:
            self._plans[key] = made
            self._plans.move_to_end(key)
            while len(self._plans) > self._kept or self._splits() > self._most:
                self._plans.popitem(last=False)
        return made

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._plans.clear()

    def _splits(self) -> int:
        return sum(len(task) for plan in self._plans.values() for task in plan.tasks)
