"""A view into the records of the metadata log: topics and partitions, by the kernel and by the reference codecs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path
from typing import Any

import pytest

from codecgen.cli import main
from kafka_codecs import METADATA_RECORD
from kafka_log import SegmentReader
from tests.laws.payload_memory import decoded, summed
from tests.paths import SAMPLES, SCHEMAS

MANIFEST = """
language: 1
package: metadata_views_codecs
title: Views of the metadata log
uses: {kafka: SCHEMAS}
"""
VIEWS = """
view: topics
of: {value: kafka.metadata_record}
kernels: true
columns: {record: {type: int64}, name: {type: string}, topic_id: {type: uuid}}
rows:
  - of: {value: kafka.metadata_record}
    when: value.body.topic_record != null
    columns:
      record: row
      name: value.body.topic_record.name
      topic_id: value.body.topic_record.topic_id

---
view: partitions
of: {value: kafka.metadata_record}
kernels: true
columns:
  is_new: {type: bool}
  partition: {type: int32, nullable: true}
  epoch: {type: int32, nullable: true}
  leader: {type: int32, nullable: true}
  replicas: {list: int32, nullable: true}
  directories: {list: uuid, nullable: true}
  eligible: {list: int32, nullable: true}
rows:
  - of: {value: kafka.metadata_record}
    when: value.body.partition_record != null or value.body.partition_change_record != null
    columns:
      is_new: value.body.partition_record != null
      partition: if value.body.partition_record != null then value.body.partition_record.partition_id else value.body.partition_change_record.partition_id
      epoch: value.body.partition_record.leader_epoch
      leader: value.body.partition_record.leader
      replicas: value.body.partition_record.replicas
      directories: value.body.partition_record.directories
      eligible: value.body.partition_record.eligible_leader_replicas
"""


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    root = tmp_path_factory.mktemp("metadata")
    schemas, out = root / "schemas", root / "out"
    schemas.mkdir()
    (schemas / "codecgen.yaml").write_text(
        MANIFEST.replace("SCHEMAS", relpath(SCHEMAS, schemas)), "utf-8"
    )
    (schemas / "views.yaml").write_text(VIEWS, "utf-8")
    arguments = ["--out", str(out), "--targets", "construct,arrow"]
    assert main(["generate", str(schemas), *arguments]) == 0
    before = set(sys.modules)
    sys.path.insert(0, str(out))
    try:
        yield {
            name: getattr(
                importlib.import_module(f"metadata_views_codecs.columns.{name}"), name.upper()
            )
            for name in ("topics", "partitions")
        }
    finally:
        sys.path.remove(str(out))
        for name in set(sys.modules) - before:
            del sys.modules[name]


def values() -> list[bytes | None]:
    """The values of all records that brokers wrote into their metadata logs."""
    out: list[bytes | None] = []
    for path in sorted(SAMPLES.glob("*/__cluster_metadata-0/*.log")):
        for batch in SegmentReader(Path(path), policy="strict"):
            out += [record.value for record in batch.records if record.control is None]
    assert len(out) > 50
    return out


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_rows_of_the_metadata_log(views: dict[str, Any], compiled: bool) -> None:
    records = values()
    parsed = [METADATA_RECORD.parse(data) for data in records]
    for name, view in views.items():
        assert view.kernels is not None
        found = summed(decoded(view, {"value": records}, compiled=compiled))
        assert not found["rejected"] and not found["unknown"]
        if name == "topics":
            wanted = [i for i, record in enumerate(parsed) if record.api_key == 2]
            assert [row["record"] for row in found["values"]] == wanted
            assert [row["name"] for row in found["values"]] == [parsed[i].body.name for i in wanted]
        else:
            wanted = [r for r in parsed if r.api_key in (3, 5)]
            assert [row["is_new"] for row in found["values"]] == [r.api_key == 3 for r in wanted]
            assert [row["replicas"] for row in found["values"]] == [
                r.body.replicas if r.api_key == 3 else None for r in wanted
            ]
