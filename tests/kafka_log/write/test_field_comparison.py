"""A writer that changes any one field is found, whether a view has a column for the field or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import RECORD_BATCH
from kafka_log import LogDirectory
from tests.shares import examples
from tests.support.writer_faults import refuses

FAULTS = {"convert --codec zstd": "recompress", "salvage --flatten": "edit"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition with two batches that have a value in each field, also in reserved bits."""
    path = tmp_path_factory.mktemp("logs") / "t-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(b"".join(map(_batch, (0, 3))))
    return path.parent


def _batch(base: int) -> bytes:
    records: list[dict[str, Any]] = [
        {
            "attributes": {"unused": 4},
            "offset_delta": i,
            "timestamp_delta": i,
            "key": b"k" if i else None,
            "value": b"v%d" % i,
            "headers": [{"key": "h", "value": b"x"}, {"key": "h", "value": None}][:i],
        }
        for i in range(3)
    ]
    batch: Any = {
        "base_offset": base,
        "partition_leader_epoch": 4,
        "attributes": {"unused": 9, "compression": "lz4"},
        "base_timestamp": 1_700_000_000_000,
        "producer_id": 7,
        "producer_epoch": 1,
        "base_sequence": base,
        "records": records,
    }
    return RECORD_BATCH.build(batch, strict=False)


@pytest.mark.parametrize("path", ["attributes.unused", "records[1].attributes.unused"])
def test_a_fault_in_bits_without_a_column_is_refused(source: Path, path: str) -> None:
    refuses(source, FAULTS, lambda paths: paths[paths.index(path)])


@pytest.mark.slow
@given(data=st.data())
@examples(60)
def test_a_fault_in_any_field_is_refused(source: Path, data: st.DataObject) -> None:
    refuses(source, FAULTS, lambda paths: data.draw(st.sampled_from(paths)))


def test_without_a_fault_all_is_written(source: Path, tmp_path: Path) -> None:
    log = LogDirectory(source)
    assert {row["what"] for row in log.convert(tmp_path / "a", codec="zstd").to_pylist()} == {
        "converted"
    }
    assert {row["what"] for row in log.salvage(tmp_path / "b", flatten=True).to_pylist()} == {
        "rewritten"
    }
