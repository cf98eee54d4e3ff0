"""Older versions of Spark: what of these tests says most is run with each of them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.paths import ROOT
from tests.support.spark_downloads import downloaded, with_packages

OLDER = ("4.1", "4.2")
PARTS = (
    "test_schema.py",
    "test_one_log.py",
    "test_source.py",
    "connector/test_sql.py",
    "connector/test_statistics.py",
    "stream/test_stream.py",
    "test_write_stream.py",
)
"""Both lanes of them: batches, SQL, streams, and writing by streams. The connector is compiled for them."""
PATIENCE_S = 900


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.parametrize("version", OLDER)
def test_an_older_spark(version: str, tmp_path: Path) -> None:
    env = with_packages(downloaded(tmp_path / "packages", f"pyspark=={version}.*"))
    env["KAFKA_CODECS_CACHE"] = str(tmp_path / "cache")

    def python(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-8000:]
        return done.stdout

    assert python("-c", "import pyspark; print(pyspark.__version__)").startswith(f"{version}.")
    parts = [f"tests/pyspark_kafka_log/{part}" for part in PARTS]
    pytest_ = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not soak")
    told = python(*pytest_, "--basetemp", str(tmp_path / "tests"), *parts)
    passed = re.search(r"^(\d+) passed(?:, \d+ (?:warnings?|deselected))* in ", told, re.M)
    assert passed and int(passed[1]) > 80, told[
        -2000:
    ]  # none is skipped, as where there is no Java


def test_the_oldest_is_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (asked,) = [
        one
        for one in map(Requirement, project["optional-dependencies"]["spark"])
        if one.name == "pyspark"
    ]
    assert str(asked.specifier) == f">={OLDER[0]}"
