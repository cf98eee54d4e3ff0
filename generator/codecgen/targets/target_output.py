"""The result of running a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codecgen.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class Emitted:
    """Files of a target, or the errors because of which no file is written.

    Attributes:
        files: Text by path (relative to the output directory, with ``/``).
        diagnostics: Errors. If there are any, no target's files are written.
        notes: Features that the files leave out, with their place in YAML, such as views that only reference codecs
            read.
        warnings: Features that the files leave out, a line each.
    """

    files: Mapping[str, str]
    diagnostics: tuple[Diagnostic, ...] = field(default=())
    notes: tuple[Diagnostic, ...] = field(default=())
    warnings: tuple[str, ...] = field(default=())
