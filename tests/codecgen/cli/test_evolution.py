"""The commands `breaking`, and `diff` with `--against`: a directory or a git revision."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codecgen.cli import main
from tests.codecgen.goldens import MANIFEST
from tests.paths import SCHEMAS
from tests.support.git_commands import run_git

OLD = "layout: packet\nversions: 0\nfields: {size: {type: u16, measures: rest}, body: {bytes: rest}}\n"
NEWER = OLD.replace("versions: 0", "versions: 0-1").replace("rest}}", "rest, versions: 0-1}}")
BROKEN = OLD.replace("type: u16", "type: u32")


def write(directory: Path, text: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "codecgen.yaml").write_text(MANIFEST, encoding="utf-8")
    (directory / "packet.yaml").write_text(text, encoding="utf-8")
    return directory


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the old schemas in the revision `v1`."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    run_git(tmp_path, "init", "-q")
    write(tmp_path / "formats", OLD)
    run_git(tmp_path, "add", ".")
    run_git(tmp_path, "commit", "-q", "-m", "first")
    run_git(tmp_path, "tag", "v1")
    return tmp_path / "formats"


def run(*arguments: str | Path) -> int:
    return main([str(argument) for argument in arguments])


def test_a_new_version_is_not_breaking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = write(tmp_path / "old", OLD), write(tmp_path / "new", NEWER)
    assert run("breaking", "--against", old, "--schemas", new) == 0
    out, err = capsys.readouterr()
    assert out == f"{new}: 1 change, none is breaking\n"
    assert err == ""


def test_a_break_has_a_place_a_rule_and_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = write(tmp_path / "old", OLD), write(tmp_path / "new", BROKEN)
    assert run("breaking", "--against", old, "--schemas", new) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "error[B006]: packet.size, version 0: uint16 becomes uint32\n" in err
    assert " --> packet.yaml:3:" in err
    assert "= help: Give the field its new type in a new version only" in err
    assert err.endswith(f"codecgen: 1 breaking change since {old}\n")


def test_what_was_removed_is_shown_where_it_stood(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = f"{OLD}---\nlayout: gone\nfields: {{a: u8}}\n"
    old, new = write(tmp_path / "old", two), write(tmp_path / "new", OLD)
    assert run("breaking", "--against", old, "--schemas", new) == 1
    err = capsys.readouterr().err
    assert f" --> {old}:packet.yaml:5:9\n" in err
    assert "5 | layout: gone\n" in err


def test_a_revision_of_git(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("breaking", "--against", "v1", "--schemas", repository) == 0
    write(repository, BROKEN)
    assert run("breaking", "--against", "v1", "--schemas", repository) == 1
    assert "error[B006]" in capsys.readouterr().err
    run_git(repository, "commit", "-q", "-a", "-m", "second")
    assert run("breaking", "--against", "HEAD", "--schemas", repository) == 0
    assert run("breaking", "--against", "HEAD~1", "--schemas", repository) == 1


def test_in_a_hook_of_git(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    monkeypatch.chdir(repository.parent)
    assert run("breaking", "--against", "v1", "--schemas", "formats") == 0


def test_a_revision_brings_the_directories_that_it_uses(repository: Path) -> None:
    used = repository.parent / "base"
    write(used, "layout: inner\nfields: {a: u8}\n")
    manifest = MANIFEST.replace("example_codecs", "base_codecs")
    (used / "codecgen.yaml").write_text(manifest, encoding="utf-8")
    write(repository, "layout: packet\nfields: {inner: {layout: base.inner}}\n")
    (repository / "codecgen.yaml").write_text(f"{MANIFEST}uses: {{base: ../base}}\n", "utf-8")
    run_git(repository.parent, "add", ".")
    run_git(repository.parent, "commit", "-q", "-m", "two directories")
    assert run("breaking", "--against", "HEAD", "--schemas", repository) == 0
    (used / "packet.yaml").write_text("layout: inner\nfields: {a: u16}\n", encoding="utf-8")
    assert run("breaking", "--against", "HEAD", "--schemas", repository) == 1


def test_diff_has_three_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = NEWER.replace("body", "content").replace("versions: 0-1\n", "versions: 0-1\ndoc: New.\n")
    old, new = write(tmp_path / "old", OLD), write(tmp_path / "new", text)
    assert run("diff", "--against", old, "--schemas", new) == 0
    assert capsys.readouterr().out == (
        f"{old} -> {new}\n"
        "\nbytes\n  packet: version 1 is added\n"
        "\nnames\n  packet.body: is renamed to content\n"
        "\ndocumentation\n  packet: `doc` differs\n"
    )


def test_diff_marks_breaks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = write(tmp_path / "old", OLD), write(tmp_path / "new", BROKEN)
    assert run("diff", "--against", old, "--schemas", new) == 0
    line = "  packet.size, version 0: uint16 becomes uint32 [B006]\n"
    assert line in capsys.readouterr().out


def test_an_accepted_break(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = write(tmp_path / "old", OLD), write(tmp_path / "new", BROKEN)
    accepted = "{rule: B006, at: packet.size, reason: Nobody wrote any.}"
    stale = "{rule: B006, at: packet.body, reason: No more.}"
    manifest = f"{MANIFEST}accepted_breaks: [{accepted}, {stale}]\n"
    (new / "codecgen.yaml").write_text(manifest, encoding="utf-8")
    assert run("breaking", "--against", old, "--schemas", new) == 0
    out, err = capsys.readouterr()
    assert out == (
        "accepted [B006]: packet.size, version 0: uint16 becomes uint32 (Nobody wrote any.)\n"
        f"{new}: 1 change, only accepted ones are breaking\n"
    )
    assert err == "codecgen: note: codecgen.yaml:7: no change breaks B006 at packet.body\n"


@pytest.mark.parametrize("rule", ["B010", "B003"])
def test_another_break_is_not_accepted(tmp_path: Path, rule: str) -> None:
    old, new = write(tmp_path / "old", OLD), write(tmp_path / "new", BROKEN)
    manifest = f"{MANIFEST}accepted_breaks: {{rule: {rule}, at: packet.size, reason: Why not.}}\n"
    (new / "codecgen.yaml").write_text(manifest, encoding="utf-8")
    assert run("breaking", "--against", old, "--schemas", new) == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["breaking"], "the following arguments are required: --against"),
        (["diff"], "name LAYOUT, FROM and TO, or another state with --against"),
        (["diff", "packet", "0"], "name LAYOUT, FROM and TO, or another state with --against"),
        (["diff", "packet", "0", "1", "--against", "v1"], "leave out LAYOUT, FROM and TO"),
        (["breaking", "--against", "v2"], "v2 is neither a directory nor a revision"),
        (["breaking", "--against", "--output=x"], "expected one argument"),
    ],
)
def test_wrong_usage(
    repository: Path,
    arguments: list[str],
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(*arguments, "--schemas", repository) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert reason in err
    assert len(err.splitlines()) == 1


def test_no_repository(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = write(tmp_path / "new", OLD)
    assert run("breaking", "--against", "v1", "--schemas", new) == 2
    assert "lies in no git repository" in capsys.readouterr().err


def test_no_schemas_in_the_revision(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = write(repository.parent / "later", OLD)
    assert run("breaking", "--against", "v1", "--schemas", other) == 2
    assert "v1 has no YAML files in later" in capsys.readouterr().err


def test_no_schemas_in_the_revision_of_a_whole_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The top of the repository exists in every revision, with schemas or without."""
    (tmp_path / "README.md").write_text("No schemas yet.\n")
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    run_git(tmp_path, "init", "-q")
    run_git(tmp_path, "add", ".")
    run_git(tmp_path, "commit", "-q", "-m", "begin")
    write(tmp_path, OLD)
    assert run("breaking", "--against", "HEAD", "--schemas", tmp_path) == 2
    assert "HEAD has no YAML files in ." in capsys.readouterr().err


def test_no_git(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert run("breaking", "--against", "v1", "--schemas", repository) == 2
    assert "git is not installed" in capsys.readouterr().err


def test_old_schemas_with_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = write(tmp_path / "old", "layout: packet\n"), write(tmp_path / "new", OLD)
    assert run("breaking", "--against", old, "--schemas", new) == 2
    assert f"the schemas of {old} have 1 finding in this release" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["breaking", "diff"])
def test_new_schemas_with_findings(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code 1 says that there are breaks, so it must not say this too."""
    old, new = write(tmp_path / "old", OLD), write(tmp_path / "new", "layout: packet\n")
    assert run(command, "--against", old, "--schemas", new) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"\ncodecgen: 1 finding\ncodecgen: could not compare: the schemas of {new} " in err


@pytest.mark.soak
def test_our_own_schemas_with_one_edit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "schemas"
    shutil.copytree(SCHEMAS, copy)
    assert run("breaking", "--against", SCHEMAS, "--schemas", copy) == 0
    path = copy / "files" / "time_index.yaml"
    text = path.read_text("utf-8")
    edited = text.replace("valid: relative_offset >= 0", "valid: relative_offset > 0")
    assert edited != text
    path.write_text(edited, "utf-8")
    assert run("breaking", "--against", SCHEMAS, "--schemas", copy) == 1
    err = capsys.readouterr().err
    assert "error[B012]: time_index_entry.relative_offset: values with" in err
