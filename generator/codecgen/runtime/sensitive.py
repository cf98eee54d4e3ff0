"""Values that are secrets, such as passwords: which they are, so that programs can hide them from people who read."""

from __future__ import annotations

from dataclasses import dataclass

REDACTED = "(redacted)"
"""What stands in the place of a value that is hidden."""


@dataclass(frozen=True, slots=True)
class Sensitive:
    """Says that a field or a column is a secret: always, or where the field or the column ``named_by`` names it with one of the ``endings``."""

    named_by: str | None = None
    endings: tuple[str, ...] = ()

    def covers(self, name: str | None) -> bool:
        """Return whether the value is a secret that has this name. Case does not matter; a value without a name is one."""
        if self.named_by is None or name is None:
            return True
        return name.lower().endswith(self.endings)


__all__ = ["REDACTED", "Sensitive"]
