"""Batches with right checksums and any numbers in their headers: compared, and converted or refused with file and byte."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import RECORD_BATCH
from kafka_codecs.arrow.records import RECORDS
from kafka_log import LogDirectory, scan
from tests.shares import examples

INT64 = st.sampled_from([0, -1, 1, 5, (1 << 63) - 1, -(1 << 63), 1 << 62])
INT32 = st.sampled_from([0, -1, 3, 40, (1 << 31) - 1, -(1 << 31), -5])
CHANGES = {"position", "codec", "base_offset"}
COLUMNS = [column.name for column in RECORDS.columns if column.name not in CHANGES]


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    count = draw(st.integers(0, 3))
    base = draw(st.integers(0, 12) | INT64)
    data: bytes = RECORD_BATCH.build(
        {
            "base_offset": base,
            "partition_leader_epoch": draw(INT32),
            "attributes": {
                "compression": draw(st.integers(0, 4)),
                "timestamp_type": draw(st.integers(0, 1)),
                "is_transactional": draw(st.booleans()),
                "is_control": draw(st.sampled_from([False, False, True])),
                "has_delete_horizon": draw(st.booleans()),
            },
            "last_offset_delta": draw(st.just(max(count - 1, 0)) | INT32),
            "base_timestamp": draw(INT64),
            "max_timestamp": draw(INT64),
            "producer_id": draw(INT64),
            "producer_epoch": draw(st.sampled_from([-1, 0, 7])),
            "base_sequence": draw(INT32),
            "records": [
                {
                    "timestamp_delta": draw(st.sampled_from([0, 1, -5, 1 << 60])),
                    "offset_delta": draw(st.just(i) | INT32),
                    "key": draw(st.none() | st.binary(max_size=1)),
                    "value": draw(st.none() | st.binary(max_size=3)),
                }
                for i in range(count)
            ],
        },
        strict=False,
    )
    return data


FILES = st.lists(
    st.tuples(st.sampled_from([0, 0, 1, 5]), st.lists(batches(), max_size=4)), max_size=2
)


def made(directory: Path, files: list[tuple[int, list[bytes]]]) -> Path:
    directory.mkdir(parents=True)
    for base, parts in files:
        (directory / f"{base:020d}.log").write_bytes(b"".join(parts))
    return directory


def rows(path: Path) -> Any:
    return scan(path, COLUMNS, control_records=True).read_all()


@pytest.mark.slow
@given(FILES, FILES)
@examples(60)
def test_any_numbers(
    files: list[tuple[int, list[bytes]]], others: list[tuple[int, list[bytes]]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        a, b = made(Path(directory, "a", "t-0"), files), made(Path(directory, "b", "t-0"), others)
        assert LogDirectory(a).diff(a).column("differ").to_pylist() == [0]
        (row,) = LogDirectory(a).diff(b).to_pylist()
        (turned,) = LogDirectory(b).diff(a).to_pylist()
        assert (row["same"], row["differ"]) == (turned["same"], turned["differ"])
        table = LogDirectory(a).convert(Path(directory, "out"), codec="lz4")
        refused = [row["reason"] for row in table.to_pylist() if row["what"] == "refused"]
        if refused:
            assert all(re.search(r"byte \d+ of .*t-0", reason) for reason in refused), refused
            assert not Path(directory, "out", "t-0").exists()
            return
        out = Path(directory, "out", "t-0")
        assert rows(out).equals(rows(a)) if any(a.iterdir()) else not any(out.glob("*.log"))
        (row,) = LogDirectory(a).diff(out).to_pylist()
        assert row["verdict"] in ("same", "batches", "segments")
