"""Changes between two states of a schema directory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from codecgen.diagnostics import Span

Group = Literal["bytes", "names", "documentation"]
GROUPS: tuple[Group, ...] = ("bytes", "names", "documentation")
Side = Literal["old", "new"]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two states of a schema directory.

    Attributes:
        group: What the change concerns: the bytes, the API of the generated package, or documentation.
        path: The declaration, with dots between its parts: ``reading.temperature``.
        message: What changed, as a sentence without the path and without a period.
        rule: The id of the rule that the change breaks (``B006``), or ``""`` for an allowed change.
        is_certain: False if the bytes may be equal, because two expressions are written differently.
        versions: The versions of the layout that the change concerns, ascending; ``()`` for all.
        span: The place in the YAML, or None.
        side: The state that ``span`` belongs to.
    """

    group: Group
    path: str
    message: str
    rule: str = ""
    is_certain: bool = True
    versions: tuple[int, ...] = ()
    span: Span | None = None
    side: Side = "new"

    @property
    def is_breaking(self) -> bool:
        """Return whether old readers or old data may not survive the change."""
        return self.rule != ""

    @property
    def subject(self) -> str:
        """Return the path with its versions, as in ``reading.temperature, versions 0 and 1``, or
        the path alone if the change is not about versions.
        """
        if not self.versions:
            return self.path
        numbers = [str(version) for version in self.versions]
        *first, last = numbers
        listed = f"{', '.join(first)} and {last}" if first else last
        return f"{self.path}, version{'s' if first else ''} {listed}"


def merge_versions(changes: Iterable[Change]) -> list[Change]:
    """Return the changes in order of first occurrence, without repetitions. Changes that are equal
    except for their versions become one, with the versions in ascending order.
    """
    merged: dict[Change, list[int]] = {}
    for change in changes:
        key = replace(change, versions=())
        versions = merged.setdefault(key, [])
        versions += [version for version in change.versions if version not in versions]
    return [replace(key, versions=tuple(sorted(found))) for key, found in merged.items()]
