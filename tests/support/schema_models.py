"""The model of the schemas of this repository."""

from __future__ import annotations

from functools import cache

from codecgen.schema.loader import load, read_files
from codecgen.schema.model import Model
from tests.paths import SCHEMAS


@cache
def model() -> Model:
    found, diagnostics = load(read_files(SCHEMAS))
    assert found is not None and not diagnostics
    return found
