"""Marks of secret values, such as passwords, so that programs can hide them."""

from __future__ import annotations

from dataclasses import dataclass

REDACTED = "(redacted)"
"""What stands in the place of a value that is hidden."""


@dataclass(frozen=True, slots=True)
class Sensitive:
    """Marks a field or column as secret: always, or only if the field ``named_by`` holds a name with one of the
    ``endings``.
    """

    named_by: str | None = None
    endings: tuple[str, ...] = ()

    def covers(self, name: str | None) -> bool:
        """Return whether the value with this name is secret. Case does not matter; a value without a name is secret."""
        if self.named_by is None or name is None:
            return True
        return name.lower().endswith(self.endings)


__all__ = ["REDACTED", "Sensitive"]
