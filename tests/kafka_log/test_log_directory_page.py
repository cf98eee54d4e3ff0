"""docs/log-directory.md: its code runs, and its table has the files that are read."""

from __future__ import annotations

import re

import pytest

from kafka_codecs._exports import MODULES
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "log-directory.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S))
def test_code_runs(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(code, {})


def test_the_table_names_the_codecs_of_files() -> None:
    named = set(re.findall(r"`([A-Z_]+)`", PAGE.partition("```")[0]))
    assert named == {
        name
        for home, names in MODULES.items()
        for name in names.split()
        if home.startswith("files.") and name.isupper() and not re.search(r"_V\d+$|_ENTRY$", name)
    }
