"""Damage of segments: their batches, tails, order and names."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from tests.paths import SAMPLES
from tests.support.check_plants import (
    ACTIVE,
    FIRST,
    PLAIN,
    SECOND,
    THIRD,
    TX,
    Plant,
    change,
    copy_segment,
    flip,
    pieces,
    put,
    rearranged,
    remove_segment,
    rename_segment,
    renumbered,
    restamp,
)

SIZE = 383
"""Bytes of the first batches."""
LOG, LOG_2, LAST = f"{PLAIN}/{FIRST}.log", f"{PLAIN}/{SECOND}.log", f"{PLAIN}/{ACTIVE}.log"
ACTIVE_END = 3 * 389


def foreign(root: Path) -> bytes:
    """A whole batch of another partition: its offsets are 90 to 97."""
    return pieces(root / TX / f"{81:020d}.log")[2]


MARKERS = f"{TX}/{FIRST}.log"
COMMIT = 1132
"""Position of the first commit marker there."""
METADATA = f"__cluster_metadata-0/{FIRST}.log"
EPOCHS = f"{PLAIN}/leader-epoch-checkpoint"


def control(file: str, position: int, data: bytes) -> Callable[[Path], None]:
    """Other bytes from the length of the key of the first control record of a batch on, under a fitting checksum."""

    def plant(root: Path) -> None:
        start = position + 65
        change(root / file, start, start + len(data), data)
        restamp(root / file, position)

    return plant


def epoch_without_file(root: Path) -> None:
    """The second batch has a later epoch than the third one, and no file tells which is right."""
    (root / EPOCHS).unlink()
    change(root / LOG, SIZE + 12, SIZE + 16, struct.pack(">i", 9))


PRODUCERS = f"idempotent-0/{FIRST}.log"
LAST_OF_PRODUCER = len(b"".join(pieces(SAMPLES / "kafka-4.x" / PRODUCERS)[:-1]))
OF_SEGMENTS = [
    # ------------------------------------------------ batches
    Plant("bit in a value", lambda r: flip(r / LOG, 700, 3), "batch_checksum", LOG, SIZE),
    Plant("bit in a checksum", lambda r: flip(r / LOG, SIZE + 18), "batch_checksum", LOG, SIZE),
    Plant("bit in the attributes", lambda r: flip(r / LOG_2, 22), "batch_checksum", LOG_2, 0),
    Plant("version 3", lambda r: flip(r / LOG, SIZE + 16), "batch_magic", LOG, SIZE),
    Plant(
        "count of -1",
        lambda r: restamp(r / LOG, SIZE, record_count=-1),
        "batch_count",
        LOG,
        SIZE,
    ),
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
    ),
    Plant("bytes cut out", put(LOG, 500, 600, b""), "unreadable_bytes", LOG, SIZE),
    Plant(
        "whole batches cut out",
        lambda r: rearranged(r / LOG, [0, 1, 4, 5, 6]),
        "offsets_missing",
        LOG,
        2 * SIZE,
    ),
    # ------------------------------------------------ control records and leader epochs
    Plant(
        "marker without a key",
        control(MARKERS, COMMIT, b"\x01\x14" + bytes(10)),
        "control_record",
        MARKERS,
        COMMIT,
    ),
    Plant(
        "marker with a short key",
        control(MARKERS, COMMIT, b"\x04\0\0\x10" + bytes(8)),
        "control_record",
        MARKERS,
        COMMIT,
    ),
    Plant(
        "marker with a version below 0",
        control(MARKERS, COMMIT, b"\x08\xff\xff"),
        "control_record",
        MARKERS,
        COMMIT,
    ),
    Plant(
        "marker of an unknown type",
        control(MARKERS, COMMIT, b"\x08\0\0\0\x63"),
        "control_record",
        MARKERS,
        COMMIT,
    ),
    Plant(
        "leader change of a producer",
        control(MARKERS, COMMIT, b"\x08\0\0\0\x02"),
        "control_record",
        MARKERS,
        COMMIT,
    ),
    Plant(
        "marker whose value is short",
        control(MARKERS, COMMIT, b"\x10\0\0\0\1\0\0\0\0\4\0\0"),
        "control_record",
        MARKERS,
        COMMIT,
    ),
    Plant(
        "leader change with too few voters",
        control(METADATA, 0, b"\x08\0\0\0\2\x26\0\0\0\0\0\1\x7f"),
        "control_record",
        METADATA,
        0,
    ),
    Plant(
        "control record of a later Kafka",
        control(METADATA, 0, b"\x08\0\0\0\x63"),
        "control_record",
        METADATA,
        0,
        "note",
    ),
    Plant(
        "leader epoch that descends without a file",
        epoch_without_file,
        "leader_epoch_descends",
        LOG,
        2 * SIZE,
        "warning",
    ),
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
    ),
    Plant(
        "torn, and zeros to the end",
        put(LAST, 900, ACTIVE_END, bytes(4096)),
        "torn_tail",
        LAST,
        778,
    ),
    Plant(
        "made longer",
        put(LAST, ACTIVE_END, ACTIVE_END, bytes(4096)),
        "zero_tail",
        LAST,
        ACTIVE_END,
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
    ),
    Plant(
        "batch in the segment before",
        lambda r: change(r / LOG, 0, SIZE, pieces(r / LOG_2)[4]),
        "batch_in_wrong_segment",
        LOG,
        0,
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
    ),
    Plant(
        "first batches removed",
        lambda r: rearranged(r / LOG, [2, 3, 4, 5, 6]),
        "offsets_missing",
        LOG,
        0,
    ),
    Plant(
        "first segment removed",
        lambda r: remove_segment(r / PLAIN, 0),
        "segment_missing",
        LOG_2,
        0,
    ),
    Plant(
        "all segments removed",
        lambda r: [remove_segment(r / PLAIN, base) for base in (0, 42, 84, 126)],
        "segment_missing",
        PLAIN,
        None,
    ),
    # ------------------------------------------------ producers
    Plant(
        "batch taken out, and offsets that follow",
        lambda r: renumbered(r / PRODUCERS, [0, 1, 3, 4, 5, 6, 7]),
        "sequences_missing",
        PRODUCERS,
        428,
        "warning",
        ("timeindex_offset", "high_watermark_beyond_end", "recovery_point_beyond_end"),
    ),
    Plant(
        "batch there again under other offsets",
        lambda r: renumbered(r / PRODUCERS, [0, 1, 2, 2, 3, 4, 5, 6]),
        "sequences_twice",
        PRODUCERS,
        466,
        "warning",
        ("timeindex_timestamp", "leader_epoch_start"),
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
        lambda r: copy_segment(r / PLAIN, 42, 30, ".log"),
        "segments_overlap",
        f"{PLAIN}/{30:020d}.log",
        0,
    ),
    Plant(
        "segment overlaps, with its indexes",
        lambda r: copy_segment(r / PLAIN, 42, 30, ".log", ".index", ".timeindex"),
        "segments_overlap",
        f"{PLAIN}/{30:020d}.log",
        0,
    ),
    Plant(
        "segment of transactions overlaps",
        lambda r: copy_segment(r / TX, 44, 20, ".log", ".index", ".timeindex", ".txnindex"),
        "segments_overlap",
        f"{TX}/{20:020d}.log",
        0,
    ),
    Plant(
        "segment renamed to a lower offset",
        lambda r: rename_segment(r / PLAIN, 42, 30),
        "segments_overlap",
        LOG,
        5 * SIZE,
    ),
    Plant(
        "segment of transactions renamed to a lower offset",
        lambda r: rename_segment(r / TX, 44, 20),
        "segments_overlap",
        f"{TX}/{FIRST}.log",
        1210,
    ),
    # ------------------------------------------------ headers whose checksums are right
    Plant(
        "batch that ends before it begins",
        lambda r: restamp(r / LOG, 2 * SIZE, last_offset_delta=-3),
        "offsets_reversed",
        LOG,
        2 * SIZE,
    ),
    Plant(
        "batch that says less offsets than it has records",
        lambda r: restamp(r / LOG, 6 * SIZE, record_count=-(1 << 31)),
        "batch_count",
        LOG,
        6 * SIZE,
    ),
    Plant("bit in the last batch", lambda r: flip(r / LAST, 900), "batch_checksum", LAST, 778),
    Plant(
        "offset that is too far",
        put(LAST, 778, 786, struct.pack(">q", 1 << 40)),
        "offset_too_far",
        LAST,
        778,
    ),
    Plant(
        "offset below the segment",
        put(LAST, 0, 8, struct.pack(">q", 12)),
        "first_offset_below_name",
        LAST,
        0,
    ),
    Plant(
        "offset below 0",
        put(LOG_2, SIZE, SIZE + 8, struct.pack(">q", -1)),
        "batch_in_wrong_segment",
        LOG_2,
        SIZE,
    ),
    Plant(
        "sequence that comes again",
        lambda r: restamp(r / PRODUCERS, LAST_OF_PRODUCER, base_sequence=0),
        "sequences_twice",
        PRODUCERS,
        LAST_OF_PRODUCER,
        "warning",
    ),
]
