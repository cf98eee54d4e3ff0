"""Logs as plain lists of batches, what happens to replicas of them, and files of both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import strategies as st

from kafka_codecs import CONTROL_RECORD_KEY, END_TXN_MARKER, RECORD_BATCH, Compression

TIME = 1_700_000_000_000


@dataclass(frozen=True)
class Made:
    """A record. ``kind`` is data, abort or commit."""

    offset: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Entry:
    """A batch; ``producer`` -1: of no transaction."""

    base: int
    last: int
    epoch: int
    records: tuple[Made, ...]
    producer: int = -1
    kind: str = "data"
    codec: Compression = Compression.NONE

    def built(self) -> bytes:
        in_transaction = self.producer >= 0
        key = CONTROL_RECORD_KEY.build({"type": self.kind}) if self.kind != "data" else None
        value = END_TXN_MARKER[0].build({"version": 0, "coordinator_epoch": 0}) if key else None
        data: bytes = RECORD_BATCH.build(
            {
                "base_offset": self.base,
                "partition_leader_epoch": self.epoch,
                "attributes": {
                    "compression": self.codec,
                    "is_transactional": in_transaction,
                    "is_control": self.kind != "data",
                },
                "last_offset_delta": self.last - self.base,
                "base_timestamp": TIME,
                "max_timestamp": TIME + self.last,
                "producer_id": self.producer,
                "producer_epoch": 0 if in_transaction else -1,
                "base_sequence": self.base if in_transaction and key is None else -1,
                "records": [
                    {
                        "timestamp_delta": r.offset,
                        "offset_delta": r.offset - self.base,
                        "key": key or r.key,
                        "value": value or r.value,
                        "headers": [{"key": "h", "value": b"x"}] * (r.offset % 3),
                    }
                    for r in self.records
                ],
            },
            strict=False,
        )
        return data


Log = Sequence[Entry]


def count(log: Iterable[Entry]) -> int:
    return sum(len(entry.records) for entry in log)


def end(log: Log) -> int:
    return log[-1].last + 1


def write(directory: Path, log: Log, rolls: Iterable[int] = ()) -> Path:
    """A partition directory; a segment begins before each batch of these numbers."""
    directory.mkdir(parents=True)
    starts = sorted({0, *(i for i in rolls if 0 < i < len(log))})
    for low, high in zip(starts, [*starts[1:], len(log)], strict=True):
        data = b"".join(entry.built() for entry in log[low:high])
        (directory / f"{log[low].base:020d}.log").write_bytes(data)
    return directory


KEYS = st.sampled_from([None, b"a", b"b", b"c", b"d", b"e"])
VALUES = st.none() | st.binary(max_size=30)


@st.composite
def logs(draw: st.DrawFn, least: int = 1, *, keys: st.SearchStrategy[bytes | None] = KEYS) -> Log:
    """A log of batches without gaps: plain, and of transactions of two producers that end at last."""
    out: list[Entry] = []
    offset = draw(st.sampled_from([0, 0, 7, 5000]))
    epoch = 0
    began: set[int] = set()
    for _ in range(draw(st.integers(least, 12))):
        epoch += draw(st.sampled_from([0, 0, 0, 1, 3]))
        producer = draw(st.sampled_from([-1, -1, 4, 5]))
        if producer in began and draw(st.booleans()):
            began.remove(producer)
            out.append(_marker(offset, epoch, producer, draw(st.sampled_from(["abort", "commit"]))))
        else:
            size = draw(st.integers(1, 5))
            rows = [Made(offset + i, draw(keys), draw(VALUES)) for i in range(size)]
            codec = draw(st.sampled_from(list(Compression)))
            last = offset + size - 1
            out.append(Entry(offset, last, epoch, tuple(rows), producer, codec=codec))
            began |= {producer} - {-1}
        offset = end(out)
    for producer in sorted(began):
        out.append(_marker(end(out), epoch, producer, "commit"))
    return out


def _marker(offset: int, epoch: int, producer: int, kind: str) -> Entry:
    return Entry(offset, offset, epoch, (Made(offset, None, None),), producer, kind)


def compacted(log: Log, clean_to: int) -> Log:
    """What a cleaner leaves, which looks at all batches before an offset: nothing that a later record of its key follows, nothing that
    was aborted, no tombstone, no marker of a transaction that has no records. Records without a key stay: topics that are compacted have
    none. Batches that are empty stay if they are the last."""
    clean_to = next((entry.base for entry in log if entry.last >= clean_to), clean_to)
    aborted: set[int] = set()
    going: dict[int, list[int]] = {}
    for entry in log:
        if entry.kind == "data" and entry.producer >= 0:
            going.setdefault(entry.producer, []).append(entry.base)
        elif entry.kind != "data":
            bases = going.pop(entry.producer, [])
            aborted |= set(bases) if entry.kind == "abort" else set()
    newest: dict[bytes, int] = {}
    for entry in log:
        if entry.kind == "data" and entry.base not in aborted:
            newest |= {r.key: r.offset for r in entry.records if r.key and r.offset < clean_to}
    out: list[Entry] = []
    left: dict[int, bool] = {}
    for entry in log:
        if entry.last >= clean_to:
            out.append(entry)
            continue
        if entry.kind != "data":
            if left.pop(entry.producer, False):
                out.append(entry)
            continue
        kept = tuple(
            r
            for r in entry.records
            if r.key is None
            or (entry.base not in aborted and newest[r.key] == r.offset and r.value is not None)
        )
        left[entry.producer] = left.get(entry.producer, False) or bool(kept)
        if kept:
            out.append(replace(entry, records=kept))
    return out


def rebatched(log: Log, codec: Compression) -> Log:
    """The same records, each batch of data cut in two where it has room, with another codec."""
    out: list[Entry] = []
    for entry in log:
        if entry.kind != "data" or len(entry.records) < 2:
            same = entry.kind != "data"
            out.append(entry if same else replace(entry, codec=codec))
            continue
        at = entry.records[1].offset
        first = replace(entry, last=at - 1, records=entry.records[:1], codec=codec)
        out += [first, replace(entry, base=at, records=entry.records[1:], codec=codec)]
    return out
