"""The runner of an export's tasks, with a Spark context that is none: job groups, progress, and what errors become."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from codecgen.runtime.errors import CodecError
from pyspark_kafka_log.export import ExportError, TaskError
from pyspark_kafka_log.export import spark as spark_module
from pyspark_kafka_log.export.spark import (
    JVM_GONE,
    WORKER_GONE,
    SparkRunner,
    _last_python_error,
    _translate_error,
)

TRACE = "Traceback (most recent call last):\n"


class FakeContext:
    """A Spark context with one job of two stages, of which Spark knows one."""

    defaultParallelism = "8"

    def __init__(self) -> None:
        self.groups: list[tuple[str, str, bool]] = []
        self.cancelled = threading.Event()
        self.cancelled_group = ""

    def setJobGroup(self, group: str, description: str, interrupts: bool) -> None:
        self.groups.append((group, description, interrupts))

    def cancelJobGroup(self, group: str) -> None:
        self.cancelled_group = group
        self.cancelled.set()

    def statusTracker(self) -> Any:
        stages = {7: SimpleNamespace(numCompletedTasks=2), 8: None}
        jobs = {1: SimpleNamespace(stageIds=[7, 8]), 2: None}
        return SimpleNamespace(
            getJobIdsForGroup=lambda group: [1, 2] if group == self.groups[0][0] else [],
            getJobInfo=jobs.get,
            getStageInfo=stages.get,
        )


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> FakeContext:
    monkeypatch.setattr(spark_module, "POLL_S", 0.01)
    return FakeContext()


def runner_of(context: FakeContext | None, progress: Callable[[int, int], None]) -> SparkRunner:
    session: Any = SimpleNamespace(_sc=context)
    return SparkRunner(session, progress)


def test_results_come_with_progress(context: FakeContext) -> None:
    seen: list[tuple[int, int]] = []
    waits = threading.Event()

    def progress(done: int, tasks: int) -> None:
        seen.append((done, tasks))
        waits.set()

    def collect() -> list[str]:
        assert waits.wait(30)
        return ["a", "b"]

    runner = runner_of(context, progress)
    assert runner.parallelism == 8
    assert runner._collect_in_background(collect, 5) == ["a", "b"]
    assert seen[0] == (2, 5) and seen[-1] == (5, 5)
    ((group, description, interrupts),) = context.groups
    assert (
        group.startswith("kafka-log export ") and interrupts and description == "kafka-log export"
    )


def test_spark_connect_has_no_groups_and_shows_the_end() -> None:
    seen: list[tuple[int, int]] = []
    runner = runner_of(None, lambda *told: seen.append(told))
    assert runner.parallelism is None
    assert runner._collect_in_background(lambda: ["a"], 1) == ["a"]
    assert seen == [(1, 1)]


def test_an_interruption_cancels_the_group(context: FakeContext) -> None:
    def progress(done: int, tasks: int) -> None:
        raise KeyboardInterrupt

    def collect() -> list[str]:
        assert context.cancelled.wait(30)
        raise RuntimeError("cancelled")

    with pytest.raises(KeyboardInterrupt):
        runner_of(context, progress)._collect_in_background(collect, 1)
    assert context.cancelled_group == context.groups[0][0]


def test_an_error_of_a_task_is_raised(context: FakeContext) -> None:
    failure = RuntimeError(f"Job aborted: {TRACE}  File x\ncodecgen.runtime.errors.CodecError: bad")

    def collect() -> list[str]:
        raise failure

    seen: list[tuple[int, int]] = []
    with pytest.raises(TaskError, match=r"^bad$") as caught:
        runner_of(context, lambda *told: seen.append(told))._collect_in_background(collect, 3)
    assert caught.value.is_damage and caught.value.__cause__ is failure
    assert (3, 3) not in seen
    other = RuntimeError("no traceback")

    def fail() -> list[str]:
        raise other

    with pytest.raises(RuntimeError) as unchanged:
        runner_of(None, lambda *_: None)._collect_in_background(fail, 3)
    assert unchanged.value is other and other.__cause__ is None


def test_an_error_of_the_progress_is_raised(context: FakeContext) -> None:
    """It comes before an error of the tasks, and without one: their results are not known then."""
    ended = threading.Event()
    failure = ValueError("no progress")

    def progress(done: int, tasks: int) -> None:
        if not ended.is_set():
            ended.set()
            raise failure

    def collect() -> list[str]:
        assert ended.wait(30)
        return ["a"]

    with pytest.raises(ValueError, match="no progress") as caught:
        runner_of(context, progress)._collect_in_background(collect, 1)
    assert caught.value is failure


def named(name: str) -> BaseException:
    error: BaseException = type(name, (Exception,), {})(f"{TRACE}  at\nValueError: x")
    return error


def test_errors_in_the_words_of_an_export() -> None:
    for gone in (ConnectionRefusedError(), named("Py4JError"), named("Py4JNetworkError")):
        found = _translate_error(gone)
        assert isinstance(found, ExportError) and found.reason == JVM_GONE
    crashed = _translate_error(RuntimeError("x: Python worker exited unexpectedly (crashed)"))
    assert isinstance(crashed, ExportError) and crashed.reason == WORKER_GONE
    other = RuntimeError("x")
    assert _translate_error(other) is other
    of_task = _translate_error(named("Py4JJavaError"))
    assert isinstance(of_task, TaskError) and (str(of_task), of_task.is_damage) == ("x", False)
    assert issubclass(CodecError, Exception)
    unknown = _translate_error(RuntimeError(f"{TRACE}no.such.Error: y"))
    assert isinstance(unknown, TaskError) and (str(unknown), unknown.is_damage) == ("y", False)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no traceback", None),
        (f"{TRACE}  File\n    x\na.B: said: more\n\tat java", ("a.B", "said: more")),
        (f"{TRACE}a.A: first\n{TRACE}\n  File\nb.B: last\nand more", ("b.B", "last")),
        (f"{TRACE}KeyError", ("", "KeyError")),
        (f"{TRACE}one more: thing", ("", "one more: thing")),
        (f"{TRACE}E\n", ("", "E")),
        (TRACE, ("", "")),
    ],
)
def test_the_last_error_of_python(text: str, found: tuple[str, str] | None) -> None:
    assert _last_python_error(text) == found
