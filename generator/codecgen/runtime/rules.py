"""Rules about all fields of a layout together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from codecgen.runtime.errors import describe_value
from codecgen.runtime.located_bytes import Condition


@dataclass(frozen=True, slots=True)
class LayoutRule:
    """A rule about all fields: ``holds`` is true, or the field ``ascending`` ascends from element to element of
    ``array``.

    Attributes:
        about: The field that errors name.
        text: The rule for people.
        array: The array whose elements the rule needs; without elements the rule is met. None: it needs none.
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
        """Return the message if the fields ``this`` break the rule. Return None if they meet it, or
        if the array that the rule needs is empty, null or absent.
        """
        if self.array is not None and not this[self.array]:
            return None
        if self.ascending is not None:
            return self._find_descent(this[self.array])
        if self.holds is None or self.holds(this):
            return None
        value = this.get(self.about)
        shown = f"an array of {len(value)}" if isinstance(value, list) else describe_value(value)
        return f"{self.about} is {shown}: it breaks the rule {self.name} ({self.doc or self.text})"

    def _find_descent(self, items: Any) -> str | None:
        """Return the message for the first element whose number ``ascending`` is not larger than
        that of the element before. Return None if all ascend; comparisons with a missing number are
        skipped.
        """
        numbers = [item.get(self.ascending) for item in items or ()]
        for i, (before, number) in enumerate(pairwise(numbers), 1):
            if before is not None and number is not None and number <= before:
                return (
                    f"{self.array}[{i}].{self.ascending} is {number}, but {before} in the element before: "
                    f"it breaks the rule {self.name} ({self.doc or self.text})"
                )
        return None


__all__ = ["LayoutRule"]
