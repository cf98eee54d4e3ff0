"""Random histories of a log directory, in the steps of a broker: each renames, creates or cuts files one after the other. Beside the
files stands which records they have: nothing here reads a log.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from kafka_codecs import LEADER_EPOCH_CHECKPOINT, LOG_ENTRY
from kafka_codecs import PARTITION_METADATA as METADATA
from kafka_log.logs.names import LEADER_EPOCHS

TIME = 1_700_000_000_000
_NAMESPACE = UUID(int=1)

Record = tuple[int, bytes]
"""Offset and value. No two records that were written have the same value."""


@dataclass(frozen=True)
class WrittenBatch:
    """A batch: first and last offset, leader epoch, records that are left, and bytes."""

    base: int
    last: int
    epoch: int
    records: tuple[Record, ...]
    data: bytes = field(repr=False)


def _encode(base: int, last: int, epoch: int, records: tuple[Record, ...]) -> WrittenBatch:
    """Return a batch. A broker keeps its first and last offset if the cleaner removes records."""
    entries = [
        {
            "timestamp_delta": 0,
            "offset_delta": offset - base,
            "key": None,
            "value": value,
            "headers": [],
        }
        for offset, value in records
    ]
    fields: Any = {
        "magic": 2,
        "base_offset": base,
        "last_offset_delta": last - base,
        "partition_leader_epoch": epoch,
        "base_timestamp": TIME,
        "max_timestamp": TIME,
        "attributes": {},
        "records": entries,
    }
    return WrittenBatch(base, last, epoch, records, LOG_ENTRY.build(fields))


@dataclass
class LogFile:
    """A segment."""

    base: int
    batches: list[WrittenBatch] = field(default_factory=list)


class BrokerHistory:
    """The partition ``t-0`` of a log directory. The steps in :attr:`steps` yield after each change
    of a file, so that a reader may look there.

    Args:
        root: The log directory.
        r: Source of all choices.
        has_topic_id: Whether topics have ids, as since Kafka 2.8.
        has_epochs: Whether the log has the file with leader epochs. Without it, truncations are clean: the new epoch is the highest.
        deletes_at_once: Whether files are deleted when they leave the log, instead of later.

    Attributes:
        end: Offset of the next record.
        truncations: How often records were cut off, or the topic was created anew.
        removals: The same, and how often retention has deleted records.
        written: All records that were ever in the log.
    """

    def __init__(
        self,
        root: Path,
        r: random.Random,
        *,
        has_topic_id: bool,
        has_epochs: bool = True,
        deletes_at_once: bool = False,
    ) -> None:
        self.directory = root / "t-0"
        self.r = r
        self.has_topic_id = has_topic_id
        self.has_epochs = has_epochs
        self.deletes_at_once = deletes_at_once
        self.end = self.serial = self.topics = self.truncations = self.removals = 0
        self.written: set[Record] = set()
        self.files: list[LogFile] = []
        self.epochs: list[tuple[int, int]] = []
        self.epoch = 0
        self.steps: dict[str, Callable[[], Iterator[None]]] = {
            "append": self.append,
            "roll": self.roll,
            "elect": self.elect,
            "retain": self.retain,
            "compact": self.compact,
            "truncate": self.truncate,
            "recreate": self.recreate,
        }
        for _ in self._create():
            pass

    def records(self) -> set[Record]:
        """Return the records that the log has."""
        return {record for f in self.files for batch in f.batches for record in batch.records}

    def append(self) -> Iterator[None]:
        """Write a batch in two parts."""
        self._write_epoch()
        yield
        count = self.r.randrange(1, 4)
        records = tuple((self.end + i, b"%d" % (self.serial + i)) for i in range(count))
        self.serial += count
        self.written.update(records)
        batch = _encode(self.end, self.end + count - 1, self.epoch, records)
        cut = self.r.randrange(len(batch.data))
        with self._path(self.files[-1]).open("ab", buffering=0) as file:
            file.write(batch.data[:cut])
            yield
            file.write(batch.data[cut:])
        self.files[-1].batches.append(batch)
        self.end += count
        yield

    def roll(self) -> Iterator[None]:
        """Begin a new segment."""
        if self.files[-1].base < self.end:
            self.files.append(LogFile(self.end))
            self._path(self.files[-1]).touch()
        yield

    def elect(self) -> Iterator[None]:
        """Elect a leader that has the whole log."""
        self.epoch += self.r.randrange(1, 3)
        yield

    def retain(self) -> Iterator[None]:
        """Delete the first segments."""
        count = self.r.randrange(len(self.files))
        self.removals += 1
        for _ in range(count):
            self._delete(self._path(self.files.pop(0)))
            yield
        self._store_epochs()
        yield

    def compact(self) -> Iterator[None]:
        """Merge the first rolled segments into a file without some of their records."""
        count = self.r.randrange(1, 4)
        if count >= len(self.files):
            return
        merged = self.files[:count]
        share = self.r.choice([0.0, 0.3, 0.7, 1.0])
        kept = [b for f in merged for old in f.batches if (b := self._clean(old, share))]
        path = self._path(merged[0])
        swap = path.with_name(f"{path.name}.swap")
        swap.write_bytes(b"".join(batch.data for batch in kept))
        yield
        for one in merged:
            self._delete(self._path(one))
            yield
        swap.rename(path)
        self.files[:count] = [LogFile(merged[0].base, kept)]
        yield

    def truncate(self) -> Iterator[None]:
        """Cut off the last batches: another leader lacks them. Its log may end between two batches."""
        to = self.r.randrange(self.files[0].base, self.end + 1)
        to = min([to, *(b.base for f in self.files for b in f.batches if b.base < to <= b.last)])
        if to == self.end:
            return
        self.truncations += 1
        self.removals += 1
        removed = {b.epoch for f in self.files for b in f.batches if b.base >= to}
        while self.files[-1].base > to:
            self._delete(self._path(self.files.pop()))
            yield
        last, self.end = self.files[-1], to
        last.batches = [b for b in last.batches if b.base < to]
        with self._path(last).open("r+b") as file:
            file.truncate(sum(len(b.data) for b in last.batches))
        self.epochs = [(epoch, start) for epoch, start in self.epochs if start < to]
        newest = self.epochs[-1][0] if self.epochs else 0
        unused = set(range(newest, self.epoch)) - removed  # an unclean leader may have a lower one
        self.epoch += self.r.randrange(1, 3)
        if self.has_epochs and unused and self.r.random() < 0.5:
            self.epoch = self.r.choice(sorted(unused))
        yield
        self._store_epochs()
        yield

    def recreate(self) -> Iterator[None]:
        """Delete the topic and create it anew."""
        self.truncations += 1
        self.removals += 1
        away = self.directory.with_name(f"t-0.{self.topics:032x}-delete")
        self.files = []
        self.directory.rename(away)
        yield
        if self.deletes_at_once:
            shutil.rmtree(away)
            yield
        yield from self._create()

    def _create(self) -> Iterator[None]:
        """Create an empty log."""
        self.topics += 1
        self.end = 0
        self.files, self.epochs, self.epoch = [LogFile(0)], [], self.r.choice([0, 0, 3])
        self.directory.mkdir(parents=True)
        yield
        self._path(self.files[0]).touch()
        yield
        if self.has_topic_id:
            topic_id = uuid5(_NAMESPACE, str(self.topics))
            data = METADATA.build({"version": 0, "topic_id": topic_id})
            (self.directory / "partition.metadata").write_bytes(data)

    def _clean(self, batch: WrittenBatch, share: float) -> WrittenBatch | None:
        """Return a batch with about ``share`` of its records, None without any."""
        kept = tuple(record for record in batch.records if self.r.random() < share)
        if not kept:
            return None
        return (
            batch if kept == batch.records else _encode(batch.base, batch.last, batch.epoch, kept)
        )

    def _write_epoch(self) -> None:
        """Store that the leader epoch begins at the end of the log, if it is new."""
        if not self.epochs or self.epochs[-1][0] != self.epoch:
            self.epochs = [(e, start) for e, start in self.epochs if start < self.end]
            self.epochs.append((self.epoch, self.end))
            self._store_epochs()

    def _store_epochs(self) -> None:
        """Write the file with the leader epochs."""
        if self.has_epochs:
            entries = [{"epoch": epoch, "start_offset": start} for epoch, start in self.epochs]
            path = self.directory / LEADER_EPOCHS
            temporary = path.with_name(f"{path.name}.tmp")
            temporary.write_bytes(LEADER_EPOCH_CHECKPOINT.build({"epochs": entries}))
            temporary.replace(path)

    def _path(self, file: LogFile) -> Path:
        return self.directory / f"{file.base:020d}.log"

    def _delete(self, path: Path) -> None:
        if self.deletes_at_once:
            path.unlink()
        else:
            path.rename(f"{path}.deleted")
