"""A marker that cannot be decoded leaves open which records are committed: queries, streams and exports that accept damage say so."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from codecgen.runtime.errors import CodecError
from pyspark_kafka_log.export import DataLossError as ExportLossError
from pyspark_kafka_log.losses import DataLossError
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.task_reader import read_splits
from tests.paths import SAMPLES
from tests.support.check_plants_of_segments import control
from tests.support.spark_tables import Table
from tests.support.stream_laws import rows, stream

UNKNOWN = "the control record at offset 4 cannot be decoded"
COMMITTED: dict[str, Any] = {"isolationLevel": "read_committed"}
ACCEPTING: dict[str, Any] = {**COMMITTED, "mode": "DROPMALFORMED"}
IGNORED: dict[str, Any] = {"failOnDataLoss": "false"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A partition whose only marker cannot be decoded, without files that say what it was."""
    topic = shutil.copytree(
        SAMPLES / "kafka-4.x" / "transactions-2", tmp_path / "logs" / "transactions-2"
    )
    for path in [*topic.glob("*index"), *topic.glob("*.snapshot")]:
        path.unlink()
    control(f"transactions-2/{0:020d}.log", 300, b"\x08\xff\xff")(topic.parent)
    return topic.parent


def planned(root: Path, **options: str) -> list[int]:
    tasks = plan(parse({"path": str(root), **options}))
    batches = [b for task in tasks for b in read_splits(task, Scan(columns=("offset",)))]
    return [offset for batch in batches for offset in batch.column(0).to_pylist()]


def test_a_batch_query(root: Path) -> None:
    with pytest.raises(CodecError, match=UNKNOWN):
        planned(root, **COMMITTED)
    with pytest.raises(DataLossError, match=UNKNOWN):
        planned(root, **ACCEPTING)
    every = planned(root)
    with pytest.warns(UserWarning, match=f"data is lost: .*{UNKNOWN}"):
        found = planned(root, **ACCEPTING, **IGNORED)
    assert set(found) < set(every)


def test_a_stream(root: Path) -> None:
    now = stream(root, **ACCEPTING)
    with pytest.raises(DataLossError, match=UNKNOWN):
        rows(now, now.initial(), {"transactions": {"2": 4}})
    goes_on = stream(root, **ACCEPTING, **IGNORED)
    with pytest.warns(UserWarning, match=f"data is lost: .*{UNKNOWN}"):
        rows(goes_on, goes_on.initial(), {"transactions": {"2": 4}})


def test_an_export(root: Path, tmp_path: Path) -> None:
    table = Table("parquet", tmp_path)
    with pytest.raises(ExportLossError, match=UNKNOWN) as caught:
        table.export(root, **ACCEPTING)
    assert not Path(table.place).exists()
    with pytest.warns(UserWarning, match=UNKNOWN):
        done = table.export(root, ignore=True, **ACCEPTING)
    assert done.missed == caught.value.losses
    assert len(done.missed) == 1
    with pytest.raises(CodecError, match=UNKNOWN):
        table.export(root, **COMMITTED)
