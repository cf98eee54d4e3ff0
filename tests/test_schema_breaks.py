"""The step of `make check` that compares the schemas with an earlier state."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.codecgen.goldens import MANIFEST
from tests.schema_breaks import compare
from tests.support.git_commands import run_git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

OLD = "layout: packet\nversions: 0\nfields: {size: {type: u16, measures: rest}, body: {bytes: rest}}\n"
NEWER = OLD.replace("versions: 0", "versions: 0-1").replace("rest}}", "rest, versions: 0-1}}")
BROKEN = OLD.replace("type: u16", "type: u32")
ACCEPTED = (
    MANIFEST + "accepted_breaks: [{rule: B006, at: packet.size, reason: It was never written.}]\n"
)


def write(root: Path, text: str, manifest: str = MANIFEST) -> None:
    (root / "schemas").mkdir(exist_ok=True)
    (root / "schemas" / "codecgen.yaml").write_text(manifest, encoding="utf-8")
    (root / "schemas" / "packet.yaml").write_text(text, encoding="utf-8")


def commit(root: Path, text: str, manifest: str = MANIFEST) -> None:
    write(root, text, manifest)
    run_git(root, "add", "-A")
    run_git(root, "commit", "-qm", "a commit", "--allow-empty")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits of the same schemas."""
    monkeypatch.delenv("LANDED", raising=False)
    root = tmp_path / "repository"
    root.mkdir()
    run_git(root, "init", "-q", "-b", "main")
    commit(root, OLD)
    commit(root, OLD)
    return root


def test_a_break_since_the_last_landed_commit(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(root) == 0
    assert "no schema file has changed since" in capsys.readouterr().out
    write(root, NEWER)
    assert compare(root) == 0
    assert "1 change, none is breaking" in capsys.readouterr().out
    write(root, BROKEN)
    assert compare(root) == 1
    assert "error[B006]: packet.size" in capsys.readouterr().err
    write(root, BROKEN, ACCEPTED)
    assert compare(root) == 0
    assert "only accepted ones are breaking" in capsys.readouterr().out


def test_a_release_counts_more_than_a_landed_commit(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_git(root, "tag", "v1.0")
    run_git(root, "tag", "nightly")
    commit(root, BROKEN)
    commit(root, BROKEN)  # the last landed commit is the one before
    assert compare(root) == 1
    assert "since v1.0" in capsys.readouterr().err


def test_the_language_may_change_between_releases_only(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(root, OLD.replace("measures:", "former_word:"))
    commit(root, OLD)
    assert compare(root) == 0
    assert "not compared: the schema language has changed" in capsys.readouterr().out
    run_git(root, "tag", "v1.0", "HEAD^")
    assert compare(root) == 2
    assert "the schemas of v1.0 have 1 finding" in capsys.readouterr().err


def test_without_history_nothing_is_compared(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_git(tmp_path, "clone", "-q", "--depth", "1", f"file://{root}", "shallow")
    (tmp_path / "archive").mkdir()
    for place in (tmp_path / "shallow", tmp_path / "archive"):
        write(place, BROKEN)
        assert compare(place) == 0
        assert "not compared: git knows neither" in capsys.readouterr().out
