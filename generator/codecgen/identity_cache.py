"""Cache results of functions of one large immutable object, such as a model or a plan, for the latest objects."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

KEPT = 8
"""How many objects a function keeps results for."""


def cached_by_identity(function: Callable[[K], V]) -> Callable[[K], V]:
    """Return ``function`` with a cache of its results for the ``KEPT`` (8) arguments computed last;
    using a cached result does not keep it longer. Only the very same object finds its result,
    because equal models can differ in their places. The argument must not change afterwards;
    callers share the result and must not change it. Exceptions are not cached.
    """
    results: OrderedDict[int, tuple[K, V]] = OrderedDict()  # the object lives, so its id is its own

    @wraps(function)
    def cached(thing: K) -> V:
        """Return the result of the wrapped function, from the cache if it is there."""
        known = results.get(id(thing))
        if known is None:
            known = thing, function(thing)
            results[id(thing)] = known
            while len(results) > KEPT:
                results.popitem(last=False)
        return known[1]

    return cached


__all__ = ["cached_by_identity"]
