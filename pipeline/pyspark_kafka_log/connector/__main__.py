"""``python -m pyspark_kafka_log.connector``: the path of the connector's jar, for the conf ``spark.jars``."""

from __future__ import annotations

import sys

from pyspark.errors import PySparkException

from pyspark_kafka_log.connector import ConnectorError, jar_path


def main() -> int:
    try:
        print(jar_path())
    except ConnectorError as error:
        print(error, file=sys.stderr)
        return 2
    except PySparkException as error:
        print(f"kafka-log: Java does not start: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
