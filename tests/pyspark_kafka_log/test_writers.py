"""The writers of the Python source, with a task context and jobs of their own: no Spark runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, CalendarIntervalType, StructField, StructType

from kafka_log.write.sink.commit import Micro
from kafka_log.write.sink.log_format import LogFormat, WriteJob
from kafka_log.write.sink.rows import SinkError
from pyspark_kafka_log import write
from pyspark_kafka_log.write import KafkaLogStreamWriter, KafkaLogWriter, TaskResult


@dataclass
class Context:
    """Task 3 of micro-batch 7 of a query."""

    query: str = "q"

    def partitionId(self) -> int:
        return 3

    def getLocalProperty(self, name: str) -> str:
        return {"sql.streaming.queryId": self.query, "streaming.sql.batchId": "7"}[name]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the writers ask to be written, committed and removed."""
    found: list[tuple[Any, ...]] = []
    monkeypatch.setattr(write.TaskContext, "get", classmethod(lambda cls: Context()))

    def write_rows(job: WriteJob, task: int, batch: int | None, rows: Any) -> str:
        found.append(("write", job.id, task, batch, list(rows)))
        return "staged"

    def commit_rows(job: WriteJob, staged: Any, micro: Micro | None = None) -> None:
        found.append(("commit", job.id, list(staged), micro))

    def abort_rows(job: WriteJob, batch: int | None = None) -> None:
        found.append(("abort", job.id, batch))

    for function in (write_rows, commit_rows, abort_rows):
        monkeypatch.setattr(write, function.__name__, function)
    return found


@pytest.fixture
def job(tmp_path: Any) -> WriteJob:
    return write.new_job(str(tmp_path), LogFormat(topic="t"), overwrite=False, passed=())


def test_batch_query(job: WriteJob, calls: list[tuple[Any, ...]]) -> None:
    writer = KafkaLogWriter(job)
    result = writer.write(iter([]))
    assert (result.staged, result.query) == ("staged", None)
    writer.commit([result, TaskResult("more")])
    writer.abort([result])
    assert calls == [
        ("write", job.id, 3, None, []),
        ("commit", job.id, ["staged", "more"], None),
        ("abort", job.id, None),
    ]


def test_micro_batches_are_of_the_job_of_their_query(
    job: WriteJob, calls: list[tuple[Any, ...]]
) -> None:
    writer = KafkaLogStreamWriter(job)
    result = writer.write(iter([]))
    assert (result.staged, result.query) == ("staged", "q")
    writer.commit([result, TaskResult("more", "q")], 7)
    writer.abort([None, result], 7)
    assert calls == [
        ("write", "q", 3, 7, []),
        ("commit", "q", ["staged", "more"], Micro("q", 7)),
        ("abort", "q", 7),
    ]


def test_nothing_is_committed_without_the_result_of_a_task(
    job: WriteJob, calls: list[tuple[Any, ...]]
) -> None:
    with pytest.raises(RuntimeError, match="nothing is committed"):
        KafkaLogWriter(job).commit([TaskResult("staged"), None])
    with pytest.raises(RuntimeError, match="nothing is committed"):
        KafkaLogStreamWriter(job).commit([None, TaskResult("staged", "q")], 7)
    assert calls == []


def test_a_column_that_spark_cannot_pass_is_named(tmp_path: Path) -> None:
    schema = StructType(
        [StructField("value", BinaryType()), StructField("later", CalendarIntervalType())]
    )
    with pytest.raises(SinkError, match="column later: Spark cannot pass its type interval"):
        write.make_job({"path": str(tmp_path), "topic": "t"}, schema, False)
