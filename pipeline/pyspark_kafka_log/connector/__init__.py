"""The columnar connector: the data source kafka-log as classes in the JVM, which Python workers decode for.

:func:`enable` adds it to a session. The Python source of the same name stays for where classes cannot be added.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pyspark_kafka_log.connector.jars import ConnectorError, find_or_compile_jar

__all__ = ["ConnectorError", "enable", "jar_path"]

CATALOG = "spark.sql.catalog.kafka-log"
"""The conf that lets a path stand in a query: SELECT * FROM `kafka-log`.`/path`."""

LOADER = "org.apache.spark.util.MutableURLClassLoader"
"""Name of the class loader of an application. The class loaders of sessions have the same class or are children of it."""


def enable(spark: SparkSession) -> None:
    """Compile or find the connector's jar, and make ``kafka-log`` the columnar connector in all
    sessions of this Spark application. Set the catalog of this session, so that SQL can name a
    path, unless one is set. Raise ConnectorError if compilation fails, no directory is writable, or
    the session is of Spark Connect.

    The first time its Java is compiled, in about a second. Workers on the driver, and all of them in local mode, are of this process's
    interpreter and find packages where it does. Those of tasks on a cluster run the interpreter that Spark's Python workers run, which has
    to have the package there: nothing of this machine's paths is told to them.
    """
    context: Any = getattr(spark, "_sc", None)
    if context is None:
        raise ConnectorError(
            [
                "a Spark Connect session cannot add classes to its server's JVM: use a classic session for the connector"
            ]
        )
    jvm = context._jvm
    made = find_or_compile_jar(jvm)
    _add_for_application(jvm, made)
    path = str(made).replace("\\", "\\\\").replace("'", "\\'")
    spark.sql(f"ADD JAR '{path}'")
    system = jvm.java.lang.System
    system.setProperty("kafkaLog.python", context.pythonExec)
    system.setProperty("kafkaLog.driverPython", sys.executable or context.pythonExec)
    system.setProperty("kafkaLog.driverPythonPath", os.pathsep.join(p for p in sys.path if p))
    if spark.conf.get(CATALOG, None) is None:
        spark.conf.set(CATALOG, "pyspark_kafka_log.LogCatalog")


def _add_for_application(jvm: Any, path: Path) -> None:
    """Add the jar to the outermost class loader of the current thread that accepts jars. Tasks'
    results are read with it, and it does not see jars of sessions. Do nothing if no such loader
    exists.
    """
    kind = jvm.java.lang.Class.forName(LOADER)
    loader, outermost = jvm.java.lang.Thread.currentThread().getContextClassLoader(), None
    while loader is not None:
        if kind.isInstance(loader):
            outermost = loader
        loader = loader.getParent()
    if outermost is not None:
        outermost.addURL(jvm.java.io.File(str(path)).toURI().toURL())


def jar_path() -> str:
    """Return the path of the connector's jar for the conf ``spark.jars``. Start a JVM for the call,
    and compile the jar if the cache has no valid one. Raise ConnectorError if compilation fails or
    no directory is writable, PySparkException if Java does not start.
    """
    from pyspark.java_gateway import launch_gateway

    gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    try:
        return str(find_or_compile_jar(gateway.jvm))
    finally:
        gateway.shutdown()
        gateway.proc.terminate()
