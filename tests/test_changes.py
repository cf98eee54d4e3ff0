"""Which files differ from the last landed commit, and whose turn it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.changes import changed_files, find_turn
from tests.support.git_commands import run_git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def commit(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(name, encoding="utf-8")
    run_git(folder, "add", "-A")
    run_git(folder, "commit", "-qm", name)


@pytest.fixture
def landed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits."""
    monkeypatch.delenv("LANDED", raising=False)
    run_git(tmp_path, "init", "-q", "-b", "main", "landed")
    commit(tmp_path / "landed", "a.txt")
    commit(tmp_path / "landed", "b/ü c.txt")
    return tmp_path / "landed"


def test_a_full_clone_differs_from_what_it_was_cloned_from(landed: Path, tmp_path: Path) -> None:
    run_git(tmp_path, "clone", "-q", str(landed), "clone")
    clone = tmp_path / "clone"
    assert changed_files(clone) == {"b/ü c.txt"}  # the last commit: the clone has no other
    commit(clone, "c.txt")
    commit(clone, "d.txt")
    assert changed_files(clone) == {"c.txt", "d.txt"}
    (clone / "e.txt").touch()
    (clone / "a.txt").unlink()
    assert changed_files(clone) == {"a.txt", "c.txt", "d.txt", "e.txt"}
    assert changed_files(clone, landed="HEAD^") == {"a.txt", "d.txt", "e.txt"}


def test_what_git_does_not_know_is_nothing(
    landed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_git(tmp_path, "clone", "-q", "--depth", "1", f"file://{landed}", "shallow")
    assert changed_files(tmp_path / "shallow") == frozenset()
    assert changed_files(landed, landed="no-such-commit") == frozenset()
    (tmp_path / "plain").mkdir()
    assert changed_files(tmp_path / "plain") == frozenset()
    monkeypatch.setenv("PATH", "")
    assert changed_files(landed) == frozenset()


def test_the_turn_is_that_of_the_commit(
    landed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURN", raising=False)
    assert find_turn(tmp_path) is None
    found = set()
    for i in range(30):
        commit(landed, f"{i}.txt")
        found.add(find_turn(landed))
        assert find_turn(landed) == find_turn(landed)
    assert found == {0, 1}
    for given, turn in (("0", 0), ("1", 1), ("both", None)):
        monkeypatch.setenv("TURN", given)
        assert find_turn(landed) == turn
