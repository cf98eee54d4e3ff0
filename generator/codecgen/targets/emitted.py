"""What a target gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codecgen.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class Emitted:
    """Files by path (``/`` between the parts, relative to the output directory), or why there are none. ``warnings``
    say in a line each what the files leave out."""

    files: Mapping[str, str]
    diagnostics: tuple[Diagnostic, ...] = field(default=())
    warnings: tuple[str, ...] = field(default=())
