"""What work leaves to Python's search for cycles of references."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.brokers.mutant_bytes import entries, put, sealed
from tests.paths import SAMPLES

OURS = ("codecgen", "kafka_codecs", "kafka_log", "pyspark_kafka_log", "ctypes", "numpy")


def garbage(work: Callable[[], object]) -> list[str]:
    """The types of what is found in cycles after some work, as far as they are ours.

    What was there before stands aside, so that Python has little to look through.
    """
    work()  # what is loaded and kept once
    gc.disable()
    gc.freeze()
    try:
        work()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kinds = {type(found) for found in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    return sorted(name for name in names if name.startswith(OURS))


def damaged_partition(directory: Path) -> Path:
    """A partition of a broker with a count that is too large in each batch, and another bit in one of them."""
    path = directory / "codecs-2"
    shutil.copytree(SAMPLES / "kafka-4.x" / "codecs-2", path)
    for file in path.glob("*.log"):
        parts = [sealed(put(entry, 57, 9_999, 4)) for entry in entries(file.read_bytes())]
        parts[1] = parts[1][:-9] + bytes((parts[1][-9] ^ 1,)) + parts[1][-8:]
        file.write_bytes(b"".join(parts))
    return path
