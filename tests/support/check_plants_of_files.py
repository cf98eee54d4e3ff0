"""Damage of the files beside segments."""

from __future__ import annotations

import shutil
import struct

from tests.paths import SAMPLES
from tests.support.check_plants import (
    ACTIVE,
    FIRST,
    PLAIN,
    SECOND,
    THIRD,
    TX,
    Plant,
    copied,
    exchange,
    flip,
    pieces,
    put,
    replaced,
    transaction_entry,
    without_last,
    without_line,
)

BROKER = SAMPLES / "kafka-4.x"
LOG, LOG_2, LAST = (f"{PLAIN}/{base}.log" for base in (FIRST, SECOND, ACTIVE))
INDEX, TIMES = f"{PLAIN}/{FIRST}.index", f"{PLAIN}/{FIRST}.timeindex"
ABORTED = f"{TX}/{FIRST}.txnindex"
SNAPSHOT = f"{TX}/00000000000000000108.snapshot"
EPOCHS = f"{PLAIN}/leader-epoch-checkpoint"
STRAY = f"{TX}.{'0a' * 16}-stray"
LATER = f"idempotent-0/{5:020d}.snapshot"
START, RECOVERY, WATERMARK, CLEANED = (
    f"{name}-checkpoint"
    for name in (
        "log-start-offset",
        "recovery-point-offset",
        "replication-offset",
        "cleaner-offset",
    )
)
METADATA = "__cluster_metadata-0"
OLDEST, NEWEST = (
    f"{METADATA}/{name}.checkpoint" for name in (f"{0:020d}-{0:010d}", f"{60:020d}-{1:010d}")
)
QUORUM = f"{METADATA}/quorum-state"

OF_FILES = [
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
    Plant(
        "txnindex cut",
        put(ABORTED, 60, 68, b""),
        "txnindex_missing_entry",
        ABORTED,
        None,
    ),
    Plant(
        "txnindex longer",
        put(ABORTED, 68, 68, bytes(8)),
        "txnindex_length",
        ABORTED,
        68,
        "warning",
    ),
    Plant(
        "txnindex before another marker",
        put(ABORTED, 34, 68, transaction_entry(4, 3, 26, 27)),
        "txnindex_entry",
        ABORTED,
        34,
    ),
    Plant(
        "txnindex in a marker",
        put(ABORTED, 34, 68, transaction_entry(4, 8, 26, 27)),
        "txnindex_entry",
        ABORTED,
        34,
    ),
    Plant(
        "txnindex in the segment before",
        put(f"{TX}/{44:020d}.txnindex", 0, 34, transaction_entry(4, 20, 44, 45)),
        "txnindex_entry",
        f"{TX}/{44:020d}.txnindex",
        0,
    ),
    Plant(
        "txnindex in a batch of another producer",
        put(f"transactions-0/{FIRST}.txnindex", 34, 68, transaction_entry(3, 27, 37, 38)),
        "txnindex_entry",
        f"transactions-0/{FIRST}.txnindex",
        34,
    ),
    Plant(
        "txnindex of another producer",
        put(ABORTED, 0, 34, transaction_entry(5, 0, 8, 9)),
        "txnindex_entry",
        ABORTED,
        0,
    ),
    Plant("index removed", lambda r: (r / INDEX).unlink(), "index_missing", INDEX, None, "note"),
    Plant(
        "timeindex removed",
        lambda r: (r / TIMES).unlink(),
        "timeindex_missing",
        TIMES,
        None,
        "note",
    ),
    Plant(
        "timeindex of zeros",
        put(TIMES, 72, 72, bytes(120)),
        "timeindex_zero_tail",
        TIMES,
        72,
        "warning",
    ),
    Plant(
        "index of bytes that are anything",
        put(INDEX, 48, 48, b"\1" * 16384),
        "index_too_long",
        INDEX,
        8304,
        also=("index_position",),
    ),
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
    ),
    Plant(
        "directory removed",
        lambda r: shutil.rmtree(r / PLAIN),
        "partition_missing",
        RECOVERY,
        None,
        "warning",
    ),
    Plant(
        "recovery point below 0",
        lambda r: replaced(r / RECOVERY, "segments.small 0 144", "segments.small 0 -9"),
        "checkpoint_value",
        RECOVERY,
        None,
        "warning",
    ),
    Plant(
        "offset of the cleaner",
        lambda r: replaced(r / CLEANED, "compacted 0 92", "compacted 0 9999"),
        "cleaner_offset_beyond_end",
        CLEANED,
        None,
        "note",
    ),
    Plant(
        "leader epochs disordered",
        lambda r: replaced(r / EPOCHS, "2 144", "0 144"),
        "leader_epoch_checkpoint",
        EPOCHS,
        None,
        "warning",
    ),
    Plant(
        "leader epoch of a batch below none",
        put(LOG, 12, 16, struct.pack(">i", -2)),
        "leader_epoch_negative",
        LOG,
        0,
        "warning",
    ),
    Plant(
        "leader epoch that begins later",
        lambda r: replaced(r / EPOCHS, "2 144", "2 150"),
        "leader_epoch_beyond_end",
        EPOCHS,
        None,
        "warning",
    ),
    Plant(
        "snapshot that knows of a longer log",
        lambda r: copied(r / PLAIN / f"{144:020d}.snapshot", r / PLAIN / f"{150:020d}.snapshot"),
        "snapshot_beyond_end",
        f"{PLAIN}/{150:020d}.snapshot",
        None,
        "warning",
    ),
    Plant(
        "timeindex of bytes that are anything",
        put(TIMES, 72, 72, b"\1" * 24000),
        "timeindex_too_long",
        TIMES,
        12456,
        also=("timeindex_offset",),
    ),
    # ------------------------------------------------ metadata
    Plant(
        "newest metadata snapshot",
        lambda r: flip(r / NEWEST, 100),
        "metadata_snapshot_damaged",
        NEWEST,
        0,
    ),
    Plant(
        "older metadata snapshot",
        lambda r: flip(r / OLDEST, 100),
        "metadata_snapshot_damaged",
        OLDEST,
        0,
        "warning",
    ),
    Plant(
        "metadata snapshot without its footer",
        lambda r: without_last(r / NEWEST),
        "metadata_snapshot_incomplete",
        NEWEST,
        len(b"".join(pieces(BROKER / NEWEST)[:-1])),
    ),
    Plant(
        "quorum-state",
        put(QUORUM, 0, 1, b"["),
        "quorum_state",
        QUORUM,
        0,
    ),
    # ------------------------------------------------ names
    Plant(
        "id of another topic",
        lambda r: copied(r / "codecs-0/partition.metadata", r / f"{PLAIN}/partition.metadata"),
        "topic_id",
        f"{PLAIN}/partition.metadata",
        None,
    ),
    Plant(
        "partition twice",
        lambda r: copied(r / "codecs-1", r / "codecs-01"),
        "partition_twice",
        "codecs-01",
        None,
    ),
    Plant(
        "link to nothing",
        lambda r: (r / f"{PLAIN}/{200:020d}.log").symlink_to("gone"),
        "no_segment",
        f"{PLAIN}/{200:020d}.log",
        None,
    ),
    Plant(
        "name beyond all offsets",
        lambda r: (r / f"{PLAIN}/{'9' * 20}.log").touch(),
        "segment_name",
        f"{PLAIN}/{'9' * 20}.log",
        None,
    ),
    Plant(
        "index of a later segment",
        lambda r: (r / f"{PLAIN}/{144:020d}.index").touch(),
        "index_without_segment",
        f"{PLAIN}/{144:020d}.index",
        None,
        "warning",
    ),
    Plant(
        "index of a segment inside the log",
        lambda r: (r / f"{PLAIN}/{60:020d}.index").touch(),
        "index_without_segment",
        f"{PLAIN}/{60:020d}.index",
        None,
    ),
    Plant(
        "index with entries of a later segment",
        lambda r: copied(r / INDEX, r / f"{PLAIN}/{144:020d}.index"),
        "index_without_segment",
        f"{PLAIN}/{144:020d}.index",
        None,
    ),
    Plant(
        "index of an empty later segment that the log had passed",
        lambda r: (r / f"{PLAIN}/{140:020d}.index").touch(),
        "index_without_segment",
        f"{PLAIN}/{140:020d}.index",
        None,
    ),
    Plant(
        "segment that the cleaner writes",
        lambda r: copied(r / LOG, r / f"{LOG}.cleaned"),
        "cleaned_files",
        f"{LOG}.cleaned",
        None,
        "note",
    ),
    Plant(
        "segment that is to be put in the place of another",
        lambda r: copied(r / LOG, r / f"{LOG}.swap"),
        "swap_files",
        f"{LOG}.swap",
        None,
        "note",
    ),
    Plant(
        "checkpoint that was not written to its end",
        lambda r: copied(r / START, r / f"{START}.tmp"),
        "temporary_files",
        f"{START}.tmp",
        None,
        "note",
    ),
    Plant(
        "partition that is about to be deleted",
        lambda r: copied(r / TX, r / f"{TX}.{'0a' * 16}-delete"),
        "delete_directory",
        f"{TX}.{'0a' * 16}-delete",
        None,
        "note",
    ),
    Plant(
        "partition that moves to another disk",
        lambda r: copied(r / TX, r / f"{TX}.{'0a' * 16}-future"),
        "future_directory",
        f"{TX}.{'0a' * 16}-future",
        None,
        "note",
    ),
    Plant(
        "file in a partition",
        lambda r: (r / PLAIN / "notes").touch(),
        "unknown_file",
        f"{PLAIN}/notes",
        None,
        "note",
    ),
    Plant(
        "partition.metadata",
        put(f"{PLAIN}/partition.metadata", 20, 43, b""),
        "partition_metadata",
        f"{PLAIN}/partition.metadata",
        11,
    ),
    Plant(
        "topic id zero",
        put(f"{PLAIN}/partition.metadata", 21, 43, b"A" * 22),
        "partition_metadata",
        f"{PLAIN}/partition.metadata",
        None,
    ),
    Plant(
        "meta.properties",
        lambda r: replaced(r / "meta.properties", "version=1", "version=9"),
        "meta_properties",
        "meta.properties",
        (BROKER / "meta.properties").read_bytes().index(b"version=1"),
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
        "clean shutdown removed",
        lambda r: (r / ".kafka_cleanshutdown").unlink(),
        "not_stopped",
        ".",
        None,
        "note",
    ),
    Plant(
        "directory that is no partition's",
        lambda r: (r / "lost+found").mkdir(),
        "unknown_directory",
        "lost+found",
        None,
    ),
    Plant(
        "segment alone removed",
        lambda r: (r / LOG_2).unlink(),
        "segment_missing",
        f"{PLAIN}/{THIRD}.log",
        0,
    ),
    Plant(
        "first segment alone removed",
        lambda r: (r / LOG).unlink(),
        "segment_missing",
        LOG_2,
        0,
    ),
]
