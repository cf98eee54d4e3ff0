"""Compile the connector's Java once with the compiler that Spark brings, and cache the jar under a digest.

No jar is shipped and no JDK is required: the sources lie beside this module. Janino, with which Spark compiles queries, compiles them, else the
compiler of a JDK.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyspark

PACKAGE = "pyspark_kafka_log"
SOURCE = f"{PACKAGE}.KafkaLogSource"
SERVICE = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
TARGET = 11
"""The version of class files: any Java that Spark 4 runs on takes them."""


class ConnectorError(Exception):
    """The connector is not available. ``reasons`` lists what was tried."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__(tuple(reasons))
        self.reasons = tuple(reasons)

    def __str__(self) -> str:
        return (
            f"kafka-log: the columnar connector is not available ({'; '.join(self.reasons)});"
            " the Python source reads the same rows without it"
        )


def java_sources() -> dict[str, str]:
    """Return the texts of the package's ``.java`` files by file name, sorted by name."""
    folder = files(__package__) / "java"
    found = [one for one in folder.iterdir() if one.name.endswith(".java")]
    return {
        one.name: one.read_text(encoding="utf-8") for one in sorted(found, key=lambda f: f.name)
    }


def cache_directory() -> Path:
    """Return the directory of cached jars, which may not exist: ``spark`` in the directory
    KAFKA_CODECS_CACHE if that is set and not empty; otherwise ``kafka-codecs/spark`` in the user's
    cache directory of Windows, macOS, or XDG_CACHE_HOME (unset or empty: ``~/.cache``).
    """
    given = os.environ.get("KAFKA_CODECS_CACHE")
    if given:
        return Path(given) / "spark"
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "kafka-codecs" / "spark"


def find_or_compile_jar(jvm: Any) -> Path:
    """Return the path of the connector's jar for this PySpark version and these Java sources.
    Compile it into the cache directory unless a zip with valid checksums is there; into a new
    temporary directory if the cache directory cannot be written. Raise :class:`ConnectorError` if
    no compiler succeeds, or neither directory is writable.
    """
    texts = java_sources()
    made_of = "\n".join([pyspark.__version__, *texts, *texts.values()])
    name = f"kafka-log-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}.jar"
    for folder in _candidate_directories():
        path = folder / name
        if _is_valid_jar(path):
            return path
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                made = _compile(jvm, texts, Path(scratch))
                made.replace(path)
        except OSError:
            continue  # a home that cannot be written: the next
        return path
    raise ConnectorError(
        ["no directory for its jar is writable: set KAFKA_CODECS_CACHE to one that is"]
    )


def _candidate_directories() -> Iterable[Path]:
    """Yield the directories in which the jar may lie: the cache directory, then a new temporary one
    that only this user can write. Leave out the second if it cannot be made.
    """
    yield cache_directory()
    # A directory of this process alone: in one whose name can be guessed others could lay classes.
    with suppress(OSError):
        yield Path(tempfile.mkdtemp(prefix="kafka-codecs-"))


def _is_valid_jar(path: Path) -> bool:
    """Return whether a file is a zip archive whose members all have valid checksums. Return False
    if the file is missing or unreadable.
    """
    try:
        with zipfile.ZipFile(path) as found:
            return found.testzip() is None
    except Exception:  # what is no zip, and what bytes that changed make of one
        return False


def _compile(jvm: Any, texts: dict[str, str], scratch: Path) -> Path:
    """Compile Java sources below ``scratch`` with Janino, or with the JDK's compiler if that fails,
    and return the path of the jar. Raise ConnectorError with both reasons if neither succeeds;
    OSError if a file cannot be written.
    """
    java = scratch / "java"
    java.mkdir()
    for name, text in texts.items():
        (java / name).write_text(text, encoding="utf-8")
    reasons = []
    for compiler in (_janino, _javac):
        classes = scratch / compiler.__name__.strip("_")
        classes.mkdir()
        try:
            compiler(jvm, [java / name for name in texts], classes)
        except Exception as error:
            reasons.append(f"{compiler.__name__.strip('_')}: {_first_line(error)}")
            continue
        return _pack(classes, scratch / "made.jar")
    raise ConnectorError(reasons)


def _janino(jvm: Any, java: Sequence[Path], classes: Path) -> None:
    # Spark's own loader: that of the thread may know an older jar of ours.
    """Compile Java files into ``classes`` with Janino. Raise Py4JError if the compiler fails."""
    loader = jvm.java.lang.Class.forName("org.apache.spark.SparkContext").getClassLoader()
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
    compiler.setDestinationDirectory(jvm.java.io.File(str(classes)), False)
    compiler.setTargetVersion(TARGET)
    compiler.compile(_array(jvm, jvm.java.io.File, [jvm.java.io.File(str(p)) for p in java]))


def _javac(jvm: Any, java: Sequence[Path], classes: Path) -> None:
    """Compile Java files into ``classes`` with the JDK's compiler. Raise ValueError if the runtime
    has no compiler; ValueError with its output if it reports errors.
    """
    compiler = jvm.javax.tools.ToolProvider.getSystemJavaCompiler()
    if compiler is None:
        raise ValueError(
            "Spark runs on a Java runtime without a compiler: set JAVA_HOME to a JDK before Spark starts"
        )
    arguments = ["-nowarn", "--release", str(TARGET), "-d", str(classes), "-cp"]
    arguments += [str(jvm.java.lang.System.getProperty("java.class.path")), *map(str, java)]
    told = jvm.java.io.ByteArrayOutputStream()
    if compiler.run(None, told, told, _array(jvm, jvm.java.lang.String, arguments)):
        raise ValueError(told.toString())


def _array(jvm: Any, kind: Any, items: Sequence[Any]) -> Any:
    """Return a new Java array with the element class ``kind`` and the items in order."""
    out = jvm.java.lang.reflect.Array.newInstance(kind._java_lang_class, len(items))
    for i, item in enumerate(items):
        out[i] = item
    return out


def _pack(classes: Path, path: Path) -> Path:
    """Write all ``.class`` files below ``classes``, and the service file that registers the Spark
    source, into a jar at ``path``. Return ``path``.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr(SERVICE, f"{SOURCE}\n")
        for one in sorted(classes.rglob("*.class")):
            out.write(one, one.relative_to(classes).as_posix())
    return path


def _first_line(error: Exception) -> str:
    """Return the first line of an error's message, of the Java exception if it wraps one. Return
    the name of the error's class if the message is empty.
    """
    text = str(getattr(error, "java_exception", error))
    with suppress(IndexError):
        return text.strip().splitlines()[0]
    return type(error).__name__
