"""Processes that each try one mutant: forked from this one, which has imported what is slow to import and nothing of ours."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.mutants.edits import Mutant
from tests.mutants.selection import Selection
from tests.mutants.subjects import Subject
from tests.mutants.trial import Outcome, run

CPU_LIMIT_S = 240
LIMIT_S = 1800.0
"""A mutant that makes a test run on and on is killed by its seconds of CPU: other work on the machine does not count. One that
waits for something that does not come is killed by the clock."""


@dataclass(frozen=True, slots=True)
class Task:
    """A mutant, or None for the schemas as they are, its schema directory, and the tests that it gets."""

    mutant: Mutant | None
    subject: Subject
    selection: Selection


@dataclass(frozen=True, slots=True)
class _Running:
    task: Task
    process: multiprocessing.process.BaseProcess
    result: multiprocessing.connection.Connection
    since: float


def outcomes(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, Outcome, float]]:
    """The tasks with their outcomes and seconds, in the order in which they end."""
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(tasks))
    running: list[_Running] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            task = waiting.pop()
            receive, send = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(send, task))
            process.start()
            send.close()
            running.append(_Running(task, process, receive, time.monotonic()))
        multiprocessing.connection.wait([one.result for one in running], timeout=5.0)
        for one in list(running):
            outcome = _ended(one)
            if outcome is not None:
                running.remove(one)
                yield one.task, outcome, time.monotonic() - one.since


def _child(send: multiprocessing.connection.Connection, task: Task) -> None:
    import resource  # there is none where nothing forks

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S + 5))
    send.send(run(task.subject, task.subject.apply(task.mutant), task.selection))


def _ended(one: _Running) -> Outcome | None:
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
