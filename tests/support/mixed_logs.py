"""Partitions with everything that a selection asks about, and what a naive reader says of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_codecs import CONTROL_RECORD_KEY, END_TXN_MARKER, LOG_ENTRY
from kafka_log import Batch, Record, SegmentReader, discover
from kafka_log.logs.offset_ranges import within_offsets
from kafka_log.segment.ranges import EVERYTHING, Range

START = 1_700_000_000_000
KEYS = (None, b"", b"a", b"b", b"\xff\x00")
NAMES = ("a", "b", "\u00e9")
VALUES = (None, b"", b"1", b"2")
PRODUCERS = (-1, 1, 2, 3)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def mixed_log(directory: Path, seed: int, *, segments: int = 3, entries: int = 8) -> Path:
    """A partition: messages of v0 and v1 first, also compressed, then batches of several producers, transactions and markers."""
    r = random.Random(seed)
    directory.mkdir(parents=True)
    offset, begun = r.randrange(20), set[int]()
    for number in range(segments):
        base, data = offset, b""
        for _ in range(entries):
            offset += r.choice((0, 0, 0, 3))
            made = _message(r, offset, r.randrange(2)) if number == 0 else _batch(r, offset, begun)
            data += LOG_ENTRY.build(made[0])
            offset = made[1]
        (directory / f"{base:020}.log").write_bytes(data)
    return directory


def _message(r: random.Random, offset: int, magic: int) -> tuple[dict[str, Any], int]:
    def plain(at: int) -> dict[str, Any]:
        one = {"offset": at, "magic": magic, "attributes": {"compression": "none"}}
        one |= {"timestamp": START + r.randrange(100)} if magic else {}
        return one | {"key": r.choice(KEYS), "value": r.choice(VALUES)}

    codec, count = r.choice(CODECS[:4]), r.randrange(1, 4)
    if codec == "none":
        return plain(offset), offset + 1
    inner = [plain(i if magic else offset + i) for i in range(count)]
    wrapper = plain(offset + count - 1) | {"attributes": {"compression": codec}, "key": None}
    del wrapper["value"]
    if magic:
        wrapper["timestamp"] = max(one["timestamp"] for one in inner)
    return wrapper | {"messages": inner}, offset + count


def _batch(r: random.Random, offset: int, begun: set[int]) -> tuple[dict[str, Any], int]:
    producer = r.choice(PRODUCERS)
    transactional = producer > 1
    if producer in begun and r.random() < 0.4:
        begun.discard(producer)
        return _marker(offset, producer, r.choice(("commit", "abort"))), offset + 1
    if transactional:
        begun.add(producer)
    times = [START + r.randrange(100) for _ in range(r.randrange(1, 5))]
    deltas = sorted(r.sample(range(8), len(times)))
    records = [
        {
            "timestamp_delta": time - times[0],
            "offset_delta": delta,
            "key": r.choice(KEYS),
            "value": r.choice(VALUES),
            "headers": [
                {"key": r.choice(NAMES), "value": r.choice(VALUES)} for _ in range(r.randrange(4))
            ],
        }
        for time, delta in zip(times, deltas, strict=True)
    ]
    attributes = {"compression": r.choice(CODECS), "is_transactional": transactional}
    last = deltas[-1] + r.randrange(2)
    return _of(offset, producer, attributes, records, times, last), offset + last + 1


def _of(
    offset: int, producer: int, attributes: Any, records: Any, times: list[int], last: int
) -> dict[str, Any]:
    times_of = {"base_timestamp": times[0], "max_timestamp": max(times), "last_offset_delta": last}
    whose = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
    batch = {"magic": 2, "base_offset": offset, "attributes": attributes, "records": records}
    return batch | times_of | whose


def _marker(offset: int, producer: int, kind: str) -> dict[str, Any]:
    record = {
        "timestamp_delta": 0,
        "offset_delta": 0,
        "key": CONTROL_RECORD_KEY.build({"type": kind}),
        "value": END_TXN_MARKER[0].build({"version": 0, "coordinator_epoch": 1}),
        "headers": [],
    }
    attributes = {"is_transactional": True, "is_control": True}
    return _of(offset, producer, attributes, [record], [START + 50], 0)


# ---------------------------------------------------------------- what a naive reader says


@dataclass(frozen=True)
class Seen:
    """A record in its batch."""

    batch: Batch
    record: Record


def seen(directory: Path, policy: str = "kafka", files_of: Range = EVERYTHING) -> list[Seen]:
    """All records, by the reference codecs; of the files that may have some offsets by their names."""
    (partition,) = discover(directory)
    return [
        Seen(batch, record)
        for segment in within_offsets(partition.segments, files_of)
        for batch in SegmentReader(
            segment.path, policy=policy, tail=segment.tail, size=segment.size
        )
        for record in batch.records
    ]


def committed(every: Iterable[Seen]) -> Iterator[Seen]:
    """What a consumer gets that reads committed records: those of transactions that end in a commit, in a log without earlier ones."""
    every = list(every)
    begun: dict[int, list[Seen]] = {}
    gone: set[int] = set()
    for one in every:
        if not one.batch.is_transactional:
            continue
        if not one.batch.is_control:
            begun.setdefault(one.batch.producer_id, []).append(one)
            continue
        of = begun.pop(one.batch.producer_id, [])
        assert one.record.control is not None
        if one.record.control.type == "ABORT":
            gone |= {other.record.offset for other in of}
    stable = min((of[0].batch.base_offset or 0 for of in begun.values()), default=1 << 62)
    for one in every:
        if one.record.offset < stable and one.record.offset not in gone:
            yield one


def naive(every: Iterable[Seen], filters: dict[str, Any]) -> list[int]:
    """The offsets of the records that filters want, one after the other and in the plainest way."""
    if filters.get("isolation") == "read_committed":
        every = committed(every)
    return [one.record.offset for one in every if _wanted(one, filters)]


def _wanted(one: Seen, filters: dict[str, Any]) -> bool:
    batch, record = one.batch, one.record
    (low, high), (begin, end) = (
        filters.get(name) or (None, None) for name in ("offsets", "timestamps")
    )
    if batch.is_control and not filters.get("control_records"):
        return False
    if (low is not None and record.offset < low) or (high is not None and record.offset >= high):
        return False
    if (begin is not None and record.timestamp < begin) or (
        end is not None and record.timestamp >= end
    ):
        return False
    if filters.get("keys") is not None and record.key not in filters["keys"]:
        return False
    if filters.get("producers") is not None and batch.producer_id not in filters["producers"]:
        return False
    for header in filters.get("headers") or ():
        if isinstance(header, str):
            if header not in [name for name, _ in record.headers]:
                return False
        elif header not in record.headers:
            return False
    return True
