"""What the quick run takes a share of: parameters, whose others are for the slow run, and examples of laws, of which
HYPOTHESIS_PROFILE=full takes all."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
FEW = 10


def mark_shares(items: Iterable[pytest.Item]) -> None:
    """``@pytest.mark.share(4)``: of a test's parameters, those that are not slow anyway, the first of each four is quick. The others are marked slow."""
    seen: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("share")
        if mark is None or item.get_closest_marker("slow"):
            continue
        test = item.nodeid.partition("[")[0]
        if seen[test] % mark.args[0]:
            item.add_marker(pytest.mark.slow)
        seen[test] += 1


def examples(count: int) -> settings:
    """So many examples of a law; of more than a few, a third in the quick run. How many of those that are drawn a law has no use for is a
    matter of chance, and no failure."""
    full = PROFILE in ("full", "thorough")
    return settings(
        max_examples=count if full else min(count, max(FEW, count // 3)),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
