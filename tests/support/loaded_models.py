"""Loads schema directories that have no diagnostic."""

from __future__ import annotations

from pathlib import Path

from codecgen import directories
from codecgen.diagnostics import render
from codecgen.schema.model import Model


def sound(path: Path) -> Model:
    model, found, _ = directories.load(path)
    assert model is not None
    assert render(found, directories.texts_of(model)) == ""
    return model
