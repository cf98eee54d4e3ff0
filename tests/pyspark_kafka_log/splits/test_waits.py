"""Work is shared out to threads where it waits, and only there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafka_log.splits.plan import MIN_WAIT_S, Clock, map_concurrently


def of(steps: list[tuple[float, float]]) -> Clock:
    """A clock of so many seconds, and seconds of work, between one look and the next."""
    looks: Iterator[tuple[float, float]] = accumulate(
        steps, lambda a, b: (a[0] + b[0], a[1] + b[1]), initial=(5.0, 1.0)
    )
    return lambda: next(looks)


def threads_of(count: int, steps: list[tuple[float, float]], waits: bool = False) -> list[bool]:
    """Which of so many items were worked at in another thread."""
    here = threading.get_ident()
    found = map_concurrently(
        lambda i: (i, threading.get_ident() != here), range(count), waits=waits, clock=of(steps)
    )
    assert [i for i, _ in found] == list(range(count))
    return [other for _, other in found]


@pytest.mark.parametrize(
    ("steps", "alone"),
    [
        ([(0.001, 0.001)] * 6, 6),  # nothing is waited for
        ([(MIN_WAIT_S, 0)] + [(0, 0)] * 5, 6),  # not for long
        ([(0.5, 0.3)] * 6, 6),  # it works for longer than it waits
        ([(0.5, 0.2)], 1),
        ([(0.1, 0.1), (0.1, 0.1), (0.5, 0)], 3),
        ([(0.1, 0.1), (0.1, 0.1), (0.1, 0), (0.5, 0)], 4),
    ],
)
def test_others_begin_where_one_waits(steps: list[tuple[float, float]], alone: int) -> None:
    assert threads_of(6, steps) == [False] * alone + [True] * (6 - alone)


def test_what_is_known_to_wait_is_not_tried_out() -> None:
    assert threads_of(6, [], waits=True) == [True] * 6


@pytest.mark.parametrize("waits", [False, True])
def test_one_is_not_worth_a_thread(waits: bool) -> None:
    assert threads_of(1, [(9.0, 0)], waits) == [False]
    assert threads_of(0, [], waits) == []
    assert threads_of(2, [(9.0, 0)]) == [False, False]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=8), st.integers(0, 8))
def test_an_error_is_that_of_the_first(steps: list[tuple[float, float]], at: int) -> None:
    def work(i: int) -> int:
        if i >= at:
            raise ValueError(i)
        return i

    looks = of([*steps, *[(0.0, 0.0)] * 8])
    if at >= 8:
        assert map_concurrently(work, range(8), clock=looks) == list(range(8))
    else:
        with pytest.raises(ValueError, match=f"^{at}$"):
            map_concurrently(work, range(8), clock=looks)
