"""Which tests run in one process when pytest-xdist runs them in several, and in which order the groups begin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

TOGETHER = ("tests/pyspark_kafka_log/", "tests/brokers/")
"""Folders whose files share what is dear to start: one Spark, one broker of each kind."""

SPARK_AND_SERVERS = "tests/pyspark_kafka_log/ with servers"
"""The group of the files below: they share a second Spark, which waits for brokers, stores, clusters and kills most of the time."""

WITH_SERVERS = (
    "tests/pyspark_kafka_log/test_cluster.py",
    "tests/pyspark_kafka_log/connector/test_connect.py",
    "tests/pyspark_kafka_log/test_killed_jvm.py",
    "tests/pyspark_kafka_log/test_killed_workers.py",
    "tests/pyspark_kafka_log/test_other_stores.py",
    "tests/pyspark_kafka_log/test_peer.py",
    "tests/pyspark_kafka_log/test_peer_stream.py",
    "tests/pyspark_kafka_log/stream/test_broker.py",
    "tests/pyspark_kafka_log/stream/test_killed.py",
    "tests/pyspark_kafka_log/stream/test_tiered_broker.py",
)

ALONE = (
    "tests/pyspark_kafka_log/test_demo.py",
    "tests/pyspark_kafka_log/test_java.py",
    "tests/pyspark_kafka_log/test_spark_versions.py",
    "tests/pyspark_kafka_log/test_warm.py",
    "tests/pyspark_kafka_log/test_worker_memory.py",
    "tests/pyspark_kafka_log/test_write_killed.py",
)
"""Files of such a folder that are groups by themselves: each of their tests starts a Spark of its own, or none."""

LONG = (
    "tests/pyspark_kafka_log/",
    SPARK_AND_SERVERS,
    "tests/brokers/",
    "tests/pyspark_kafka_log/test_spark_versions.py",
    "tests/laws/test_laws.py",
    "tests/codecgen/check/test_mangled_schemas.py",
    "tests/mutants/test_mutants.py",
    "tests/codecs/test_readme.py",
)
"""Groups of few tests that take long: one that begins last would leave the other processes idle."""

WITHOUT_KERNELS = ("tests/codecgen/", "tests/mutants/")
WITH_KERNELS = ("tests/codecgen/runtime/arrow/", "tests/codecgen/targets/arrow/")
"""Folders whose groups come next, and folders in these whose groups come later: what compiles kernels does so once meanwhile, and the groups
after these find them."""

LONG_WITH_KERNELS = (
    "tests/codecgen/targets/arrow/numba_encode/test_layouts.py",
    "tests/test_console_pages.py",
    "tests/codecgen/runtime/arrow/test_encoder.py",
    "tests/codecgen/runtime/arrow/test_kept_code.py",
)
"""Groups of few tests that take long, but for these."""


def group(test: str) -> str:
    """The group of a test: its file, or what is kept together."""
    file = test.partition("::")[0]
    if file in ALONE:
        return file
    if file in WITH_SERVERS:
        return SPARK_AND_SERVERS
    return next((folder for folder in TOGETHER if file.startswith(folder)), file)


def ordered(tests: Sequence[str]) -> list[str]:
    """The tests group by group: the long ones first, then those without kernels, then those with the most tests."""
    sizes = Counter(map(group, tests))

    def rank(name: str) -> tuple[int, int]:
        if name in LONG:
            return 0, LONG.index(name)
        if name.startswith(WITHOUT_KERNELS) and not name.startswith(WITH_KERNELS):
            return 1, 0
        if name in LONG_WITH_KERNELS:
            return 2, LONG_WITH_KERNELS.index(name)
        return 3, 0

    return sorted(tests, key=lambda test: (rank(n := group(test)), -sizes[n], n))
