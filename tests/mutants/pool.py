"""Processes that each try one mutant: forked from this one, which has imported what is slow to import and nothing of ours."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tests.mutants.outcome import Outcome

T = TypeVar("T")

CPU_LIMIT_S = 240
LIMIT_S = 1800.0
"""A mutant that makes a test run on and on is killed by its seconds of CPU: other work on the machine does not count. One that
waits for something that does not come is killed by the clock."""


@dataclass(frozen=True, slots=True)
class _Running(Generic[T]):
    task: T
    slot: int
    process: multiprocessing.process.BaseProcess
    result: multiprocessing.connection.Connection
    since: float


def outcomes(
    tasks: Sequence[T], jobs: int, run: Callable[[T, int], Outcome]
) -> Iterator[tuple[T, Outcome, float]]:
    """Yield the tasks with their outcomes and seconds, in the order in which they end.

    `run` gets a task and a number below `jobs` that no other task has at the same time.
    """
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(tasks))
    running: list[_Running[T]] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            task = waiting.pop()
            slot = min(set(range(jobs)) - {one.slot for one in running})
            receive, send = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(send, run, task, slot))
            process.start()
            send.close()
            running.append(_Running(task, slot, process, receive, time.monotonic()))
        multiprocessing.connection.wait([one.result for one in running], timeout=5.0)
        for one in list(running):
            outcome = _ended(one)
            if outcome is not None:
                running.remove(one)
                yield one.task, outcome, time.monotonic() - one.since


def _child(
    send: multiprocessing.connection.Connection,
    run: Callable[[T, int], Outcome],
    task: T,
    slot: int,
) -> None:
    import resource  # there is none where nothing forks

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S + 5))
    send.send(run(task, slot))


def _ended(one: _Running[T]) -> Outcome | None:
    """The outcome of a process that has ended, or has to: None while it may go on."""
    outcome: Outcome | None = None
    if one.result.poll():
        try:
            outcome = one.result.recv()
        except EOFError:
            outcome = Outcome("killed", f"the process died, or took {CPU_LIMIT_S} s of CPU")
    elif time.monotonic() - one.since > LIMIT_S:
        one.process.kill()
        outcome = Outcome("killed", f"no end after {LIMIT_S:.0f} s")
    if outcome is not None:
        one.process.join()
        one.result.close()
    return outcome
