"""What a transaction is, batch by batch, where histories do not go: odd markers, odd producers, times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_codecs import CONTROL_RECORD_KEY, PRODUCER_SNAPSHOT, RECORD_BATCH
from kafka_log import LogDirectory, SegmentReader, discover
from kafka_log.logs.header_rows import DamageHandling
from kafka_log.logs.partitions import Segment
from kafka_log.logs.transactions import MarkerReader, observe_transactions, read_transactions
from tests.paths import SAMPLES, VECTORS
from tests.support.coordinator_logs import TIME, batch, data_of, log, marker_of

CONTROL = {"is_transactional": True, "is_control": True}
LOGS = [*sorted(SAMPLES.rglob("*.log")), *sorted((VECTORS / "control").glob("*.log"))]


def rows(root: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = LogDirectory(root).txn(now=TIME).to_pylist()
    return found


def said(path: Path) -> list[str | None]:
    """What each control batch of a segment says."""
    ((segment,),) = (partition.segments for partition in discover(path))
    with MarkerReader(segment, {}) as markers:
        kinds = [
            markers.read_kind(
                found.position, found.size, found.magic, found.codec, found.record_count or 0
            )
            for found in SegmentReader(path, records=False)
            if found.is_control
        ]
    return [None if kind is None else kind.name for kind in kinds]


def by_reference(path: Path) -> list[str | None]:
    """The same by the reference codecs, of the first record of each."""
    first = [
        found.records[0].control if found.records else None
        for found in SegmentReader(path)
        if found.is_control
    ]
    names = [None if control is None else control.type for control in first]
    return [name if name in {"COMMIT", "ABORT"} else None for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("path", LOGS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_markers_of_brokers(path: Path) -> None:
    assert said(path) == by_reference(path)


def test_odd_markers(tmp_path: Path) -> None:
    """Such as only readers of other versions, compaction, or nobody writes."""
    key = CONTROL_RECORD_KEY.build({"type": "abort"})
    whose = {"producer_id": 7, "producer_epoch": 0}
    control = {**whose, "attributes": CONTROL}
    zipped = {**whose, "attributes": {**CONTROL, "compression": "gzip"}}
    looks_like_a_record = int.from_bytes(b" \0\0\0\x08\0\0\0", "big")  # and then the next offset
    batches = [
        batch(0, [(key, b"")], **control),
        batch(1, [(key + b"more", b"\0\1\0\0\0\1and more")], **control),
        batch(2, [(key, b"\0\0\0\0\0\1")], **zipped),
        batch(3, [(b"\0\0\0\x09", b"")], **control),
        batch(4, [], last_offset_delta=0, **control),
        marker_of(looks_like_a_record, 7, "commit"),
        batch(looks_like_a_record + 1, [], last_offset_delta=0, **control),
        batch(looks_like_a_record + 2, [(key, b"v" * 100)], **control),
    ]
    directory = log(tmp_path, "t-0", batches)
    path = next(directory.iterdir())
    kinds = ["ABORT", "ABORT", "ABORT", None, None, "COMMIT", None, "ABORT"]
    assert said(path) == kinds
    assert by_reference(path) == kinds


def test_an_empty_control_batch_ends_nothing(tmp_path: Path) -> None:
    """Brokers, too, learn nothing from a marker whose record compaction took."""
    whose = {"producer_id": 7, "producer_epoch": 0, "attributes": CONTROL}
    empty = batch(1, [], last_offset_delta=0, **whose)
    log(tmp_path, "t-0", [data_of(0, 7), empty])
    assert [row["state"] for row in rows(tmp_path)] == ["open"]


def test_a_producer_without_an_id_has_no_transaction(tmp_path: Path) -> None:
    directory = log(tmp_path, "t-0", [data_of(0, -1), data_of(1, -5), data_of(2, 7)])
    assert [row["producer_id"] for row in rows(tmp_path)] == [7]
    found = read_transactions(discover(directory)[0].segments)
    assert (found.open_first_offsets, found.last_stable_offset) == (((7, 2),), 2)


@pytest.mark.parametrize(
    ("kind", "base", "largest", "first"),
    [
        ("create_time", TIME, TIME + 5, TIME),
        ("log_append_time", TIME, TIME + 5, TIME + 5),
        ("create_time", -1, TIME + 5, TIME + 5),
        ("create_time", -1, -1, None),
    ],
)
def test_when_it_began(
    tmp_path: Path, kind: str, base: int, largest: int, first: int | None
) -> None:
    attributes = {"is_transactional": True, "timestamp_type": kind}
    times = {"base_timestamp": base, "max_timestamp": largest}
    whose = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    record = {"offset_delta": 0, "key": None, "value": b""}
    written = {**whose, **times, "attributes": attributes, "records": [record]}
    log(tmp_path, "t-0", [RECORD_BATCH.build(written, strict=False)])
    (row,) = LogDirectory(tmp_path).txn(now=TIME + 9).to_pylist()
    assert row["duration_ms"] == (None if first is None else TIME + 9 - first)


def test_a_transaction_that_only_the_snapshot_knows(tmp_path: Path) -> None:
    directory = log(tmp_path, "t-0", [data_of(100, 8)], base=100)
    entry = {
        "producer_id": 7,
        "producer_epoch": 3,
        "timestamp": TIME,
        "current_txn_first_offset": 90,
    }
    snapshot = PRODUCER_SNAPSHOT.build({"version": 1, "entries": [entry | {"last_offset": 95}]})
    (directory / f"{100:020}.snapshot").write_bytes(snapshot)
    first, second = rows(tmp_path)
    assert (first["producer_id"], first["producer_epoch"], first["records"]) == (7, 3, 0)
    assert (first["first_offset"], first["last_offset"]) == (90, 95)
    assert (first["duration_ms"], first["hides"], second["hides"]) == (None, 1, 1)
    log(tmp_path, "t-0", [data_of(100, 7), marker_of(101, 7, "abort")], base=100)
    (ended,) = rows(tmp_path)
    assert (ended["state"], ended["first_offset"], ended["records"]) == ("aborted", 90, 1)


def test_a_later_epoch_goes_on_with_a_transaction(tmp_path: Path) -> None:
    """A partition knows producers by their ids: what a fenced one left open, the marker of the next epoch ends."""
    log(tmp_path, "t-0", [data_of(0, 7), data_of(1, 7, epoch=1), marker_of(2, 7, "abort", epoch=2)])
    (row,) = rows(tmp_path)
    assert (row["producer_epoch"], row["first_offset"], row["records"]) == (1, 0, 2)


def test_a_segment_after_an_unreadable_one_is_read_from_its_first_byte(tmp_path: Path) -> None:
    first = tmp_path / "t-0" / f"{0:020}.log"
    first.mkdir(parents=True)
    log(tmp_path, "t-0", [data_of(100, 7), marker_of(101, 7, "commit")], base=100)
    segments = [Segment(path, "t", 0, 100, 4096) for path in sorted(first.parent.iterdir())]
    seen = observe_transactions(segments, {}, DamageHandling.RESYNCHRONIZE, start=70)
    assert [(one.first_offset, one.last_offset) for one in seen] == [(100, 101)]
