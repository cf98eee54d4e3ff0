"""Batches that a next version of the log format might have, each as the author of a KIP would write it: YAML alone.

Each directory has the new layouts (``records``), and for views the columns and the rows that are added to them (``columns``,
``rows``).
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.paths import NEXT_BATCHES

MAGIC = 3


def add_batch(name: str, schemas: Path) -> None:
    """Add the batch of a directory to schemas: its layouts, a case of the choice, and what the views show of it."""
    directory = NEXT_BATCHES / name
    for path in sorted(directory.glob("records/*.yaml")):
        shutil.copyfile(path, schemas / "records" / path.name)
    entry = schemas / "records" / "log_entry.yaml"
    entry.write_text(f"{entry.read_text('utf-8').rstrip()}\n  {MAGIC}: {name}_batch\n", "utf-8")
    for path in sorted(directory.glob("rows/*.yaml")):
        view = schemas / "views" / path.name
        text = view.read_text("utf-8")
        rows = re.search(r"  - of: record_batch\n.*?(?=\n  - of: )", text, re.DOTALL)
        assert rows is not None
        text = text.replace(rows[0], f"{rows[0]}\n{path.read_text('utf-8').rstrip()}\n")
        columns = directory / "columns" / path.name
        if columns.exists():
            text = text.replace("\nrows:\n", f"{columns.read_text('utf-8')}\nrows:\n", 1)
        view.write_text(text, "utf-8")
