"""Tables of other formats that records are exported to, for tests: made, and read by the formats' own packages."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from kafka_log import LogDirectory
from kafka_log.read.parquet import Compression
from kafka_log.read.plan import Split
from kafka_log.write.output_lock import OutputLockedError
from pyspark_kafka_log.export import Exported, ExportError, target_of
from pyspark_kafka_log.export.job import Target, run_export
from pyspark_kafka_log.export.locations import Location, options_of_delta
from pyspark_kafka_log.export.writing import Job, TaskResult, write_task
from pyspark_kafka_log.options import parse

KINDS = ("parquet", "delta", "iceberg")
COLUMNS = ["topic", "partition", "offset", "timestamp", "key", "value"]


def here(tasks: Sequence[tuple[Split, ...]], job: Job) -> list[TaskResult]:
    """Runs tasks in this process, as Spark runs them in its own."""
    told = [write_task(number, task, job) for number, task in enumerate(tasks)]
    return [TaskResult.from_dict(one.to_dict()) for one in told]


@dataclass
class Table:
    """A table that is not there yet."""

    kind: str
    scratch: Path
    catalog: dict[str, str] = field(default_factory=dict)
    bucket: str | None = None
    storage_options: dict[str, Any] = field(default_factory=dict)
    """Of s3fs, for a table that lies in a ``bucket``."""

    def __post_init__(self) -> None:
        warehouse = self.scratch / "warehouse"
        warehouse.mkdir()
        self.catalog |= {
            "type": "sql",
            "uri": f"sqlite:///{self.scratch / 'catalog.db'}",
            "warehouse": self.bucket or warehouse.as_uri(),
        }
        if self.bucket is not None:
            self.catalog |= {
                "s3.endpoint": self.storage_options["endpoint_url"],
                "s3.access-key-id": self.storage_options["key"],
                "s3.secret-access-key": self.storage_options["secret"],
                "s3.region": "us-east-1",
            }

    @property
    def place(self) -> str:
        if self.kind == "iceberg":
            return "logs.records"
        return f"{self.bucket or self.scratch}/table"

    def target(self) -> Target:
        return target_of(self.place, self.kind, self.catalog, self.storage_options)

    def export(
        self,
        logs: Path,
        runner: Callable[..., Any] = here,
        by: Sequence[str] = ("topic", "date"),
        *,
        ignore: bool = False,
        codec: Compression = "zstd",
        **options: str,
    ) -> Exported:
        """Add what the logs have gained."""
        return run_export(
            runner,
            parse({"path": str(logs)} | options),
            self.target(),
            by,
            fail_on_data_loss=not ignore,
            compression=codec,
        )

    def overtaken(self, logs: Path, rows: int) -> None:
        """Begin an export, and be done with another one, of so many rows, before its tasks have told what they did: it adds nothing."""

        def interrupted(tasks: Sequence[tuple[Split, ...]], job: Job) -> list[TaskResult]:
            told = here(tasks, job)
            assert self.export(logs).rows == rows
            return told

        with pytest.raises(ExportError):
            self.export(logs, interrupted)

    def refused(self, logs: Path) -> None:
        """Begin an export of which no task comes to an end. Another one meanwhile is refused, with Spark or without, and says who writes."""

        def interrupted(tasks: Sequence[tuple[Split, ...]], job: Job) -> list[TaskResult]:
            here(tasks, job)
            with pytest.raises(
                OutputLockedError, match=rf"process {os.getpid()} on .* writes into it"
            ):
                self.export(logs)
            with pytest.raises(OutputLockedError):
                list(LogDirectory(logs).export(self.place))
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            self.export(logs, interrupted)

    def read(self) -> pa.Table:
        """Its rows, in the order of offsets, as the format's own package reads them."""
        if self.kind == "parquet":
            table = ds.dataset(self.place, partitioning="hive", format="parquet").to_table()
        elif self.kind == "delta":
            from deltalake import DeltaTable

            options = None
            if self.bucket is not None:
                options = options_of_delta("", Location(self.place, self.storage_options))
            table = DeltaTable(self.place, storage_options=options).to_pyarrow_table()
        else:
            from pyiceberg.catalog import load_catalog

            table = load_catalog("default", **self.catalog).load_table(self.place).scan().to_arrow()
        return table.sort_by([(name, "ascending") for name in COLUMNS[:3]])

    def rows(self) -> list[dict[str, Any]]:
        """The same as Python has them."""
        rows = self.read().select(COLUMNS).to_pylist()
        return [row | {"topic": str(row["topic"])} for row in rows]

    def files(self) -> list[Path]:
        """All files of rows below its directory, whether they are part of it or not."""
        if self.bucket is None:
            return sorted(self.scratch.rglob("part-*.parquet"))
        store, place = fsspec.core.url_to_fs(self.bucket, **self.storage_options)
        store.invalidate_cache()
        return sorted(Path(name) for name in store.find(place) if "/part-" in name)
