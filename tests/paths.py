"""Where the data of the tests is."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "schemas"
VECTORS = ROOT / "tests" / "vectors"
SAMPLES = ROOT / "samples"
FOREIGN = ROOT / "tests" / "data" / "foreign"
NEXT_BATCHES = ROOT / "tests" / "codecs" / "next_batches"
