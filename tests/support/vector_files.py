"""Reference segments that each engine reads, by policy."""

from __future__ import annotations

from pathlib import Path

from tests.paths import SAMPLES, VECTORS

POLICIES = ("strict", "kafka", "salvage")


FILES = sorted(VECTORS.rglob("*.log")) + sorted(SAMPLES.rglob("*.log"))


WELL_FORMED = [
    path
    for path in FILES
    if path.is_relative_to(VECTORS / "matrix") or path.is_relative_to(SAMPLES)
]


def name(path: Path) -> str:
    root = VECTORS if path.is_relative_to(VECTORS) else SAMPLES
    return path.relative_to(root.parent).as_posix()
