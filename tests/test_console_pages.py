"""Pages whose commands are shown with their output, and whose Python runs."""

from __future__ import annotations

import re
import shutil
from importlib import import_module
from pathlib import Path

import pytest

from kafka_log.cli import COMMANDS
from tests import console_pages
from tests.paths import ROOT

TOOL = ROOT / "docs" / "tool"
ONLY_BY_PROCESSES = (*console_pages.OF_SPARK, console_pages.VALUES)
"""Spark wants a process of its own. Each command of the other page loads all schemas."""


@pytest.mark.skipif(shutil.which("bash") is None, reason="commands are run by bash")
@pytest.mark.parametrize(
    ("page", "processes"),
    [
        pytest.param(page, processes, id=f"{page.stem}{'-processes' * processes}", marks=marks)
        for page in console_pages.PAGES
        for processes in ((True,) if page in ONLY_BY_PROCESSES else (False, True))
        for marks in [[pytest.mark.slow] * processes]
    ],
)
@pytest.mark.share(6)
def test_what_the_commands_print(page: Path, processes: bool) -> None:
    assert page.read_text(encoding="utf-8") == console_pages.current(page, processes=processes)


WITH_PYTHON = [
    page
    for page in (*console_pages.TOOL, *console_pages.HOW_TO)
    if "```python\n" in page.read_text(encoding="utf-8") and page not in console_pages.OF_SPARK
]


@pytest.mark.share(2)
@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
def test_python_runs(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    found = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    assert found
    for code in found:
        exec(compile(code, page.name, "exec"), {})


def test_every_command_has_a_page_with_python() -> None:
    pages = {page.stem for page in WITH_PYTHON if page.parent == TOOL}
    assert pages == set(COMMANDS)


def test_the_table_of_commands() -> None:
    """It has all commands in the order of the help, with what the help says of them."""
    text = (TOOL / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(.+?)\]\((.+?)\) \| (.+?) \|", text, re.M)
    helps = [import_module(f"kafka_log.cli.{name}").HELP for name in COMMANDS]
    assert rows == [(name, f"{name}.md", line) for name, line in zip(COMMANDS, helps, strict=True)]


def test_every_how_to_is_in_the_table() -> None:
    text = (TOOL / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(\.\./how-to/(.+?)\)", text)
    assert set(linked) == {page.name for page in console_pages.HOW_TO}


def test_a_command_that_goes_on_in_the_next_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    block = "```console\n$ printf '%s\\n' a \\\n    b \\\n    | tr a-z A-Z\n{}$ echo c\n{}```\n"
    page.write_text(block.format("old\n", ""), encoding="utf-8")
    assert console_pages.current(page) == block.format("A\nB\n", "c\n")
