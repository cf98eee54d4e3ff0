"""Commands whose working directory was removed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import SAMPLES

LOGS = str(SAMPLES / "kafka-4.x" / "codecs-0")


def run(tmp_path: Path, *words: str) -> tuple[int, str, str]:
    """Run kafka-log in a directory that is gone, and return exit code, output and errors."""
    gone = tmp_path / "gone"
    gone.mkdir()
    code = (
        f"import os, sys; os.rmdir({str(gone)!r}); from kafka_log.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=gone, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [("dump", LOGS, "-n", "1"), ("check", LOGS), ("diff", LOGS, LOGS)],
    ids=lambda words: words[0],
)
def test_absolute_paths(tmp_path: Path, words: tuple[str, ...]) -> None:
    code, out, err = run(tmp_path, *words)
    assert (code, err) == (0, "")
    assert out


@pytest.mark.slow
@pytest.mark.parametrize("command", ["dump", "report"])
def test_relative_paths(tmp_path: Path, command: str) -> None:
    options = ("--out", "page.html") if command == "report" else ()
    code, out, err = run(tmp_path, command, LOGS if options else "codecs-0", *options)
    assert (code, out) == (2, "")
    assert "the working directory is gone" in err
    assert "standard output" not in err


@pytest.mark.slow
def test_an_absolute_path_that_is_not_there(tmp_path: Path) -> None:
    code, _, err = run(tmp_path, "ls", str(tmp_path / "nothere"))
    assert code == 2
    assert "working directory" not in err
