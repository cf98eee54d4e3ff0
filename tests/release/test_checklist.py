"""A checklist is complete only if every step ran and is good."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from codecgen.runtime.version import RELEASE
from tests.paths import ROOT
from tests.release import __main__ as release
from tests.release import pythons
from tests.release.checklist import NotRun, Result, State, StepError, run_step, summarize


def test_complete_means_that_every_step_is_good() -> None:
    for states in itertools.chain.from_iterable(
        itertools.product(State, repeat=n) for n in (1, 2, 3)
    ):
        text = summarize([Result("x", state) for state in states])
        assert (text == "complete") == (set(states) == {State.GOOD})
    assert summarize([]) == "not complete: no step ran"
    assert summarize(
        [Result("x", State.GOOD), Result("y", State.NOT_RUN), Result("z", State.OPEN)]
    ) == ("not complete: 1 good, 1 open, 1 not run")


def test_states_of_steps(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> Sequence[str]:
        raise StepError("one", "two")

    def cannot_run() -> Sequence[str]:
        raise NotRun("no git")

    assert run_step("a", list) == Result("a", State.GOOD)
    assert run_step("b", lambda: ["x"]) == Result("b", State.FAILED, ("x",))
    assert run_step("c", lambda: ["x"], State.OPEN) == Result("c", State.OPEN, ("x",))
    assert run_step("d", fails, State.OPEN) == Result("d", State.FAILED, ("one", "two"))
    assert run_step("e", cannot_run) == Result("e", State.NOT_RUN, ("no git",))
    assert capsys.readouterr().out.splitlines()[-2:] == ["not run  e", "         no git"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a directory with the files that name the version."""
    for name in ("pyproject.toml", "CHANGELOG.md", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    return tmp_path


def edit(path: Path, pattern: str, new: str) -> None:
    """Replace the first match of a pattern in a file, which must have one."""
    text, count = re.subn(pattern, new, path.read_text("utf-8"), count=1, flags=re.M)
    assert count == 1
    path.write_text(text, "utf-8")


def test_the_version_is_the_same_everywhere(tree: Path) -> None:
    """The commands print RELEASE."""
    assert release.find_version_problems(ROOT, RELEASE) == []
    assert len(release.find_version_problems(ROOT, "9.9.9")) == 1
    edit(tree / "CHANGELOG.md", r"^## \S+ \(", "## 9.9.8 (")
    (problem,) = release.find_version_problems(tree, RELEASE)
    assert problem.endswith("CHANGELOG.md begins with 9.9.8")
    edit(tree / "CHANGELOG.md", r"^## .*$", "## News")
    assert release.find_version_problems(tree, RELEASE)
    edit(tree / "pyproject.toml", r'^version = ".*"$', 'version = "9.9.9"')
    assert len(release.find_version_problems(tree, RELEASE)) == 2


def test_what_a_release_fills_in(tree: Path) -> None:
    assert {line.partition(":")[0] for line in release.find_open_entries(tree)} <= {
        "pyproject.toml",
        "CHANGELOG.md",
        "they install from a copy of the repository, not from PyPI",
    }
    fill_in(tree)
    assert release.find_open_entries(tree) == []
    edit(tree / "CHANGELOG.md", r"^## (\S+) \(.*\)$", r"## \1 (soon)")
    assert release.find_open_entries(tree) == ["CHANGELOG.md: the first heading has no date"]


def fill_in(tree: Path) -> None:
    """Fill in what the checklist calls open."""
    project = tree / "pyproject.toml"
    edit(project, r'^repository = ".*"$', 'repository = "https://host.example/kafka-codecs"')
    text = re.sub(r"^authors = .*\n", "", project.read_text("utf-8"), flags=re.M)
    project.write_text(text, "utf-8")
    edit(project, r"^keywords", 'authors = [{name = "A", email = "a@example.org"}]\nkeywords')
    edit(tree / "CHANGELOG.md", r"^## (\S+) \(.*\)$", r"## \1 (2026-12-24)")
    for page in [tree / "README.md", *(tree / "docs").rglob("*.md")]:
        text = page.read_text("utf-8")
        page.write_text(release.FROM_A_COPY.sub("pip install", text), "utf-8")


def test_pythons_that_the_classifiers_name() -> None:
    named = pythons.named_versions(release.read_project(ROOT))
    assert named[0] == release.OLDEST and len(named) >= 3
    assert release.read_project(ROOT)["project"]["requires-python"] == ">=3.11"


def test_a_python_counts_if_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def put(name: str, text: str) -> None:
        path = tmp_path / "versions" / name / "bin" / "python"
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    put("3.27.9", "echo 3 27")
    put("3.27.10", "echo 3 27")
    put("3.28.1", "exit 1")
    put("3.29.1", "echo 3 11")
    put("3.29.0rc1", "echo 3 29")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    found = pythons.find_pythons((3, 27), tmp_path)
    assert found == {(3, 27): tmp_path / "versions" / "3.27.10" / "bin" / "python"}


@pytest.fixture
def repository(tree: Path) -> Iterator[Path]:
    """Return a git repository whose build fails, since it only has the files that name the version."""
    git(tree, "init", "--quiet")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "-m", "one")
    yield tree


def git(root: Path, *arguments: str) -> None:
    """Run git with an identity."""
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True)


def test_steps_that_cannot_run_are_not_good(
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without tools that build, and without a Python."""

    def refuse(commands: Path, *requirements: str, cwd: Path) -> None:
        raise StepError("no network")

    monkeypatch.setattr(release, "make_environment", lambda python, folder: folder)
    monkeypatch.setattr(release, "install", refuse)
    monkeypatch.setattr(release, "find_pythons", lambda oldest, scratch: {})
    (repository / "new.txt").write_text("x")
    git(repository, "tag", f"v{RELEASE}")
    out = tmp_path_factory.mktemp("out") / "dist"
    summary = release.run_checklist(repository, tmp_path_factory.mktemp("scratch"), [], out)
    lines = [line for line in capsys.readouterr().out.splitlines() if line[:1].strip()]
    states = {line[9:]: line[:8].strip() for line in lines[:-1]}
    assert states.pop("clean checkout of HEAD") == "open"
    assert states.pop("versions agree") == "good"
    assert states.pop("the version is new") == "failed"
    assert states.pop("everything is filled in") == "open"
    assert set(states.values()) == {"not run"}
    assert {
        "build",
        "files of the wheel",
        "Python 3.11, wheel",
        "Python 3.13, sdist",
    } <= states.keys()
    assert summary == lines[-1] and summary.startswith("not complete: 1 good, 1 failed, 2 open, ")
    assert not out.exists()


def test_pythons_that_are_left_out(
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The Python that the option names is tried, also one that no classifier names. Others are not run, and why is said."""

    def refuse(*_: object, **__: object) -> None:
        raise StepError("no network")

    monkeypatch.setattr(release, "install", refuse)
    monkeypatch.setattr(release, "make_environment", lambda python, folder: folder)
    found = {(3, minor): Path("python") for minor in (11, 28, 29)}
    monkeypatch.setattr(release, "find_pythons", lambda oldest, scratch: dict(found))
    scratch = tmp_path_factory.mktemp("scratch")
    release.run_checklist(repository, scratch, ["3.12", "3.29"], scratch / "dist")
    lines = capsys.readouterr().out.splitlines()
    reasons = {
        line[9:]: lines[i + 1].strip() for i, line in enumerate(lines) if "Python 3" in line[9:18]
    }
    assert reasons["Python 3.11, wheel"] == "left out by --python"
    assert reasons["Python 3.12, sdist"] == release.NO_PYTHON
    assert reasons["Python 3.29, wheel"] == "nothing was built"
    assert "Python 3.28, wheel" not in reasons
    assert "no classifier names Python 3.29" in "\n".join(lines)


def test_a_directory_without_git(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "root").mkdir()
    summary = release.run_checklist(tmp_path / "root", tmp_path, [], tmp_path / "dist")
    assert summary == "not complete: 1 not run"
    assert "is not a git repository" in capsys.readouterr().out


@pytest.mark.soak
def test_a_release_of_this_tree_with_everything_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a clone: every step is good on this machine, with this Python, and the archives are kept."""
    root = tmp_path / "clone"
    git(ROOT, "clone", "--quiet", "--no-hardlinks", str(ROOT), str(root))
    fill_in(root)
    git(root, "commit", "--quiet", "--all", "-m", "fill in")
    key = sys.version_info[:2]
    monkeypatch.setattr(release, "named_versions", lambda project: [key])
    (tmp_path / "scratch").mkdir()
    out = tmp_path / "dist"
    wanted = [".".join(map(str, key))]
    summary = release.run_checklist(root, tmp_path / "scratch", wanted, out)
    shown = capsys.readouterr().out
    assert summary == "complete", shown
    assert sorted(path.name for path in out.iterdir()) == [
        f"kafka_codecs-{RELEASE}-py3-none-any.whl",
        f"kafka_codecs-{RELEASE}.tar.gz",
    ]
    assert f"git tag -s v{RELEASE}" in shown
