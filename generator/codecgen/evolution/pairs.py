"""Pairs of layout versions that are compared, and what their comparison needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from codecgen.evolution.changes import Change, Side
from codecgen.plan import LayoutPlan, Plan
from codecgen.schema.types import Span


class HeldComparer(Protocol):
    """Compares layouts that fields hold."""

    def find_incompatibility(
        self, old: Sequence[LayoutPlan], new: Sequence[LayoutPlan]
    ) -> tuple[str, bool]:
        """Return why the bytes of ``old`` are not read as ``new`` (``""`` if they are), and whether that is certain."""
        ...


@dataclass(frozen=True, slots=True)
class LayoutPair:
    """A layout version of the old state and the one that reads its bytes in the new state.

    ``names`` has the new name of each old field that still exists.
    """

    old_plan: Plan
    new_plan: Plan
    old: LayoutPlan
    new: LayoutPlan
    names: Mapping[str, str]
    comparer: HeldComparer

    def change(
        self,
        path: str,
        message: str,
        rule: str,
        span: Span,
        *,
        certain: bool = True,
        side: Side = "new",
    ) -> Change:
        """Return a change of the bytes of this version."""
        versions = () if self.old.version is None else (self.old.version,)
        return Change("bytes", path, message, rule, certain, versions, span, side)


def select_version(old: LayoutPlan, new: Sequence[LayoutPlan]) -> LayoutPlan | None:
    """Return the layout of ``new`` that reads bytes of ``old``: the one in the same version.

    A layout without versions is continued by the lowest version, and the only version by a layout without versions.
    None if there is no such layout.
    """
    same = next((plan for plan in new if plan.version == old.version), None)
    if same is not None or not new:
        return same
    if old.version is None:
        return min(new, key=lambda plan: -1 if plan.version is None else plan.version)
    if len(old.layout.all_versions()) == 1 or old.name != new[0].name:
        return next((plan for plan in new if plan.version is None), None)
    return None
