"""Base of generated enums."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import cache
from typing import Any, Self


class Enumeration(IntEnum):
    """A number with a name and with a ``label``, its spelling in the format's own documents."""

    @property
    def label(self) -> str:
        """Return the spelling of the format's own documents, or the name in lower case."""
        labels: dict[str, str] = getattr(type(self), "LABELS", dict)()
        return labels.get(self.name, self.name.lower())

    @classmethod
    def find(cls, value: Any) -> Self | None:
        """Return the member for a member, a number, a name or a label (case does not matter).
        Return None if there is none, also for a bool and for any other type.
        """
        if isinstance(value, str):
            return cls._by_name().get(value.lower())
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        found = cls._value2member_map_.get(int(value))
        return found if isinstance(found, cls) else None

    @classmethod
    @cache
    def _by_name(cls) -> dict[str, Self]:
        """Return the members by name and by label, in lower case; of several the first one."""
        out: dict[str, Self] = {}
        for member in cls:
            out.setdefault(member.name.lower(), member)
            out.setdefault(member.label.lower(), member)
        return out


def describe_number(value: int) -> str:
    """Return a number for a message, with its label if it is a member of an enum."""
    label = getattr(value, "label", None)
    return str(int(value)) if label is None else f"{label} ({int(value)})"


def list_numbers(known: Iterable[int]) -> str:
    """Return numbers for a message, ascending and separated by commas; ``""`` for none. Three or
    more consecutive numbers without labels are a range: ``0-2``.
    """
    parts: list[str] = []
    run: list[int] = []
    for number in sorted(known):
        is_plain = getattr(number, "label", None) is None
        if is_plain and run and number == run[-1] + 1:
            run.append(number)
            continue
        parts += _describe_run(run)
        run = [number] if is_plain else []
        parts += [] if is_plain else [describe_number(number)]
    return ", ".join(parts + _describe_run(run))


def _describe_run(numbers: list[int]) -> list[str]:
    """Return consecutive numbers as texts for a message: one range such as ``0-2`` (``-3 to 2`` if
    it begins below zero) if there are three or more, and each of them otherwise.
    """
    if len(numbers) < 3:
        return [str(number) for number in numbers]
    to = " to " if numbers[0] < 0 else "-"
    return [f"{numbers[0]}{to}{numbers[-1]}"]
