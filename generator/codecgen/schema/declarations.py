"""What a schema directory declares, and what the directories declare that it uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class Declarations(Mapping[str, T], Generic[T]):
    """Declarations by name. Going through them gives those of the directory itself; a look-up also finds what it uses
    (``weather.reading``), of which only its own directory makes codecs and pages."""

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
    """What other directories declare of them."""
    return declarations.used if isinstance(declarations, Declarations) else {}


def is_used(name: str) -> bool:
    """Whether a name is that of another directory's declaration."""
    return "." in name
