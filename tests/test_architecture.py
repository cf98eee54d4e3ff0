"""docs/architecture.md names functions and classes with a link to the file that defines them."""

from __future__ import annotations

import re

import pytest

from tests.paths import ROOT

PAGE = ROOT / "docs" / "architecture.md"
LINKS = sorted(set(re.findall(r"\[`(\w+)`\]\(([^)]+)\)", PAGE.read_text("utf-8"))))


@pytest.mark.parametrize(("name", "file"), LINKS)
def test_named_function_or_class_is_defined_in_the_linked_file(name: str, file: str) -> None:
    text = (PAGE.parent / file).read_text("utf-8")
    assert re.search(
        rf"^(def|class|public class|final class|final public class) {name}\b", text, re.MULTILINE
    )
