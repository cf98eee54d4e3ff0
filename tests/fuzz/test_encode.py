"""The kernels that write, between guard pages and with every access checked, for about half a minute; tests.fuzz.encode
runs for longer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codecgen.runtime.arrow import encoder
from tests.fuzz import encode
from tests.fuzz.checked import Broken
from tests.fuzz.guards import AVAILABLE
from tests.fuzz.made_tables import case
from tests.fuzz.probe_encode import EncoderProbes
from tests.fuzz.watch import Shared
from tests.shares import draw_seeds

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not AVAILABLE, reason="guard pages are there on Linux only"),
]
TABLES = 2000
SECONDS = 10.0


@pytest.mark.parametrize(
    "checks",
    [
        pytest.param(False, id="guard pages"),
        pytest.param(True, id="checked accesses", marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize("seed", draw_seeds(1, first=1))
def test_tables_of_any_kind(checks: bool, seed: int) -> None:
    job = encode.Job(seed, tables=TABLES, seconds=SECONDS, checks=checks)
    wrong = encode.fuzz(job, quiet=True)
    assert wrong is None, wrong


def changed(before: str, after: str) -> Callable[[str], str]:
    """An edit of the kernels, or of their primitives."""
    return lambda source: source.replace(before, after)


FAULTS = {
    "copies beyond the end of a buffer": (
        "if start + size + 32 <= end:",
        "if start + size <= end:",
        "the kernels read \\d+ bytes at",
    ),
    "looks at text beyond the end": (
        "if start + size + 8 <= end:",
        "if start + size <= end + 8:",
        "the kernels read 8 bytes at",
    ),
    "forgets where bits begin": ("is_null(key_validity, key_bit + row)", "is_null(key_validity, row)", "the kernels|key is"),
    "takes a last row that differs": (
        "        entry_max_timestamp = before_entry_max_timestamp\n",
        "        pass\n",
        "from byte",
    ),
}  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder, "ENTRIES", encoder.ENTRIES)  # probes make it smaller
    before, after, message = FAULTS[name]
    probes = EncoderProbes(tmp_path, changed(before, after))
    job = encode.Job(seed=3, checks=True)
    with pytest.raises(Broken, match=message):
        for number in range(3000):
            if case(3, number).settings.magic == 2:  # the others would have to be compiled
                shared = Shared(encode.COUNTS)
                encode.one(probes, job, 3, number, shared, number % 5 == 0)
