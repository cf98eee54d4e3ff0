"""Growing logs and the rows that a streaming query has to give."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.stream.options import parse_stream
from pyspark_kafka_log.stream.polling import LogStream
from pyspark_kafka_log.task_reader import read_splits
from tests.support.growing_logs import Growing

Row = tuple[str, int, str]


def stream(path: Path | str, **options: Any) -> LogStream:
    given = {"path": str(path), "startingOffsets": "earliest", "engine": "construct", **options}
    return LogStream(parse_stream({name: str(value) for name, value in given.items()}), 2)


def rows(of: LogStream, start: Any, end: Any) -> list[Row]:
    scan = Scan(
        ("topic", "partition", "offset", "value"),
        of._reading.selection.policy,
        of._reading.selection.damage,
        engine="construct",
    )
    out: list[Row] = []
    for task in of.tasks(start, end):
        for batch in read_splits(task, scan):
            columns = (column.to_pylist() for column in batch.columns)
            for topic, partition, offset, value in zip(*columns, strict=True):
                out.append((f"{topic}-{partition}", offset, value.decode()))
    return out


def told(offsets: Any) -> Any:
    """Offsets after a checkpoint."""
    return json.loads(json.dumps(offsets))


def grow(logs: list[Growing], r: random.Random, root: Path, *, transactions: bool) -> None:
    for _ in range(r.randrange(6)):
        log = r.choice(logs)
        r.choices([log.append, log.roll, log.tear], [12, 2, 2])[0]()
    if r.random() < 0.1 and len(logs) < 4:
        logs.append(Growing(root / f"t-{len(logs)}", r, transactions=transactions))


def expected(logs: list[Growing], isolation: str) -> list[Row]:
    return sorted(
        (log.name, offset, value)
        for log in logs
        for offset, value in (
            log.committed() if isolation == "read_committed" else log.uncommitted()
        )
    )
