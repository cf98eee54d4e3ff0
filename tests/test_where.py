"""The command that names the tests of a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import where

FILES = {
    "generator/codecgen/plan/sizes.py": "",
    "generator/codecgen/plan/order.py": "",
    "tests/__init__.py": "",
    "tests/codecgen/plan/test_sizes.py": "",
    "tests/codecgen/plan/test_sizes_of_rows.py": "",
    "tests/codecgen/plan/test_sizesort.py": "",
    "tests/support/models.py": "from codecgen.plan.sizes import bounds",
    "tests/laws/test_a.py": "from codecgen.plan import sizes",
    "tests/laws/test_b.py": "from tests.support.models import bounds",
    "tests/laws/test_c.py": "from codecgen.plan.sizesort import bounds",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path


def names(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


def test_tests_in_the_place_of_a_module(root: Path) -> None:
    module = where.module_name(Path("generator/codecgen/plan/sizes.py"), root)
    assert module == "codecgen.plan.sizes"
    assert names(where.mirror_tests(module, root)) == ["test_sizes.py", "test_sizes_of_rows.py"]
    folder = ["test_sizes.py", "test_sizes_of_rows.py", "test_sizesort.py"]
    assert names(where.mirror_tests("codecgen.plan.order", root)) == folder
    assert names(where.mirror_tests("codecgen.plan", root)) == folder


def test_tests_that_import_a_module(root: Path) -> None:
    assert names(where.importing_tests("codecgen.plan.sizes", root)) == ["test_a.py", "test_b.py"]
    assert names(where.importing_tests("codecgen.plan.order", root)) == []


@pytest.mark.slow
def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert where.main(["tests/where.py"]) == 0
    assert "  tests/test_where.py\n" in capsys.readouterr().out
    assert where.main(["tests/nowhere.py"]) == 2
    assert capsys.readouterr().err == "tests/nowhere.py is no Python file or package\n"
