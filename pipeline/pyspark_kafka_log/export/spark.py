"""Run the tasks of an export in Spark: as an RDD, or by ``mapInArrow`` with Spark Connect, which has no RDDs."""

from __future__ import annotations

import json
import pickle
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from pydoc import locate
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from codecgen.runtime.errors import CodecError
from kafka_log.read.plan import Split
from pyspark_kafka_log.export.state import ExportError, TaskError
from pyspark_kafka_log.export.writing import Job, TaskResult, write_task
from pyspark_kafka_log.worker_memory import freeze_loaded_objects

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[int, int], None]
"""Called with the number of finished tasks and the number of all tasks."""

WORKER_GONE = "a Python worker ended in the middle of a task: it was killed, or the machine had no memory for it; nothing was added: run it again"
JVM_GONE = "its JVM ended: it was killed, or had no memory; nothing was added: run it again"

POLL_S = 0.5
PATIENCE_S = 30


class SparkRunner:
    """Runner of tasks in a Spark session."""

    def __init__(self, spark: SparkSession, progress: Progress) -> None:
        """Use a session, and report finished tasks to ``progress``. All jobs belong to one job group, which can be cancelled."""
        self._spark = spark
        self._context: Any = getattr(spark, "_sc", None)  # none with Spark Connect
        self._progress = progress
        self._group = f"kafka-log export {uuid.uuid4().hex[:8]}"

    @property
    def parallelism(self) -> int | None:
        """The number of tasks that run at once, None with Spark Connect."""
        return None if self._context is None else int(self._context.defaultParallelism)

    def __call__(self, tasks: Sequence[tuple[Split, ...]], job: Job) -> Iterator[TaskResult]:
        """Yield the results of tasks. Raise :class:`TaskError` with the message of a failed one."""
        pieces = [pickle.dumps(task) for task in tasks]

        def write(number: int, piece: bytes) -> str:
            """Write the rows of a pickled task, and return its TaskResult as JSON."""
            with freeze_loaded_objects():
                return json.dumps(write_task(number, pickle.loads(piece), job).to_dict())

        def write_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            """Write the tasks whose numbers are in ``batches``, and yield their results as rows of JSON (Spark Connect)."""
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield pa.RecordBatch.from_pydict({"results": [write(number, pieces[number])]})

        def collect() -> list[str]:
            """Run all tasks, and return their results as JSON."""
            if self._context is not None:
                numbered = self._context.parallelize(list(enumerate(pieces)), len(pieces))
                results: list[str] = numbered.map(lambda item: write(*item)).collect()
                return results
            frame = self._spark.range(0, len(pieces), 1, len(pieces))
            return [row.results for row in frame.mapInArrow(write_all, "results string").collect()]

        for text in self._collect_in_background(collect, len(tasks)):
            yield TaskResult.from_dict(json.loads(text))

    def _collect_in_background(self, collect: Callable[[], list[str]], tasks: int) -> list[str]:
        """Return the results of ``collect``, which runs in a thread while progress is shown. Raise
        TaskError if a task failed in Python, ExportError if the JVM or a worker ended, other errors
        unchanged. On KeyboardInterrupt cancel the job's tasks, wait up to 30 s, and raise it again.
        """
        found: list[str] = []
        failed: list[BaseException] = []

        def work() -> None:
            """Collect into ``found``; an error goes into ``failed``."""
            try:
                if self._context is not None:
                    self._context.setJobGroup(self._group, "kafka-log export", True)
                found.extend(collect())
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(POLL_S)
                self._show_progress(tasks)
        except KeyboardInterrupt:
            if self._context is not None:
                self._context.cancelJobGroup(self._group)
            thread.join(PATIENCE_S)
            raise
        except Exception as error:
            failed.insert(0, error)
        if failed:
            meant = _translate_error(failed[0])
            raise meant from (failed[0] if meant is not failed[0] else None)
        self._progress(tasks, tasks)
        return found

    def _show_progress(self, tasks: int) -> None:
        """Call the progress function with the number of finished tasks of this job and ``tasks``.
        Do nothing with Spark Connect.
        """
        if self._context is None:
            return
        tracker = self._context.statusTracker()
        done = 0
        for number in tracker.getJobIdsForGroup(self._group):
            job = tracker.getJobInfo(number)
            for stage in job.stageIds if job else ():
                info = tracker.getStageInfo(stage)
                done += info.numCompletedTasks if info else 0
        self._progress(done, tasks)


def _translate_error(error: BaseException) -> BaseException:
    """Return ExportError for a lost JVM or a worker that crashed, TaskError with the message of a
    Python error that a task raised. Return any other error unchanged.
    """
    if isinstance(error, ConnectionError) or type(error).__name__ in _OF_NO_JVM:
        return ExportError("Spark", JVM_GONE)
    said = _last_python_error(str(error))
    if said is None:
        return ExportError("Spark", WORKER_GONE) if _CRASHED in str(error) else error
    name, message = said
    raised = locate(name)
    return TaskError(message, isinstance(raised, type) and issubclass(raised, CodecError))


_OF_NO_JVM = ("Py4JError", "Py4JNetworkError")
"""What Py4J raises for an answer that does not come; Py4JJavaError is for one that says what is wrong. Spark Connect comes without Py4J."""

_CRASHED = "Python worker exited unexpectedly"


def _last_python_error(text: str) -> tuple[str, str] | None:
    """Return the class name and the message of the last Python traceback in a Spark error; "" and
    the whole line if no class name stands before it. Return None if the text has no traceback.
    """
    _, mark, trace = text.rpartition("Traceback (most recent call last):\n")
    if not mark:
        return None
    line = next((line for line in trace.splitlines() if line and not line[0].isspace()), "")
    name, colon, said = line.partition(": ")
    return (name, said) if colon and name.replace(".", "").isidentifier() else ("", line)
