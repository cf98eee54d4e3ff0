"""What several test modules need lies in a module of helpers: no module imports another's tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.paths import ROOT

TESTS = ROOT / "tests"

_CANDIDATE = re.compile(r"^\s*(?:from|import)\s[^\n(]*(?:\([^)]*)?\btest_", re.MULTILINE)
"""Each import of a test module matches. Few other texts do, so that few files are parsed."""


def imported_names(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the dotted name of each import; a relative one begins with ``tests``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "tests." * (node.level > 0) + (node.module or "")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def lines_with_test_modules(source: str) -> list[int]:
    """Return the lines of ``source`` that import a test module of ours, or a name from one."""
    if not _CANDIDATE.search(source):
        return []
    return sorted(
        {
            line
            for line, name in imported_names(source)
            if name.startswith(("tests.", "test_"))
            and any(part.startswith("test_") for part in name.split("."))
        }
    )


@pytest.mark.parametrize(
    "source",
    [
        "from tests.codecs.test_laws import SEED",
        "from tests.codecs import test_laws",
        "from tests.codecs import (\n    test_laws,\n)",
        "import tests.codecs.test_laws as laws",
        "import test_laws",
        "from .test_laws import SEED",
        "from . import test_laws",
        "def f():\n    from tests.codecs.test_laws import SEED",
    ],
)
def test_each_form_of_an_import_from_a_test_module_is_found(source: str) -> None:
    assert lines_with_test_modules(source) == [2 if source.startswith("def") else 1]


def test_no_module_imports_from_a_test_module() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: move what it imports into tests/support"
        for path in sorted(TESTS.rglob("*.py"))
        for line in lines_with_test_modules(path.read_text("utf-8"))
    ]
    assert found == []
