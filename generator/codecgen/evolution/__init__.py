"""Compare two states of a schema directory, and judge which changes break old readers or old data."""

from codecgen.evolution.changes import Change
from codecgen.evolution.comparison import compare_models

__all__ = ["Change", "compare_models"]
