"""Logs that grow on the disk as a broker's do: appended to, rolled, torn, deleted from, truncated. Beside the bytes stands what was written,
from which follows what a consumer gets: nothing here reads a log."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka_codecs import (
    CONTROL_RECORD_KEY,
    END_TXN_MARKER,
    LOG_ENTRY,
    OFFSET_INDEX_ENTRY,
    PRODUCER_SNAPSHOT,
    TRANSACTION_INDEX_ENTRY,
)

TIME = 1_700_000_000_000


@dataclass(frozen=True)
class Batch:
    """A batch that was written. ``values`` are of its records; ``kind``: ``plain``, ``data`` (of a transaction), ``commit``, ``abort``."""

    offset: int
    end: int
    producer: int
    kind: str
    epoch: int
    data: bytes
    values: tuple[str, ...]


@dataclass
class File:
    """A segment: its batches, and what lies after them."""

    base: int
    batches: list[Batch] = field(default_factory=list)
    rest: bytes = b""
    snapshot: bytes = b""
    aborted: bytes = b""


class Growing:
    """One partition. ``pad`` is the number of bytes that follow each value."""

    def __init__(
        self, directory: Path, r: random.Random, *, transactions: bool = True, pad: int = 0
    ) -> None:
        self.directory = directory
        self.name = directory.name
        self.r = r
        self.transactions = transactions
        self.pad = "." * pad
        self.kinds: Sequence[str] = ("commit", "abort")
        self.files = [File(0)]
        self.epoch = 0
        self.serial = 0
        self.started: dict[int, int] = {}
        self.ended: set[int] = set()
        directory.mkdir(parents=True)
        self._write(self.files[-1])

    @property
    def end(self) -> int:
        """The offset of the next record."""
        last = self.files[-1]
        return last.batches[-1].end if last.batches else last.base

    @property
    def start(self) -> int:
        """The first offset that is there."""
        return self.files[0].base

    def batches(self) -> list[Batch]:
        """All that are there."""
        return [batch for file in self.files for batch in file.batches]

    def uncommitted(self) -> list[tuple[int, str]]:
        """What a consumer gets that reads everything."""
        return [
            (batch.offset + i, value)
            for batch in self.batches()
            for i, value in enumerate(batch.values)
        ]

    def committed(self) -> list[tuple[int, str]]:
        """What a consumer gets that reads committed records."""
        out: list[tuple[int, str]] = []
        there = self.batches()
        stable = self.stable()
        for i, batch in enumerate(there):
            if batch.kind == "data":
                ends = (
                    b.kind
                    for b in there[i:]
                    if b.producer == batch.producer and b.kind in ("commit", "abort")
                )
                if next(ends, None) != "commit":
                    continue
            out += [(batch.offset + j, v) for j, v in enumerate(batch.values)]
        return [(offset, value) for offset, value in out if offset < stable]

    def stable(self) -> int:
        """The last stable offset."""
        return min(self.started.values(), default=self.end)

    # ------------------------------------------------------------ what happens

    def append(self) -> None:
        r = self.r
        producer = r.randrange(1, 4)
        begun = producer in self.started
        if not self.transactions or (not begun and r.random() < 0.5):
            self.add(0, "plain", r.randrange(1, 5))
        elif begun and r.random() < 0.5:
            first, marker = self.started.pop(producer), self.end
            kind = r.choice(self.kinds)
            self.ended.add(producer)
            if kind == "abort":
                entry = {
                    "version": 0,
                    "producer_id": producer,
                    "first_offset": first,
                    "last_offset": marker,
                    "last_stable_offset": min(self.started.values(), default=marker + 1),
                }
                self.files[-1].aborted += TRANSACTION_INDEX_ENTRY.build(entry)
            self.add(producer, kind, 1)
        else:
            self.started.setdefault(producer, self.end)
            self.add(producer, "data", r.randrange(1, 4))

    def roll(self) -> None:
        last = self.files[-1]
        if not last.batches:
            return
        last.rest = b""
        self._write(last)
        self.files.append(File(self.end, snapshot=self._snapshot()))
        self._write(self.files[-1])

    def tear(self) -> None:
        """A batch is being written: its first bytes are there, or a file was made longer in advance."""
        last = self.files[-1]
        data = self._built(0, "plain", 3)[0]
        cut = self.r.randrange(1, len(data))
        last.rest = self.r.choice([data[:cut], b"\0" * 200, data[: max(cut - 8, 0)] + b"\0" * 300])
        self._write(last)

    def delete(self) -> None:
        """Retention deletes the first segment."""
        if len(self.files) > 1:
            self._unlink(self.files.pop(0))

    def compact(self) -> None:
        """The cleaner merges the first rolled segments into a new file with the first one's name, without some batches."""
        merged = self.files[: self.r.randrange(1, 4)]
        if len(merged) == len(self.files):
            return
        batches = [b for file in merged for b in file.batches if self.r.random() < 0.7]
        for file in merged:
            self._unlink(file)
        first = File(merged[0].base, batches)
        self._write(first)
        self.files[: len(merged)] = [first]

    def truncate(self) -> None:
        """A new leader lacks the last batches. There are no transactions then."""
        offsets = [b.offset for b in self.batches()] + [self.end]
        to = self.r.choice(offsets)
        while self.files and self.files[-1].base > to:
            self._unlink(self.files.pop())
        last = self.files[-1]
        last.batches = [b for b in last.batches if b.offset < to]
        last.rest = b""
        self.epoch += 1
        self._write(last)

    # ------------------------------------------------------------ bytes

    def add(self, producer: int, kind: str, count: int) -> None:
        """Append a batch of ``kind`` (:class:`Batch`) with ``count`` records."""
        data, values = self._built(producer, kind, count)
        last = self.files[-1]
        last.rest = b""
        offset = self.end
        last.batches.append(Batch(offset, offset + count, producer, kind, self.epoch, data, values))
        self._write(last)

    def _built(self, producer: int, kind: str, count: int) -> tuple[bytes, tuple[str, ...]]:
        control = kind in ("commit", "abort")
        values = (
            [] if control else [f"{self.name}:{self.serial + i}{self.pad}" for i in range(count)]
        )
        self.serial += len(values)
        records: list[dict[str, Any]] = [
            {
                "timestamp_delta": 0,
                "offset_delta": i,
                "key": None,
                "value": value.encode(),
                "headers": [],
            }
            for i, value in enumerate(values)
        ]
        if control:
            key = CONTROL_RECORD_KEY.build({"type": kind})
            value = END_TXN_MARKER[0].build({"version": 0, "coordinator_epoch": 1})
            records = [
                {"timestamp_delta": 0, "offset_delta": 0, "key": key, "value": value, "headers": []}
            ]
        transactional = kind != "plain"
        batch = {
            "magic": 2,
            "base_offset": self.end,
            "partition_leader_epoch": self.epoch,
            "base_timestamp": TIME,
            "max_timestamp": TIME,
            "producer_id": producer if transactional else -1,
            "producer_epoch": 0 if transactional else -1,
            "base_sequence": 0 if kind == "data" else -1,
            "attributes": {"is_transactional": transactional, "is_control": control},
            "records": records,
        }
        return LOG_ENTRY.build(batch), tuple(values)

    def _snapshot(self) -> bytes:
        entries = [
            {
                "producer_id": producer,
                "producer_epoch": 0,
                "timestamp": TIME,
                "coordinator_epoch": 1 if producer in self.ended else -1,
                "current_txn_first_offset": self.started.get(producer, -1),
            }
            for producer in range(1, 4)
        ]
        return PRODUCER_SNAPSHOT.build({"version": 1, "entries": entries})

    def _write(self, file: File) -> None:
        path = self.directory / f"{file.base:020}.log"
        data = b"".join(batch.data for batch in file.batches)
        _overwrite(path, data + file.rest)
        position, entries = 0, []
        for i, batch in enumerate(file.batches):
            if i and i % 2 == 0:
                entry = {"relative_offset": batch.end - 1 - file.base, "position": position}
                entries.append(OFFSET_INDEX_ENTRY.build(entry))
            position += len(batch.data)
        path.with_suffix(".index").write_bytes(b"".join(entries) + b"\0" * 80)
        if file.aborted:
            path.with_suffix(".txnindex").write_bytes(file.aborted)
        if file.snapshot:
            path.with_suffix(".snapshot").write_bytes(file.snapshot)

    def _unlink(self, file: File) -> None:
        for path in self.directory.glob(f"{file.base:020}.*"):
            path.unlink()


def _common(one: bytes, other: bytes) -> int:
    """Return how many bytes at the start are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _overwrite(path: Path, data: bytes) -> None:
    """Bytes in the place of others, never fewer in between: somebody may be reading."""
    if not path.exists():
        path.touch()
    with path.open("r+b", buffering=0) as file:
        before = file.read()
        same = len(before) if data.startswith(before) else _common(before, data)
        file.seek(same)
        file.write(data[same:])
        file.truncate(len(data))
