"""Find the Pythons of this machine, and make environments of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.release.checklist import StepError

NEWEST_MINOR = 30
"""Minor versions of Python 3 up to here are looked for."""
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
TIMEOUT_S = 1800


def clean_environment() -> dict[str, str]:
    """Return the variables of this process without those that change what a Python imports."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    kept.pop("VIRTUAL_ENV", None)
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def run_command(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program without the variables of Python, and return what it prints and its exit code.

    Raises:
        StepError: if it takes longer than half an hour.
    """
    try:
        return subprocess.run(
            command,
            cwd=cwd,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise StepError(f"`{_shown(command)}` takes more than {TIMEOUT_S} s") from None


def check_command(*command: str | Path, cwd: Path) -> str:
    """Run a program like :func:`run_command`, and return its standard output.

    Raises:
        StepError: if it fails; with the last lines that it prints.
    """
    done = run_command(*command, cwd=cwd)
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()[-5:]
        raise StepError(f"`{_shown(command)}` exits with {done.returncode}", *lines)
    return done.stdout


def _shown(command: tuple[str | Path, ...]) -> str:
    return " ".join(map(str, command))


def named_versions(project: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the minor versions of Python that the classifiers in the content of pyproject.toml name, in order."""
    pattern = re.compile(r"Programming Language :: Python :: 3\.(\d+)")
    found = map(pattern.fullmatch, project["project"]["classifiers"])
    return sorted((3, int(match[1])) for match in found if match)


def find_pythons(oldest: tuple[int, int], scratch: Path) -> dict[tuple[int, int], Path]:
    """Return a Python for each minor version from `oldest` on that this machine has.

    Pythons of pyenv come first, the newest patch release of a minor version before others, then those on PATH,
    then the running one. A Python
    counts if it runs and can make virtual environments.
    """
    found: dict[tuple[int, int], Path] = {}
    for minor in range(oldest[1], NEWEST_MINOR):
        for path in _candidates(minor):
            if _is_python(path, minor, scratch):
                found[3, minor] = path
                break
    return found


def _candidates(minor: int) -> Iterator[Path]:
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    releases = {path: path.name.split(".")[2] for path in versions.glob(f"3.{minor}.*")}
    numbered = [path for path, patch in releases.items() if patch.isdecimal()]
    for release in sorted(numbered, key=lambda path: int(releases[path]), reverse=True):
        yield release / "bin" / "python"
    if on_path := shutil.which(f"python3.{minor}"):
        yield Path(on_path)
    yield Path(sys.executable)


def _is_python(path: Path, minor: int, scratch: Path) -> bool:
    program = "import ensurepip, sys, venv; print(*sys.version_info[:2])"
    try:
        done = run_command(path, "-I", "-c", program, cwd=scratch)
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.split() == ["3", str(minor)]


def make_environment(python: Path, folder: Path) -> Path:
    """Make an empty virtual environment, and return the directory of its commands.

    Raises:
        StepError: if it cannot be made.
    """
    check_command(python, "-m", "venv", folder, cwd=folder.parent)
    return folder / SCRIPTS


def install(commands: Path, *requirements: str, cwd: Path) -> None:
    """Install packages into an environment.

    Raises:
        StepError: if pip fails.
    """
    pip = (commands / "python", "-m", "pip", "install", "--quiet", "--no-warn-script-location")
    check_command(*pip, *requirements, cwd=cwd)
