"""Partition directories as brokers leave them: segments with rising offsets, and the index files beside them."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafka_codecs import MESSAGE_V0, MESSAGE_V1, RECORD_BATCH, Compression
from kafka_log import Batch, SegmentReader, discover

START = 1_700_000_000_000


def write_log(
    directory: Path,
    r: random.Random,
    *,
    segments: int = 3,
    batches: int = 8,
    ordered: bool = False,
    gaps: bool = True,
    every: int = 200,
    whole_sets: bool = False,
    preallocated: int = 0,
) -> Path:
    """A partition directory of all versions and codecs; v0 and v1 come first, as they did in time.

    Index files have an entry about every so many bytes. ``whole_sets``: offsets of entries are those of the last batch of
    two, as brokers up to 4.0 have it. ``preallocated``: entries of zeros after the others.
    """
    directory.mkdir(parents=True)
    offset = r.randrange(1000)
    clock = START
    for number in range(segments):
        base = offset
        data = b""
        for _ in range(batches):
            if gaps and r.random() < 0.3:
                offset += r.randrange(1, 40)  # what compaction left out
            clock += r.randrange(5) if ordered else r.randrange(-2000, 2000)
            entry, offset = _entry(min(number, 2), offset, clock, r, ordered, gaps)
            data += entry
        path = directory / f"{base:020d}.log"
        path.write_bytes(data)
        write_indexes(path, base, every=every, whole_sets=whole_sets, zeros=preallocated)
    return directory


def _entry(
    magic: int, offset: int, clock: int, r: random.Random, ordered: bool, gaps: bool
) -> tuple[bytes, int]:
    """An entry, and the offset after it."""
    count = r.randrange(1, 6)
    deltas = [0]
    for _ in range(count - 1):
        deltas.append(deltas[-1] + (r.randrange(1, 4) if gaps else 1))
    times = [clock + (i if ordered else r.randrange(-50, 50)) for i in range(count)]
    values = [r.randbytes(r.randrange(60)) if r.random() < 0.9 else None for _ in deltas]
    if magic == 2:
        records = [
            {"timestamp_delta": t - times[0], "offset_delta": d, "key": b"k", "value": v}
            for d, t, v in zip(deltas, times, values, strict=True)
        ]
        last = deltas[-1] + (r.randrange(3) if gaps else 0)
        batch = {
            "base_offset": offset,
            "partition_leader_epoch": 0,
            "attributes": {"compression": r.choice(list(Compression))},
            "last_offset_delta": last,
            "base_timestamp": times[0],
            "max_timestamp": max(times),
            "records": records,
        }
        return RECORD_BATCH.build(batch), offset + last + 1
    layout = (MESSAGE_V0, MESSAGE_V1)[magic]
    if r.random() < 0.5:
        message = _message(magic, offset, times[0]) | {"key": b"k", "value": values[0]}
        return layout.build(message), offset + 1
    last = offset + deltas[-1]
    inner = [
        _message(magic, d if magic else offset + d, t) | {"key": b"k", "value": v}
        for d, t, v in zip(deltas, times, values, strict=True)
    ]
    codec = r.choice([Compression.GZIP, Compression.SNAPPY, Compression.LZ4])
    wrapper = _message(magic, last, max(times), codec) | {"key": None, "messages": inner}
    return layout.build(wrapper), last + 1


def _message(
    magic: int, offset: int, time: int, codec: Compression = Compression.NONE
) -> dict[str, Any]:
    item: dict[str, Any] = {"offset": offset, "magic": magic, "attributes": {"compression": codec}}
    return item | {"timestamp": time} if magic else item


def write_indexes(
    path: Path, base: int, *, every: int, whole_sets: bool = False, zeros: int = 0
) -> None:
    """The index files of a segment, as a broker writes them while it appends."""
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    highest: tuple[int, int] = (-1, 0)
    since = 0
    sets = list(SegmentReader(path))
    step = 2 if whole_sets else 1
    for i in range(0, len(sets), step):
        appended: Sequence[Batch] = sets[i : i + step]
        for batch in appended:
            if batch.max_timestamp > highest[0]:
                highest = batch.max_timestamp, batch.last_offset
        if since > every:
            offsets.append((appended[-1].last_offset - base, appended[0].position))
            if highest[0] >= 0 and (not times or highest[0] > times[-1][0]):
                times.append((highest[0], highest[1] - base))
            since = 0
        since += sum(batch.size for batch in appended)
    if not zeros and highest[0] >= 0 and (not times or highest[0] > times[-1][0]):
        times.append((highest[0], highest[1] - base))  # when the segment is closed
    put_offsets(path, [*offsets, *[(0, 0)] * zeros])
    put_times(path, [*times, *[(0, 0)] * zeros])


def put_offsets(path: Path, entries: Sequence[tuple[int, int]]) -> None:
    data = b"".join(struct.pack(">ii", *entry) for entry in entries)
    path.with_suffix(".index").write_bytes(data)


def put_times(path: Path, entries: Sequence[tuple[int, int]]) -> None:
    data = b"".join(struct.pack(">qi", *entry) for entry in entries)
    path.with_suffix(".timeindex").write_bytes(data)


def get_offsets(path: Path) -> list[tuple[int, int]]:
    return list(struct.iter_unpack(">ii", path.with_suffix(".index").read_bytes()))


def get_times(path: Path) -> list[tuple[int, int]]:
    return list(struct.iter_unpack(">qi", path.with_suffix(".timeindex").read_bytes()))


def rows_of(path: Path) -> list[tuple[int, int]]:
    """(offset, timestamp) of all records below a path, by the reference codecs."""
    return [
        (record.offset, record.timestamp)
        for partition in discover(path)
        for segment in partition.segments
        for batch in SegmentReader(segment.path)
        if not batch.is_control
        for record in batch.records
    ]
