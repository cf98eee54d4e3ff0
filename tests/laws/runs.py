"""Runs over many random directories: reproducible by a seed, with each finding once, shrunk."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.laws.coverage import used
from tests.laws.directories import directories
from tests.laws.judge import Finding, Verdict, judge
from tests.laws.world import World

BLOCK = 50
"""Directories that are drawn with one seed. Hypothesis varies what it drew before, so that longer blocks see less."""

_QUIET: dict[str, Any] = {
    "database": None,
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
}


@dataclass
class Run:
    """What a run has seen. ``findings`` has the smallest schema for each name, ``seeds`` the block that it is of."""

    schemas: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    findings: dict[str, Finding] = field(default_factory=dict)
    seeds: dict[str, int] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    views: int = 0
    rows: int = 0
    written: int = 0

    def count(self, world: World, verdict: Verdict, block: int) -> None:
        if verdict.rejected:
            self.rejected[verdict.rejected.partition("\n")[0]] += 1
            return
        self.schemas += 1
        self.used |= used(world)
        self.views += verdict.views
        self.rows += verdict.rows
        self.written += verdict.written
        self.refused.update(verdict.refused)
        finding = verdict.finding
        if finding is not None:
            self.found[finding.name] += 1
            known = self.findings.get(finding.name)
            if known is None or len(finding.schema) < len(known.schema):
                self.findings[finding.name] = finding
                self.seeds[finding.name] = block


def run(
    schemas: int,
    first_seed: int,
    seconds: float = 1e9,
    progress: Callable[[Run], None] | None = None,
) -> Run:
    """Judge so many directories that `check` accepts."""
    result = Run()
    begin = time.monotonic()
    block = first_seed * 1_000_000
    while result.schemas < schemas and time.monotonic() - begin < seconds:
        block_of(block, partial(_counted, result, block), (Phase.generate,))
        block += 1
        if progress is not None:
            progress(result)
    return result


def _counted(result: Run, block: int, world: World) -> None:
    result.count(world, judge(world), block)


def block_of(
    number: int,
    look: Callable[[World], None],
    phases: tuple[Phase, ...],
    views: bool | None = None,
) -> None:
    """Show the directories of one seed to a function."""

    @seed(number)
    @settings(max_examples=BLOCK, phases=phases, **_QUIET)
    @given(directories(views))
    def each(world: World) -> None:
        look(world)

    each()


class _Found(Exception):
    pass


def shrunk(finding: Finding, block: int, seconds: float = 60.0) -> Finding:
    """The finding in the smallest directory that Hypothesis comes to in some time."""
    best = finding
    end = time.monotonic() + seconds

    def look(world: World) -> None:
        nonlocal best
        if time.monotonic() > end:
            return
        verdict = judge(world, thorough=2)
        if verdict.finding is not None and verdict.finding.name == finding.name:
            if len(verdict.finding.schema) <= len(best.schema):
                best = verdict.finding
            raise _Found

    try:
        block_of(block, look, (Phase.generate, Phase.shrink))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
    return best
