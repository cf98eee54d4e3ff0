"""``python -m pyspark_kafka_log.connector``: the path of the connector's jar, for the conf ``spark.jars``."""

from __future__ import annotations

import sys

from pyspark.errors import PySparkException

from pyspark_kafka_log.connector import ConnectorError, jar_path


def main() -> int:
    """Print the path of the connector's jar to stdout, and return 0. If the jar cannot be compiled
    or Java does not start, print the reason to stderr, and return 2.
    """
    try:
        sys.stdout.write(f"{jar_path()}\n")
    except ConnectorError as error:
        return _failed(str(error))
    except PySparkException as error:
        return _failed(f"kafka-log: Java does not start: {error}")
    return 0


def _failed(why: str) -> int:
    """Print an error to stderr, and return exit code 2."""
    sys.stderr.write(f"{why}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
