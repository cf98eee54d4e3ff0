"""Writing from Spark: jobs that both sources make, and the writers of the Python source. The work is done in ``kafka_log.write``."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType, TimestampNTZType

from kafka_log.write.sink.commit import Micro, abort, commit, make_batch_job, new_job
from kafka_log.write.sink.log_format import WriteJob, now_ms
from kafka_log.write.sink.rows import SinkError, check_columns
from kafka_log.write.sink.staging import Staged, to_json, write_task
from pyspark_kafka_log.columns import METADATA_COLUMNS
from pyspark_kafka_log.options.write import parse_write
from pyspark_kafka_log.worker_memory import explain_memory_errors, freeze_loaded_objects

if TYPE_CHECKING:
    import pyarrow as pa

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
"""Properties that Spark gives the tasks of a stream."""


def make_job(
    options: Mapping[str, str], schema: StructType, overwrite: bool, query: str | None = None
) -> WriteJob:
    """The job of a query that writes rows of a schema, named after the ``query`` where that is known: a stream that begins again goes
    on in the same place. Raises OptionError, SinkError, DirectoryError."""
    wanted = parse_write(options)
    if wanted.ignored:
        told = ", ".join(wanted.ignored)
        warnings.warn(
            f"kafka-log: no broker is asked, these options mean nothing: {told}", stacklevel=2
        )
    for field in schema.fields:
        if field.name == "timestamp" and isinstance(field.dataType, TimestampNTZType):
            told = "it is timestamp_ntz, which is of no time zone: CAST(timestamp AS TIMESTAMP) takes the session's"
            raise SinkError(told, column=field.name)
    job = new_job(wanted.path, wanted.format, overwrite=overwrite, passed=METADATA_COLUMNS)
    # Spark before 4.3 asks for no time zone.
    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    check_columns(to_arrow_schema(schema, **zone), job)  # type: ignore[arg-type]
    return job if query is None else replace(job, id=query)


def write_rows(job: WriteJob, task: int, batch: int | None, rows: Iterable[pa.RecordBatch]) -> str:
    """Write the rows of a task, of one micro-batch if there are such. What is to be told to the driver."""
    if batch is not None:
        job = replace(make_batch_job(job, batch), created_ms=now_ms())
    with explain_memory_errors(), freeze_loaded_objects():
        return to_json(write_task(job, task, rows))


def commit_rows(job: WriteJob, told: Sequence[str], micro: Micro | None = None) -> None:
    """Commit what tasks told."""
    if micro is not None:
        job = make_batch_job(job, micro.batch)
    commit(job, [Staged.many_from_json(one) for one in told], micro)


def abort_rows(job: WriteJob, batch: int | None = None) -> None:
    """Remove what tasks wrote."""
    abort(job if batch is None else make_batch_job(job, batch))


class TaskResult(WriterCommitMessage):
    """What a task has written, of which query."""

    def __init__(self, staged: str, query: str | None = None) -> None:
        self.staged = staged
        self.query = query


def _task_context() -> Any:
    context = TaskContext.get()
    assert context is not None
    return context


class KafkaLogWriter(DataSourceArrowWriter):
    """Writes a query. It is sent to every task."""

    def __init__(self, job: WriteJob) -> None:
        self.job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResult:
        return TaskResult(write_rows(self.job, _task_context().partitionId(), None, iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        commit_rows(self.job, [one.staged for one in _require_results(messages)])

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        abort_rows(self.job)


class KafkaLogStreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of a stream. Spark makes one for tasks and another one for the driver: the job is known by the query."""

    def __init__(self, job: WriteJob) -> None:
        self.job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResult:
        context = _task_context()
        query = context.getLocalProperty(QUERY_ID)
        batch = int(context.getLocalProperty(BATCH_ID))
        told = write_rows(replace(self.job, id=query), context.partitionId(), batch, iterator)
        return TaskResult(told, query)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        for query, told in _group_by_query(_require_results(messages)).items():
            commit_rows(replace(self.job, id=query), told, Micro(query, batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        for query in _group_by_query([one for one in messages if isinstance(one, TaskResult)]):
            abort_rows(replace(self.job, id=query), batchId)


def _require_results(messages: list[WriterCommitMessage | None]) -> list[TaskResult]:
    """What all tasks wrote. Rows would be lost in silence if one of them had not told."""
    found = [one for one in messages if isinstance(one, TaskResult)]
    if len(found) < len(messages):
        raise RuntimeError("a task has not told what it wrote: nothing is committed")
    return found


def _group_by_query(messages: list[TaskResult]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in messages:
        if one.query is not None:
            found.setdefault(one.query, []).append(one.staged)
    return found
