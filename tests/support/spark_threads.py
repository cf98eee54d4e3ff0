"""What the JVM of a session does: how many tasks run, and where its threads wait."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

SHOWN = ("Executor task", "Thread-", "kafka-log", "stream execution", "Idle Worker Monitor")
"""How the names of threads begin that run tasks, plan queries or keep workers."""


def running_tasks(session: SparkSession) -> int:
    """Return how many tasks run."""
    tracker: Any = session.sparkContext._jsc.sc().statusTracker()
    return sum(executor.numRunningTasks() for executor in tracker.getExecutorInfos())


def stacks(session: SparkSession) -> str:
    """Return where the threads of tasks, queries and workers are."""
    jvm: Any = session._jvm
    lines = []
    for thread in jvm.java.lang.Thread.getAllStackTraces().keySet():
        name = str(thread.getName())
        if name.startswith(SHOWN):
            lines.append(f"{name}: {thread.getState()}")
            lines += [f"    {frame}" for frame in thread.getStackTrace()]
    return "\n".join(lines)
