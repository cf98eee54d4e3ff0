"""How a mutant ended, and what a process that tries one needs of pytest and Hypothesis. Imports nothing of what is mutated."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

import hypothesis
import pytest

End = Literal["rejected", "examples", "crashed", "killed", "survived"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a mutant ended, and what ended it: a diagnostic, an exception of the generator's, a test."""

    end: End
    by: str = ""


class FirstFailure:
    """A pytest plugin that remembers the first test that fails, in `name`."""

    def __init__(self) -> None:
        self.name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.name:
            self.name = f"{report.nodeid} (import)"


def register_profile() -> None:
    """Let laws in this process try few examples, the same for each mutant, and not look for the smallest one that fails."""
    hypothesis.settings.register_profile(
        "mutants",
        deadline=None,
        max_examples=25,
        derandomize=True,
        database=None,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
