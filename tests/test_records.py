"""A run names the skips that nobody expects, and how long each test took."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.records import EXPECTED_SKIPS

CONFTEST = """
from tests.records import records

def pytest_configure(config):
    config.pluginmanager.register(records(), "records")
"""
EXPECTED = """
import pytest

def test_a():
    pytest.skip("holds a batch that no writer writes")
"""
OTHERS = """
import os, pytest

@pytest.mark.skipif(True, reason="no Java")
def test_a(): pass

@pytest.mark.xfail(reason="wrong")
def test_b(): assert not [name for name in os.environ if name in ("TEST_RECORDS", "TEST_SKIPS")] + ["x"]

def test_c(): assert "TEST_RECORDS" not in os.environ and "TEST_SKIPS" not in os.environ
"""


def run(folder: Path, *options: str, skips: str) -> subprocess.CompletedProcess[str]:
    files = {
        "conftest.py": CONFTEST,
        "pytest.ini": "[pytest]\n",
        "tests/kafka_log/segment/test_vectors.py": EXPECTED,
        "tests/test_others.py": OTHERS,
        "tests/test_whole.py": "import pytest\n\npytest.importorskip('no_such_library')\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "tests"]
    variables = {"TEST_SKIPS": skips, "TEST_RECORDS": str(folder / "records")}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment | variables, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("options", "skips"),
    [([], "fail"), pytest.param(["-p", "xdist", "-n", "1"], "", marks=pytest.mark.slow)],
)
def test_another_skip_is_shown_and_can_fail_the_run(
    options: list[str], skips: str, tmp_path: Path
) -> None:
    done = run(tmp_path, *options, skips=skips)
    assert done.returncode == (1 if skips == "fail" else 0), done.stdout
    shown = (tmp_path / "records" / "skips.txt").read_text(encoding="utf-8")
    assert shown.splitlines() == [
        "tests/test_others.py::test_a: no Java",
        "tests/test_whole.py: could not import 'no_such_library': No module named 'no_such_library'",
    ]
    assert shown in done.stdout
    seconds = (tmp_path / "records" / "seconds.tsv").read_text(encoding="utf-8")
    names = sorted(line.split("\t")[1] for line in seconds.splitlines())
    assert names == ["tests/kafka_log/segment/test_vectors.py::test_a"] + [
        f"tests/test_others.py::test_{name}" for name in "abc"
    ]


def test_files_with_expected_skips_are_there() -> None:
    support = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests/support").glob("*.py"))
    for name, reasons in EXPECTED_SKIPS.items():
        text = (ROOT / name).read_text(encoding="utf-8") + support
        assert reasons and all(reason in text for reason in reasons), name
