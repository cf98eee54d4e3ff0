"""A bound on the processor time of a step, which the load of the machine hardly changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def limit_cpu_time(seconds: float) -> Iterator[None]:
    """Fail if the block takes more than `seconds` of this process's processor time."""
    begin = time.process_time()
    yield
    taken = time.process_time() - begin
    assert taken < seconds, f"took {taken:.1f} s of processor time"
