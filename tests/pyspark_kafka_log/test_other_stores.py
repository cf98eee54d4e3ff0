"""Logs in Azure's, Google's and Hadoop's stores, on real servers or the emulators that there are: the same rows as from this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec")

from pyspark.sql import SparkSession

from kafka_log import LogDirectory, discover, make_path, read_table, scan
from kafka_log.cli import main
from kafka_log.segment.remote_files import RemoteFile
from tests.brokers.process import free_port
from tests.paths import SAMPLES
from tests.support import store_servers
from tests.support.remote_verbs import without_places
from tests.support.spark_logs import batch, build, numbered, write
from tests.support.spark_stores import load, rows
from tests.support.spark_streams import offsets, started
from tests.support.store_servers import KEY, Server, put

pytestmark = pytest.mark.slow

STORES = ("abfss", "gs", "webhdfs", "hdfs")
TOPICS = ("transactions", "codecs")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some of the samples, and a segment of several blocks."""
    target = tmp_path_factory.mktemp("logs") / "broker-1"
    for path in (SAMPLES / "kafka-4.x").iterdir():
        if path.name.startswith(TOPICS):
            shutil.copytree(path, target / path.name)
    value = bytes(range(256)) * 256
    many = (build(batch(n, [value + b"%d" % n])) for n in range(40))
    write(target, "large", 0, 0, b"".join(many))
    return target


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Server]]:
    """Those that have been asked for."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv(*store_servers.PLAIN_GCSFS)
        yield _Started(stack)


class _Started(dict[str, Server]):
    def __init__(self, stack: ExitStack) -> None:
        super().__init__()
        self._stack = stack

    def __missing__(self, kind: str) -> Server:
        if kind == "abfss":
            self[kind] = self._stack.enter_context(store_servers.azure())
        elif kind == "gs":
            self[kind] = self._stack.enter_context(store_servers.google())
        else:
            self["webhdfs"], self["hdfs"] = self._stack.enter_context(store_servers.hadoop())
        return self[kind]


@pytest.fixture(
    params=[pytest.param(kind, marks=[pytest.mark.soak] * (kind != "abfss")) for kind in STORES]
)
def server(
    request: pytest.FixtureRequest, servers: dict[str, Server], logs: Path
) -> Iterator[Server]:
    """With the logs in it as ``broker-1``."""
    if request.param == "hdfs":
        pytest.importorskip("hdfs_native")
    found = servers[request.param]
    # Both of Hadoop's are one store, and WebHDFS writes to it.
    by = servers["webhdfs"] if found.has_directories else found
    there = make_path(f"{by.url}/broker-1", by.options)
    if not there.exists():
        put(logs, by, "broker-1")
    yield found


# ---------------------------------------------------------------- without Spark


def test_the_same_rows(server: Server, logs: Path) -> None:
    there = make_path(f"{server.url}/broker-1", server.options)
    assert read_table(there).equals(read_table(logs))
    chosen: dict[str, Any] = {"isolation": "read_committed", "offsets": (3, 40)}
    assert scan(there, **chosen).read_all().equals(scan(logs, **chosen).read_all())
    patterns = make_path(f"{server.url}/bro*-1/codecs-[12]", server.options).matches()  # type: ignore[attr-defined]
    assert [path.name for path in patterns] == ["codecs-1", "codecs-2"]


@pytest.mark.soak
def test_ranges_and_what_is_read_ahead(server: Server, logs: Path) -> None:
    (segment,) = (logs / "large-0").glob("*.log")
    data = segment.read_bytes()
    path = make_path(f"{server.url}/broker-1/large-0/{segment.name}", server.options)
    assert path.stat().st_size == len(data) > 2 << 20
    with path.open("rb", buffering=0) as file:
        assert isinstance(file, RemoteFile)
        assert file.size == len(data)
        for start in (len(data) - 10, 1 << 20, 0):
            file.seek(start)
            assert file.read(100) == data[start : start + 100]
            assert file._ahead is None
        file.seek(0)
        found, ahead = bytearray(), 0
        while piece := file.read(100_000):
            found += piece
            ahead += file._ahead is not None
        assert bytes(found) == data
        assert ahead > 2


@pytest.mark.soak
def test_times_are_those_of_the_store(server: Server, logs: Path, tmp_path: Path) -> None:
    """Streams, ``modifiedAfter`` and others go by them."""
    (here,) = (logs / "large-0").glob("*.log")
    there = make_path(f"{server.url}/broker-1/large-0/{here.name}", server.options)
    assert 0 <= there.stat().st_mtime_ns - here.stat().st_mtime_ns < 3600 * 10**9


@pytest.mark.soak
def test_the_same_answers(server: Server, logs: Path) -> None:
    there = make_path(f"{server.url}/broker-1", server.options)
    for verb in ("stat", "check", "txn"):
        given = {} if verb == "check" else {"now": 10**13}
        found, expected = (getattr(LogDirectory(p), verb)(**given) for p in (there, logs))
        assert without_places(found).equals(without_places(expected))


@pytest.mark.soak
def test_the_command(
    server: Server,
    servers: dict[str, Server],
    logs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What opens the store is in the environment."""
    if server.url.startswith("abfss"):
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", server.options["connection_string"])
    if server.url.startswith("gs"):
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.options["endpoint_url"])

    def told(*arguments: str) -> list[dict[str, Any]]:
        assert main([*arguments, "--format", "jsonl"]) == 0
        lines = capsys.readouterr().out.splitlines()
        return [json.loads(line) for line in lines]

    for command in ("ls",), ("dump", "--topic", "transactions", "--offsets", "2:9"):
        there = told(*command, f"{server.url}/broker-1")
        here = told(*command, str(logs))
        for row in (*here, *there):
            row.pop("directory", None)
        assert there == here and there


@pytest.mark.soak
def test_a_name_service(
    servers: dict[str, Server], logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hadoop's own files say where it is; the first of its name nodes is away."""
    pytest.importorskip("hdfs_native")
    put(logs / "codecs-1", servers["webhdfs"], "broker-1/codecs-1")
    nodes = {"a": f"127.0.0.1:{free_port()}", "b": servers["hdfs"].url.split("/")[2]}
    given = {"dfs.nameservices": "ours", "dfs.ha.namenodes.ours": "a,b"}
    given |= {f"dfs.namenode.rpc-address.ours.{name}": at for name, at in nodes.items()}
    said = (f"<property><name>{n}</name><value>{v}</value></property>" for n, v in given.items())
    (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{''.join(said)}</configuration>")
    (tmp_path / "core-site.xml").write_text("<configuration/>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    there = read_table(make_path("hdfs://ours/logs/broker-1/codecs-1"))
    assert there.equals(read_table(logs / "codecs-1"))


@pytest.mark.soak
@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_process_that_is_forked(server: Server, logs: Path) -> None:
    """As PySpark does to start its JVM."""
    read_table(make_path(f"{server.url}/broker-1/codecs-1", server.options))
    child = os.fork()
    if not child:
        os._exit(7)
    end = time.monotonic() + 20
    ended = status = 0
    while not ended and time.monotonic() < end:
        time.sleep(0.05)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


# ---------------------------------------------------------------- errors


@pytest.mark.soak
def test_what_is_not_there(server: Server) -> None:
    top, _, name = server.url.rpartition("logs")
    urls = [f"{server.url}/broker-2", f"{server.url}/broker", f"{top}nothing{name}/broker-1"]
    for url in urls:
        with pytest.raises(Exception, match="there is no such file or directory") as caught:
            discover(make_path(url, server.options))
        assert url in str(caught.value)


@pytest.mark.soak
def test_a_server_that_is_away(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    unused = f"http://127.0.0.1:{free_port()}"
    options, url = dict(server.options), server.away or server.url
    if url.startswith("abfss"):
        options["connection_string"] = (
            options["connection_string"].rpartition("=")[0] + f"={unused}/x"
        )
        at_once = "azure.storage.blob.aio.ExponentialRetry.get_backoff_time"
        monkeypatch.setattr(at_once, lambda *_: 0)
    if url.startswith("gs"):
        options["endpoint_url"] = unused
        monkeypatch.setattr("gcsfs.retry.is_retriable", lambda _: False)
    with pytest.raises(OSError, match=rf"{url}/broker-1: .*([Cc]onnect|failed)") as caught:
        discover(make_path(f"{url}/broker-1", options))
    assert KEY not in str(caught.value)


@pytest.mark.soak
def test_credentials_that_are_wrong(servers: dict[str, Server], logs: Path) -> None:
    server = servers["abfss"]
    other = KEY.replace("Eby8", "EbyX")
    text = server.options["connection_string"].replace(KEY, other)
    with pytest.raises(OSError, match="failed to authenticate") as caught:
        discover(make_path(f"{server.url}/broker-1", {"connection_string": text}))
    assert other not in str(caught.value)
    text = text.replace(other, "no-key")
    with pytest.raises(OSError, match=f"{server.url}/broker-1: ") as caught:
        discover(make_path(f"{server.url}/broker-1", {"connection_string": text}))
    assert "no-key" not in str(caught.value)


@pytest.mark.soak
def test_a_user_who_may_not_read(servers: dict[str, Server], logs: Path) -> None:
    import fsspec

    server = servers["webhdfs"]
    put(logs / "codecs-1", server, "private/codecs-1")
    store, place = fsspec.core.url_to_fs(f"{server.url}/private", **server.options)
    store._call("SETPERMISSION", "put", path=place, permission="700")
    assert discover(make_path(f"{server.url}/private", server.options))
    with pytest.raises(OSError, match=r"the store refuses it \(Permission denied: user=other"):
        discover(make_path(f"{server.url}/private", {"user": "other"}))


# ---------------------------------------------------------------- Spark


@pytest.fixture(scope="module")
def here(session: SparkSession, logs: Path) -> list[tuple[Any, ...]]:
    """The rows as they are read from this machine."""
    return rows(session.read.format("kafka-log").load(str(logs)))


@pytest.mark.soak
def test_a_batch_query(spark: SparkSession, server: Server, here: list[tuple[Any, ...]]) -> None:
    given = {name.replace(".", "__"): value for name, value in server.settings.items()}
    pattern = f"{server.url}/broker-1/*-[0-9]"
    assert rows(load(spark, pattern, **given, splitBytes="1000000")) == here


@pytest.mark.soak
@pytest.mark.parametrize("server", ["abfss", "gs"], indirect=True)
def test_options_of_hadoop(
    session: SparkSession, server: Server, here: list[tuple[Any, ...]]
) -> None:
    reader = session.read.format("kafka-log").options(**server.hadoop)
    assert rows(reader.load(f"{server.hadoop_url}/broker-1")) == here


@pytest.mark.soak
@pytest.mark.parametrize("server", ["abfss", "gs"], indirect=True)
def test_credentials_of_spark(
    session: SparkSession, server: Server, here: list[tuple[Any, ...]]
) -> None:
    """The connector sees what Hadoop's own connector would be opened with: by its configuration, and by the session's."""
    configuration = session.sparkContext._jsc.hadoopConfiguration()
    url = f"{server.hadoop_url}/broker-1"
    for told, forgotten in (
        (configuration.set, configuration.unset),
        (session.conf.set, session.conf.unset),
    ):
        try:
            for name, value in server.hadoop.items():
                told(name, value)
            assert rows(session.read.format("kafka-log").load(url)) == here
        finally:
            for name in server.hadoop:
                forgotten(name)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("lane", "server"),
    [*(("kafka-log", kind) for kind in STORES), ("kafka-log-python", "gs")],
    indirect=["server"],
)
def test_a_stream(
    session: SparkSession,
    lane: str,
    server: Server,
    servers: dict[str, Server],
    directory: Path,
    tmp_path: Path,
) -> None:
    """Between micro-batches an object is replaced by a longer one or a file appended to, and a segment and a partition appear."""
    name = f"streams-{tmp_path.name}"
    url = f"{server.url}/{name}"
    if server.has_directories:  # fsspec's WebHDFS does not append
        pytest.importorskip("hdfs_native")
    by = servers["hdfs"] if server.has_directories else server
    write(directory, "t", 0, 0, numbered(3, 4))
    put(directory, by, name)
    session.conf.set("spark.tests.format", lane)
    query = started(session, url, tmp_path, {"processingTime": "0 seconds"}, **server.settings)
    try:
        query.processAllAvailable()
        assert offsets(session, tmp_path) == list(range(12))
        write(directory, "t", 0, 0, numbered(3, 5))
        put(directory, by, name)
        query.processAllAvailable()
        assert offsets(session, tmp_path) == list(range(15))
        write(directory, "t", 0, 15, build(batch(15, [b"15", b"16"])))
        write(directory, "u", 0, 0, numbered(2, 1))
        put(directory, by, name)
        query.processAllAvailable()
    finally:
        query.stop()
    assert offsets(session, tmp_path) == list(range(17))
    assert offsets(session, tmp_path, "u") == [0, 1]
    kept = [path for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
    assert kept and not [path for path in kept if KEY in path.read_text("utf-8", "replace")]


@pytest.mark.soak
def test_no_key_is_shown(
    spark: SparkSession,
    servers: dict[str, Server],
    logs: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    server = servers["abfss"]
    if not make_path(f"{server.url}/broker-1", server.options).exists():
        put(logs, server, "broker-1")
    given = {name.replace(".", "__"): value for name, value in server.settings.items()}
    frame = load(spark, f"{server.url}/broker-1", **given).where("offset > 3")
    shown = [str(frame._jdf.queryExecution()), str(frame), repr(frame.schema)]
    frame.explain("extended")
    shown += capfd.readouterr()
    assert "kafka-log" in shown[0]
    assert not [text for text in shown if KEY in text]
