"""Count the records that compaction would remove or keep: obsolete and live records by key."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from codecgen.runtime.errors import CodecError
from kafka_log.logs.partitions import Partition
from kafka_log.read.scanning import scan
from kafka_log.read.selection import Selection
from kafka_log.segment.arrow_text import utf8
from kafka_log.segment.model import Lost, describe_lost

KEYS = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Topic name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Partition number."}),
        pa.field("records", pa.int64(), False, {"doc": "Number of data records."}),
        pa.field("no_key", pa.int64(), False, {"doc": "Number of records without a key."}),
        pa.field("keys", pa.int64(), False, {"doc": "Number of distinct keys."}),
        pa.field(
            "tombstones",
            pa.int64(),
            False,
            {"doc": "Number of records with a key and a null value."},
        ),
        pa.field(
            "obsolete",
            pa.int64(),
            False,
            {"doc": "Number of records that a newer record of the same key replaces."},
        ),
        pa.field(
            "live", pa.int64(), False, {"doc": "Number of keys whose newest record has a value."}
        ),
        pa.field("ratio", pa.float64(), True, {"doc": "live divided by records."}),
        pa.field("bytes", pa.int64(), False, {"doc": "Size of keys and values, uncompressed."}),
        pa.field(
            "live_bytes",
            pa.int64(),
            False,
            {"doc": "Size of keys and values of live records, uncompressed."},
        ),
        pa.field(
            "problem",
            pa.string(),
            True,
            {"doc": "First damage in the partition; null if there is none."},
        ),
        pa.field("directory", pa.string(), False, {"doc": "Path of the partition directory."}),
    ]
)

RECORDS_OF_KEY = pa.schema(
    [
        pa.field("topic", pa.string(), False, {"doc": "Topic name."}),
        pa.field("partition", pa.int64(), False, {"doc": "Partition number."}),
        pa.field("key", pa.binary(), True, {"doc": "Key of the record, as bytes."}),
        pa.field("offset", pa.int64(), False, {"doc": "Offset of the record."}),
        pa.field(
            "timestamp",
            pa.timestamp("ms", "UTC"),
            True,
            {"doc": "Timestamp of the record; null if it has none."},
        ),
        pa.field(
            "value_bytes", pa.int64(), True, {"doc": "Size of the value; null for a tombstone."}
        ),
        pa.field(
            "tombstone",
            pa.bool_(),
            False,
            {"doc": "Whether the value is null: the record deletes the key."},
        ),
        pa.field(
            "latest",
            pa.bool_(),
            False,
            {
                "doc": "Whether it is the newest of the selected records of the key in the partition."
            },
        ),
        pa.field("segment", pa.string(), False, {"doc": "Path of the segment file."}),
    ]
)

MERGED = 1 << 18
"""Minimum number of buffered keys before a merge into the known ones."""

_HASH = np.dtype([("high", ">u8"), ("low", ">u8")])
_TOMBSTONE = -1

Note = Callable[[str], None]


def hashes_of(keys: Any) -> tuple[Any, Any]:
    """Return two NumPy arrays for an Arrow array of keys without nulls: for each key the index of
    its hash in the second array, and the 128-bit BLAKE2b hashes (``V16``) of the distinct keys.
    """
    encoded = keys.dictionary_encode()
    digests = b"".join(
        blake2b(key, digest_size=_HASH.itemsize).digest() for key in encoded.dictionary.to_pylist()
    )
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return codes, np.frombuffer(digests, f"V{_HASH.itemsize}")


class NewestSizes:
    """The size of the newest record of every key, by the key's 128-bit hash.

    Memory: 24 bytes a key, and up to six times that while records are merged.
    """

    def __init__(self) -> None:
        self._known = _Sizes.empty()
        self._pending: list[_Sizes] = []
        self._count = 0

    def add(self, keys: Any, sizes: Any) -> None:
        """Add records that are newer than all before, oldest first. ``keys`` is an Arrow array
        without nulls; ``sizes`` has the bytes of key and value of each record, -1 for a tombstone.
        """
        codes, digests = hashes_of(keys)
        last = np.empty(len(digests), np.int64)
        last[codes] = np.arange(len(codes))  # the last record of each key wins
        hashes = digests.view(_HASH)
        high, low = (hashes[name].astype(np.uint64) for name in ("high", "low"))
        self._pending.append(_Sizes(high, low, np.asarray(sizes)[last]))
        self._count += len(last)
        if self._count >= max(MERGED, len(self._known.high) // 2):
            self._merge()

    def sizes(self) -> Any:
        """Return the sizes of the newest records, one per key, -1 for a tombstone, as a NumPy array in the order of the hashes."""
        self._merge()
        return self._known.sizes

    def _merge(self) -> None:
        """Merge the pending records into the known ones."""
        self._known = _Sizes.newest([self._known, *self._pending])
        self._pending, self._count = [], 0


class _Sizes:
    """Hashes of keys, as two 64-bit halves, and record sizes: arrays with one element per key."""

    def __init__(self, high: Any, low: Any, sizes: Any) -> None:
        self.high, self.low, self.sizes = high, low, sizes

    @staticmethod
    def empty() -> _Sizes:
        """Return arrays without a key."""
        return _Sizes(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int64))

    @staticmethod
    def newest(parts: Sequence[_Sizes]) -> _Sizes:
        """Return ``parts`` (at least one) as one, sorted by hash, with one size for each key: that
        of the last part that has the key, and in it the last one.
        """
        high = np.concatenate([part.high for part in parts])
        low = np.concatenate([part.low for part in parts])
        order = np.lexsort((low, high))  # stable: records of a key stay in order
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
    """Return one row of key counts per partition, in the columns of :data:`KEYS`, for the selected
    records. Records in damaged bytes and unreadable files are not counted; ``problem`` describes
    the first damage, or why a file or the directory cannot be read, else it is null. A partition
    without records has zeros and a null ``ratio``. ``advance`` gets the bytes of each partition.
    """
    rows = []
    for partition in partitions:
        rows.append(_count_keys(partition, selection))
        advance(partition.size)
    return pa.Table.from_pylist(rows, KEYS)


def _count_keys(partition: Partition, selection: Selection) -> dict[str, Any]:
    """Return the row of key counts of one partition, for the selected records. After damage or at
    an unreadable file, count again from the start without these records, and describe the problem
    in ``problem``.
    """
    problems: list[str] = []
    newest, counts = NewestSizes(), dict.fromkeys(("records", "no_key", "tombstones", "bytes"), 0)
    for batch in _scan_again_on_damage(partition, ["key", "value"], selection, problems.append):
        if batch is None:  # damage: the records come again, without the damaged ones
            newest, counts = NewestSizes(), dict.fromkeys(counts, 0)
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
    """Return the bytes of each value of a binary column, 0 for null."""
    return pc.fill_null(pc.binary_length(column).cast(pa.int64()), 0)


def records_of_keys(
    partitions: Sequence[Partition],
    selection: Selection,
    note: Note | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> pa.Table:
    """Return one row per record with a key of the selection, in the columns of
    :data:`RECORDS_OF_KEY`, in the order of ``partitions`` and of their logs. Raise CodecError for
    damage or an unreadable file if ``note`` is None; else call ``note`` and return the readable
    records.

    Args:
        partitions: The partitions to read.
        selection: Selects records; has the keys.
        note: Called with a description of damage; the records around the damage are then returned.
        advance: Called with the size of each partition after it is read.
    """
    tables = []
    for partition in partitions:
        tables.append(_list_records(partition, selection, note))
        advance(partition.size)
    return pa.concat_tables([RECORDS_OF_KEY.empty_table(), *tables])


def _list_records(partition: Partition, selection: Selection, note: Note | None) -> pa.Table:
    """Return a table of the records of one partition that have a selected key; the newest one of
    each key is ``latest``. Raise CodecError for damage or an unreadable file if ``note`` is None;
    else call ``note`` and return the readable records.
    """
    rows: list[dict[str, Any]] = []
    columns = ["offset", "timestamp", "key", "value", "segment"]
    for batch in _scan_again_on_damage(partition, columns, selection, note):
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


def _scan_again_on_damage(
    partition: Partition, columns: list[str], selection: Selection, note: Note | None
) -> Iterator[pa.RecordBatch | None]:
    """Yield the selected records of a partition, none if it has no segment. At damage or an
    unreadable file call ``note``, yield None, and yield all readable records again from the first
    one: the caller has to forget what came before. Call ``note`` for records that are lost at the
    end of the log too. If ``note`` is None, raise CodecError instead.
    """
    if not partition.segments and partition.error is None:
        return

    def on_lost(path: Path, lost: Lost) -> None:
        line = describe_lost(path, lost)
        if note is None or lost.start == lost.end:  # compaction may have removed these offsets
            warnings.warn(f"kafka-log: {line}", stacklevel=2)
        else:
            note(line)

    try:
        yield from scan([partition], columns, selection=selection, on_lost=on_lost)
    except CodecError as error:
        if note is None:
            raise
        note(str(error))
        yield None
        yield from scan([partition], columns, "salvage", selection=selection, on_damage="drop")
