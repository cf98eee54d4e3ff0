"""A copy of what it takes to generate and use codecs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.paths import ROOT


class Tree:
    """Schemas and generated codecs in a directory of their own, with the generator of this checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.generated = root / "generated"
        shutil.copytree(ROOT / "schemas", root / "schemas")
        shutil.copytree(
            ROOT / "generated", self.generated, ignore=shutil.ignore_patterns("__pycache__")
        )

    @property
    def environment(self) -> dict[str, str]:
        paths = [self.generated, ROOT / "generator", ROOT / "pipeline", ROOT]
        return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONUTF8": "1"}

    def run(self, *command: str) -> str:
        """Run a command of this Python's (``codecgen ...``, ``python -c ...``) in the tree. What it prints."""
        module = {"codecgen": ["-m", "codecgen"], "python": []}[command[0]]
        done = subprocess.run(
            [sys.executable, *module, *command[1:]],
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def python_files(self) -> dict[str, str]:
        """The text of everything that is Python and not generated in this checkout."""
        roots = [ROOT / "generator", ROOT / "pipeline"]
        return {str(p): p.read_text("utf-8") for root in roots for p in root.rglob("*.py")}
