"""Work that may wait for disks and networks: done in one thread, and in several where it waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

THREADS = 8
"""What is waited for together, at most."""

PATIENCE = 0.02
"""Seconds of waiting that are not worth threads."""

A = TypeVar("A")
B = TypeVar("B")
Clock = Callable[[], tuple[float, float]]
"""Seconds that have gone by, and seconds that this thread has worked."""


def now() -> tuple[float, float]:
    """The clock of the system."""
    return time.perf_counter(), time.thread_time()


def each(
    work: Callable[[A], B], items: Sequence[A], *, waits: bool = False, clock: Clock = now
) -> list[B]:
    """What comes of each item, in their order. ``waits`` says that the work is known to wait.

    Python works in one thread at a time. Where files lie in memory, eight threads take twice the time of one, as they wait for one another
    after each call of the system. So the others begin when one has waited for longer than it has worked.
    """
    done: list[B] = []
    begun, busy = clock()
    while not waits and len(done) < len(items):
        done.append(work(items[len(done)]))
        wall, cpu = clock()
        waited = (wall - begun) - (cpu - busy)
        waits = waited > max(PATIENCE, cpu - busy)
    left = items[len(done) :]
    if len(left) < 2:
        return done + list(map(work, left))
    with ThreadPoolExecutor(min(THREADS, len(left))) as threads:
        return done + list(threads.map(work, left))
