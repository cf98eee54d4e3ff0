"""Writing generated files: what changes is written, what is left over is removed, the rest is not touched."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen import output
from codecgen.output import LIST, LOCK, MARKER, STAGING, OutputError, Summary, locked_directory

ONE = f"# {MARKER}\none = 1\n"
TWO = f"# {MARKER}\ntwo = 2\n"


def write_tree(
    out: Path,
    targets: Mapping[str, Mapping[str, str]],
    package: str = "p",
    *,
    dry_run: bool = False,
) -> Summary:
    return output.write_tree(out, package, targets, dry_run=dry_run)


def tree(out: Path) -> dict[str, str]:
    return {
        p.relative_to(out).as_posix(): p.read_text(encoding="utf-8")
        for p in sorted(out.rglob("*"))
        if p.is_file() and p.name != LIST
    }


def test_what_is_new_is_written_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    files = {"a": {"pkg/x.py": ONE, "pkg/py.typed": ""}, "b": {"docs/é.md": TWO}}
    first = write_tree(out, files)
    assert first == Summary(written=("docs/é.md", "pkg/py.typed", "pkg/x.py"))
    assert tree(out) == {"docs/é.md": TWO, "pkg/py.typed": "", "pkg/x.py": ONE}
    assert (out / LIST).read_text(
        encoding="utf-8"
    ) == "p a pkg/py.typed\np a pkg/x.py\np b docs/é.md\n"
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    second = write_tree(out, files)
    assert second == Summary(unchanged=first.written)
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*")} == before


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": {"x.py": ONE, "y.py": ONE}})
    untouched = (tmp_path / "x.py").stat().st_mtime_ns
    summary = write_tree(tmp_path, {"a": {"x.py": ONE, "y.py": TWO}})
    assert (summary.written, summary.unchanged) == (("y.py",), ("x.py",))
    assert (tmp_path / "x.py").stat().st_mtime_ns == untouched
    assert (tmp_path / "y.py").read_text() == TWO


def test_line_ends_are_the_same_on_every_system(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": {"x.py": ONE}})
    assert (tmp_path / "x.py").read_bytes() == ONE.encode()


@pytest.mark.skipif(os.name == "nt", reason="modes are those of Unix")
def test_files_can_be_read_by_others(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": {"x.py": ONE}})
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "x.py").stat().st_mode) == 0o666 & ~mask


def test_what_is_left_over_goes_with_its_empty_directories(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": {"pkg/deep/er/x.py": ONE, "pkg/y.py": ONE}})
    summary = write_tree(tmp_path, {"a": {"pkg/y.py": ONE}})
    assert summary.removed == ("pkg/deep/er/x.py",)
    assert [p.name for p in (tmp_path / "pkg").iterdir()] == ["y.py"]
    assert (tmp_path / LIST).read_text() == "p a pkg/y.py\n"


def test_directories_that_hold_something_else_stay(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": {"pkg/x.py": ONE}})
    (tmp_path / "pkg" / "mine.txt").write_text("mine")
    assert write_tree(tmp_path, {"a": {}}).removed == ("pkg/x.py",)
    assert tree(tmp_path) == {"pkg/mine.txt": "mine"}


def test_files_of_other_targets_stay(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": {"x.py": ONE}, "b": {"y.md": ONE}})
    assert write_tree(tmp_path, {"a": {}}).removed == ("x.py",)
    assert tree(tmp_path) == {"y.md": ONE}
    assert (tmp_path / LIST).read_text() == "p b y.md\n"


def test_files_of_other_packages_stay(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": {"p/x.py": ONE}, "b": {"docs/p.md": ONE}})
    assert write_tree(tmp_path, {"a": {"q/x.py": TWO}, "b": {}}, "q").removed == ()
    both = {"docs/p.md": ONE, "p/x.py": ONE, "q/x.py": TWO}
    assert tree(tmp_path) == both
    assert (tmp_path / LIST).read_text() == "p a p/x.py\np b docs/p.md\nq a q/x.py\n"
    assert write_tree(tmp_path, {"a": {}}).removed == ("p/x.py",)
    assert (tmp_path / LIST).read_text() == "p b docs/p.md\nq a q/x.py\n"


@pytest.mark.parametrize("path", ["docs/README.md", "docs/readme.md"])
def test_files_of_two_packages_do_not_meet(tmp_path: Path, path: str) -> None:
    write_tree(tmp_path, {"b": {"docs/README.md": ONE}})
    for dry_run in (True, False):
        with pytest.raises(
            OutputError, match=r"the package p: docs/README\.md; nothing is written"
        ):
            write_tree(tmp_path, {"a": {"q/x.py": TWO}, "b": {path: TWO}}, "q", dry_run=dry_run)
    assert tree(tmp_path) == {"docs/README.md": ONE}
    assert (tmp_path / LIST).read_text() == "p b docs/README.md\n"


def test_what_another_package_listed_but_is_gone_is_in_nobodys_way(tmp_path: Path) -> None:
    write_tree(tmp_path, {"b": {"docs/README.md": ONE}})
    (tmp_path / "docs" / "README.md").unlink()
    write_tree(tmp_path, {"b": {"docs/README.md": TWO}}, "q")
    assert (tmp_path / LIST).read_text() == "q b docs/README.md\n"


def test_a_file_can_move_from_one_target_to_another(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": {"x.py": ONE}, "b": {}})
    assert write_tree(tmp_path, {"b": {"x.py": TWO}}).written == ("x.py",)
    assert (tmp_path / LIST).read_text() == "p b x.py\n"
    assert write_tree(tmp_path, {"a": {}}) == Summary()
    assert tree(tmp_path) == {"x.py": TWO}


def test_a_file_that_was_not_generated_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("mine")
    with pytest.raises(OutputError, match=r"did not write: x\.py"):
        write_tree(tmp_path, {"a": {"w.py": ONE, "x.py": ONE}})
    assert tree(tmp_path) == {"x.py": "mine"}
    assert not (tmp_path / LIST).exists()


def test_a_file_that_carries_the_mark_may_be_written_again(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(TWO)
    assert write_tree(tmp_path, {"a": {"x.py": ONE}}).written == ("x.py",)


def test_a_generated_file_that_somebody_made_their_own_is_kept(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": {"x.py": ONE}})
    (tmp_path / "x.py").write_text("now it is mine")
    summary = write_tree(tmp_path, {"a": {}})
    assert (summary.removed, summary.kept) == ((), ("x.py",))
    assert tree(tmp_path) == {"x.py": "now it is mine"}


def test_a_dry_run_says_the_same_and_changes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert write_tree(out, {"a": {"x.py": ONE}}, dry_run=True).written == ("x.py",)
    assert not out.exists()
    write_tree(out, {"a": {"x.py": ONE, "y.py": ONE}})
    before = tree(out)
    summary = write_tree(out, {"a": {"x.py": TWO}}, dry_run=True)
    assert (summary.written, summary.removed) == (("x.py",), ("y.py",))
    assert tree(out) == before


def test_a_name_that_changes_its_case_leaves_one_file(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": {"Readme.md": ONE}})
    write_tree(tmp_path, {"a": {"README.md": TWO}})
    assert list(tree(tmp_path).values()) == [TWO]
    assert (tmp_path / "README.md").read_text() == TWO


def test_what_is_the_same_file_under_another_name_stays(tmp_path: Path) -> None:
    """A hard link does here what a file system that knows no upper case does."""
    (tmp_path / LIST).write_text("p a readme.md\n")
    (tmp_path / "README.md").write_text(TWO)
    if not (tmp_path / "readme.md").exists():
        (tmp_path / "readme.md").hardlink_to(tmp_path / "README.md")
    write_tree(tmp_path, {"a": {"README.md": TWO}})
    assert (tmp_path / "readme.md").exists()


BAD_PATHS = [
    "../x.py",
    "a/../../x.py",
    "/etc/x.py",
    "a//x.py",
    "",
    ".",
    "..",
    "a/./x.py",
    "c:/x.py",
    "a\\..\\x.py",
    "x.py\0",
    "x\n.py",
    "x.py ",
    "x.py.",
    "... /x.py",
    "aux?.py",
    LIST,
    f"{STAGING}/x.py",
    ".Codecgen-Files",
    "con",
    "a/NUL.py",
    "aux.d/x.py",
    "com1 .txt",
    "lpt\u00b9.py",
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_no_target_writes_outside(tmp_path: Path, path: str) -> None:
    out = tmp_path / "out"
    with pytest.raises(OutputError):
        write_tree(out, {"a": {path: ONE}})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_hostile_list_removes_nothing_outside(tmp_path: Path, path: str) -> None:
    out = tmp_path / "out"
    (out / "a").mkdir(parents=True)
    (tmp_path / "x.py").write_text(ONE)
    (out / LIST).write_bytes(f"p a {path}\np a ../x.py\np a {tmp_path.as_posix()}/x.py\n".encode())
    assert write_tree(out, {"a": {}}).removed == ()
    assert (tmp_path / "x.py").read_text() == ONE


def test_a_hostile_list_removes_nothing_that_was_not_generated(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / LIST).write_text(
        "p a mine.txt\np a folder\np a gone.txt\ngarbage\na old.txt\n\n \xff\n", encoding="latin-1"
    )
    assert write_tree(tmp_path, {"a": {}}) == Summary(kept=("mine.txt",))
    assert tree(tmp_path) == {"mine.txt": "mine"}
    assert (tmp_path / "folder").is_dir()


def _link(link: Path, target: Path) -> None:
    try:
        link.symlink_to(target, target_is_directory=target.is_dir())
    except OSError:
        pytest.skip("no symbolic links here")


def test_links_lead_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.py").write_text(ONE)
    out = tmp_path / "out"
    out.mkdir()
    _link(out / "pkg", outside)
    with pytest.raises(OutputError):
        write_tree(out, {"a": {"pkg/x.py": TWO}})
    (out / LIST).write_text("p a pkg/x.py\n")
    assert write_tree(out, {"a": {}}).removed == ()
    assert (outside / "x.py").read_text() == ONE


def test_a_link_in_the_place_of_a_file_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text(ONE)
    out = tmp_path / "out"
    out.mkdir()
    _link(out / "x.py", tmp_path / "secret.py")
    with pytest.raises(OutputError):
        write_tree(out, {"a": {"x.py": TWO}})
    assert (tmp_path / "secret.py").read_text() == ONE


def test_a_list_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("p a x.py\n")
    out = tmp_path / "out"
    out.mkdir()
    (out / "x.py").write_text(ONE)
    _link(out / LIST, tmp_path / "precious")
    assert write_tree(out, {"a": {}}) == Summary()
    assert (tmp_path / "precious").read_text() == "p a x.py\n"
    assert not (out / LIST).is_symlink()


def test_a_directory_in_the_place_of_a_file_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "x.py").mkdir()
    with pytest.raises(OutputError):
        write_tree(tmp_path, {"a": {"x.py": ONE}})


def test_a_file_in_the_place_of_a_directory_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "pkg").write_text(ONE)
    with pytest.raises(OutputError):
        write_tree(tmp_path, {"a": {"pkg/x.py": ONE}})
    with pytest.raises(OutputError, match="not a directory"):
        write_tree(tmp_path / "pkg", {"a": {}})


def test_two_targets_do_not_write_one_file(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is generated twice"):
        write_tree(tmp_path, {"a": {"x.py": ONE}, "b": {"x.py": ONE}})
    with pytest.raises(OutputError, match="is generated twice"):
        write_tree(tmp_path, {"a": {"x.py": ONE, "X.py": ONE}})
    assert list(tmp_path.iterdir()) == []


_names = st.sampled_from(["x.py", "y.py", "p/x.py", "p/y.py", "p/q/z.py", "z/z.py"])
_files = st.dictionaries(_names, st.sampled_from([ONE, TWO]), max_size=4)


@pytest.mark.slow
@given(runs=st.lists(st.tuples(st.sampled_from("ab"), _files, st.sampled_from("pq")), max_size=6))
def test_after_any_runs_the_last_files_of_each_target_are_there(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[str, dict[str, str], str]]
) -> None:
    out = tmp_path_factory.mktemp("out")
    (out / "mine.txt").write_text("mine")
    owned: dict[str, dict[str, dict[str, str]]] = {p: {"a": {}, "b": {}} for p in "pq"}
    for target, files, package in runs:
        theirs = owned["q" if package == "p" else "p"]
        if files.keys() & (theirs["a"].keys() | theirs["b"].keys()):
            with pytest.raises(OutputError):
                write_tree(out, {target: files}, package)
        else:
            write_tree(out, {target: files}, package)
            owned[package][target] = files
            other = owned[package]["b" if target == "a" else "a"]
            for path in files:
                other.pop(path, None)
        there = {"mine.txt": "mine"}
        for targets in owned.values():
            there |= targets["a"] | targets["b"]
        assert tree(out) == there
        assert not [p for p in out.rglob("*") if p.is_dir() and not any(p.iterdir())]


# ------------------------------------------------------------ all files or none

CHANGES = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir")
"""The audit events of what changes a directory."""

OLD = {"p/keep.py": ONE, "p/change.py": ONE, "p/gone/old.py": ONE, "Other.py": ONE}
NEW = {"p/keep.py": ONE, "p/change.py": TWO, "p/deep/er/new.py": TWO, "other.py": TWO}


class _Fault:
    """Calls ``act`` before a change of files below ``out``, once: when as many changes as ``after`` were made."""

    out: Path | None = None
    after = 0
    act: Callable[[], None]

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.out is None or event not in CHANGES:
            return
        if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
            return
        if not str(arguments[0]).startswith(str(self.out)):
            return
        self.after -= 1
        if self.after == -1:
            self.act()


FAULT = _Fault()
sys.addaudithook(FAULT)


@contextmanager
def fault(out: Path, after: int, act: Callable[[], None]) -> Iterator[None]:
    FAULT.out, FAULT.after, FAULT.act = out, after, act
    try:
        yield
    finally:
        FAULT.out = None


def whole_tree(out: Path) -> dict[str, bytes]:
    return {
        p.relative_to(out).as_posix(): p.read_bytes() if p.is_file() else b""
        for p in sorted(out.rglob("*"))
    }


def test_a_change_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "x.py")

    for after in range(100):
        out = tmp_path / str(after)
        write_tree(out, {"a": OLD})
        before = whole_tree(out)
        refused = None
        with fault(out, after, fail):
            try:
                write_tree(out, {"a": NEW})
            except OutputError as error:
                refused = str(error)
        if refused is None:  # the copies could not be removed, or nothing failed
            left = {p: text for p, text in tree(out).items() if not p.startswith((STAGING, LOCK))}
            assert left == NEW
        else:
            assert whole_tree(out) == before
            reasons = (
                f"nothing was generated in {out}, its files are as they were: x.py: No space left on device",
                f"nothing was written to {out}, as it cannot be locked: x.py: No space left on device",
            )
            assert refused == reasons[after < 2]
        if FAULT.after >= 0:
            break
    assert 15 < after < 99


def test_a_directory_that_cannot_be_filled_is_not_left_behind(tmp_path: Path) -> None:
    def fail() -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with fault(tmp_path / "out", 2, fail), pytest.raises(OutputError, match="nothing was gener"):
        write_tree(tmp_path / "out", {"a": NEW})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_whole_files_that_the_next_run_replaces(tmp_path: Path) -> None:
    for after in range(100):
        out = tmp_path / str(after)
        write_tree(out, {"a": OLD})
        child = os.fork()
        if child == 0:
            with fault(out, after, lambda: os._exit(9)):
                write_tree(out, {"a": NEW})
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        left = {path for path in tree(out) if not path.startswith((STAGING, LOCK))}
        listed = {line.split(" ")[2] for line in (out / LIST).read_text().splitlines()}
        assert left <= listed
        for path in left:
            assert (out / path).read_text() in (OLD.get(path), NEW.get(path))
        write_tree(out, {"a": NEW})
        assert tree(out) == NEW
        assert not (out / STAGING).exists()
        if status == 0:
            break
    assert 15 < after < 99


def test_two_runs_do_not_write_to_one_directory_at_once(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": OLD})
    with locked_directory(tmp_path):
        with pytest.raises(OutputError, match=rf"process {os.getpid()} on .* writes into it"):
            write_tree(tmp_path, {"a": NEW})
        (tmp_path / LOCK).unlink()
        assert tree(tmp_path) == OLD
        assert write_tree(tmp_path, {"a": OLD}, dry_run=True) == Summary(
            unchanged=tuple(sorted(OLD))
        )
    write_tree(tmp_path, {"a": NEW})
    assert tree(tmp_path) == NEW


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    write_tree(tmp_path, {"a": NEW})
    assert tree(tmp_path) == NEW
