"""The kernels between guard pages and with every access checked, for about a minute; tests.fuzz.decode runs for longer."""

from __future__ import annotations

import ctypes
import multiprocessing
import random
import signal
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from kafka_codecs.arrow import records_kernels
from kafka_codecs.arrow.records import RECORDS
from tests.fuzz import decode, mutants
from tests.fuzz.checked import Broken, Ranges, checked
from tests.fuzz.guards import AVAILABLE, PAGE, Guarded
from tests.fuzz.probe import Probe, Settings
from tests.shares import draw_seeds

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not AVAILABLE, reason="guard pages are there on Linux only"),
]
BATCHES = 120_000
SECONDS = 15.0


@pytest.mark.parametrize(
    "checks",
    [
        pytest.param(False, id="guard pages"),
        pytest.param(True, id="checked accesses", marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize("seed", draw_seeds(1, first=1))
def test_mutated_batches(checks: bool, seed: int, tmp_path: Path) -> None:
    job = decode.Job(seed, batches=BATCHES, seconds=SECONDS, checks=checks, compare=60)
    wrong = decode.fuzz(job, tmp_path, quiet=True)
    assert wrong is None, wrong


def touch(before: int, after: int) -> None:
    """Read what lies around a page that is placed at one end."""
    memory = Guarded("end", PAGE)
    address = memory.place(100)
    assert ctypes.string_at(address, 100) == bytes(100)
    ctypes.string_at(memory.first - before, 1)
    ctypes.string_at(address + 99 + after, 1)


@pytest.mark.parametrize(("before", "after"), [(0, 0), (1, 0), (0, 1)])
def test_a_step_beyond_a_page_ends_the_process(before: int, after: int) -> None:
    process = multiprocessing.get_context("spawn").Process(target=touch, args=(before, after))
    process.start()
    process.join()
    assert process.exitcode == (-signal.SIGSEGV if before or after else 0)


def without(text: str) -> Callable[[str], str]:
    """An edit that takes a check out of the kernels."""
    return lambda source: source.replace(text, "if False:\n")


MISSING = {
    "value": "if item_value > end_of_attributes - p:\n",
    "room for values": "if item_value > value_room - value_at:\n",
}


@pytest.mark.soak
@pytest.mark.parametrize("name", MISSING)
def test_a_check_that_is_missing_is_found(name: str, tmp_path: Path) -> None:
    ranges = Ranges()
    kernels: ModuleType = checked(records_kernels, ranges, tmp_path, without(MISSING[name]))
    probe = Probe(RECORDS, "end", kernels, ranges)
    made = mutants.Mutants(decompressed=1 << 16, bases=100)
    r = random.Random(4)
    with pytest.raises(Broken):
        for _ in range(50_000):
            mutant = made.v2(r)
            probe.run(mutant.data, mutant.starts, Settings(checks=True), full=False)
