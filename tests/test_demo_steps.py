"""What the demo says at its end."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import venv
from pathlib import Path

import pytest

from tests.paths import ROOT

_spec = importlib.util.spec_from_file_location("next_steps", ROOT / "demo" / "next_steps.py")
assert _spec is not None and _spec.loader is not None
steps = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(steps)


@pytest.mark.parametrize(
    ("shell", "command"),
    [
        ("/bin/bash", ". '.my venv/bin/activate'"),
        ("", ". '.my venv/bin/activate'"),
        ("/usr/bin/fish", "source '.my venv/bin/activate.fish'"),
        ("/bin/tcsh", "source '.my venv/bin/activate.csh'"),
    ],
)
def test_how_to_enter(shell: str, command: str, tmp_path: Path) -> None:
    there = tmp_path / ".my venv"
    assert steps.entering(there, tmp_path, system="posix", shell=shell) == [command]


def test_how_to_enter_on_windows(tmp_path: Path) -> None:
    found = steps.entering(tmp_path / ".venv", tmp_path, system="nt")
    assert found == [
        ".venv\\Scripts\\Activate.ps1   (PowerShell)",
        ".venv\\Scripts\\activate.bat   (cmd)",
    ]


@pytest.mark.skipif(os.name == "nt", reason="for POSIX shells")
def test_the_command_enters(tmp_path: Path) -> None:
    venv.create(tmp_path / "a venv", with_pip=False)
    (command,) = steps.entering(tmp_path / "a venv", tmp_path)
    done = subprocess.run(
        ["sh", "-c", f"{command} && command -v python"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(tmp_path / "a venv" / "bin" / "python"), done.stderr


def test_commands_name_the_readers_logs(tmp_path: Path) -> None:
    own = steps.next_steps(tmp_path, tmp_path, [Path("/data/my logs")])
    assert "  kafka-log check '/data/my logs'" in own
    assert not any("make demo" in line for line in own)
    assert any("make demo" in line for line in steps.next_steps(tmp_path, tmp_path, []))
