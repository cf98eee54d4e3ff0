"""Each kind of damage is found by its own code at the right byte, and healthy directories are left in peace."""

from __future__ import annotations

import hashlib
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_log import LogDirectory
from tests.log.check_plants import (
    ACTIVE,
    FIRST,
    PLAIN,
    SECOND,
    THIRD,
    TX,
    Plant,
    change,
    copied,
    copy_segment,
    exchange,
    flip,
    pieces,
    rearranged,
    remove_segment,
    rename_segment,
    replaced,
    transaction_entry,
    without_line,
)
from tests.paths import SAMPLES

BROKER = SAMPLES / "kafka-4.x"
SIZE = 383
LOG, LOG_2, LAST = f"{PLAIN}/{FIRST}.log", f"{PLAIN}/{SECOND}.log", f"{PLAIN}/{ACTIVE}.log"
INDEX, TIMES = f"{PLAIN}/{FIRST}.index", f"{PLAIN}/{FIRST}.timeindex"
ABORTED = f"{TX}/{FIRST}.txnindex"
SNAPSHOT = f"{TX}/00000000000000000108.snapshot"
EPOCHS = f"{PLAIN}/leader-epoch-checkpoint"
STRAY = f"{TX}.{'0a' * 16}-stray"
LATER = f"idempotent-0/{5:020d}.snapshot"
START, RECOVERY, WATERMARK = (
    f"{name}-checkpoint"
    for name in ("log-start-offset", "recovery-point-offset", "replication-offset")
)
ACTIVE_END = 3 * 389


def foreign(root: Path) -> bytes:
    """A whole batch of another partition: its offsets are 90 to 97."""
    return pieces(root / TX / f"{81:020d}.log")[2]


def put(file: str, start: int, stop: int, data: bytes) -> Callable[[Path], None]:
    """Other bytes in the place of some."""
    return lambda root: change(root / file, start, stop, data)


MOVED = ("index_position",)
PLANTS = [
    # ------------------------------------------------ batches
    Plant("bit in a value", lambda r: flip(r / LOG, 700, 3), "batch_checksum", LOG, SIZE),
    Plant("bit in a checksum", lambda r: flip(r / LOG, SIZE + 18), "batch_checksum", LOG, SIZE),
    Plant("bit in the attributes", lambda r: flip(r / LOG_2, 22), "batch_checksum", LOG_2, 0),
    Plant("version 3", lambda r: flip(r / LOG, SIZE + 16), "batch_magic", LOG, SIZE),
    Plant("length too large", lambda r: flip(r / LOG, SIZE + 10), "unreadable_bytes", LOG, SIZE),
    Plant("length too small", lambda r: flip(r / LOG, SIZE + 11, 6), "unreadable_bytes", LOG, SIZE),
    Plant("zeroed batch", put(LOG, SIZE, 2 * SIZE, bytes(SIZE)), "zeroed_bytes", LOG, SIZE),
    Plant("zeroed part", put(LOG, 450, 600, bytes(150)), "batch_checksum", LOG, SIZE),
    Plant("zeroed over two", put(LOG, 500, 900, bytes(400)), "unreadable_bytes", LOG, SIZE),
    Plant("noise at the head", put(LOG, 0, 40, b"\xa5" * 40), "unreadable_bytes", LOG, 0),
    Plant(
        "noise between",
        put(LOG, SIZE, SIZE, b"\xa5" * 64),
        "unreadable_bytes",
        LOG,
        SIZE,
        also=MOVED,
    ),
    Plant("bytes cut out", put(LOG, 500, 600, b""), "unreadable_bytes", LOG, SIZE, also=MOVED),
    # ------------------------------------------------ tails
    Plant("cut tail of a rolled segment", put(LOG, 2400, 2681, b""), "torn_tail", LOG, 6 * SIZE),
    Plant("short tail", put(LOG, 2308, 2681, b""), "torn_tail", LOG, 6 * SIZE),
    Plant(
        "zeros after a rolled segment", put(LOG, 2681, 2681, bytes(4096)), "zero_tail", LOG, 2681
    ),
    Plant(
        "cut tail of the active segment",
        put(LAST, ACTIVE_END - 5, ACTIVE_END, b""),
        "torn_tail",
        LAST,
        778,
        "note",
        ("recovery_point_beyond_end", "high_watermark_beyond_end"),
    ),
    Plant(
        "torn, and zeros to the end",
        put(LAST, 900, ACTIVE_END, bytes(4096)),
        "torn_tail",
        LAST,
        778,
        "note",
        ("recovery_point_beyond_end", "high_watermark_beyond_end"),
    ),
    Plant(
        "made longer",
        put(LAST, ACTIVE_END, ACTIVE_END, bytes(4096)),
        "zero_tail",
        LAST,
        ACTIVE_END,
        "note",
    ),
    # ------------------------------------------------ order
    Plant(
        "batches change places",
        lambda r: rearranged(r / LOG, [0, 1, 3, 2, 4, 5, 6]),
        "offsets_not_rising",
        LOG,
        2 * SIZE,
    ),
    Plant(
        "batch there twice",
        lambda r: rearranged(r / LOG, [0, 1, 2, 2, 3, 4, 5, 6]),
        "batch_twice",
        LOG,
        3 * SIZE,
    ),
    Plant(
        "batch of another partition",
        lambda r: change(r / LOG, 2 * SIZE, 2 * SIZE, foreign(r)),
        "batch_in_wrong_segment",
        LOG,
        2 * SIZE,
        also=MOVED,
    ),
    Plant(
        "batch in the segment before",
        lambda r: change(r / LOG, 0, SIZE, pieces(r / LOG_2)[4]),
        "batch_in_wrong_segment",
        LOG,
        0,
        also=("index_position",),
    ),
    Plant(
        "base offset far away",
        lambda r: flip(r / LOG, SIZE + 1, 4),
        "batch_in_wrong_segment",
        LOG,
        SIZE,
    ),
    Plant(
        "whole batch removed",
        lambda r: rearranged(r / LOG, [0, 1, 3, 4, 5, 6]),
        "offsets_missing",
        LOG,
        2 * SIZE,
        "note",
        ("index_position", "index_offset"),
    ),
    Plant(
        "segment removed",
        lambda r: remove_segment(r / PLAIN, 42),
        "segment_missing",
        f"{PLAIN}/{THIRD}.log",
        0,
    ),
    Plant(
        "segment renamed",
        lambda r: rename_segment(r / PLAIN, 84, 87),
        "first_offset_below_name",
        f"{PLAIN}/{87:020d}.log",
        0,
    ),
    Plant(
        "segment overlaps",
        lambda r: copy_segment(r / PLAIN, 42, 30),
        "segments_overlap",
        LOG,
        5 * SIZE,
    ),
    # ------------------------------------------------ indexes
    Plant("index position", put(INDEX, 12, 16, struct.pack(">i", 800)), "index_position", INDEX, 8),
    Plant("index offset", put(INDEX, 8, 12, struct.pack(">i", 13)), "index_offset", INDEX, 8),
    Plant("index offset below", put(INDEX, 0, 4, struct.pack(">i", 3)), "index_offset", INDEX, 0),
    Plant("index beyond the file", put(INDEX, 12, 14, b"oo"), "index_position", INDEX, 8),
    Plant("index disordered", lambda r: exchange(r / INDEX, 8, 8), "index_order", INDEX, 8),
    Plant(
        "timeindex disordered", lambda r: exchange(r / TIMES, 12, 12), "timeindex_order", TIMES, 12
    ),
    Plant(
        "txnindex disordered", lambda r: exchange(r / ABORTED, 0, 34), "txnindex_order", ABORTED, 34
    ),
    Plant("index cut", put(INDEX, 45, 48, b""), "index_length", INDEX, 40, "warning"),
    Plant("index of zeros", put(INDEX, 48, 48, bytes(80)), "index_zero_tail", INDEX, 48, "warning"),
    Plant("timeindex of zero", put(TIMES, 12, 20, bytes(8)), "timeindex_timestamp", TIMES, 12),
    Plant("timeindex time", lambda r: flip(r / TIMES, 19), "timeindex_timestamp", TIMES, 12),
    Plant(
        "timeindex beyond", put(TIMES, 68, 72, struct.pack(">i", 99)), "timeindex_offset", TIMES, 60
    ),
    Plant("timeindex cut", put(TIMES, 70, 72, b""), "timeindex_length", TIMES, 60, "warning"),
    Plant(
        "txnindex entry removed", put(ABORTED, 34, 68, b""), "txnindex_missing_entry", ABORTED, None
    ),
    Plant(
        "txnindex entry added",
        put(ABORTED, 68, 68, transaction_entry(4, 27, 35, 36)),
        "txnindex_entry",
        ABORTED,
        68,
    ),
    Plant(
        "txnindex first offset",
        put(ABORTED, 0, 34, transaction_entry(4, 2, 8, 9)),
        "txnindex_entry",
        ABORTED,
        0,
    ),
    Plant("txnindex version", put(ABORTED, 34, 36, b"\0\7"), "txnindex_entry", ABORTED, 34),
    Plant("txnindex cut", put(ABORTED, 60, 68, b""), "txnindex_length", ABORTED, 34, "warning"),
    # ------------------------------------------------ snapshots and checkpoints
    Plant(
        "snapshot bit", lambda r: flip(r / SNAPSHOT, 30), "snapshot_damaged", SNAPSHOT, 2, "warning"
    ),
    Plant("snapshot cut", put(SNAPSHOT, 50, 56, b""), "snapshot_damaged", SNAPSHOT, 48, "warning"),
    Plant(
        "snapshot of a later offset",
        lambda r: copied(r / "idempotent-0/00000000000000000020.snapshot", r / LATER),
        "snapshot_offset",
        LATER,
        None,
        "warning",
    ),
    Plant(
        "checkpoint garbled",
        lambda r: flip(r / RECOVERY, 2, 6),
        "checkpoint_damaged",
        RECOVERY,
        2,
        "warning",
    ),
    Plant(
        "high watermark",
        lambda r: replaced(r / WATERMARK, "segments.small 0 144", "segments.small 0 150"),
        "high_watermark_beyond_end",
        WATERMARK,
        None,
        "warning",
    ),
    Plant(
        "recovery point",
        lambda r: replaced(r / RECOVERY, "segments.small 0 144", "segments.small 0 145"),
        "recovery_point_beyond_end",
        RECOVERY,
        None,
        "warning",
    ),
    Plant(
        "log start offset",
        lambda r: replaced(r / START, "trimmed 0 7", "trimmed 0 70"),
        "log_start_beyond_end",
        START,
        None,
    ),
    Plant(
        "checkpoint of another partition",
        lambda r: replaced(r / START, "trimmed 0 7", "trimmed 9 7"),
        "checkpoint_unknown_partition",
        START,
        None,
        "note",
        ("leader_epoch_start",),
    ),
    Plant(
        "leader epoch cut",
        lambda r: without_line(r / EPOCHS, 0),
        "leader_epoch_unknown",
        LOG,
        0,
        "warning",
    ),
    Plant(
        "leader epoch start",
        lambda r: replaced(r / EPOCHS, "2 144", "2 140"),
        "leader_epoch_start",
        LAST,
        778,
        "warning",
    ),
    Plant(
        "leader epoch of a batch",
        lambda r: flip(r / LOG, 15, 2),
        "leader_epoch_unknown",
        LOG,
        0,
        "warning",
    ),
    Plant(
        "leader epochs garbled",
        lambda r: flip(r / EPOCHS, 0, 6),
        "leader_epoch_checkpoint",
        EPOCHS,
        0,
        "warning",
    ),
    # ------------------------------------------------ names
    Plant(
        "partition.metadata",
        put(f"{PLAIN}/partition.metadata", 20, 43, b""),
        "partition_metadata",
        f"{PLAIN}/partition.metadata",
        11,
        "warning",
    ),
    Plant(
        "meta.properties",
        lambda r: replaced(r / "meta.properties", "version=1", "version=9"),
        "meta_properties",
        "meta.properties",
        (BROKER / "meta.properties").read_bytes().index(b"version=1"),
        "warning",
    ),
    Plant(
        "deleted segment",
        lambda r: copied(r / LOG, r / f"{LOG}.deleted"),
        "deleted_files",
        f"{LOG}.deleted",
        None,
        "note",
    ),
    Plant(
        "stray partition",
        lambda r: copied(r / TX, r / STRAY),
        "stray_directory",
        STRAY,
        None,
        "note",
    ),
    Plant(
        "other file",
        lambda r: copied(r / LOG, r / "core"),
        "unknown_file",
        "core",
        None,
        "note",
    ),
    Plant(
        "segment alone removed",
        lambda r: (r / LOG).unlink(),
        "index_without_segment",
        INDEX,
        None,
        "note",
    ),
]


def digest(root: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        found.update(str(path).encode())
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()


@pytest.mark.parametrize("planted", PLANTS, ids=lambda planted: planted.name)
def test_damage_is_found_where_it_is(planted: Plant, tmp_path: Path) -> None:
    root = tmp_path / "broker"
    shutil.copytree(BROKER, root)
    before = digest(root)
    planted.plant(root)
    damaged = digest(root)
    assert damaged != before
    rows = LogDirectory(root).check().to_pylist()
    assert digest(root) == damaged
    found = {(row["severity"], row["code"], row["file"], row["byte"]) for row in rows}
    assert (planted.severity, planted.code, str(root / planted.file), planted.byte) in found
    others = {row["code"] for row in rows if row["severity"] != "note"} - {planted.code}
    assert others == set(planted.also)
    for row in rows:
        assert row["meaning"].endswith(".") and row["remedy"].endswith(".")
