"""A version of batches with two compressed sections, keys and values: YAML alone, added to a copy of the schemas."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.paths import ROOT

MAGIC = 3
SCHEMAS = ROOT / "tests" / "data" / "batches" / "two_sections"


def add_to(schemas: Path) -> None:
    """Add the version to schemas: its layouts, a case of the choice, and the rows that it has in the views."""
    for path in sorted((SCHEMAS / "records").glob("*.yaml")):
        shutil.copyfile(path, schemas / "records" / path.name)
    entry = schemas / "records" / "log_entry.yaml"
    entry.write_text(entry.read_text("utf-8").rstrip() + f"\n  {MAGIC}: split_batch\n", "utf-8")
    for path in sorted((SCHEMAS / "views").glob("*.yaml")):
        view = schemas / "views" / path.name
        view.write_text(
            view.read_text("utf-8").rstrip() + "\n\n" + path.read_text("utf-8"), "utf-8"
        )
