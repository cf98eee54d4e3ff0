"""Well-formed reference segments, the smallest first."""

from __future__ import annotations

from tests.paths import VECTORS
from tests.support.vector_segments import DIFFERENCES, well_formed

FILES = sorted(
    (file for file in well_formed() if file not in DIFFERENCES),
    key=lambda file: (VECTORS / file).stat().st_size,
)
