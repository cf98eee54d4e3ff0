"""Servers of stores on loopback: Azurite for Azure, an emulator of Google's storage, and Hadoop's own HDFS."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.maven import cache_dir
from tests.brokers.process import free_port
from tests.paths import ROOT

PLAIN_GCSFS = ("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
"""gcsfs asks by gRPC of what kind a bucket is, and waits a minute for the answer that no emulator gives."""

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that Azurite has, and its key, which everybody knows."""

START_S = 60
UNREACHED = ("Unknown host", "Could not transfer", "offline mode", "Connection refused")

_ENDS_WITH_US = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
sys.stdin.read()
server.kill()
server.wait()
"""


@dataclass(frozen=True)
class Server:
    """A store: where it is, what opens it, and what Hadoop's configuration would."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    hadoop: Mapping[str, str] = field(default_factory=dict)
    hadoop_url: str = ""
    away: str = ""
    """The same on a port where nothing is, if that is in the URL."""

    @property
    def settings(self) -> dict[str, str]:
        """The options, as Spark takes them."""
        return {f"storage.{name}": str(value) for name, value in self.options.items()}

    @property
    def has_directories(self) -> bool:
        """Whether files lie in directories that somebody has to make."""
        return "hdfs" in self.url


@contextmanager
def _running(*command: str, **kwargs: Any) -> Iterator[subprocess.Popen[str]]:
    guarded = [sys.executable, "-c", _ENDS_WITH_US, *command]
    with subprocess.Popen(guarded, stdin=subprocess.PIPE, text=True, **kwargs) as process:
        assert process.stdin is not None
        try:
            yield process
        finally:
            process.stdin.close()
            process.wait(30)


def _wait_for(port: int, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + START_S
    while True:
        assert process.poll() is None and time.monotonic() < end, "the server has not started"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)


@contextmanager
def azure() -> Iterator[Server]:
    """Azurite, whose command AZURITE names where it is not on the PATH."""
    pytest.importorskip("adlfs")
    command = os.environ.get("AZURITE") or shutil.which("azurite-blob")
    if command is None:
        pytest.skip("azurite is not there: npm install azurite, and AZURITE=.../azurite-blob")
    port = free_port()
    with (
        tempfile.TemporaryDirectory() as scratch,
        _running(
            *[command, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--skipApiVersionCheck"],
            *["--inMemoryPersistence", "--disableTelemetry", "--silent"],
            stdout=subprocess.DEVNULL,
            cwd=scratch,
        ) as process,
    ):
        _wait_for(port, process)
        host = f"{ACCOUNT}.dfs.core.windows.net"
        parts = {
            "DefaultEndpointsProtocol": "http",
            "AccountName": ACCOUNT,
            "AccountKey": KEY,
            "BlobEndpoint": f"http://127.0.0.1:{port}/{ACCOUNT}",
        }
        yield Server(
            f"abfss://logs@{host}",
            {"connection_string": ";".join(f"{k}={v}" for k, v in parts.items())},
            {
                f"fs.azure.account.key.{host}": KEY,
                "fs.azure.abfs.endpoint": f"127.0.0.1:{port}",
                "fs.azure.always.use.https": "false",
            },
            f"abfs://logs@{host}",
        )


@contextmanager
def google() -> Iterator[Server]:
    """An emulator, which asks for no credentials."""
    pytest.importorskip("gcsfs")
    pytest.importorskip("gcp_storage_emulator")
    port = free_port()
    with _running(
        *[sys.executable, "-m", "gcp_storage_emulator", "start", "--in-memory"],
        *["--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        _wait_for(port, process)
        url = f"http://127.0.0.1:{port}"
        yield Server(
            "gs://logs",
            {"token": "anon", "endpoint_url": url},
            {"fs.gs.auth.type": "UNAUTHENTICATED", "fs.gs.storage.root.url": url + "/"},
            "gs://logs",
        )


@contextmanager
def hadoop() -> Iterator[tuple[Server, Server]]:
    """HDFS, by WebHDFS and by its own protocol. Most of it is in the jars that Spark brings."""
    jars = hadoop_jars()
    java = shutil.which("java")
    assert java is not None
    small = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    with (
        tempfile.TemporaryDirectory() as scratch,
        _running(
            *[
                java,
                *small,
                "-cp",
                jars,
                str(ROOT / "tests" / "support" / "HdfsServer.java"),
                scratch,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=scratch,
        ) as process,
    ):
        assert process.stdout is not None
        told = next((line for line in process.stdout if line.startswith("ports ")), "")
        assert told, "HDFS has not started"
        _, rpc, web = told.split()
        unused = free_port()
        yield (
            Server(
                f"webhdfs://127.0.0.1:{web}/logs",
                {"user": getpass.getuser()},
                away=f"webhdfs://127.0.0.1:{unused}/logs",
            ),
            Server(
                f"hdfs://127.0.0.1:{rpc}/logs",
                {"dfs.client.failover.max.attempts": "1"},
                away=f"hdfs://127.0.0.1:{unused}/logs",
            ),
        )


def hadoop_jars() -> str:
    """The class path of a server of HDFS. A test is skipped without Java and Maven, or where Maven Central is not reached."""
    import pyspark

    spark = Path(pyspark.__file__).parent / "jars"
    api = next(spark.glob("hadoop-client-api-*.jar"), None)
    maven = shutil.which("mvn")
    if api is None or maven is None or shutil.which("java") is None:
        pytest.skip("a server of HDFS needs Java, Maven and Spark's jars")
    version = api.stem.removeprefix("hadoop-client-api-")
    target = cache_dir().parent / f"hadoop-{version}"
    name = f"hadoop-client-minicluster-{version}.jar"
    if not (target / name).is_file():
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target) as aside:
            plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.7.1:copy"
            artifact = f"org.apache.hadoop:hadoop-client-minicluster:{version}"
            done = subprocess.run(
                [maven, "-B", "-q", plugin, f"-Dartifact={artifact}", f"-DoutputDirectory={aside}"],
                capture_output=True,
                text=True,
                check=False,
            )
            said = done.stdout + done.stderr
            if done.returncode and any(sign in said for sign in UNREACHED):
                pytest.skip("Maven Central is not reached, which has a server of HDFS")
            assert done.returncode == 0, said
            (Path(aside) / name).replace(target / name)
    return os.pathsep.join(map(str, (target / name, spark / "*")))


def put(directory: Path, server: Server, name: str) -> str:
    """Copy a directory into a store, below a name. What has grown is replaced as an object, and appended to as a file of HDFS, which is
    empty for a while when it is written anew. The URL of that."""
    import fsspec

    url = f"{server.url}/{name}"
    store, place = fsspec.core.url_to_fs(url, **server.options)
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    names = {path: f"{place}/{path.relative_to(directory).as_posix()}" for path in files}
    if server.has_directories:
        for above in sorted({name.rpartition("/")[0] for name in names.values()}):
            store.makedirs(above, exist_ok=True)
    elif not store.exists(container := place.partition("/")[0]):
        store.mkdir(container)

    def copy(path: Path) -> None:
        data, there = path.read_bytes(), names[path]
        known = store.size(there) if server.has_directories and store.exists(there) else 0
        if not known:
            store.pipe_file(there, data)
        elif known < len(data):
            with store.open(there, "ab") as file:
                file.write(data[known:])

    # A server of HDFS takes half a second for a file, and many at once.
    with ThreadPoolExecutor(16 if server.has_directories else 1) as threads:
        list(threads.map(copy, files))
    return url
