"""What work leaves to Python's search for cycles of references."""

from __future__ import annotations

import gc
from collections.abc import Callable

OURS = ("codecgen", "kafka_codecs", "kafka_log", "pyspark_kafka_log", "ctypes", "numpy")


def garbage(work: Callable[[], object]) -> list[str]:
    """The types of what is found in cycles after some work, as far as they are ours."""
    work()  # what is loaded and kept once
    gc.collect()
    gc.disable()
    try:
        work()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kinds = {type(found) for found in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    return sorted(name for name in names if name.startswith(OURS))
