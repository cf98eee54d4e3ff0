"""Records of targets: each names a function that is there, and the command line takes each name."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.cli import main
from codecgen.plan import make_plan
from codecgen.targets import registry
from codecgen.targets.registry import ON_REQUEST, TARGETS, TEMPLATED, Target
from codecgen.targets.target_output import Emitted
from tests.codecgen.goldens import MANIFEST
from tests.codecgen.schemas import model_of

TEXT = "layout: point\nfields: {x: i16}\n"
PLAN = make_plan(model_of(TEXT))


def emit_module(_: object) -> Emitted:
    """Return a Python module, as a target without templates does."""
    return Emitted({"point.py": "X = 1\n", "point.txt": "x\n"})


def emit_template(_: object, templates: dict[str, str]) -> Emitted:
    """Return the templates as files, as a target with templates does."""
    return Emitted(dict(templates))


PLAIN = Target("plain", f"{__name__}.emit_module")
REPLACED = Target("replaced", f"{__name__}.emit_template", takes_templates=True)


@pytest.mark.parametrize("target", [*TARGETS.values(), *ON_REQUEST.values()], ids=lambda t: t.name)
def test_each_record_names_a_function(target: Target) -> None:
    assert callable(target.load())


def test_groups_of_targets() -> None:
    assert not TARGETS.keys() & ON_REQUEST.keys()
    assert TEMPLATED.keys() <= TARGETS.keys() | ON_REQUEST.keys()


def test_only_modules_of_targets_without_templates_say_their_versions() -> None:
    files = PLAIN(PLAN).files
    assert files["point.py"].startswith("X = 1\n\n\n__made_for__ = ")
    assert files["point.txt"] == "x\n"
    assert REPLACED(PLAN, {"a.py": "A = 1\n"}).files == {"a.py": "A = 1\n"}


def test_a_target_on_request_needs_no_templates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "ON_REQUEST", {**ON_REQUEST, "plain": PLAIN})
    schemas, out = tmp_path / "schemas", tmp_path / "out"
    schemas.mkdir()
    (schemas / "codecgen.yaml").write_text(MANIFEST, encoding="utf-8")
    (schemas / "point.yaml").write_text(TEXT, encoding="utf-8")
    command = ["generate", str(schemas), "--out", str(out), "--targets", "plain"]
    assert main(command) == 0
    assert (out / "point.txt").is_file()
    assert main([*command, "--templates", str(tmp_path)]) == 2
    assert "none of them takes templates" in capsys.readouterr().err
