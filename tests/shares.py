"""What the quick run takes a share of: parameters, whose others are for the slow run, and examples of laws, of which
HYPOTHESIS_PROFILE=full takes all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
FEW = 10


def share(parameters: Iterable[Any], every: int) -> list[Any]:
    """The parameters, tuples for several at once: the first of each ``every`` is quick."""
    return [
        pytest.param(
            *(parameter if isinstance(parameter, tuple) else (parameter,)),
            marks=[pytest.mark.slow] * (i % every > 0),
        )
        for i, parameter in enumerate(parameters)
    ]


def examples(count: int) -> settings:
    """So many examples of a law; of more than a few, a third in the quick run. How many of those that are drawn a law has no use for is a
    matter of chance, and no failure."""
    full = PROFILE in ("full", "thorough")
    return settings(
        max_examples=count if full else min(count, max(FEW, count // 3)),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
