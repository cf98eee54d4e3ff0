"""Declarations of a schema directory and of the directories that it uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class Declarations(Mapping[str, T], Generic[T]):
    """Declarations by name. Iteration covers the directory itself; look-ups also find used directories."""

    __slots__ = ("own", "used")

    def __init__(self, own: Mapping[str, T], used: Mapping[str, T]) -> None:
        self.own = own
        self.used = used

    def __getitem__(self, name: str) -> T:
        return self.own[name] if name in self.own else self.used[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.own)

    def __len__(self) -> int:
        return len(self.own)


def used_of(declarations: Mapping[str, T]) -> Mapping[str, T]:
    """Return the declarations of used directories, or ``{}`` if ``declarations`` is a plain
    mapping.
    """
    return declarations.used if isinstance(declarations, Declarations) else {}


def is_used(name: str) -> bool:
    """Return whether a name is qualified, so that another directory declares it."""
    return "." in name
