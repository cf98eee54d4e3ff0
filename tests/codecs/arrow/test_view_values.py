"""The columns of the views beside what Apache Kafka's own classes read from the same files, field by field."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from codecgen.runtime.arrow.output_buffers import arrow_type
from kafka_codecs.arrow import batches_numpy, records_numpy
from kafka_codecs.arrow.batches import BATCHES
from kafka_codecs.arrow.records import RECORDS
from kafka_log.segment.scanner import header_scanner
from tests.paths import VECTORS
from tests.support.scanned_rows import reference, scanned, unpacked
from tests.support.vector_segments import expected
from tests.support.view_files import FILES

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
KINDS = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}


def base64_of(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def batches_of(file: str) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """What the reference read: each batch with its records."""
    found: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    for item in expected(file):
        if item["type"] == "batch":
            found.append((item, []))
        elif item["type"] == "record":
            found[-1][1].append(item)
    return found


def of_batch(batch: dict[str, Any]) -> dict[str, Any]:
    """The columns that both views have."""
    return {
        "position": batch["position"],
        "magic": batch["magic"],
        "codec": CODECS[batch["compression"]],
        "base_offset": batch["baseOffset"],
        "timestamp_type": KINDS[batch["timestampType"]],
        "producer_id": batch["producerId"],
        "producer_epoch": batch["producerEpoch"],
        "leader_epoch": batch["partitionLeaderEpoch"],
        "is_transactional": batch["isTransactional"],
        "is_control": batch["isControl"],
        "delete_horizon": batch["deleteHorizonMs"],
    }


MS = pa.timestamp("ms", "UTC")
HEADER = pa.struct([pa.field("key", pa.string(), False), pa.field("value", pa.binary())])
HEADERS = pa.list_(pa.field("element", HEADER, False))
RECORD_COLUMNS: dict[str, tuple[pa.DataType, bool, bool]] = {
    "offset": (pa.int64(), False, False),
    "timestamp": (MS, False, False),
    "timestamp_type": (pa.int8(), False, False),
    "key": (pa.binary(), True, False),
    "value": (pa.binary(), True, False),
    "headers": (HEADERS, False, False),
    "base_offset": (pa.int64(), False, True),
    "position": (pa.int64(), False, True),
    "magic": (pa.int8(), False, True),
    "codec": (pa.int8(), False, True),
    "producer_id": (pa.int64(), False, True),
    "producer_epoch": (pa.int16(), False, True),
    "sequence": (pa.int32(), False, True),
    "leader_epoch": (pa.int32(), False, True),
    "is_transactional": (pa.bool_(), False, True),
    "is_control": (pa.bool_(), False, True),
    "delete_horizon": (MS, True, True),
}
BATCH_COLUMNS: dict[str, tuple[pa.DataType, bool, bool]] = {
    "position": (pa.int64(), False, False),
    "size": (pa.int64(), False, False),
    "magic": (pa.int8(), False, False),
    "codec": (pa.int8(), False, False),
    "base_offset": (pa.int64(), True, False),
    "last_offset": (pa.int64(), False, False),
    "timestamp_type": (pa.int8(), False, False),
    "base_timestamp": (MS, True, False),
    "max_timestamp": (MS, False, False),
    "producer_id": (pa.int64(), False, False),
    "producer_epoch": (pa.int16(), False, False),
    "base_sequence": (pa.int32(), False, False),
    "leader_epoch": (pa.int32(), False, False),
    "is_transactional": (pa.bool_(), False, False),
    "is_control": (pa.bool_(), False, False),
    "delete_horizon": (MS, True, False),
    "record_count": (pa.int32(), True, False),
    "crc": (pa.int64(), False, True),
    "next_offset": (pa.int64(), False, True),
    "last_sequence": (pa.int32(), False, True),
    "attributes": (pa.int16(), False, True),
    "offset_bound": (pa.int64(), True, True),
    "timestamp_bound": (MS, True, True),
    "first_timestamp": (MS, True, True),
}


@pytest.mark.parametrize(
    ("view", "columns"),
    [(RECORDS, RECORD_COLUMNS), (BATCHES, BATCH_COLUMNS)],
    ids=["records", "batches"],
)
def test_types_are_as_wide_as_kafka_has_them(view: Any, columns: dict[str, Any]) -> None:
    """As users of the tables know them: the type, whether null is possible, and whether one has to ask for it.

    An epoch of a producer is an int16 in Kafka, one of a leader an int32; a CRC is unsigned, so that it needs an int64.
    """
    found = {c.name: (arrow_type(c), c.nullable, c.on_request) for c in view.columns}
    assert found == columns
    assert list(found) == list(columns)


def header(given: Any) -> list[Any]:
    """A header of the reference's, as name and value."""
    return [given["key"], given["value"]] if isinstance(given, dict) else list(given)


@pytest.mark.parametrize("file", FILES)
def test_batches(file: str) -> None:
    derived = {"offset_bound", "timestamp_bound", "first_timestamp"}  # see test_batches
    columns = [column.name for column in BATCHES.columns if column.name not in derived]
    scanner = header_scanner(VECTORS / file, columns, "kafka", engine="arrow")
    scanner.kernels = batches_numpy
    ours = [row for batch in scanner for row in unpacked(batch)]
    assert scanner.fallbacks == 0
    theirs = []
    for batch, _ in batches_of(file):
        old = batch["magic"] < 2
        wraps = old and batch["compression"] != "none"
        more = {
            "size": batch["sizeInBytes"],
            "base_offset": None if wraps else batch["baseOffset"],
            "last_offset": batch["lastOffset"],
            "base_timestamp": None if old else base_timestamp(VECTORS / file, batch),
            "max_timestamp": batch["maxTimestamp"],
            "base_sequence": batch["baseSequence"],
            "record_count": None if old else batch["count"],
            "crc": batch["crc"],
            "next_offset": batch["nextOffset"],
            "last_sequence": batch["lastSequence"],
            "attributes": batch["attributes"],
        }
        theirs.append(of_batch(batch) | more)
    assert ours == theirs


def base_timestamp(path: Path, batch: dict[str, Any]) -> int:
    """The 8 bytes after the last offset delta: where a delete horizon stands there the reference does not show them."""
    at = batch["position"] + 27
    return int.from_bytes(path.read_bytes()[at : at + 8], "big", signed=True)


@pytest.mark.parametrize("file", FILES)
def test_records(file: str) -> None:
    read = scanned(VECTORS / file, "kafka", kernels=records_numpy)
    assert read.error is None
    assert read.fallbacks == 0
    theirs = [
        of_batch(batch)
        | {
            "offset": record["offset"],
            "timestamp": record["timestamp"],
            "sequence": record["sequence"],
            "key": record["key"],
            "value": record["value"],
            "headers": record["headers"],
        }
        for batch, records in batches_of(file)
        for record in records
    ]
    ours = [
        row
        | {
            "key": base64_of(row["key"]),
            "value": base64_of(row["value"]),
            "headers": [[h["key"], base64_of(h["value"])] for h in row["headers"]],
        }
        for row in read.rows
    ]
    assert ours == [row | {"headers": [header(h) for h in row["headers"]]} for row in theirs]


@pytest.mark.parametrize("file", ["control/bad-keys.log", "control/end-txn-bad-values.log"])
@pytest.mark.parametrize("policy", ["strict", "kafka"])
def test_strict_readers_look_into_control_records(file: str, policy: str) -> None:
    """Their keys and values are no columns; what is wrong with them is an error to strict readers all the same."""
    read = scanned(VECTORS / file, policy, kernels=records_numpy)
    assert read == reference(VECTORS / file, policy)
    assert (read.error is not None) == (policy == "strict")


def test_there_is_everything() -> None:
    batches = [batch for file in FILES for batch, _ in batches_of(file)]
    assert {batch["magic"] for batch in batches} == {0, 1, 2}
    assert {batch["compression"] for batch in batches} == set(CODECS)
    assert {batch["timestampType"] for batch in batches} == set(KINDS)
    for name in ("isTransactional", "isControl"):
        assert {batch[name] for batch in batches} == {True, False}
    assert any(batch["deleteHorizonMs"] is not None for batch in batches)


def test_the_expected_lines_are_the_references() -> None:
    line = (VECTORS / "matrix/v2-none-create.expected.jsonl").read_text("utf-8").splitlines()[1]
    assert {"baseOffset", "producerEpoch", "isControl", "deleteHorizonMs"} <= set(json.loads(line))
