"""Spark queries that are paused while a file changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from tests.support.spark_processes import until
from tests.support.spark_threads import stacks


def paused(frame: DataFrame, folder: Path) -> DataFrame:
    """The frame, whose reading stops at its first rows until there is a file ``go``."""
    here, go = str(folder / "here"), str(folder / "go")

    def rest(batches: Iterator[Any]) -> Iterator[Any]:
        import pathlib
        import time

        for batch in batches:
            pathlib.Path(here).touch()
            while not pathlib.Path(go).exists():
                time.sleep(0.02)
            yield batch

    return frame.mapInArrow(rest, frame.schema)


class Query(threading.Thread):
    """A query that runs beside the test."""

    def __init__(self, frame: DataFrame) -> None:
        super().__init__(daemon=True)
        self.frame = frame
        self.rows = -1
        self.error = ""

    def run(self) -> None:
        try:
            self.rows = len(self.frame.select("offset").collect())
        except Exception as error:
            self.error = str(error)


def until_paused(query: Query, folder: Path) -> None:
    """Wait until a query has reached its first rows. The kernels that it may have to compile take half a minute, and more on a busy machine."""
    until(
        lambda: (folder / "here").exists() or not query.is_alive(),
        180,
        said=lambda: stacks(query.frame.sparkSession),
    )
    assert query.is_alive(), query.error
