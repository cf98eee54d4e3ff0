"""`.ci/run` with stubs in the place of what it starts: cheap checks come first, it says when it took too long, and keeps its times."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT
from tests.records import SECONDS, SKIPS

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a script for bash")

LOG = 'echo "$(basename "$0") $*" TIER=$TIER >>"$CALLS"\n'
STUBS = {
    "bin/python3": f"#!/bin/sh\n{LOG}",
    "bin/make": f"""#!/bin/sh
{LOG}[ "$1" = "$FAILING" ] && exit 1
if [ "$1" = test ]; then
    printf '9.50\\ttests/test_a.py::test_long\\n' >"$TEST_RECORDS/{SECONDS}"
    printf 'tests/test_a.py::test_skipped: no Java\\n' >"$TEST_RECORDS/{SKIPS}"
fi
exit 0
""",
    ".ci/tools": f'#!/bin/sh\n{LOG}exec "$@"\n',
}
WARNING = "more than 2100 s"


def run(folder: Path, **variables: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run a copy of the script and return the process and the commands that it started, but for those that install."""
    for name, text in STUBS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    calls = folder / "calls"
    environment = {
        "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
        "CALLS": str(calls),
        "TMPDIR": str(folder),
        **variables,
    }
    done = subprocess.run(
        ["bash", str(folder / ".ci" / "run")],
        cwd=folder.parent,
        env=environment,
        capture_output=True,
        text=True,
    )
    started = calls.read_text(encoding="utf-8").splitlines()
    return done, [line for line in started if line.startswith("make ")]


def test_the_long_suites_come_last(tmp_path: Path) -> None:
    done, started = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert started == ["make check TIER=", "make demo TIER=", "make test TIER=ci"]


@pytest.mark.parametrize(("failing", "count"), [("check", 1), ("demo", 2), ("test", 3)])
def test_a_step_that_fails_ends_the_run(failing: str, count: int, tmp_path: Path) -> None:
    done, started = run(tmp_path, FAILING=failing, SECONDS="5000")
    assert done.returncode != 0 and len(started) == count
    assert "=== done" not in done.stdout and WARNING not in done.stdout


@pytest.mark.parametrize(
    ("seconds", "is_too_long"), [("0", False), ("2050", False), ("2101", True)]
)
def test_a_long_run_is_warned_of(seconds: str, is_too_long: bool, tmp_path: Path) -> None:
    """Bash takes the seconds that it has run from this variable."""
    done, _ = run(tmp_path, SECONDS=seconds)
    last = done.stdout.splitlines()[-4:]
    assert (WARNING in done.stdout) == is_too_long
    assert not is_too_long or (
        last[0] == last[3] == "#" * 78 and "WARNING: .ci/run took 21" in last[1]
    )


def test_what_it_took_is_kept_and_shown(tmp_path: Path) -> None:
    (tmp_path / ".ci" / "records").mkdir(parents=True)
    (tmp_path / ".ci" / "records" / "of_before").touch()
    done, _ = run(tmp_path, SECONDS="700")
    records = tmp_path / ".ci" / "records"
    assert {path.name for path in records.iterdir()} == {"steps.tsv", SECONDS, SKIPS}
    steps = (records / "steps.tsv").read_text("utf-8")
    rows = [line.split("\t") for line in steps.splitlines()]
    assert [step.split()[0] for _, step in rows] == ["install;", "the", "the", "done"]
    assert all(700 <= int(seconds) < 2100 for seconds, _ in rows)
    assert all(
        (records / name).read_text("utf-8") in done.stdout for name in ("steps.tsv", SECONDS, SKIPS)
    )


def test_the_first_step_checks_format_types_and_what_is_generated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("chores", ROOT / "demo" / "run.py")
    assert spec is not None and spec.loader is not None
    chores: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(chores)
    started: dict[str, list[str]] = {}

    def note(commands: dict[str, list[Any]]) -> list[str]:
        started.update({name: [str(part) for part in parts] for name, parts in commands.items()})
        return []

    monkeypatch.setattr(chores, "ROOT", tmp_path)
    monkeypatch.setattr(chores, "venv", lambda *_: None)
    monkeypatch.setattr(chores, "run_side_by_side", note)
    monkeypatch.setattr(chores, "differences", lambda *_: ["records/batch.py"])
    with pytest.raises(chores.ChoreError, match="these failed: generated/"):
        chores.check()
    wanted = {"mypy": "mypy", "ruff format": "--check", "ruff": "check", "generation": "generate"}
    assert all(word in started[name] for name, word in wanted.items())
