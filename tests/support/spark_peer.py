"""Spark's Kafka source beside ours: the same options, of a broker that runs and of its log directory."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pyspark_kafka_log.stream.options import ADDED_NAMES
from tests.brokers.brokers import Broker
from tests.brokers.maven import SPARK_SOURCE, classpath

THEIRS = "kafka"
OURS = ("kafka-log", "kafka-log-python")
JARS = ("spark-sql-kafka-", "spark-token-provider-kafka-", "kafka-clients-", "commons-pool2-")
PATIENCE = {"kafkaConsumer.pollTimeoutMs": "2000"}
"""Spark's source waits so long for offsets that do not come; ours takes the option too."""

LAST_S = 120
Options = Mapping[str, Any]
T = TypeVar("T")


def add_spark_source(session: SparkSession) -> None:
    """Adds Spark's Kafka source to a session."""
    for jar in classpath(SPARK_SOURCE).split(os.pathsep):
        if Path(jar).name.startswith(JARS):
            session.sql(f"ADD JAR '{jar}'")


@dataclass(frozen=True)
class Failed:
    """What a query says that fails."""

    text: str


@dataclass(frozen=True)
class Streamed:
    """The rows of each micro-batch, and the offsets after them."""

    batches: tuple[pa.Table, ...]
    offsets: tuple[Any, ...]

    @property
    def rows(self) -> int:
        return sum(table.num_rows for table in self.batches)

    def alike(self) -> tuple[Any, ...]:
        """Return what is the same of two sources that read alike: batches, and offsets without what ours adds."""
        return self.batches, tuple(_plain_offsets(one) for one in self.offsets)


def _plain_offsets(offsets: Any) -> Any:
    return {name: inner for name, inner in offsets.items() if not name.startswith(ADDED_NAMES)}


def rows(frame: DataFrame) -> pa.Table:
    """In the order of offsets."""
    keys = [(name, "ascending") for name in ("topic", "partition", "offset")]
    return frame.toArrow().sort_by(keys)


@dataclass(frozen=True)
class Peer:
    """A broker, and a session that has both sources."""

    session: SparkSession
    broker: Broker
    first_time: int

    def read(self, source: str, options: Options) -> tuple[Any, pa.Table] | Failed:
        """Schema and rows of a batch query."""

        def asked() -> tuple[Any, pa.Table]:
            frame = self._loaded(self.session.read, source, options)
            return frame.schema, rows(frame)

        return attempted(asked)

    def stream(self, source: str, options: Options, checkpoint: Path) -> Streamed | Failed:
        """A query that reads what there is, from where its checkpoint ends."""

        def asked() -> Streamed:
            got: list[pa.Table] = []
            frame = self._loaded(self.session.readStream, source, options)
            query = (
                frame.writeStream.foreachBatch(lambda batch, _: got.append(rows(batch)))
                .option("checkpointLocation", str(checkpoint / source))
                .trigger(availableNow=True)
                .start()
            )
            try:
                assert query.awaitTermination(LAST_S)
            finally:
                query.stop()
            ends = [one.sources[0].endOffset for one in query.recentProgress]
            return Streamed(tuple(got), tuple(map(json.loads, ends)))

        return attempted(asked)

    def _loaded(self, reader: Any, source: str, options: Options) -> DataFrame:
        reader = reader.format(source)
        for name, value in {**PATIENCE, **options}.items():
            reader = reader.option(name, json.dumps(value) if isinstance(value, dict) else value)
        if source == THEIRS:
            reader = reader.option("kafka.bootstrap.servers", self.broker.bootstrap_servers)
            return reader.load()
        return reader.load(str(self.broker.log_dir))

    def same(self, **options: Any) -> int:
        """Both sources, ours on both lanes, give one DataFrame. How many rows it has."""
        theirs = self.read(THEIRS, options)
        assert not isinstance(theirs, Failed), theirs.text
        for source in OURS:
            ours = self.read(source, options)
            assert not isinstance(ours, Failed), (source, ours.text)
            assert ours[0] == theirs[0], source
            assert ours[1].equals(theirs[1]), (source, ours[1].num_rows, theirs[1].num_rows)
        return int(theirs[1].num_rows)

    def same_stream(self, checkpoint: Path, **options: Any) -> Streamed:
        """Both sources give the same micro-batches. What Spark's gives."""
        theirs = self.stream(THEIRS, options, checkpoint)
        assert not isinstance(theirs, Failed), theirs.text
        for source in OURS:
            ours = self.stream(source, options, checkpoint)
            assert not isinstance(ours, Failed), (source, ours.text)
            assert ours.alike() == theirs.alike(), source
        return theirs

    def outcome(self, **options: Any) -> str:
        """Of a query that one of the two refuses, or both: "both fail", "ours fails", "theirs fails"."""
        theirs = isinstance(self.read(THEIRS, options), Failed)
        ours = {isinstance(self.read(source, options), Failed) for source in OURS}
        assert len(ours) == 1, "the lanes differ"
        return {
            (True, True): "both fail",
            (False, True): "ours fails",
            (True, False): "theirs fails",
            (False, False): "none fails",
        }[theirs, ours.pop()]


def attempted(ask: Callable[[], T]) -> T | Failed:
    """What a query gives, or what it fails with."""
    try:
        return ask()
    except (PySparkException, Py4JJavaError) as error:
        return Failed(str(error))


@contextmanager
def peer(
    session: SparkSession,
    broker: Broker,
    fill: Callable[[Broker, int], None],
) -> Iterator[Peer]:
    """A broker that is filled and runs on."""
    add_spark_source(session)
    first_time = int(time.time() * 1000) - 2 * 3_600_000
    with broker:
        fill(broker, first_time)
        yield Peer(session, broker, first_time)
