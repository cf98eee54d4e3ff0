"""Base of generated enums."""

from __future__ import annotations

from enum import IntEnum
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
            wanted = value.lower()
            return next((m for m in cls if wanted in (m.name.lower(), m.label.lower())), None)
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        found = cls._value2member_map_.get(int(value))
        return found if isinstance(found, cls) else None
