"""Packages of other versions than those that the tests run with, from PyPI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

UNREACHED = ("Failed to establish a new connection", "Retrying (Retry(", "Could not fetch URL")


def downloaded(to: Path, *requirements: str) -> Path:
    """A directory with packages and what they depend on. A test is skipped where PyPI is not reached."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--retries", "1", "--target", str(to)]
    done = subprocess.run([*pip, *requirements], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    if done.returncode and any(sign in said for sign in UNREACHED):
        pytest.skip(f"PyPI is not reached, which has {', '.join(requirements)}")
    assert done.returncode == 0, said
    return to


def with_packages(packages: Path) -> dict[str, str]:
    """The variables of a Python that has packages before its own, and the source roots."""
    roots = [packages, *(ROOT / name for name in ("generator", "generated", "pipeline")), ROOT]
    kept = {name: text for name, text in os.environ.items() if name != "SPARK_HOME"}
    found = {"PYTHONPATH": os.pathsep.join(map(str, roots)), "SPARK_LOCAL_IP": "127.0.0.1"}
    return kept | found | {"PYSPARK_PYTHON": sys.executable}
