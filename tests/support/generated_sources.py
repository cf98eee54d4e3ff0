"""Writes emitted modules to a directory and imports them."""

from __future__ import annotations

from pathlib import Path

from tests.support.other_layouts import emitted


def written(folder: Path, files: dict[str, str]) -> dict[str, str]:
    texts = emitted(files)
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return texts
