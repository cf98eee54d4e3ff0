"""Files below a directory, and directories that may not be listed: nothing is left out in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.cli import main
from codecgen.importers import kafka_json
from codecgen.listed_files import list_files
from codecgen.schema.loader import read_files
from codecgen.template_files import read_templates
from tests.support.permissions import bound_by_modes


def test_files_at_any_depth(tmp_path: Path) -> None:
    for name in ("b.yaml", "a/c.yaml", ".hidden/d.yaml", "a/.e.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "f.yaml").symlink_to(tmp_path / "b.yaml")
    (tmp_path / "broken.yaml").symlink_to(tmp_path / "nowhere")
    found = [path.relative_to(tmp_path).as_posix() for path in list_files(tmp_path)]
    assert found == ["a/c.yaml", "b.yaml", "f.yaml"]
    assert list_files(tmp_path / "nowhere") == list_files(tmp_path / "b.yaml") == []


@pytest.mark.parametrize("read", [read_files, read_templates, kafka_json.find])
def test_a_directory_that_may_not_be_listed(read: object, tmp_path: Path) -> None:
    (tmp_path / "page.md.j2").write_text("text", encoding="utf-8")
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o300)
    try:
        with bound_by_modes(), pytest.raises(PermissionError, match="closed"):
            read(tmp_path)  # type: ignore[operator]
    finally:
        closed.chmod(0o700)


def test_check_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "codecgen.yaml").write_text("language: 1\npackage: p\ntitle: t\n", encoding="utf-8")
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o300)
    try:
        with bound_by_modes():
            assert main(["check", str(tmp_path)]) == 2
    finally:
        closed.chmod(0o700)
    assert str(closed) in capsys.readouterr().err
