"""Metrics of a query's loss reports."""

from __future__ import annotations

from typing import Any

from pyspark_kafka_log.losses import Losses


def metrics(frame: Any) -> dict[str, int]:
    """Those of the scan that a query has run."""
    execution = frame._jdf.queryExecution()
    frame._jdf.queryExecution().toRdd().count()
    plan = execution.executedPlan()
    while not plan.children().isEmpty():
        plan = plan.children().head()
    found = plan.metrics()
    names = [*Losses().metrics]
    return {name: found.apply(name).value() for name in names}
