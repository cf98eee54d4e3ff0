"""One Spark for all tests here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.support.store_servers import PLAIN_GCSFS

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from pyspark_kafka_log import DefaultSource
from pyspark_kafka_log.connector import enable
from pyspark_kafka_log.java import JavaNotFound, find_java
from tests.brokers.brokers import KraftBroker
from tests.brokers.scenarios import fill_kafka_4
from tests.support.spark_peer import Peer, peer
from tests.support.spark_processes import until
from tests.support.spark_threads import running_tasks, stacks


class PythonSource(DefaultSource):
    """The Python source, under a name that it does not share with the columnar connector."""

    @classmethod
    def name(cls) -> str:
        return PYTHON_LANE


PYTHON_LANE = "kafka-log-python"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests that start Spark are slow. Those with the Python source are left to the soak, but for the mark `python_lane`, which CI runs."""
    if "session" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.slow)
    callspec = getattr(item, "callspec", None)
    if (
        callspec is not None
        and callspec.params.get("spark") == PYTHON_LANE
        and item.get_closest_marker("python_lane") is None
    ):
        item.add_marker(pytest.mark.soak)


@pytest.fixture(params=["kafka-log", PYTHON_LANE])
def spark(session: SparkSession, request: pytest.FixtureRequest) -> SparkSession:
    """A Spark; the conf ``spark.tests.format`` is the data source that a test reads with."""
    session.conf.set("spark.tests.format", request.param)
    return session


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A Spark in this process whose workers find the source roots."""
    scratch = tmp_path_factory.mktemp("spark")
    try:
        java = find_java(os.environ, scratch)
    except JavaNotFound as error:
        pytest.skip(str(error))
    roots = [str(ROOT / name) for name in ("generator", "generated", "pipeline")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(java.home))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join([*roots, os.environ.get("PYTHONPATH", "")]))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv(*PLAIN_GCSFS)
        session = (
            SparkSession.builder.master("local[2]")
            .appName("tests")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
            .config("spark.local.dir", str(scratch))
            .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        session.dataSource.register(PythonSource)
        enable(session)
        yield session
        session.stop()


@pytest.fixture(scope="session")
def kafka4(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """A Kafka 4 that runs, with Spark's source beside ours. No test writes to topics of :func:`fill_kafka_4`."""
    with peer(session, KraftBroker(tmp_path_factory.mktemp("kafka4")), fill_kafka_4) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give the next test the Spark that this one got: its settings, no query that runs, and no task that holds a slot."""
    if "session" not in request.fixturenames:
        yield
        return
    session: SparkSession = request.getfixturevalue("session")
    before = dict(session.conf.getAll)
    yield
    after = dict(session.conf.getAll)
    for name in after.keys() - before.keys():
        session.conf.unset(name)
    for name, value in before.items():
        if after.get(name) != value:
            session.conf.set(name, value)
    left = [str(query.id) for query in session.streams.active]
    assert not left, f"streams that the test has not stopped: {left}"
    until(lambda: not running_tasks(session), said=lambda: stacks(session))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """An empty directory for logs."""
    path = tmp_path / "logs"
    path.mkdir()
    return path
