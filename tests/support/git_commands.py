"""Git commands for repositories of tests."""

from __future__ import annotations

import subprocess
from pathlib import Path


def run_git(folder: Path, *arguments: str) -> None:
    """Run ``git`` in ``folder`` as an author that needs no configuration.

    Raises:
        CalledProcessError: if git fails.
    """
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    command = ["git", *identity, "-C", str(folder), *arguments]
    subprocess.run(command, check=True, capture_output=True)
