"""``codecgen init``: what it writes checks, generates and passes its test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codecgen import starter
from codecgen.cli import main
from codecgen.schema.model import Model
from tests.support.loaded_models import sound

FILES = ["README.md", "schemas/codecgen.yaml", "schemas/message.yaml"]


def begun(*arguments: str, cwd: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.chdir(cwd)
    return main(["init", *arguments])


@pytest.mark.share(ci=2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "uses",
    [
        pytest.param([], id="alone"),
        pytest.param(["--uses", "kafka_codecs"], id="kafka", marks=pytest.mark.slow),
    ],
)
def test_the_steps_that_it_prints_work(
    uses: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert begun("my_format", *uses, cwd=tmp_path, monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    steps = [line.strip() for line in said.split("next:\n")[1].splitlines()]
    assert steps == ["cd my_format", *starter.STEPS]
    assert all(
        f"    {step}\n" in Path("my_format/README.md").read_text("utf-8") for step in steps[1:]
    )
    monkeypatch.chdir(tmp_path / "my_format")
    for step in steps[1:3]:
        assert main(step.split()[1:]) == 0
    python = [sys.executable, *steps[3].split()[1:], "-q", "-p", "no:cacheprovider"]
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        python, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


@pytest.mark.slow
def test_the_first_layout_shows_what_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(
        "audit", "--uses", "kafka_codecs", "--dir", "there", cwd=tmp_path, monkeypatch=monkeypatch
    )
    model: Model = sound(tmp_path / "there" / "schemas")
    assert [f.name for f in model.layouts["message"].fields][
        3
    ] == "kafka_consumer_offsets_record_type"
    assert model.manifest.package == "audit_codecs"


def test_nothing_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("Mine.", "utf-8")
    assert begun("mine", cwd=tmp_path, monkeypatch=monkeypatch) == 2
    assert "README.md already exists" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["README.md"]
    (tmp_path / "mine" / "README.md").rename(tmp_path / "mine" / "notes.txt")
    assert begun("mine", cwd=tmp_path, monkeypatch=monkeypatch) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["Bad-Name"], "is not a valid name"),
        (["../up"], "is not a valid name"),
        (["x"] * 2, "unrecognized arguments"),
        (["y" * 70], "more than 64"),
        (
            ["x", "--uses", "nobody_codecs"],
            "the package nobody_codecs is not installed; install it with pip",
        ),
        (
            ["x", "--uses", "../schemas"],
            "../schemas is not the name of a package; name an installed package",
        ),
    ],
)
def test_what_cannot_be_begun(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert begun(*arguments, cwd=tmp_path, monkeypatch=monkeypatch) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["json", "class", "codecgen", "my_codecs", "a"])
def test_names_that_mean_something_elsewhere_are_good(name: str) -> None:
    files = starter.starter(name, None)
    assert list(files) == [*FILES, f"test_{name}.py"]
    for file, text in files.items():
        if file.endswith(".py"):
            compile(text, file, "exec")
