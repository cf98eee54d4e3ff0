"""Rules of a layout: what all of its fields together have to meet."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from codecgen.runtime.errors import shown
from codecgen.runtime.located_bytes import Condition


@dataclass(frozen=True, slots=True)
class LayoutRule:
    """A rule of the schema: ``holds`` takes all fields, or the numbers ``ascending`` of the elements of ``array`` ascend.

    ``about`` is the field that errors name, ``text`` the rule for people. ``array`` is the array whose elements the rule asks
    for (None: it asks for no elements); without elements the rule is met.
    """

    name: str
    about: str
    text: str
    line: int = 0
    doc: str = ""
    holds: Condition | None = None
    ascending: str | None = None
    array: str | None = None

    def find_breach(self, this: Any) -> str | None:
        """Return why the fields do not meet the rule; None if they do."""
        if self.array is not None and not this[self.array]:
            return None
        if self.ascending is not None:
            return self._find_descent(this[self.array])
        if self.holds is None or self.holds(this):
            return None
        value = this.get(self.about)
        said = f"an array of {len(value)}" if isinstance(value, list) else shown(value)
        return f"{self.about} is {said}: it breaks the rule {self.name} ({self.doc or self.text})"

    def _find_descent(self, items: Any) -> str | None:
        numbers = [item.get(self.ascending) for item in items or ()]
        for i, (before, number) in enumerate(pairwise(numbers), 1):
            if before is not None and number is not None and number <= before:
                return (
                    f"{self.array}[{i}].{self.ascending} is {number}, but {before} in the element before: "
                    f"it breaks the rule {self.name} ({self.doc or self.text})"
                )
        return None


__all__ = ["LayoutRule"]
