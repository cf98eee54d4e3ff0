"""Pages whose commands are shown with their output, and whose Python runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests import console_pages
from tests.paths import ROOT


@pytest.mark.skipif(shutil.which("bash") is None, reason="commands are run by bash")
@pytest.mark.parametrize("page", console_pages.PAGES, ids=lambda page: page.stem)
def test_what_the_commands_print(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == console_pages.current(page)


@pytest.mark.parametrize("page", console_pages.TOOL, ids=lambda page: page.stem)
def test_python_runs(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    monkeypatch.chdir(tmp_path)
    found = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    assert found
    for code in found:
        exec(compile(code, page.name, "exec"), {})
