"""What a target gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codecgen.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class Emitted:
    """The files of a target, or the findings because of which nothing may be written.

    Attributes:
        files: Path (``/`` between the parts, relative to the output directory) -> text.
        diagnostics: Errors. If there are any, no target's files are written.
        notes: What the files leave out, with its place in YAML: views that only the reference codecs read, for example.
        warnings: What the files leave out, a line each.
    """

    files: Mapping[str, str]
    diagnostics: tuple[Diagnostic, ...] = field(default=())
    notes: tuple[Diagnostic, ...] = field(default=())
    warnings: tuple[str, ...] = field(default=())
