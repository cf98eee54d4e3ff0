"""Names of a generated package: none of its modules is imported before a name of it is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.codecgen.generated import package_of

SCHEMA = "layout: step\nversions: 0-1\nfields: {x: u8}\n---\nenums: {kind: {values: {a: 0}}}"
NAMES = ["Kind", "STEP", "STEP_V0", "STEP_V1", "Step", "StepV0", "StepV1"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("exports")
    package_of(SCHEMA, root, "export_codecs")
    return root / "out"


@pytest.fixture
def package(root: Path) -> Any:
    return sys.modules["export_codecs"]


def run(root: Path, code: str) -> str:
    """What Python prints that begins with the package alone."""
    found = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.strip()


LOADED = "print(sorted(m for m in sys.modules if m.startswith('export_codecs')))"


def test_the_import_of_a_package_imports_nothing_of_it(root: Path) -> None:
    assert run(root, f"import export_codecs\n{LOADED}") == "['export_codecs']"
    loaded = "['export_codecs', 'export_codecs._exports', 'export_codecs.case']"
    assert run(root, f"from export_codecs import STEP\n{LOADED}") == loaded


def test_a_star_import_has_every_name(root: Path) -> None:
    code = "from export_codecs import *\nprint([n for n in dir() if n[0] != '_' and n != 'sys'])"
    assert run(root, code) == str(NAMES)


def test_names_are_listed(package: Any) -> None:
    assert package.__all__ == NAMES
    assert set(NAMES) < set(dir(package))


def test_the_stub_lists_the_same_names(root: Path) -> None:
    names: dict[str, Any] = {}
    exec((root / "export_codecs" / "__init__.pyi").read_text("utf-8"), names)
    assert sorted(names["__all__"]) == NAMES


@pytest.mark.parametrize("name", ["NOTHING", "step", "__wrapped__", ""])
def test_an_unknown_name_is_refused(package: Any, name: str) -> None:
    with pytest.raises(AttributeError, match=f"'export_codecs' has no attribute '{name}'"):
        getattr(package, name)


def test_the_version_is_that_of_the_distribution(package: Any) -> None:
    with pytest.raises(AttributeError, match="no distribution 'export_codecs' is installed"):
        _ = package.__version__
