"""Compaction seen from the disk: which records a newer one of the same key has made obsolete, and which are live."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.errors import CodecError
from kafka_log.logs.partitions import Partition
from kafka_log.read.scanning import scan
from kafka_log.read.selection import Selection
from kafka_log.segment.arrow_text import utf8

KEYS = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Its name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Its number."}),
        pa.field("records", pa.int64(), False, {"doc": "Data records on the disk."}),
        pa.field("no_key", pa.int64(), False, {"doc": "Those without a key."}),
        pa.field("keys", pa.int64(), False, {"doc": "Keys that differ."}),
        pa.field("tombstones", pa.int64(), False, {"doc": "Records with a key and no value."}),
        pa.field("obsolete", pa.int64(), False, {"doc": "Those that a newer one follows."}),
        pa.field("live", pa.int64(), False, {"doc": "The newest of their keys, with a value."}),
        pa.field("ratio", pa.float64(), True, {"doc": "Live records of all records."}),
        pa.field("bytes", pa.int64(), False, {"doc": "Keys and values, not compressed."}),
        pa.field("live_bytes", pa.int64(), False, {"doc": "Keys and values of live records."}),
        pa.field("problem", pa.string(), True, {"doc": "The first damage that was met."}),
        pa.field("directory", pa.string(), False, {"doc": "Path of the partition."}),
    ]
)

RECORDS_OF_KEY = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Its name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Its number."}),
        pa.field("key", pa.binary(), True, {"doc": "As it was written."}),
        pa.field("offset", pa.int64(), False, {"doc": "Of the record."}),
        pa.field("timestamp", pa.timestamp("ms", "UTC"), True, {"doc": "Null: it has none."}),
        pa.field("value_bytes", pa.int64(), True, {"doc": "Null: a tombstone."}),
        pa.field("tombstone", pa.bool_(), False, {"doc": "Whether it deletes the key."}),
        pa.field(
            "latest",
            pa.bool_(),
            False,
            {
                "doc": "Whether no newer one of the key is in the partition, of those that are chosen."
            },
        ),
        pa.field("segment", pa.string(), False, {"doc": "Path of the file."}),
    ]
)

MERGED = 1 << 18
"""Records that are gathered at least before they are merged into what is known of their keys."""

_HASH = np.dtype([("high", ">u8"), ("low", ">u8")])
_TOMBSTONE = -1

Note = Callable[[str], None]


def hashes_of(keys: Any) -> tuple[Any, Any]:
    """128 bits of the hash of each key that differs, as NumPy's ``V16``, and which of them each key of an Arrow array has."""
    encoded = keys.dictionary_encode()
    digests = b"".join(
        blake2b(key, digest_size=_HASH.itemsize).digest() for key in encoded.dictionary.to_pylist()
    )
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return codes, np.frombuffer(digests, f"V{_HASH.itemsize}")


class Newest:
    """The newest record of every key, as 128 bits of the key's hash and the record's size: 24 bytes a key, and up to six
    times that while records are merged in."""

    def __init__(self) -> None:
        self._known = _Sizes.none()
        self._pending: list[_Sizes] = []
        self._count = 0

    def add(self, keys: Any, sizes: Any) -> None:
        """Records that are newer than all before, in their order: their keys (an Arrow array without nulls) and the bytes of key
        and value, -1 for a tombstone."""
        codes, digests = hashes_of(keys)
        last = np.empty(len(digests), np.int64)
        last[codes] = np.arange(len(codes))  # the last one of the same code stays
        hashes = digests.view(_HASH)
        high, low = (hashes[name].astype(np.uint64) for name in ("high", "low"))
        self._pending.append(_Sizes(high, low, np.asarray(sizes)[last]))
        self._count += len(last)
        if self._count >= max(MERGED, len(self._known.high) // 2):
            self._merge()

    def sizes(self) -> Any:
        """The size of the newest record of each key, -1 for a tombstone, as a NumPy array."""
        self._merge()
        return self._known.sizes

    def _merge(self) -> None:
        self._known = _Sizes.newest([self._known, *self._pending])
        self._pending, self._count = [], 0


class _Sizes:
    """The two halves of hashes, and sizes: one of each for a key."""

    def __init__(self, high: Any, low: Any, sizes: Any) -> None:
        self.high, self.low, self.sizes = high, low, sizes

    @staticmethod
    def none() -> _Sizes:
        return _Sizes(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int64))

    @staticmethod
    def newest(parts: Sequence[_Sizes]) -> _Sizes:
        """Those of all keys; where a key comes twice, the last one."""
        high = np.concatenate([part.high for part in parts])
        low = np.concatenate([part.low for part in parts])
        order = np.lexsort((low, high))  # stable: the same keys stay in their order
        high, low = high[order], low[order]
        last = np.ones(len(order), bool)
        last[:-1] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
        sizes = np.concatenate([part.sizes for part in parts])[order[last]]
        return _Sizes(high[last], low[last], sizes)


def key_table(
    partitions: Sequence[Partition],
    selection: Selection,
    advance: Callable[[int], None] = lambda _: None,
) -> pa.Table:
    """A row for each partition, in the columns of :data:`KEYS`, of the records that a selection wants. What damaged bytes held is not
    counted; ``problem`` says where they are, or why a directory cannot be read. Raises OSError."""
    rows = []
    for partition in partitions:
        rows.append(_row(partition, selection))
        advance(partition.size)
    return pa.Table.from_pylist(rows, KEYS)


def _row(partition: Partition, selection: Selection) -> dict[str, Any]:
    problems: list[str] = []
    newest, counts = Newest(), dict.fromkeys(("records", "no_key", "tombstones", "bytes"), 0)
    for batch in _batches(partition, ["key", "value"], selection, problems.append):
        if batch is None:  # read again, around the damage
            newest, counts = Newest(), dict.fromkeys(counts, 0)
            continue
        key, value = batch.column("key"), batch.column("value")
        both = pc.add(_lengths(key), _lengths(value))
        has_key = pc.is_valid(key)
        counts["records"] += len(key)
        counts["no_key"] += key.null_count
        counts["bytes"] += pc.sum(both).as_py() or 0
        counts["tombstones"] += pc.sum(pc.and_(has_key, pc.is_null(value))).as_py() or 0
        sizes = pc.if_else(pc.is_valid(value), both, _TOMBSTONE)
        newest.add(key.filter(has_key), sizes.filter(has_key).to_numpy(zero_copy_only=False))
    sizes = newest.sizes()
    live = int(np.count_nonzero(sizes != _TOMBSTONE))
    return {
        **counts,
        "topic": utf8(partition.topic),
        "partition": partition.partition,
        "keys": len(sizes),
        "obsolete": counts["records"] - counts["no_key"] - len(sizes),
        "live": live,
        "ratio": round(live / counts["records"], 3) if counts["records"] else None,
        "live_bytes": int(sizes[sizes != _TOMBSTONE].sum()),
        "problem": problems[0] if problems else None,
        "directory": utf8(str(partition.directory)),
    }


def _lengths(column: Any) -> Any:
    return pc.fill_null(pc.binary_length(column).cast(pa.int64()), 0)


def records_of_keys(
    partitions: Sequence[Partition],
    selection: Selection,
    note: Note | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> pa.Table:
    """A row for each record with the keys of a selection, in the columns of :data:`RECORDS_OF_KEY`.

    Raises :class:`CodecError` for damage, unless there is a ``note`` that takes its text: then what lies around it is read.
    Raises OSError.
    """
    tables = []
    for partition in partitions:
        tables.append(_of_keys(partition, selection, note))
        advance(partition.size)
    return pa.concat_tables([RECORDS_OF_KEY.empty_table(), *tables])


def _of_keys(partition: Partition, selection: Selection, note: Note | None) -> pa.Table:
    rows: list[dict[str, Any]] = []
    columns = ["offset", "timestamp", "key", "value", "segment"]
    for batch in _batches(partition, columns, selection, note):
        if batch is None:
            rows = []
            continue
        sizes = pc.binary_length(batch.column("value")).to_pylist()
        times = batch.column("timestamp").view(pa.int64()).to_pylist()
        names = ("key", "segment", "offset")
        keys, segments, offsets = (batch.column(name).to_pylist() for name in names)
        rows += [
            {
                "topic": utf8(partition.topic),
                "partition": partition.partition,
                "key": key,
                "offset": offset,
                "timestamp": None if time == -1 else time,
                "value_bytes": size,
                "tombstone": size is None,
                "latest": False,
                "segment": segment,
            }
            for key, offset, time, size, segment in zip(
                keys, offsets, times, sizes, segments, strict=True
            )
        ]
    for row in {row["key"]: row for row in rows}.values():
        row["latest"] = True
    return pa.Table.from_pylist(rows, RECORDS_OF_KEY)


def _batches(
    partition: Partition, columns: list[str], selection: Selection, note: Note | None
) -> Iterator[pa.RecordBatch | None]:
    """The data records of a partition. At damage, which is noted, None comes, and all from the first record on again, without what
    the damage took."""
    if not partition.segments and partition.error is None:
        return
    try:
        yield from scan([partition], columns, selection=selection)
    except CodecError as error:
        if note is None:
            raise
        note(str(error))
        yield None
        yield from scan([partition], columns, "salvage", selection=selection, on_damage="drop")
