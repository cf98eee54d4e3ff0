"""Small schema directories for tests."""

from __future__ import annotations

from functools import cache

from codecgen.check import run
from codecgen.diagnostics import render
from codecgen.schema import loader
from codecgen.schema.model import Model
from tests.codecgen.goldens import MANIFEST
from tests.paths import SCHEMAS


def model_of(text: str, manifest: str = MANIFEST) -> Model:
    """The model of one file of documents, which must be good."""
    return checked({"codecgen.yaml": manifest, "case.yaml": text})


def checked(files: dict[str, str]) -> Model:
    model, found = loader.load(files)
    assert model is not None
    assert render([*found, *run(model)], files) == ""
    return model


@cache
def our_model() -> Model:
    """The model of this repository's schemas."""
    return checked(loader.read_files(SCHEMAS))
