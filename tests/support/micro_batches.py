"""Micro-batches as Spark runs them, with a checkpoint and both lanes, and without Spark: a query can be killed between any two steps."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark_kafka_log.stream.reader import KafkaLogStreamReader
from tests.support.stream_laws import Row, rows, stream, told

COLUMNS = ("topic", "partition", "offset", "value")


class Killed(Exception):
    """The processes of a query are gone."""


@dataclass
class Checkpoint:
    """What stays of a query that is killed: its checkpoint, and the sink, which knows a micro-batch again."""

    initial: Any = None
    offsets: list[Any] = field(default_factory=list)
    commits: int = 0
    sink: dict[int, list[Row]] = field(default_factory=dict)

    @property
    def rows(self) -> list[Row]:
        return [row for number in sorted(self.sink) for row in self.sink[number]]


class Lane(Protocol):
    """What Spark asks a source on the driver."""

    def initial(self) -> Any: ...
    def prepare(self) -> None: ...
    def latest(self, start: Any) -> Any: ...
    def rows(self, start: Any, end: Any) -> list[Row]: ...


class ConnectorLane:
    """The connector: LogStream.java writes the initial offsets once, and reads them from then on."""

    def __init__(self, checkpoint: Checkpoint, options: dict[str, Any]) -> None:
        self._checkpoint = checkpoint
        self._stream = stream(**options)

    def initial(self) -> Any:
        if self._checkpoint.initial is None:
            self._checkpoint.initial = told(self._stream.initial())
        return self._checkpoint.initial

    def prepare(self) -> None:
        self._stream.prepare()

    def latest(self, start: Any) -> Any:
        return told(self._stream.latest(start, limited=True))

    def rows(self, start: Any, end: Any) -> list[Row]:
        return rows(self._stream, start, end)


class PythonLane:
    """The Python source, as python_streaming_source_runner.py of Spark calls it."""

    def __init__(self, checkpoint: Checkpoint, options: dict[str, Any]) -> None:
        given = {"startingOffsets": "earliest", "engine": "construct", **options}
        self._reader = KafkaLogStreamReader({n: str(v) for n, v in given.items()}, COLUMNS)

    def initial(self) -> Any:
        return told(self._reader.initialOffset())

    def prepare(self) -> None:
        self._reader.prepareForTriggerAvailableNow()

    def latest(self, start: Any) -> Any:
        return told(self._reader.latestOffset(told(start), self._reader.getDefaultReadLimit()))

    def rows(self, start: Any, end: Any) -> list[Row]:
        task = pickle.loads(pickle.dumps(self._reader))
        return [
            (f"{row['topic']}-{row['partition']}", row["offset"], row["value"].decode())
            for part in self._reader.partitions(told(start), told(end))
            for found in task.read(pickle.loads(pickle.dumps(part)))
            for row in found.to_pylist()
        ]


LANES: dict[str, Callable[[Checkpoint, dict[str, Any]], Lane]] = {
    "kafka-log": ConnectorLane,
    "kafka-log-python": PythonLane,
}


class Query:
    """One run of a query, in the order of Spark's MicroBatchExecution."""

    def __init__(
        self,
        lane: str,
        checkpoint: Checkpoint,
        options: dict[str, Any],
        between: Callable[[str], None] = lambda _: None,
        *,
        available_now: bool = False,
    ) -> None:
        """Start with what the checkpoint has. ``between`` is told after each step what was done, and may raise Killed."""
        self._checkpoint = checkpoint
        self._between = between
        self._source = LANES[lane](checkpoint, options)
        if available_now:
            self._source.prepare()
            between("prepared")

    def run_batch(self) -> bool:
        """Run the next micro-batch, or the one that is logged and not committed. Return False if there is nothing to do."""
        checkpoint, done = self._checkpoint, self._checkpoint.commits
        if len(checkpoint.offsets) == done:
            start = self._start()
            self._between("start")
            end = self._source.latest(start)
            self._between("end")
            if done and end == checkpoint.offsets[-1]:
                return False
            checkpoint.offsets.append(end)
            self._between("logged")
        start = self._start()  # Spark asks for initial offsets once more
        self._between("started again")
        checkpoint.sink[done] = self._source.rows(start, checkpoint.offsets[done])
        self._between("written")
        checkpoint.commits += 1
        self._between("committed")
        return True

    def run(self) -> None:
        """Run until there is nothing to do."""
        while self.run_batch():
            pass

    def _start(self) -> Any:
        done = self._checkpoint.commits
        return self._checkpoint.offsets[done - 1] if done else self._source.initial()


def killed_at_random(
    r: random.Random, share: float, grow: Callable[[], None]
) -> Callable[[str], None]:
    """Let logs grow between steps, and kill the query after a share of them."""

    def between(step: str) -> None:
        if r.random() < share:
            raise Killed(step)
        grow()

    return between
