"""Choices that Hypothesis makes, in such a way that the first one is the simplest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


@cache
def _between(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


class Draw:
    """Draws for one schema directory. Shrinking makes every choice the first one that is offered."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def number(self, low: int, high: int) -> int:
        return int(self._draw(_between(low, high))) if high > low else low

    def pick(self, things: Sequence[T]) -> T:
        return things[self.number(0, len(things) - 1)]

    def chance(self, one_in: int) -> bool:
        """True once in so many times."""
        return self.number(0, one_in - 1) == one_in - 1

    def some(self, things: Sequence[T], at_least: int = 0) -> list[T]:
        """Some of the things, in their order."""
        taken = [thing for thing in things if self.chance(2)]
        return taken if len(taken) >= at_least else list(things[:at_least])
