"""Made-up histories of a partition: producers whose transactions interleave, over several segments, some of which retention
has deleted. Beside the bytes stands what happened, from which follows what a consumer gets: nothing here reads a log."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka_codecs import (
    CONTROL_RECORD_KEY,
    END_TXN_MARKER,
    LOG_ENTRY,
    PRODUCER_SNAPSHOT,
    TRANSACTION_INDEX_ENTRY,
)

TIME = 1_700_000_000_000


@dataclass
class Open:
    """A transaction that has begun and not ended: its first offset, and the offsets of its records."""

    first: int
    offsets: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Written:
    """A batch that was written into the segment ``base``. ``kind``: ``plain``, ``data`` (of a transaction), ``commit``, ``abort``."""

    base: int
    offset: int
    count: int
    producer: int
    kind: str
    data: bytes


@dataclass
class History:
    """What was written, and what became of it. ``log_start`` is the first offset that is still on the disk."""

    directory: Path
    batches: list[Written] = field(default_factory=list)
    log_start: int = 0
    records: set[int] = field(default_factory=set)
    markers: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    last_stable_offset: int | None = None

    def uncommitted(self) -> list[int]:
        """What a consumer gets that reads everything."""
        return sorted(o for o in self.records if o >= self.log_start)

    def committed(self) -> list[int]:
        """What a consumer gets that reads committed records."""
        end = self.last_stable_offset
        there = (o for o in self.uncommitted() if o not in self.aborted)
        return [o for o in there if end is None or o < end]


def history(
    directory: Path, seed: int, *, snapshots: bool = True, indexes: bool = False
) -> History:
    """A history, written into a partition directory. Without ``snapshots`` no producer snapshot lies beside a log whose
    first segments were deleted. With ``indexes`` there are transaction indexes, and sometimes the snapshot of a broker that was stopped,
    after which it may have gone on."""
    r = random.Random(seed)
    made = History(directory)
    producers = {number: r.randrange(3) for number in range(1, r.randrange(2, 6))}
    started: dict[int, Open] = {}
    ended: set[int] = set()
    aborts: dict[int, list[bytes]] = {}
    snapshot_of: dict[int, bytes] = {}
    segments: dict[int, list[bytes]] = {0: []}
    base = offset = 0
    for _ in range(r.randrange(4, 40)):
        if r.random() < 0.15 and segments[base]:
            base = offset
            segments[base] = []
            snapshot_of[base] = _snapshot(producers, started, ended)
        elif indexes and r.random() < 0.1:
            snapshot_of[offset] = _snapshot(producers, started, ended)
        producer = r.choice([0, *producers])
        transaction = started.get(producer)
        if producer == 0 or (transaction is None and r.random() < 0.2):
            data = _batch(offset, r, producer, producers.get(producer, -1), transactional=False)
            count, kind = data["last"] + 1, "plain"
            made.records |= set(range(offset, offset + count))
        elif transaction is not None and r.random() < 0.4:
            commit = r.random() < 0.5
            if not commit and r.random() < 0.3:
                producers[producer] += 1  # fenced: the marker has the next epoch
            data = _marker(offset, producer, producers[producer], commit)
            count, kind = 1, "commit" if commit else "abort"
            made.markers.add(offset)
            if not commit:
                made.aborted |= set(transaction.offsets)
            del started[producer]
            ended.add(producer)
            if not commit:
                first = min((t.first for t in started.values()), default=offset + 1)
                aborts.setdefault(base, []).append(
                    TRANSACTION_INDEX_ENTRY.build(
                        {
                            "version": 0,
                            "producer_id": producer,
                            "first_offset": transaction.first,
                            "last_offset": offset,
                            "last_stable_offset": first,
                        }
                    )
                )
        else:
            data = _batch(offset, r, producer, producers[producer], transactional=True)
            count, kind = data["last"] + 1, "data"
            new = set(range(offset, offset + count))
            made.records |= new
            started.setdefault(producer, Open(offset)).offsets.extend(sorted(new))
        built = LOG_ENTRY.build(data["batch"])
        made.batches.append(Written(base, offset, count, producer, kind, built))
        segments[base].append(built)
        offset += count + (r.randrange(3) if r.random() < 0.1 else 0)  # compaction leaves gaps
    made.last_stable_offset = min((t.first for t in started.values()), default=None)
    _write(made, segments, snapshot_of, r, snapshots)
    if indexes:
        if r.random() < 0.3:
            stopped = made.directory / f"{offset:020}.snapshot"
            stopped.write_bytes(_snapshot(producers, started, ended))
        for at, snapshot in snapshot_of.items():
            if at > base:
                (made.directory / f"{at:020}.snapshot").write_bytes(snapshot)
        for at, entries in aborts.items():
            if at >= made.log_start:
                (made.directory / f"{at:020}.txnindex").write_bytes(b"".join(entries))
    return made


def _write(
    made: History,
    segments: dict[int, list[bytes]],
    snapshot_of: dict[int, bytes],
    r: random.Random,
    snapshots: bool,
) -> None:
    bases = sorted(segments)
    if len(bases) > 1 and r.random() < 0.4:
        bases = bases[r.randrange(1, len(bases)) :]
    made.log_start = bases[0]
    made.directory.mkdir(parents=True)
    for base in bases:
        (made.directory / f"{base:020}.log").write_bytes(b"".join(segments[base]))
        if snapshots and base in snapshot_of:
            (made.directory / f"{base:020}.snapshot").write_bytes(snapshot_of[base])


def _batch(
    offset: int, r: random.Random, producer: int, epoch: int, *, transactional: bool
) -> dict[str, Any]:
    count = r.randrange(1, 4)
    records = [
        {"timestamp_delta": 0, "offset_delta": i, "key": None, "value": b"v", "headers": []}
        for i in range(count)
    ]
    attributes = {
        "is_transactional": transactional,
        "compression": r.choice(["none", "none", "gzip"]),
    }
    batch = {"magic": 2, "base_offset": offset, "base_timestamp": TIME, "max_timestamp": TIME}
    whose = {"producer_id": producer or -1, "producer_epoch": epoch, "base_sequence": 0}
    built = {**batch, **whose, "attributes": attributes, "records": records}
    return {"batch": built, "last": count - 1}


def _marker(offset: int, producer: int, epoch: int, commit: bool) -> dict[str, Any]:
    key = CONTROL_RECORD_KEY.build({"type": "commit" if commit else "abort"})
    record = {
        "timestamp_delta": 0,
        "offset_delta": 0,
        "key": key,
        "value": END_TXN_MARKER[0].build({"version": 0, "coordinator_epoch": 1}),
        "headers": [],
    }
    batch = {
        "magic": 2,
        "base_offset": offset,
        "base_timestamp": TIME,
        "max_timestamp": TIME,
        "producer_id": producer,
        "producer_epoch": epoch,
        "attributes": {"is_transactional": True, "is_control": True},
        "records": [record],
    }
    return {"batch": batch, "last": 0}


def _snapshot(producers: dict[int, int], started: dict[int, Open], ended: set[int]) -> bytes:
    entries = [
        {
            "producer_id": producer,
            "producer_epoch": epoch,
            "timestamp": TIME,
            "coordinator_epoch": 1 if producer in ended else -1,
            "current_txn_first_offset": started[producer].first if producer in started else -1,
        }
        for producer, epoch in producers.items()
    ]
    return PRODUCER_SNAPSHOT.build({"version": 1, "entries": entries})
