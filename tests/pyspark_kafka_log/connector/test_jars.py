"""The connector's jar: compiled once, made again when it is damaged, and where no home can be written."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import pyspark_kafka_log
from pyspark_kafka_log.connector import jars
from pyspark_kafka_log.connector.jars import (
    SERVICE,
    SOURCE,
    ConnectorError,
    find_or_compile_jar,
    java_sources,
)
from tests.paths import ROOT, SAMPLES
from tests.support.spark_logs import flipped
from tests.support.spark_queries import load

pytestmark = pytest.mark.spark

LOGS = SAMPLES / "kafka-4.x"
AT_START = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.jars", sys.argv[1]).getOrCreate()
frame = spark.read.format("kafka-log").load(sys.argv[2])
print(frame.count(), "BatchScan kafka-log" in frame._jdf.queryExecution().executedPlan().toString())
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, with a name that has to be written with care."""
    monkeypatch.setenv("KAFKA_CODECS_CACHE", str(tmp_path / "it's a \\ home"))
    return tmp_path / "it's a \\ home" / "spark"


def jvm(session: SparkSession) -> Any:
    return session._jvm


def test_a_jar_is_made_once(session: SparkSession, home: Path) -> None:
    made = find_or_compile_jar(jvm(session))
    assert [*home.iterdir()] == [made]
    with zipfile.ZipFile(made) as found:
        names = found.namelist()
        assert found.read(SERVICE).decode().split() == [SOURCE]
    classes = {Path(name).stem for name in names if name.endswith(".class")}
    assert {Path(name).stem for name in java_sources()} <= classes
    when = made.stat().st_mtime_ns
    assert (find_or_compile_jar(jvm(session)), made.stat().st_mtime_ns) == (made, when)


@pytest.mark.share(3)
@pytest.mark.parametrize("damage", ["cut", "empty", "changed"])
def test_a_damaged_jar_is_made_again(session: SparkSession, home: Path, damage: str) -> None:
    made = find_or_compile_jar(jvm(session))
    good = made.read_bytes()
    middle = len(good) // 2
    bad = {"cut": good[:middle], "empty": b"", "changed": flipped(good, middle)}[damage]
    made.write_bytes(bad)
    assert find_or_compile_jar(jvm(session)) == made
    with zipfile.ZipFile(made) as found:
        assert found.testzip() is None


def test_other_sources_are_another_jar(
    session: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = find_or_compile_jar(jvm(session))
    changed = {**java_sources(), "More.java": "package pyspark_kafka_log; class More {}\n"}
    monkeypatch.setattr(jars, "java_sources", lambda: changed)
    assert find_or_compile_jar(jvm(session)) != before


def test_several_at_once(session: SparkSession, home: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        made = set(pool.map(lambda _: find_or_compile_jar(jvm(session)), range(3)))
    assert [*home.iterdir()] == [*made]


def test_a_home_that_cannot_be_written(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("KAFKA_CODECS_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = find_or_compile_jar(jvm(session))
    assert zipfile.is_zipfile(made)
    assert made.parent.parent == tmp_path
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(ConnectorError, match="no directory for its jar is writable"):
        find_or_compile_jar(jvm(session))


def test_what_no_compiler_takes_is_said(
    session: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {
        **java_sources(),
        "Wrong.java": "package pyspark_kafka_log; class Wrong { int x = ; }\n",
    }
    monkeypatch.setattr(jars, "java_sources", lambda: wrong)
    with pytest.raises(ConnectorError) as caught:
        find_or_compile_jar(jvm(session))
    assert [reason.partition(":")[0] for reason in caught.value.reasons] == ["janino", "javac"]
    assert "the Python source reads the same rows" in str(caught.value)
    assert [*home.iterdir()] == []


@pytest.mark.parametrize("option", ["startingOffset", "mode"])
def test_errors_for_users_are_a_line(session: SparkSession, option: str) -> None:
    """Where in Python they come from helps nobody."""
    reader = session.read.format("kafka-log").option(option, "x")
    with pytest.raises(PySparkException) as caught:
        reader.load(str(SAMPLES / "kafka-4.x"))
    said = str(caught.value).partition("JVM stacktrace")[0]
    assert f"option {option}: " in said
    assert "Traceback" not in said and "worker.py" not in said and said.count("\n") < 3


def test_enabling_twice(session: SparkSession, home: Path) -> None:
    pyspark_kafka_log.enable(session)
    session.conf.set("spark.tests.format", "kafka-log")
    assert load(session, LOGS / "features-0", columns="offset").count() > 0


def test_a_session_without_a_jvm_is_refused() -> None:
    class Connected:
        """What a session of Spark Connect has: no context."""

    with pytest.raises(ConnectorError, match="Spark Connect"):
        pyspark_kafka_log.enable(Connected())  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.soak
def test_the_conf_at_start(session: SparkSession, home: Path) -> None:
    """The command says the jar's path, which ``spark.jars`` takes."""
    roots = [str(ROOT / name) for name in ("generator", "generated", "pipeline")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(roots)}

    def python(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    environment["KAFKA_CODECS_CACHE"] = str(home.parent.with_name("home"))
    path = python("-m", "pyspark_kafka_log.connector").strip()
    assert zipfile.is_zipfile(path)
    session.conf.set("spark.tests.format", "kafka-log-python")
    rows = load(session, LOGS).count()
    assert python("-c", AT_START, path, str(LOGS)).split() == [str(rows), "True"]


NOTEBOOK = """
import sys
from pyspark.sql import SparkSession
import pyspark_kafka_log
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
if sys.argv[2] == "enable":
    pyspark_kafka_log.enable(spark)
else:
    spark.dataSource.register(pyspark_kafka_log.DefaultSource)
print(spark.read.format("kafka-log").load(sys.argv[1]).count())
"""


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("by", ["enable", "register"])
def test_a_driver_that_is_no_python(session: SparkSession, by: str) -> None:
    """``PYSPARK_DRIVER_PYTHON=jupyter``: Spark looks with it for Python sources that nobody has told it of."""
    roots = [str(ROOT / name) for name in ("generator", "generated", "pipeline")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(roots)}
    environment["PYSPARK_DRIVER_PYTHON"] = "jupyter"
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK, str(LOGS), by],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    session.conf.set("spark.tests.format", "kafka-log-python")
    assert int(done.stdout) == load(session, LOGS).count()
