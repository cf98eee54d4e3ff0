"""What a target gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codecgen.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class Emitted:
    """Files by path (``/`` between the parts, relative to the output directory), or why there are none. ``notes`` and
    ``warnings`` (a line each) say what is left out of them.

    ``partial``: the findings are about single views, and the files are those of the others."""

    files: Mapping[str, str]
    diagnostics: tuple[Diagnostic, ...] = field(default=())
    notes: tuple[Diagnostic, ...] = field(default=())
    warnings: tuple[str, ...] = field(default=())
    partial: bool = False

    @property
    def stops(self) -> bool:
        """Whether nothing is to be written, by no target."""
        return bool(self.diagnostics) and not self.partial
