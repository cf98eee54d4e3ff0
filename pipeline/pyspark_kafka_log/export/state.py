"""What an export has behind it: the next offset of each partition, and how it is made. Every target keeps one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VERSION = 1

NAMED = 10
"""Losses that a message names; the others are counted."""

CHANGED = "another export has added to it meanwhile: give the command again"

Ends = Mapping[tuple[str, int], int]
"""The next offset of each topic and partition."""


class ExportError(Exception):
    """Something stands in the way of an export. ``target`` is where it was to go."""

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(target, reason)
        self.target = target
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.target}: {self.reason}"


class DataLossError(ExportError):
    """Records are gone that were not exported yet, or others stand in their place. ``losses`` says which."""

    def __init__(self, target: str, losses: Sequence[str]) -> None:
        more = len(losses) - NAMED
        listed = "; ".join(losses[:NAMED]) + (f"; and {more} more" if more > 0 else "")
        super().__init__(target, f"data is lost since the last export: {listed}")
        self.losses = tuple(losses)


class TaskError(ExportError):
    """A task has failed, most often at damage. ``reason`` is what it says; nothing was added."""

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class State:
    """What is in a target. ``number`` counts the exports that gave it rows; ``made`` says with which columns, filters and partitions."""

    number: int
    ends: Ends
    definition: Mapping[str, Any]

    def advance(self, ends: Ends) -> State:
        """The state when rows up to these ends have been added."""
        return State(self.number + 1, {**self.ends, **ends}, self.definition)

    def to_json(self) -> str:
        """The state as text."""
        offsets: dict[str, dict[str, int]] = {}
        for (topic, partition), end in sorted(self.ends.items()):
            offsets.setdefault(topic, {})[str(partition)] = end
        whole = {
            "version": VERSION,
            "number": self.number,
            "offsets": offsets,
            "made": dict(self.definition),
        }
        return json.dumps(whole, sort_keys=True)

    @classmethod
    def from_json(cls, target: str, text: str) -> State:
        """The state of a text. Raises :class:`ExportError` for one that is none."""
        try:
            whole = json.loads(text)
            if whole["version"] != VERSION:
                raise ExportError(target, f"it was made by another version: {whole['version']!r}")
            ends = {
                (topic, int(partition)): int(end)
                for topic, partitions in whole["offsets"].items()
                for partition, end in partitions.items()
            }
            return cls(int(whole["number"]), ends, dict(whole["made"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ExportError(
                target, f"what is kept of earlier exports cannot be read: {error}"
            ) from None
