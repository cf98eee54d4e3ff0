"""Patterns of names and paths mean here what they mean in Hadoop, and so in Spark's own file sources."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafka_log.segment.globs import compile_pattern, matches
from pyspark_kafka_log.options import OptionError
from pyspark_kafka_log.splits.logs import expand_path
from tests.shares import draw_seeds
from tests.support.spark_logs import batch, build, write

PARTS = ["a", "b", "c", "ab", *"*?{},.^!$-", "[abc]", "[^ab]", "[a-c]", "[!b]", "\\*", "\\{"]
NAMES = [*"abc*{}.,!^$-", "", "ab", "abc", "a.b", "{a}", "a,b", "aa", "ca", "a*", "a-b", "cab"]


@pytest.mark.parametrize("seed", draw_seeds(1, first=11))
def test_random_patterns_are_those_of_hadoop(session: SparkSession, seed: int) -> None:
    """Hadoop's own matcher, on the same patterns and names."""
    of_hadoop = session._jvm.org.apache.hadoop.fs.GlobPattern
    draw = random.Random(seed)
    refused = 0
    for _ in range(150):
        pattern = "".join(draw.choices(PARTS, k=draw.randint(1, 6)))
        try:
            theirs = of_hadoop(pattern)
        except Exception:
            refused += 1
            with pytest.raises(ValueError):
                compile_pattern(pattern)
            continue
        for name in draw.sample(NAMES, 10):
            assert matches(name, pattern) == theirs.matches(name), (pattern, name)
    assert 5 < refused < 100


LOAD = [
    "*",
    "t-[01]",
    "t-[^1]",
    "{t,u}-0",
    "t-{0,2}",
    "{t-0,u-0}",
    "?-0",
    "[t-v]-{0,1}",
    "{x/t-0,u-0}",
    r"\t-0",
    "{x/*,u-*}",
]
GLOBS = [
    "*.log",
    "*{0,5}.log",
    "*[05].log",
    "*[^0].log",
    "{*5.log,x}",
    "*?.log",
    "*5.l[oa]g",
]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for place, topic, partition in [
        ("", "t", 0),
        ("", "t", 1),
        ("", "t", 2),
        ("", "u", 0),
        ("x", "t", 0),
    ]:
        directory = tmp_path / place
        directory.mkdir(exist_ok=True)
        for base in (0, 5):
            write(directory, topic, partition, base, build(batch(base, [b"v"] * 5)))
    return tmp_path


def segments(session: SparkSession, source: str, path: str, **options: str) -> set[str]:
    reader = session.read.format(source).options(**options, replicas="keep", columns="segment")
    return {row.segment for row in reader.load(path).distinct().collect()}


def files(session: SparkSession, path: str, **options: str) -> set[str]:
    frame = session.read.format("text").options(**options, recursiveFileLookup="true").load(path)
    return {name.removeprefix("file://") for name in frame.inputFiles()}


@pytest.mark.share(4, ci=2)
@pytest.mark.parametrize("pattern", GLOBS)
def test_names_of_files_are_those_of_sparks_file_source(
    session: SparkSession, logs: Path, pattern: str
) -> None:
    of_spark = files(session, f"{logs}/t-*", pathGlobFilter=pattern)
    for source in ("kafka-log", "kafka-log-python"):
        assert segments(session, source, f"{logs}/t-*", pathGlobFilter=pattern) == of_spark
    assert of_spark


@pytest.mark.parametrize("pattern", LOAD)
def test_paths_are_those_of_sparks_file_source(
    session: SparkSession, logs: Path, pattern: str
) -> None:
    of_spark = files(session, f"{logs}/{pattern}")
    ours = {str(file) for path in expand_path(f"{logs}/{pattern}") for file in path.rglob("*.log")}
    assert ours == of_spark
    assert of_spark


def test_a_path_with_braces_in_both_lanes(session: SparkSession, logs: Path) -> None:
    for source in ("kafka-log", "kafka-log-python"):
        for url in (f"{logs}/t-{{0,2}}", f"file://{logs}/t-{{0,2}}"):
            assert segments(session, source, url) == {
                f"{logs}/t-{n}/{base:020}.log" for n in (0, 2) for base in (0, 5)
            }


@pytest.mark.parametrize("path", ["/data/{a", "/data/[a", "/data/*\\"])
def test_patterns_that_cannot_be(path: str) -> None:
    with pytest.raises(OptionError, match=r"option path: .*(without its|nothing follows)"):
        expand_path(path)
