"""The columnar connector: the data source kafka-log as classes in the JVM, which Python workers decode for.

:func:`enable` adds it to a session. The Python source of the same name stays for where classes cannot be added.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from pyspark.sql import SparkSession

from pyspark_kafka_log.connector.jars import ConnectorError, jar

__all__ = ["ConnectorError", "enable", "jar_path"]

CATALOG = "spark.sql.catalog.kafka-log"
"""The conf that lets a path stand in a query: SELECT * FROM `kafka-log`.`/path`."""


def enable(spark: SparkSession) -> None:
    """Make ``kafka-log`` the columnar connector in all sessions of this Spark application. In this one a path may stand in a query.

    The first time its Java is compiled, in about a second. Workers run the interpreter that Spark's Python workers run, and find
    packages where this process does.

    Raises :class:`ConnectorError` when it cannot be compiled, or when the session has no JVM of its own (Spark Connect).
    """
    context: Any = getattr(spark, "_sc", None)
    if context is None:
        raise ConnectorError(["a session of Spark Connect has no JVM to add classes to"])
    path = str(jar(context._jvm)).replace("\\", "\\\\").replace("'", "\\'")
    spark.sql(f"ADD JAR '{path}'")
    system = context._jvm.java.lang.System
    system.setProperty("kafkaLog.python", context.pythonExec)
    system.setProperty("kafkaLog.pythonPath", os.pathsep.join(p for p in sys.path if p))
    if spark.conf.get(CATALOG, None) is None:
        spark.conf.set(CATALOG, "pyspark_kafka_log.LogCatalog")


def jar_path() -> str:
    """The jar of the connector, for the conf ``spark.jars`` of applications that have it from the start."""
    from pyspark.java_gateway import launch_gateway

    gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    try:
        return str(jar(gateway.jvm))
    finally:
        gateway.shutdown()
        gateway.proc.terminate()
