"""Pairs of layout versions that are compared, and what their comparison needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from codecgen.diagnostics import Span
from codecgen.evolution.changes import Change, Side
from codecgen.plan import LayoutPlan, Plan


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
        """Return a change of the bytes in the old version of this pair, or of a layout without
        versions. It breaks nothing if ``rule`` is ``""``; ``certain`` says whether it surely does.
        ``side`` tells whether ``span`` is in the old or new schemas.
        """
        versions = () if self.old.version is None else (self.old.version,)
        return Change("bytes", path, message, rule, certain, versions, span, side)


def select_version(old: LayoutPlan, new: Sequence[LayoutPlan]) -> LayoutPlan | None:
    """Return the layout plan of ``new`` that reads bytes of ``old``: that of the same version, if
    there is one. If ``old`` has no version, return that of the lowest version. If ``old`` has the
    only version of its layout, or ``new`` is of another name, return the plan without version.
    Return None if there is none.
    """
    same = next((plan for plan in new if plan.version == old.version), None)
    if same is not None or not new:
        return same
    if old.version is None:
        return min(new, key=lambda plan: -1 if plan.version is None else plan.version)
    if len(old.layout.all_versions()) == 1 or old.name != new[0].name:
        return next((plan for plan in new if plan.version is None), None)
    return None
