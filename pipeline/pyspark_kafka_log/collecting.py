"""What Spark's daemon has Python's garbage collector do after each task."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 50_000
"""Objects from which on looking through all of them takes longer than 10 ms."""


@contextmanager
def quick_collections() -> Iterator[None]:
    """Around a task: what it has loaded is not looked through again.

    Before a worker of Spark's daemon takes its next task it collects garbage. With PySpark, Arrow and the kernels loaded that takes some 60 ms, as long
    as decoding 30 MiB. So what is left after a first collection stands aside, here and in each task that has loaded much.
    """
    try:
        yield
    finally:
        if len(gc.get_objects()) > MANY:
            gc.collect()
            gc.freeze()
