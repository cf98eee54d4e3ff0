"""Small schema directories for tests."""

from __future__ import annotations

from functools import cache
from typing import Any

from codecgen.check import run
from codecgen.diagnostics import Diagnostic, render
from codecgen.plan import Plan, make_plan
from codecgen.schema import loader
from codecgen.schema.model import Model
from codecgen.targets import arrow
from codecgen.targets.live_codecs import load_codecs
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


def codecs_of(plan: Plan, path: str = "case.yaml") -> Any:
    """The module of codecs that is generated from a schema file, in memory. No target refuses anything."""
    found, refused = load_codecs(plan)
    assert found is not None and not refused
    return found.module(path)


def unread_by_kernels(model: Model) -> list[Diagnostic]:
    """Return the notes on views, and on layouts of views, that kernels cannot read. Descriptions of such views say so, and
    nothing is an error.
    """
    emitted = arrow.emit(make_plan(model))
    assert not emitted.diagnostics
    notes = [d for d in emitted.notes if "read by the reference codecs" in d.help]
    whole = [d for d in notes if "is read by the reference codecs" in d.help]
    described = [text for text in emitted.files.values() if "kernels=None" in text]
    assert len(described) == len(whole)
    assert all(d.code == "C023" for d in notes)
    return notes


@cache
def our_model() -> Model:
    """The model of this repository's schemas. Other tests check them."""
    model, found = loader.load(loader.read_files(SCHEMAS))
    assert model is not None and not found
    return model
