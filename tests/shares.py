"""Parameters of which the quick run takes a share, and the slow run the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def share(parameters: Iterable[Any], every: int) -> list[Any]:
    """The parameters: the first of each ``every`` is quick."""
    return [
        pytest.param(parameter, marks=[pytest.mark.slow] * (i % every > 0))
        for i, parameter in enumerate(parameters)
    ]
