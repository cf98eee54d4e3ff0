"""Which tier a test belongs to.

- quick: `make test` runs these.
- ci: `TIER=ci make test` runs these too, as `.ci/run` does. They have the mark `slow` or `broker`. They take turns: a commit
  runs one half of them, which its hash chooses.
- soak: only `make soak` runs these. They have the mark `soak`, and `slow` with it.

The mark `share` puts the parameters of one test into several tiers.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from pathlib import PurePosixPath

import pytest

QUICK = "not slow and not broker"
CI = "not soak"
"""What pytest's option -m selects: quick tests, and all that CI runs."""

WHOLLY_SLOW = re.compile(r"^pytestmark = .*\bmark\.(slow|broker|soak)\b", re.MULTILINE)
WHOLLY_SOAK = re.compile(r"^pytestmark = .*\bmark\.soak\b", re.MULTILINE)
CI_TAKES_ONE_OF = 3
"""Of parameters that `share` makes slow, where it does not say another number."""
LONGEST_NAME = 60
"""Tests that go through files cut longer names off at the left."""
EVERY_PARAMETER = "TESTS_EVERY_PARAMETER"
"""The variable with which `share` makes no parameter slow: mutants have to get past all of them."""
REFERENCE_FOLDERS = (
    "samples/",
    "schemas/",
    "tests/data/",
    "tests/vectors/",
    "docs/tool/",
    "docs/how-to/",
)


def has_no_test(text: str, expression: str) -> bool:
    """Return whether a test file with this text certainly has no test that `expression` (one of the above) selects."""
    wholly = {QUICK: WHOLLY_SLOW, CI: WHOLLY_SOAK}.get(expression)
    return wholly is not None and wholly.search(text) is not None


def tier(item: pytest.Item) -> str:
    """Return `quick`, `ci` or `soak`."""
    if item.get_closest_marker("soak"):
        return "soak"
    return "ci" if item.get_closest_marker("slow") or item.get_closest_marker("broker") else "quick"


def mark_tiers(
    items: Sequence[pytest.Item], changed: Collection[str], turn: int | None = None
) -> None:
    """Mark the items as `share` says, then those of CI whose turn (0 or 1) is the other one as `soak`, unless `turn` is None or
    their file is in `changed`. What is `soak` becomes `slow` as well.

    `share(18)`: of the parameters of a test that are not slow anyway, the first of each 18 stays quick, the others become slow,
    and CI runs a third of them. `share(18, ci=9)`: CI runs a ninth, and with `ci=0` nothing. `share(ci=9)`: a ninth of a
    test's slow parameters. The rest is left to the soak. A hash of the test's name, without its file, chooses what CI runs.
    A parameter that names a file in `changed` stays in CI.
    """
    names = changed_names(changed)
    for _, group in groupby(items, key=lambda item: item.nodeid.partition("[")[0]):
        of_test = list(group)
        _mark_slow(of_test)
        _mark_soak(of_test, names)
    if turn is not None:
        for file, group in groupby(items, key=lambda item: item.nodeid.partition("::")[0]):
            if file not in changed:
                _mark_other_turn(file, group, turn)
    for item in items:
        if item.get_closest_marker("soak") and not item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.slow)


def _mark_slow(items: Iterable[pytest.Item]) -> None:
    seen = 0
    for item in items:
        every = _share(item)[0]
        if every and tier(item) == "quick":
            if seen % every:
                item.add_marker(pytest.mark.slow)
            seen += 1


def _mark_soak(items: Iterable[pytest.Item], names: Collection[str]) -> None:
    for place, item in enumerate(slow := _draw_slow(items)):
        every = _share(item)[1]
        chosen = every > 0 and place < -(-len(slow) // every)
        if not chosen and not names_a_changed_file(item.nodeid, names):
            item.add_marker(pytest.mark.soak)


def _mark_other_turn(file: str, items: Iterable[pytest.Item], turn: int) -> None:
    """Mark every other one of a file's slow tests."""
    for place, item in enumerate(_draw_slow(items), zlib.crc32(file.encode())):
        if place % 2 != turn:
            item.add_marker(pytest.mark.soak)


def _draw_slow(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the items of CI that are not quick, in the order of a hash of their names without the file."""
    slow = [item for item in items if tier(item) == "ci"]
    return sorted(slow, key=lambda item: zlib.crc32(item.nodeid.partition("::")[2].encode()))


def _share(item: pytest.Item) -> tuple[int, int]:
    """Return the two numbers of the mark `share`: every how many parameters are quick (0: none is made slow), and in CI."""
    mark = item.get_closest_marker("share")
    if mark is None:
        return 0, 1
    (quick,) = mark.args or (0,)
    return quick, mark.kwargs.get("ci", CI_TAKES_ONE_OF if quick else 1)


def changed_names(changed: Collection[str]) -> frozenset[str]:
    """Return the names by which parameters call the reference files among `changed`: folder and stem, or the stem alone."""
    files = [PurePosixPath(path) for path in changed if path.startswith(REFERENCE_FOLDERS)]
    stems = {path.stem for path in files if not path.stem.isdecimal()}
    return frozenset(stems | {f"{path.parent.name}-{path.stem}" for path in files})


def names_a_changed_file(nodeid: str, names: Collection[str]) -> bool:
    """Return whether the parameter of a test names one of the files."""
    parameter = nodeid.partition("[")[2].replace("/", "-")
    return any(name[-LONGEST_NAME:] in parameter for name in names)
