"""Stubs of schemas that nobody wrote, before mypy and ruff."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import Phase

from tests.laws import apart
from tests.laws.made import checked, generated
from tests.laws.runs import BLOCK, block_of
from tests.laws.world import World
from tests.paths import ROOT
from tests.shares import SEED


def write(world: World, folder: Path, plain: Path) -> bool:
    """Write the stubs of a directory as they are, and as packages inside a package; whether there are any."""
    model, found = checked(world)
    made = None if found else generated(world, model, ("construct",))
    if made is None or made.refused:
        return False
    packages = f"({made.package}|{apart.PACKAGE})"
    for path, text in made.files.items():
        if path.endswith((".pyi", "/__init__.py")):
            (plain / path).parent.mkdir(parents=True, exist_ok=True)
            (plain / path).write_text(text, "utf-8")
            inside = re.sub(rf"^( *from ){packages}\b", rf"\1{folder.name}.\2", text, flags=re.M)
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(inside, "utf-8")
    (folder / "__init__.py").write_text("", "utf-8")
    return True


@pytest.mark.slow
def test_mypy_and_ruff_take_them(tmp_path: Path) -> None:
    written: list[str] = []

    def look(world: World) -> None:
        name = f"world_{len(written)}"
        if write(world, tmp_path / name, tmp_path / "plain" / name):
            written.append(name)

    block_of(SEED + 5, look, (Phase.generate,))
    assert len(written) > BLOCK // 2
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental"]
    command += ["--config-file", os.devnull, "--explicit-package-bases", *written]
    path = os.pathsep.join([str(tmp_path), str(ROOT / "generator")])
    env = {**os.environ, "MYPYPATH": path}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    wrong = [line for line in done.stdout.splitlines() if line.startswith("world_")]
    assert not wrong, "\n".join(wrong)
    assert re.search(r"(in|checked) \d{2,} source files", done.stdout), done.stdout + done.stderr
    shown = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--line-length", "100", "--diff", "."],
        cwd=tmp_path / "plain",
        capture_output=True,
        text=True,
    )
    assert "would be reformatted" not in shown.stderr, shown.stdout
