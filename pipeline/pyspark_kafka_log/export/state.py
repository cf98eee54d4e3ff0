"""The state of an export: the next offset of each partition, and the definition of the table. Every target keeps one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VERSION = 1

NAMED = 10
"""Maximum number of losses in a message."""

CHANGED = "another export has added to it meanwhile: run the command again"

Ends = Mapping[tuple[str, int], int]
"""The next offset of each topic and partition."""


class ExportError(Exception):
    """An export is not possible. ``target`` is the table."""

    def __init__(self, target: str, reason: str) -> None:
        """Store the name of the target and the reason."""
        super().__init__(target, reason)
        self.target = target
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.target}: {self.reason}"


class DataLossError(ExportError):
    """Records were deleted or replaced before they were exported, or are missing in tiered storage. ``losses`` describes them."""

    def __init__(self, target: str, losses: Sequence[str]) -> None:
        """Store the target and the descriptions of the losses."""
        more = len(losses) - NAMED
        listed = "; ".join(losses[:NAMED]) + (f"; and {more} more" if more > 0 else "")
        super().__init__(target, f"data is lost: {listed}")
        self.losses = tuple(losses)


class TaskError(ExportError):
    """A task has failed; nothing was added. ``reason`` is its message, ``is_damage`` says whether
    it met damage that another policy would read past.
    """

    def __init__(self, reason: str, is_damage: bool) -> None:
        """Store the message, and whether the task met damage."""
        super().__init__("Spark", reason)
        self.is_damage = is_damage

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class State:
    """The state of a table. ``number`` counts the exports that added rows, ``ends`` has the next
    offset to export of each partition, ``definition`` the columns, filters and partition columns.
    """

    number: int
    ends: Ends
    definition: Mapping[str, Any]

    def advance(self, ends: Ends) -> State:
        """Return the state after an export up to ``ends``. Other partitions keep their ends."""
        return State(self.number + 1, {**self.ends, **ends}, self.definition)

    def to_json(self) -> str:
        """Return the state as JSON, with the format's version, the export number, the next offset
        by topic and partition, and the definition.
        """
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
    def from_json(cls, target: str, text: str | bytes) -> State:
        """Return the state of JSON, text or UTF-8. Raise :class:`ExportError`, which names
        ``target``, if it is no JSON, lacks a member, has one of another form, or is of another
        version.
        """
        try:
            whole = json.loads(text)
            if whole["version"] != VERSION:
                raise ExportError(
                    target,
                    f"the state of earlier exports has version {whole['version']!r}, this release reads {VERSION!r}: use"
                    " the release that wrote it, or another table",
                )
            ends = {
                (topic, int(partition)): int(end)
                for topic, partitions in whole["offsets"].items()
                for partition, end in partitions.items()
            }
            return cls(int(whole["number"]), ends, dict(whole["made"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ExportError(
                target,
                f"the state of earlier exports, with the offsets at which to continue, cannot be read: {error};"
                " restore the table, or export to another one",
            ) from None
