"""Where YAML has something is no part of the kernels: their compiled code outlives a comment in a schema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath

import pytest

from codecgen.check import run
from codecgen.diagnostics import render
from codecgen.plan import make_plan
from codecgen.schema import loader
from codecgen.targets import arrow
from tests.paths import ROOT

pytestmark = pytest.mark.slow
SCHEMAS = ROOT / "schemas"


FILES = loader.read_files(SCHEMAS)


@cache
def kernels(*, commented: bool) -> Mapping[str, str]:
    """The modules of our schemas, whose file number i has i comments on top if they are ``commented``."""
    if not commented:
        return emitted(FILES)
    return emitted({name: "# a comment\n" * i + FILES[name] for i, name in enumerate(FILES, 1)})


def emitted(files: Mapping[str, str]) -> Mapping[str, str]:
    model, found = loader.load(dict(files))
    assert model is not None
    assert render(found + run(model), dict(files)) == ""
    result = arrow.emit(make_plan(model))
    assert not result.diagnostics
    return result.files


def is_description(path: str) -> bool:
    """Whether a module describes a view: what is in it is data, and it has no compiled code."""
    return not PurePosixPath(path).stem.endswith(("_kernels", "_encoders", "_numpy"))


@pytest.mark.soak
def test_comments_on_top_of_all_schemas_change_no_kernel() -> None:
    before = kernels(commented=False)
    assert sum(not is_description(path) for path in before) >= 5
    after = kernels(commented=True)
    changed = {path for path in before if after[path] != before[path]}
    assert changed
    assert all(map(is_description, changed)), changed


def test_the_descriptions_know_the_lines() -> None:
    name = "records/record.yaml"
    added = list(FILES).index(name) + 1
    after = kernels(commented=True)
    before = kernels(commented=False)
    for path in ("kafka_codecs/arrow/records.py", "kafka_codecs/arrow/records_writer.py"):
        line = next(i for i, text in enumerate(FILES[name].split("\n"), 1) if "  headers:" in text)
        assert f'Place("headers", "{name}", {line})' in before[path]
        assert f'Place("headers", "{name}", {line + added})' in after[path]
