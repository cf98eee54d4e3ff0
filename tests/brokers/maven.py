"""Java builds: Maven fetches Kafka's jars and compiles the sources in java/src against them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

JAVA = Path(__file__).resolve().parent / "java"
MAVEN_LIMIT_S = 600
COMMON = ("Guard", "Lines")
JVM_FLAGS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8")
NO_JVM_LOG = "-Xlog:disable"
"""JVMs print warnings about archives of classes between the lines of the program."""
CLASSES = "classes.jar"
"""Compiled sources of a build. A JVM makes no archive of classes from directories."""


class BrokerError(Exception):
    """A broker, or a Java program beside it, did not do what it should; names its log file."""


@dataclass(frozen=True)
class Build:
    """Which artifact of Kafka, in which version, and the main class that is compiled with it. ``storage_tests`` is the version of
    the test classes of Kafka's storage that are there too, ``spark_source`` that of Spark's Kafka source."""

    artifact: str
    version: str
    jackson: str
    main: str
    storage_tests: str = ""
    spark_source: str = ""

    @property
    def name(self) -> str:
        return f"{self.artifact}-{self.version}-{self.main.lower()}"


# Jackson follows the one that the broker itself brings: jackson-module-scala accepts no other minor version.
KAFKA_4 = Build("kafka_2.13", "4.4.0", "2.21.7", "Driver")
# The newest version whose test classes Maven Central has.
KAFKA_4_TIERED = Build("kafka_2.13", "4.3.0", "2.21.2", "Driver", storage_tests="4.3.0")
KAFKA_2_8 = Build("kafka_2.13", "2.8.2", "2.10.5.1", "Driver")
CLIENT_0_9 = Build("kafka-clients", "0.9.0.1", "2.21.7", "OldProducer")
CLIENT_0_10 = Build("kafka-clients", "0.10.2.2", "2.21.7", "OldProducer")
READ_BACK = Build("kafka-clients", "4.4.0", "2.21.7", "ReadBack")
JUDGE = Build("kafka-clients", "4.4.0", "2.21.7", "Judge")
INTERNAL_TOPICS = Build("kafka_2.13", "4.4.0", "2.21.7", "InternalTopics")
# The newest release of which Maven Central has the tools; its decoders are an artifact of their own.
DUMP_TOOL = Build("kafka-tools", "4.3.1", "2.21.7", "DumpTool")
DUMP_TOOL_API = Build("kafka-tools-api", "4.3.1", "2.21.7", "DumpTool")
MESSAGES = Build("kafka_2.13", "4.4.0", "2.21.7", "Messages")
ADMINISTRATOR = Build("kafka-clients", "4.4.0", "2.21.7", "Administrator")
# Spark's Kafka source, with the client that it asks for. Maven Central has none of Spark 4.3.0, which runs this one.
SPARK_SOURCE = Build("kafka-clients", "3.9.2", "2.21.7", "Guard", spark_source="4.2.0")
STREAMS_MEMBER = Build("kafka-clients", "4.4.0", "2.21.7", "StreamsMember")


def cache_dir() -> Path:
    """Where builds lie between runs; KAFKA_CODECS_CACHE names another place."""
    given = os.environ.get("KAFKA_CODECS_CACHE")
    if given:
        return Path(given)
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA", str(Path.home() / "AppData" / "Local")))
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")))
    return root / "kafka-codecs" / "brokers"


def classpath(build: Build) -> str:
    """The class path of a build, which is made first if these sources were not built before."""
    target = _target(build)
    listing = target / "classpath.txt"
    if not _complete(listing):
        with _one_at_a_time():
            if not _complete(listing):
                _make(build, target)
        if not _complete(listing):
            raise BrokerError(f"Maven left no usable class path in {listing}")
    jars = listing.read_text(encoding="utf-8").strip()
    return os.pathsep.join((str(target / CLASSES), jars))


def java_command(build: Build, main: str, *args: str, flags: tuple[str, ...] = ()) -> list[str]:
    path = classpath(build)
    archive = class_archive(build)
    if archive.is_file():
        flags = (*flags, f"-XX:SharedArchiveFile={archive}", NO_JVM_LOG)
    return [_tool("java"), *JVM_FLAGS, *flags, "-cp", path, main, *args]


def class_archive(build: Build) -> Path:
    """Return the file with the classes that a broker of the build loads, with which each JVM of the build starts in half the time.

    The file exists after the first clean stop of a broker. A JVM that cannot use the archive starts without it.
    """
    return _target(build) / "broker.jsa"


def _tool(name: str) -> str:
    # shutil.which finds mvn.cmd on Windows too.
    found = shutil.which(name)
    if found is None:
        raise BrokerError(f"{name} is not on the PATH; the broker tests need Java 17 and Maven")
    return found


def _target(build: Build) -> Path:
    return cache_dir() / f"{build.name}-{_fingerprint(build)}"


@cache
def _fingerprint(build: Build) -> str:
    digest = hashlib.sha256(f"{build} {CLASSES}".encode())
    for path in (
        JAVA / "pom.xml",
        *(JAVA / "src" / f"{name}.java" for name in (*COMMON, build.main)),
    ):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _complete(listing: Path) -> bool:
    """Maven's repository may have been emptied since: every jar is looked for again."""
    if not listing.is_file():
        return False
    jars = listing.read_text(encoding="utf-8").strip().split(os.pathsep)
    return bool(jars[0]) and all(Path(jar).is_file() for jar in jars)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Maven's repository is not made for two processes that fill it."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    with (cache_dir() / "maven.lock").open("w") as lock:
        if fcntl is not None:
            fcntl.lockf(lock, fcntl.LOCK_EX)
        yield


def _make(build: Build, target: Path) -> None:
    """Builds aside and moves the whole into place: where there is no lock, another process may be building the same."""
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    _run_maven(build, aside)
    packed = shutil.make_archive(str(aside / "packed"), "zip", aside / "classes")
    Path(packed).rename(aside / CLASSES)
    if target.exists():
        shutil.rmtree(target, ignore_errors=True)
    try:
        aside.rename(target)
    except OSError:
        # The other process was first, and what it made is the same.
        shutil.rmtree(aside, ignore_errors=True)


def _run_maven(build: Build, target: Path) -> None:
    log = target / "maven.log"
    command = [_tool("mvn"), "-B", "-q", "-f", str(JAVA / "pom.xml"), "compile"]
    command += [f"-Dkafka.artifact={build.artifact}", f"-Dkafka.version={build.version}"]
    command += [
        f"-Djackson.version={build.jackson}",
        f"-Dmain={build.main}",
        f"-Dbuild.dir={target}",
    ]
    if build.storage_tests:
        command.append(f"-Dkafka.storage.tests={build.storage_tests}")
    if build.spark_source:
        command.append(f"-Dspark.source={build.spark_source}")
    with log.open("wb") as out:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=MAVEN_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BrokerError(f"Maven took more than {MAVEN_LIMIT_S} s; see {log}") from None
    if done.returncode != 0:
        raise BrokerError(f"Maven failed for {build.name}; see {log}:\n{tail(log)}")


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log, for an error message."""
    if not log.is_file():
        return "(no log)"
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
