"""The answers of a checklist: what each step found, and what they mean together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """What a step found."""

    GOOD = "good"
    FAILED = "failed"
    OPEN = "open"
    """A person has to fill something in."""
    NOT_RUN = "not run"
    """This machine cannot run the step, so nothing is known."""


@dataclass(frozen=True)
class Result:
    """What one step found.

    Attributes:
        step: Name of the step.
        state: What the step found.
        details: Lines that say what is wrong, what to fill in, or why the step did not run.
    """

    step: str
    state: State
    details: tuple[str, ...] = ()


class StepError(Exception):
    """Raised by a step that fails.

    Attributes:
        details: Lines that say what is wrong.
    """

    def __init__(self, *details: str) -> None:
        super().__init__("\n".join(details))
        self.details = details


class NotRun(Exception):
    """Raised by a step that this machine cannot run. Its text says why."""


def run_step(
    step: str, check: Callable[[], Sequence[str]], problem: State = State.FAILED
) -> Result:
    """Run a step, print what it found, and return it.

    Args:
        step: Name of the step.
        check: Returns lines about problems; no lines if everything is good.
        problem: State of the step if there are such lines.
    """
    try:
        details = tuple(check())
        result = Result(step, problem if details else State.GOOD, details)
    except StepError as error:
        result = Result(step, State.FAILED, error.details)
    except NotRun as error:
        result = Result(step, State.NOT_RUN, (str(error),))
    print(f"{result.state:8} {step}", flush=True)
    for line in result.details:
        print(f"         {line}", flush=True)
    return result


def summarize(results: Sequence[Result]) -> str:
    """Return `complete` if every step is good, else how many steps are in each other state."""
    if results and all(result.state is State.GOOD for result in results):
        return "complete"
    counts = [
        f"{sum(result.state is state for result in results)} {state}"
        for state in State
        if any(result.state is state for result in results)
    ]
    return f"not complete: {', '.join(counts) or 'no step ran'}"
