"""docs/parse-and-build.md shows what its commands print."""

from __future__ import annotations

import shutil

import pytest

from tests.codecgen import values_page


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell")
def test_the_page_is_current() -> None:
    assert values_page.PAGE.read_text(encoding="utf-8") == values_page.current()
