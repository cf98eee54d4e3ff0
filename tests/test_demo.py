"""The demo, in an environment that is there: answers first, on one screen, and nothing of the machinery."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

MOST = 50
"""Lines that it prints."""

_spec = importlib.util.spec_from_file_location("chores", ROOT / "demo" / "run.py")
assert _spec is not None and _spec.loader is not None
chores = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(chores)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the environment is a shell script")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """One that has all that the demo wants: this one."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    extras = {"spark", "generate", "fast"}
    (tmp_path / "venv" / "installed.txt").write_text(chores.stamp_text(extras))
    path = os.pathsep.join(p for p in sys.path if p)
    return os.environ | {"VENV": str(tmp_path / "venv"), "PYTHONPATH": path}


@pytest.mark.slow
@pytest.mark.soak
def test_it_fits_a_screen(environment: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "demo" / "run.py"), "demo", "--output"]
    done = subprocess.run(
        [*command, str(tmp_path / "parquet")],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert len(lines) <= MOST, done.stdout
    assert lines[0] == "Kafka's log directories, read without a broker:"
    questions = [line for line in lines if line.startswith("== ")]
    assert questions[0] == "== Which transactions are open, and do they hang?"
    for word in ("note[", "WARN", "codecgen", "generated", "unchanged", "Traceback"):
        assert word not in done.stdout
    assert any("tx-hanging" in line for line in lines)
    assert "Try next" in done.stdout
    assert list((tmp_path / "parquet" / "records").glob("*.parquet"))


@pytest.mark.slow
def test_what_is_made_anew_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The real generator, into an empty place and again."""
    out = tmp_path / "generated"
    command = [sys.executable, "-m", "codecgen", "generate", str(ROOT / "schemas"), "--out"]
    monkeypatch.setattr(chores, "GENERATE", [*command, str(out), "--targets", "construct"])
    path = os.pathsep.join(p for p in sys.path if p)
    monkeypatch.setenv("PYTHONPATH", path)
    chores.codecs()
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("The codecs are made anew from schemas/ (")
    chores.codecs()
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(chores, "GENERATE", [*command, str(out), "--targets", "nothing"])
    with pytest.raises(chores.ChoreError, match="nothing"):
        chores.codecs()
