"""The data source: what Spark asks of it. Planning is in ``plan``, reading in ``kafka_log.tables.splits``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from codecgen.runtime.located_bytes import Limits
from kafka_log.tables.splits import Scan, Split, read_split
from pyspark_kafka_log.options import Options, default_columns, parse
from pyspark_kafka_log.plan import plan
from pyspark_kafka_log.schema import projection, spark_schema, types_of

if TYPE_CHECKING:
    import pyarrow as pa


class DefaultSource(DataSource):
    """``spark.read.format("kafka-log").load(path)``. ``pyspark_kafka_log.options`` describes the options."""

    @classmethod
    def name(cls) -> str:
        return "kafka-log"

    def schema(self) -> StructType:
        options = parse(self.options)
        return spark_schema(default_columns(options), types_of(options.view))

    def reader(self, schema: StructType) -> KafkaLogReader:
        options = parse(self.options)
        return KafkaLogReader(options, projection(schema, types_of(options.view)))


class Task(InputPartition):
    """What one task reads."""

    def __init__(self, splits: tuple[Split, ...]) -> None:
        super().__init__(splits)
        self.splits = splits


class KafkaLogReader(DataSourceReader):
    """Reads splits of segments. It is sent to every task, so it holds options only."""

    def __init__(self, options: Options, columns: tuple[str, ...]) -> None:
        self.options = options
        self.scan = Scan(
            columns=columns,
            policy=options.selection.policy,
            on_damage=options.selection.damage,
            batch_rows=options.batch_rows,
            limits=Limits(decompressed=options.max_decompressed),
            engine=options.engine,
            view=options.view,
        )

    def partitions(self) -> list[InputPartition]:
        return [Task(splits) for splits in plan(self.options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark makes one partition of its own when there is nothing to read.
        for part in partition.splits if isinstance(partition, Task) else ():
            yield from read_split(part, self.scan)
