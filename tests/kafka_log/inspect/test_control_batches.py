"""Control batches: those with the same records as one before are not decoded again, and have the same answers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codecgen.runtime.located_bytes import Limits
from kafka_codecs import RECORD_BATCH
from kafka_log import LogDirectory, SegmentReader
from kafka_log.inspect import control_batches
from kafka_log.inspect.control_batches import read_control_batches
from kafka_log.segment.model import Policy
from kafka_log.segment.reference import construct_engine
from tests.paths import SAMPLES, VECTORS
from tests.shares import draw_seeds
from tests.support.coordinator_logs import log, marker_of

LOGS = sorted([*SAMPLES.rglob("*.log"), *VECTORS.glob("*/*.log")])
CONTROL = {"attributes": {"is_transactional": True, "is_control": True}}
PARTS = (
    b"",
    b"\0",
    b"\0\0\0\0",
    b"\0\0\0\1",
    b"\0\1\0\0",
    b"\xff\xff\0\1",
    b"\0\0\0\1more",
    b"\0\0\0\x63",
)
VALUES = (b"", b"\0\0\0\0\0\1", b"\0\0\0\0\0\2", b"\0\1\0\0\0\1and more", b"\xff\xff\0\0\0\1")


def columns_of(path: Path) -> dict[str, Any]:
    found = [
        (b.is_control, b.position, b.size, b.base_offset)
        for b in SegmentReader(path, records=False, policy="salvage")
    ]
    names = ("is_control", "position", "size", "first")
    return {name: np.array([row[i] for row in found]) for i, name in enumerate(names)}


def by_reference(path: Path, columns: dict[str, Any]) -> list[tuple[int, Any]]:
    """Each control batch, decoded by itself."""
    data, found = path.read_bytes(), []
    for row in np.flatnonzero(columns["is_control"]).tolist():
        at, size = int(columns["position"][row]), int(columns["size"][row])
        one = construct_engine(data[at : at + size], at, str(path), Policy.KAFKA, Limits(), True)
        found.append((row, [(r.offset, said(r.control)) for r in one.records]))
    return found


def said(control: Any) -> Any:
    return control.type_id, control.type, control.value, control.error and str(control.error)


def by_reader(path: Path, columns: dict[str, Any]) -> list[tuple[int, Any]]:
    return [
        (row, [(one.offset, said(one.control)) for one in records])
        for row, records in read_control_batches(path, columns)
    ]


@pytest.mark.slow
def test_control_batches_of_samples() -> None:
    have_some = 0
    for path in LOGS:
        columns = columns_of(path)
        if columns["is_control"].any():
            assert by_reader(path, columns) == by_reference(path, columns) != [], path
            have_some += 1
    assert have_some > 20


@pytest.mark.parametrize("seed", draw_seeds(3))
def test_damaged_control_records(seed: int, tmp_path: Path) -> None:
    """Batches of few different records, of which many cannot be read."""
    r = random.Random(seed)
    batches, offset = [], 0
    for _ in range(60):
        records = [(r.choice(PARTS), r.choice(VALUES)) for _ in range(r.choice([1, 1, 1, 0, 2]))]
        flags = {**CONTROL["attributes"], "compression": r.choice(["none", "none", "gzip"])}
        values: Any = {
            "base_offset": offset,
            "attributes": flags,
            "last_offset_delta": max(len(records) - 1, 0),
            "producer_id": r.choice([-1, 7, 8]),
            "records": [{"key": key, "value": value} for key, value in records],
        }
        batches.append(RECORD_BATCH.build(values, strict=False))
        offset += max(len(records), 1)
    (path,) = log(tmp_path, "t-0", batches).glob("*.log")
    columns = columns_of(path)
    assert by_reader(path, columns) == by_reference(path, columns)


def test_equal_markers_are_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    markers = [marker_of(i, i % 5, ("commit", "abort")[i % 2]) for i in range(200)]
    (path,) = log(tmp_path, "t-0", markers).glob("*.log")
    decoded = []
    plain = control_batches._decode

    def note(*arguments: Any) -> Any:
        decoded.append(arguments[1])
        return plain(*arguments)

    monkeypatch.setattr(control_batches, "_decode", note)
    assert [row for row, _ in read_control_batches(path, columns_of(path))] == list(range(200))
    assert len(decoded) == 2
    assert LogDirectory(tmp_path).stat(deep=True, engine="construct").column(
        "problems"
    ).to_pylist() == [0]
