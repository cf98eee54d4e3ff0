"""Write rows from Spark: the jobs of both sources, and the writers of the Python source. ``kafka_log.write`` writes the files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.errors import PySparkTypeError
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
    """Return the job that writes rows of ``schema``, and warn of options without effect; nothing is
    written yet. ``overwrite`` replaces all partitions of the written topics, else rows are
    appended. ``query`` becomes the id of the job; None: a new id. Raise OptionError for an invalid
    option; SinkError for a column that is missing, unknown, repeated or of another type;
    DirectoryError if the path is a file or holds segments itself.

    Args:
        options: The options of the write.
        schema: The schema of the rows.
        overwrite: Replace the partitions that are there.
        query: The id of a streaming query, which becomes the id of the job: a restarted query continues in the same place.
    """
    wanted = parse_write(options)
    if wanted.ignored:
        listed = ", ".join(wanted.ignored)
        warnings.warn(
            f"kafka-log: no broker is contacted, so these options have no effect: {listed}",
            stacklevel=2,
        )
    for field in schema.fields:
        if field.name == "timestamp" and isinstance(field.dataType, TimestampNTZType):
            reason = "timestamp_ntz has no time zone: CAST(timestamp AS TIMESTAMP) uses that of the session"
            raise SinkError(reason, column=field.name)
    job = new_job(wanted.path, wanted.format, overwrite=overwrite, passed=METADATA_COLUMNS)
    # Spark before 4.3 asks for no time zone.
    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    for field in schema.fields:
        try:
            to_arrow_schema(StructType([field]), **zone)  # type: ignore[arg-type]
        except PySparkTypeError as error:
            reason = f"Spark cannot pass its type {field.dataType.simpleString()} to Python"
            raise SinkError(reason, column=field.name) from error
    check_columns(to_arrow_schema(schema, **zone), job)  # type: ignore[arg-type]
    return job if query is None else replace(job, id=query)


def write_rows(job: WriteJob, task: int, batch: int | None, rows: Iterable[pa.RecordBatch]) -> str:
    """Write the rows of the task number ``task`` into staged files, of micro-batch ``batch`` unless
    it is None. Return the JSON that the driver needs to commit them. Raise SinkError for a row that
    cannot be written; OSError if writing fails; CodecError if the files do not read as these rows;
    WorkerMemoryError if a memory limit is too low. After an error no files of the task are left.
    """
    if batch is not None:
        job = replace(make_batch_job(job, batch), created_ms=now_ms())
    with explain_memory_errors(), freeze_loaded_objects():
        return to_json(write_task(job, task, rows))


def commit_rows(job: WriteJob, told: Sequence[str], micro: Micro | None = None) -> None:
    """Commit the results of all tasks, as a micro-batch if ``micro`` is given."""
    if micro is not None:
        job = make_batch_job(job, micro.batch)
    commit(job, [Staged.many_from_json(one) for one in told], micro)


def abort_rows(job: WriteJob, batch: int | None = None) -> None:
    """Remove the staged files of a job, or of one micro-batch."""
    abort(job if batch is None else make_batch_job(job, batch))


class TaskResult(WriterCommitMessage):
    """The staged files of one task as JSON, and the id of its streaming query."""

    def __init__(self, staged: str, query: str | None = None) -> None:
        self.staged = staged
        self.query = query


def _task_context() -> Any:
    """Return the context of the running task."""
    context = TaskContext.get()
    assert context is not None
    return context


class KafkaLogWriter(DataSourceArrowWriter):
    """Writer of a batch query. Spark sends it to every task."""

    def __init__(self, job: WriteJob) -> None:
        self.job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResult:
        """Stage the rows of a task. Return what the driver needs to commit them."""
        return TaskResult(write_rows(self.job, _task_context().partitionId(), None, iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the results of all tasks. Raise RuntimeError if one is missing."""
        commit_rows(self.job, [one.staged for one in _require_results(messages)])

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the staged files of all tasks."""
        abort_rows(self.job)


class KafkaLogStreamWriter(DataSourceStreamArrowWriter):
    """Writer of micro-batches. Spark makes one for tasks and another for the driver, so the id of the query names the job."""

    def __init__(self, job: WriteJob) -> None:
        self.job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResult:
        """Write the rows of a task of the current micro-batch into staged files, and return the
        TaskResult that the driver needs to commit them. Raise SinkError for a row that cannot be
        written; OSError if writing fails; CodecError if the files do not read as these rows;
        WorkerMemoryError if a memory limit is too low. After an error no files of the task are
        left.
        """
        context = _task_context()
        query = context.getLocalProperty(QUERY_ID)
        batch = int(context.getLocalProperty(BATCH_ID))
        told = write_rows(replace(self.job, id=query), context.partitionId(), batch, iterator)
        return TaskResult(told, query)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit the micro-batch ``batchId``. Raise RuntimeError if the result of a task is missing."""
        for query, told in _group_by_query(_require_results(messages)).items():
            commit_rows(replace(self.job, id=query), told, Micro(query, batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Remove the staged files of the micro-batch ``batchId``."""
        for query in _group_by_query([one for one in messages if isinstance(one, TaskResult)]):
            abort_rows(replace(self.job, id=query), batchId)


def _require_results(messages: list[WriterCommitMessage | None]) -> list[TaskResult]:
    """Return the results of all tasks. Raise RuntimeError if a message is None or no TaskResult:
    its rows would be lost silently.
    """
    found = [one for one in messages if isinstance(one, TaskResult)]
    if len(found) < len(messages):
        raise RuntimeError(
            "the result of a task is missing, so nothing is committed: run the write again"
        )
    return found


def _group_by_query(messages: list[TaskResult]) -> dict[str, list[str]]:
    """Return the JSON of the tasks' staged files, as a list for each streaming query's id. Results
    without a query are dropped.
    """
    found: dict[str, list[str]] = {}
    for one in messages:
        if one.query is not None:
            found.setdefault(one.query, []).append(one.staged)
    return found
