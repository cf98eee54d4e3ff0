"""How many examples of a law are tried, by the profile that HYPOTHESIS_PROFILE names: by Hypothesis, and by laws that draw from a seed."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

EXAMPLES = {"quick": 20, "full": 30, "soak": 200, "thorough": 1000}
"""Examples of a law that names no number: while working, in CI, in the soak, and of some laws in the soak."""
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
FEW = 10
SEED = int(os.environ.get("LAWS_SEED", "0"))
"""The seed of the soak, which differs each day; elsewhere 0."""


def register_profiles() -> None:
    """Register the profiles and load the one that HYPOTHESIS_PROFILE names.

    `full` is CI's: the same commit always gives the same examples.
    """
    for profile, count in EXAMPLES.items():
        settings.register_profile(
            profile,
            deadline=None,
            max_examples=count,
            derandomize=profile == "full",
            suppress_health_check=[HealthCheck.too_slow],
        )
    settings.load_profile(PROFILE)
    if PROFILE == "full":
        # Hypothesis also draws constants of the modules that are loaded, and these depend on the tests that ran before.
        providers._get_local_constants = lambda: providers._local_constants


def examples(count: int) -> settings:
    """Return settings for `count` examples of a law. Of more than a few, the quick run takes a third and CI a half.

    How many of the drawn examples a law has no use for is a matter of chance, and no failure.
    """
    part = {"soak": 1, "thorough": 1, "full": 2}.get(PROFILE, 3)
    return settings(
        max_examples=min(count, max(FEW, count // part)),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


def draw_seeds(count: int, first: int = 0) -> range:
    """Return `count` seeds of a random test: `first` and those after it, but in the soak seeds that differ each day.

    Use them as parameters, so that the name of a failing test has the seed. `LAWS_SEED`, which the soak prints, gives them again.
    """
    begin = first + SEED * count
    return range(begin, begin + count)


def later_seeds(quick: int, many: int) -> range:
    """Return the seeds of a law's long run, whose first `quick` seeds are tried all the time.

    CI goes on to a thirty-second of `many`, always the same seeds. The soak tries `many` that depend on its seed.
    """
    if PROFILE in ("soak", "thorough"):
        return range(SEED * many + quick, (SEED + 1) * many)
    return range(quick, max(quick + 1, many // 32))
