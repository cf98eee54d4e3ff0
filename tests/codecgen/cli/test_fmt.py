"""The command `fmt`: what it writes, what it leaves alone, and its exit codes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codecgen.cli import main
from tests.codecgen.goldens import MANIFEST

OLD = "fields: {b: {doc: Two., type: u8}}\nlayout: packet\n"
NEW = "layout: packet\nfields: {b: {type: u8, doc: Two.}}\n"
BROKEN = "layout: other\nfields: {c: {doc: Wrong., type: u9}}\n"


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    (tmp_path / "codecgen.yaml").write_text(MANIFEST, encoding="utf-8")
    (tmp_path / "packet.yaml").write_text(OLD, encoding="utf-8")
    return tmp_path


def run(*arguments: str | Path) -> int:
    return main(["fmt", *map(str, arguments)])


def test_files_are_written_once(schemas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (schemas / "packet.yaml").chmod(0o640)
    assert run(schemas) == 0
    assert (schemas / "packet.yaml").read_text(encoding="utf-8") == NEW
    assert (schemas / "packet.yaml").stat().st_mode & 0o777 == 0o640
    assert capsys.readouterr().out == f"{schemas}: 1 file changed, 1 already formatted\n"
    assert run(schemas) == 0
    assert capsys.readouterr().out == f"{schemas}: 0 files changed, 2 already formatted\n"
    assert sorted(path.name for path in schemas.iterdir()) == ["codecgen.yaml", "packet.yaml"]


@pytest.mark.parametrize("option", ["--check", "--diff"])
def test_nothing_is_written_by_a_dry_run(
    schemas: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    assert run(schemas, option) == 1
    assert (schemas / "packet.yaml").read_text(encoding="utf-8") == OLD
    out = capsys.readouterr().out
    assert ("-fields: " in out and "+fields: " in out) == (option == "--diff")
    assert (f"{schemas / 'packet.yaml'} would change" in out) == (option == "--check")
    assert run(schemas) == 0
    assert run(schemas, option) == 0


def test_a_file_with_an_error_is_left_alone(
    schemas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (schemas / "other.yaml").write_text(BROKEN, encoding="utf-8")
    assert run(schemas) == 1
    assert (schemas / "other.yaml").read_text(encoding="utf-8") == BROKEN
    assert (schemas / "packet.yaml").read_text(encoding="utf-8") == NEW
    assert "error[C013]" in capsys.readouterr().err


def test_one_file_does_not_suffer_from_another(
    schemas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (schemas / "other.yaml").write_text(BROKEN, encoding="utf-8")
    assert run(schemas / "packet.yaml") == 0
    assert (schemas / "packet.yaml").read_text(encoding="utf-8") == NEW
    assert "error" not in capsys.readouterr().err
    assert run(schemas / "other.yaml") == 1


def test_without_a_good_manifest_nothing_is_written(schemas: Path) -> None:
    (schemas / "codecgen.yaml").write_text("language: 1\n", encoding="utf-8")
    assert run(schemas) == 1
    assert (schemas / "packet.yaml").read_text(encoding="utf-8") == OLD


def test_line_ends_become_line_feeds(schemas: Path) -> None:
    (schemas / "packet.yaml").write_bytes(NEW.replace("\n", "\r\n").encode())
    assert run(schemas) == 0
    assert (schemas / "packet.yaml").read_bytes() == NEW.encode()


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links")
def test_a_symbolic_link_stays_one(schemas: Path, tmp_path: Path) -> None:
    whole = tmp_path / "elsewhere"
    whole.mkdir()
    (schemas / "packet.yaml").rename(whole / "packet.txt")
    (schemas / "packet.yaml").symlink_to(whole / "packet.txt")
    assert run(schemas) == 0
    assert (schemas / "packet.yaml").is_symlink()
    assert (whole / "packet.txt").read_text(encoding="utf-8") == NEW


def test_a_path_that_is_no_schema_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "gone") == 2
    (tmp_path / "alone.yaml").write_text(OLD, encoding="utf-8")
    assert run(tmp_path / "alone.yaml") == 2
    assert "no directory above it has codecgen.yaml" in capsys.readouterr().err
