"""The hidden column _metadata of the connector: what the file system says of the files that rows are of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from tests.paths import SAMPLES
from tests.support.spark_logs import batch, build, numbered, write

pytestmark = pytest.mark.spark

FIELDS = [
    "file_path",
    "file_name",
    "file_size",
    "file_block_start",
    "file_block_length",
    "file_modification_time",
]


def load(session: SparkSession, path: Path, **options: Any) -> DataFrame:
    return session.read.format("kafka-log").options(**options).load(str(path))


def test_it_is_what_the_file_system_says(session: SparkSession) -> None:
    logs = SAMPLES / "kafka-4.x"
    frame = load(session, logs, includeMetadata="true")
    assert "_metadata" not in frame.columns
    rows = frame.selectExpr(
        "segment", "_metadata", "unix_micros(_metadata.file_modification_time) us"
    )
    found = rows.collect()
    assert len(found) == frame.count() and len({row.segment for row in found}) > 20
    assert list(found[0]._metadata.asDict()) == FIELDS
    for row in found:
        said, path = row._metadata, Path(row.segment)
        assert said.file_path == path.as_uri()
        assert said.file_name == path.name
        assert said.file_size == path.stat().st_size
        assert row.us == path.stat().st_mtime_ns // 1000
        start, end = said.file_block_start, said.file_block_start + said.file_block_length
        # Records of this topic were deleted: its log begins in the middle of its first segment.
        assert (start > 0) == (path.parent.name == "trimmed-0") and end == said.file_size


def test_blocks_are_those_of_tasks(session: SparkSession, directory: Path) -> None:
    """Each row lies in its block, and the blocks are the file."""
    path = write(directory, "t", 0, 0, numbered(10, 100))
    frame = load(session, directory, includeMetadata="true", splitBytes="4000")
    found = frame.selectExpr(
        "position", "_metadata.file_block_start b", "_metadata.file_block_length l"
    )
    rows = found.collect()
    assert len(rows) == 1000
    assert all(row.b <= row.position < row.b + row.l for row in rows)
    blocks = sorted({(row.b, row.l) for row in rows})
    assert len(blocks) > 2
    assert [b for b, _ in blocks[1:]] == [b + n for b, n in blocks[:-1]]
    assert blocks[0][0] == 0 and sum(n for _, n in blocks) == path.stat().st_size


def test_names_that_are_no_text_of_a_uri(session: SparkSession, directory: Path) -> None:
    (directory / "a b%c").mkdir()
    path = write(directory / "a b%c", "t", 0, 0, numbered(2, 1))
    raw = Path(os.fsdecode(os.fsencode(directory) + b"/\xff-0"))
    raw.mkdir()
    other = raw / f"{0:020}.log"
    other.write_bytes(build(batch(0, [b"1"])))
    found = load(session, directory, recursiveFileLookup="true").select("_metadata.file_path")
    assert {row.file_path for row in found.collect()} == {path.as_uri(), other.as_uri()}


@pytest.mark.slow
def test_queries_with_it(session: SparkSession, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(5, 2))
    write(directory, "t", 0, 10, numbered(0, 0))
    write(directory, "u", 0, 0, numbered(3, 1))
    frame = load(session, directory)
    name = f"{0:020}.log"
    counted = frame.groupBy("topic", "_metadata.file_name").count().orderBy("topic").collect()
    assert [tuple(row) for row in counted] == [("t", name, 10), ("u", name, 3)]
    assert frame.where("_metadata.file_path like '%/u-0/%'").count() == 3
    assert frame.where("topic = 't' and offset >= 8").select("_metadata.file_size").count() == 2
    assert len(frame.select("_metadata.file_name", "offset").take(2)) == 2
    sizes = session.sql(
        f"select distinct _metadata.file_size from `kafka-log`.`{directory}` order by 1"
    ).collect()
    assert [row[0] for row in sizes] == sorted(
        path.stat().st_size for path in directory.rglob("*.log") if path.stat().st_size
    )
    query = frame.select("offset", "_metadata.file_name")
    plan = query._jdf.queryExecution().executedPlan().toString()
    assert "BatchScan kafka-log" in plan and "_metadata" in plan
    # Nothing is asked of files, and nothing joined less, where it is not selected.
    for without in (frame, frame.select("value")):
        assert "_metadata" not in without._jdf.queryExecution().executedPlan().toString()


def test_only_the_fields_that_are_used_are_made(session: SparkSession, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(2, 1))
    frame = load(session, directory).select("_metadata.file_size", "_metadata.file_name")
    scan = frame._jdf.queryExecution().optimizedPlan().toString()
    assert "file_modification_time" not in scan
    size = (directory / "t-0" / f"{0:020}.log").stat().st_size
    assert [tuple(row) for row in frame.collect()] == [(size, f"{0:020}.log")] * 2


def test_a_column_with_damage_and_a_schema_of_ones_own(
    session: SparkSession, directory: Path
) -> None:
    data = numbered(5, 3)
    path = write(directory, "t", 0, 0, data[:-4])
    reader = session.read.format("kafka-log").option("mode", "PERMISSIVE")
    frame = reader.schema("offset long, _corrupt_record string").load(str(directory))
    found = frame.select("offset", "_corrupt_record", "_metadata.file_name").collect()
    assert {row.file_name for row in found} == {path.name}
    assert any(row._corrupt_record for row in found)


def test_views_have_none(session: SparkSession) -> None:
    for view in ("batches", "offsets"):
        with pytest.raises(AnalysisException, match="_metadata"):
            load(session, SAMPLES / "kafka-4.x", view=view).select("_metadata").schema  # noqa: B018


def test_a_stream(session: SparkSession, directory: Path, tmp_path: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(5, 2))
    frame = (
        session.readStream.format("kafka-log")
        .option("startingOffsets", "earliest")
        .load(str(directory))
    )
    seen: list[Any] = []
    query = (
        frame.selectExpr("offset", "_metadata.file_path")
        .writeStream.foreachBatch(lambda rows, _: seen.extend(rows.collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert query.exception() is None
    assert [tuple(row) for row in seen] == [(offset, path.as_uri()) for offset in range(10)]
