"""Completion in shells: the scripts are loaded by the shells that there are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codecgen.runtime.completion import SHELLS
from kafka_log.cli import COMMANDS
from tests.paths import ROOT

MODULES = {"kafka-log": "kafka_log", "codecgen": "codecgen"}


def script(command: str, shell: str) -> str:
    roots = [str(ROOT / name) for name in ("generator", "generated", "pipeline")]
    path = os.pathsep.join([*roots, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", MODULES[command], "completion", shell],
        env={**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def bash(text: str, command: str, cwd: Path, *words: str) -> set[str]:
    """What bash offers for the last word of a line."""
    quoted = " ".join(f"'{word}'" for word in (command, *words))
    asked = f"""{text}
        COMP_WORDS=({quoted}); COMP_CWORD={len(words)}
        COMP_LINE="${{COMP_WORDS[*]}}"; COMP_POINT=${{#COMP_LINE}}
        offered=$(complete -p {command}); [[ $offered =~ -F\\ ([^ ]+) ]]
        "${{BASH_REMATCH[1]}}" {command} "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", asked], cwd=cwd, capture_output=True, text=True)
    return {line.strip() for line in done.stdout.splitlines()} - {""}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_offers_commands_options_choices_and_files(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    text = script("kafka-log", "bash")
    assert set(COMMANDS) <= bash(text, "kafka-log", tmp_path, "")
    assert bash(text, "kafka-log", tmp_path, "che") == {"check"}
    assert "--segments" in bash(text, "kafka-log", tmp_path, "ls", "--seg")
    assert bash(text, "kafka-log", tmp_path, "txn", "--state", "h") == {"hanging"}
    assert any("orders-0" in word for word in bash(text, "kafka-log", tmp_path, "ls", "ord"))
    text = script("codecgen", "bash")
    assert bash(text, "codecgen", tmp_path, "gen") == {"generate"}
    assert "--targets" in bash(text, "codecgen", tmp_path, "generate", "--t")


@pytest.mark.share(6)
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("command", MODULES)
def test_each_shell_can_read_its_script(command: str, shell: str, tmp_path: Path) -> None:
    text = script(command, shell)
    assert command in text
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    file = tmp_path / "script"
    file.write_text(text, encoding="utf-8")
    assert subprocess.run([shell, "-n", str(file)], check=False).returncode == 0
