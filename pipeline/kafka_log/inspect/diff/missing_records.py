"""Records that one side lacks inside its log: removed by compaction, or missing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_log.inspect.diff.record_comparison import read_records
from kafka_log.inspect.diff.side import Side
from kafka_log.inspect.keys.table import hashes_of
from kafka_log.logs.transactions import read_transactions
from kafka_log.segment.model import Policy
from kafka_log.segment.row_masks import numbers
from kafka_log.segment.row_selection import Aborted

_NEVER = int(np.iinfo(np.int64).max)
MERGED = 1 << 18
"""Records that are gathered before they are merged into what is known of their keys."""

_KEY = np.dtype(
    [
        ("hash", "V16"),
        ("first", np.int64),
        ("last", np.int64),
        ("count", np.int64),
        ("tombstone", np.bool_),
    ]
)


class Resolved(NamedTuple):
    """Number of records removed as a cleaner does, number of missing records, and first offset of
    these.
    """

    cleaned: int
    missing: int
    first: int | None


class MissingRecords:
    """Records that one side has and the other lacks, to be judged as cleaned or missing. Memory: a few hundred bytes per key, and
    some per marker.

    A cleaner removes a record that has a later one of its key, a tombstone, a record of an aborted transaction, and a marker
    whose transaction has no records any more. It goes through a log from its start: where it has removed a record for a later one, each
    key before that record has its last one only, of those up to the later one; and where it has removed a tombstone none is left
    before. What does not fit is missing, and with it all that only may have been removed for other reasons, unless there is some record
    that a cleaner has removed for its key.
    """

    def __init__(self, has: Side, lacks: Side) -> None:
        self.has, self.lacks = has, lacks
        self.cleaned = self.missing = 0
        self.first: int | None = None
        self._unsure = (
            0  # records of aborted transactions, and markers of transactions without records
        )
        self._first_unsure: int | None = None
        self._keys = np.empty(0, _KEY)
        self._pending: list[Any] = []
        self._count = 0
        self._markers: list[Any] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Add records that ``has`` has and ``lacks`` does not, in offset order. Records without a
        key count as missing at once, those of aborted transactions as uncertain; markers and other
        records wait for :meth:`resolve`. Raise UnreadableError if retention deletes a segment of
        ``has`` while its transactions are read.
        """
        offsets = numbers(rows, "offset")
        control = numbers(rows, "is_control")
        if control.any():
            producers = numbers(rows, "producer_id")
            self._markers.append(np.stack([producers[control], offsets[control]], axis=1))
        data = ~control
        no_key = data & _null_mask(rows, "key")
        if no_key.any():
            self._count_missing(int(no_key.sum()), int(offsets[no_key][0]))
            data &= ~no_key
        gone = data & _is_aborted(rows, self._aborted)
        if gone.any():
            self._count_doubtful(int(gone.sum()), int(offsets[gone][0]))
            data &= ~gone
        if data.any():
            self._add_keys(rows.filter(pa.array(data)))

    def resolve(self) -> Resolved:
        """Return how many of the added records are cleaned, how many are missing, and the first
        missing offset (None: none), by reading the side that lacks them again; damage and
        unreadable files there are skipped. Uncertain records count as missing if others are missing
        and no record was cleaned for its key, else as cleaned. Call it once. Raise UnreadableError
        only if retention deletes a segment meanwhile.
        """
        self._merge()
        self._resolve_keys()
        if self._markers:
            self._resolve_markers(np.concatenate(self._markers))
        if self.missing and not self.cleaned and self._first_unsure is not None:
            self._count_missing(self._unsure, self._first_unsure)
        else:
            self.cleaned += self._unsure
        return Resolved(self.cleaned, self.missing, self.first)

    def _count_missing(self, count: int, offset: int) -> None:
        """Count records as missing, from ``offset`` on."""
        self.missing += count
        self.first = offset if self.first is None else min(self.first, offset)

    def _count_doubtful(self, count: int, offset: int) -> None:
        """Count records that a cleaner may have removed for another reason than their keys."""
        self._unsure += count
        known = self._first_unsure
        self._first_unsure = offset if known is None else min(known, offset)

    @cached_property
    def _aborted(self) -> Aborted:
        """Aborted transactions of the side that has the records."""
        return _aborted(self.has)

    # ------------------------------------------------------------ keys

    def _add_keys(self, rows: pa.RecordBatch) -> None:
        """Keep hash, offset and tombstone flag of data records with keys, to be judged by later
        records of their keys. Merge them per key once MERGED of them, or half as many as there are
        known keys, are pending.
        """
        found = np.zeros(rows.num_rows, _KEY)
        codes, hashes = hashes_of(rows.column("key"))
        found["hash"] = hashes[codes]
        found["first"] = found["last"] = numbers(rows, "offset")
        found["count"] = 1
        found["tombstone"] = _null_mask(rows, "value")
        self._pending.append(found)
        self._count += len(found)
        if self._count >= max(MERGED, len(self._keys) // 2):
            self._merge()

    def _merge(self) -> None:
        """Merge the pending records into ``_keys``, with one entry for each key: first and last
        offset, number of records, and whether the last one is a tombstone.
        """
        rows = np.concatenate([self._keys, *self._pending])
        self._pending, self._count = [], 0
        if not len(rows):
            return
        high, low = _halves(rows["hash"])
        order = np.lexsort((rows["last"], high, low))
        rows = rows[order]
        starts = np.flatnonzero(np.append(True, rows["hash"][1:] != rows["hash"][:-1]))
        ends = np.append(starts[1:], len(rows)) - 1
        merged = rows[ends]  # the last one says whether it is a tombstone
        merged["first"] = np.minimum.reduceat(rows["first"], starts)
        merged["count"] = np.add.reduceat(rows["count"], starts)
        self._keys = merged

    def _resolve_keys(self) -> None:
        """Read the side that lacks the records again, and count all records of each key as cleaned
        or missing. They are cleaned if that side has a later record of the key, or the last is a
        tombstone before all tombstones there, and it keeps no older record that the cleaner would
        have removed too. Raise UnreadableError if retention deletes a segment while transactions
        are read.
        """
        keys = self._keys
        if not len(keys):
            return
        later = np.full(len(keys), _NEVER)
        older = np.zeros(len(keys), bool)
        repeats = Repeats()
        tombstone = _NEVER
        aborted = self._aborted, _aborted(self.lacks)
        for there in self._read_keys(bool(keys["tombstone"].any())):
            offsets = numbers(there, "offset")
            codes, hashes = hashes_of(there.column("key"))
            # A cleaner that has come to an aborted record has removed it, but none of its key for it.
            counts = ~_is_aborted(there, *aborted)
            if "value" in there.schema.names and there.column("value").null_count:
                tombstone = min(tombstone, int(offsets[_null_mask(there, "value")][0]))
            repeats.add(offsets[counts], codes[counts], hashes)
            at = _find_hashes(keys["hash"], hashes)[codes]
            offsets, at, counts = offsets[at >= 0], at[at >= 0], counts[at >= 0]
            after = counts & (offsets > keys["last"][at])
            np.minimum.at(later, at[after], offsets[after])
            older[at[offsets < keys["last"][at]]] = True
        for_key = later < _NEVER
        # How far the cleaner has looked at least: a tombstone may be gone without a later one.
        seen = np.where(for_key & ~keys["tombstone"], later, keys["last"])
        gone = for_key | (keys["tombstone"] & (keys["last"] < tombstone))
        gone &= ~older & (repeats.earliest_second(keys["first"]) > seen)
        self.cleaned += int(keys["count"][gone].sum())
        if not gone.all():
            lost = keys[~gone]
            self._count_missing(int(lost["count"].sum()), int(lost["first"].min()))

    def _read_keys(self, values: bool) -> Iterator[pa.RecordBatch]:
        """Yield the data records with a key of the side that lacks some, in batches that are not
        empty, with the columns offset, key, producer_id and is_transactional, and value if
        ``values``. Damaged batches and unreadable files are skipped.
        """
        side = Side(self.lacks.partition, lambda _: None)
        columns = ("offset", "key", "producer_id", "is_transactional", *["value"] * values)
        while not side.done:
            side.load()
            data = side.headers[~side.headers["control"]]
            for batch in read_records(side, data, -(1 << 63), None, columns):
                there = batch.filter(batch.column("key").is_valid())
                if there.num_rows:
                    yield there
            side.headers = side.headers[:0]

    # ------------------------------------------------------------ markers

    def _resolve_markers(self, markers: Any) -> None:
        """Count each marker (producer id, offset) as missing or uncertain. It is missing if the
        last transactional batch of its producer before it, on the side that lacks it, has data. It
        is uncertain if that batch is a marker, or there is none.
        """
        found = self._find_transactions(np.unique(markers[:, 0]))
        for producer, offset in markers.tolist():
            of_producer = found.get(producer)
            before = -1 if of_producer is None else int(np.searchsorted(of_producer[0], offset)) - 1
            if of_producer is not None and before >= 0 and of_producer[1][before]:
                self._count_missing(1, offset)
            else:
                self._count_doubtful(1, offset)

    def _find_transactions(self, producers: Any) -> dict[int, tuple[Any, Any]]:
        """Return the transactional batches with records of each of ``producers`` on the side that
        lacks the markers. They are given as their first offsets, and a mask that is True for data
        and False for markers; both are empty for a producer without such batches. Damage is
        skipped.
        """
        side = Side(self.lacks.partition, lambda _: None)
        parts = []
        while not side.done:
            side.load()
            rows = side.headers[side.headers["transactional"]]
            parts.append(rows[np.isin(rows["producer"], producers) & (rows["count"] > 0)])
            side.headers = side.headers[:0]
        rows = np.concatenate(parts)
        out = {}
        for producer in producers.tolist():
            own = rows[rows["producer"] == producer]
            out[producer] = own["first"], ~own["control"]
        return out


def _aborted(side: Side) -> Aborted:
    """Return the aborted transactions of a side. Damage and unreadable files are skipped. Raise
    UnreadableError if retention deletes a segment meanwhile.
    """
    found = read_transactions(side.segments, Policy.SALVAGE, damage_raises=False)
    return Aborted((t.producer_id, t.first_offset, t.last_offset) for t in found.aborted)


def _is_aborted(rows: pa.RecordBatch, *aborted: Aborted) -> Any:
    """Return a mask of the rows that belong to a transaction in any of ``aborted``, by producer id
    and offset. Rows that are not transactional are False.
    """
    found = np.zeros(rows.num_rows, bool)
    at = np.flatnonzero(numbers(rows, "is_transactional")) if any(aborted) else ()
    if len(at):
        pairs = zip(numbers(rows, "producer_id")[at], numbers(rows, "offset")[at], strict=True)
        found[at] = [any(known.has(int(p), int(o)) for known in aborted) for p, o in pairs]
    return found


def _null_mask(rows: pa.RecordBatch, name: str) -> Any:
    """Return a mask of the rows that are null in a column."""
    return rows.column(name).is_null().to_numpy(zero_copy_only=False)


def _find_hashes(known: Any, hashes: Any) -> Any:
    """Return the index of each of ``hashes`` in ``known``, -1 if it is not there. ``known`` must be
    sorted by the lower 64 bits.
    """
    known_high, known_low = _halves(known)
    high, low = _halves(hashes)
    at = np.searchsorted(known_low, low)
    out = np.full(len(hashes), -1)
    while True:  # several may have the same half, though hardly ever
        inside = np.flatnonzero(at < len(known))
        inside = inside[known_low[at[inside]] == low[inside]]
        same = known_high[at[inside]] == high[inside]
        out[inside[same]] = at[inside[same]]
        if same.all():
            return out
        at[inside] += 1
        at[inside[same]] = len(known)


def _halves(hashes: Any) -> tuple[Any, Any]:
    """Return the upper and lower 64 bits of hashes."""
    pairs = np.ascontiguousarray(hashes).view(np.uint64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


MOST = 1 << 18
"""Keys that are remembered, the first ones of the log. Some 200 bytes each."""


class Repeats:
    """Pairs of records with the same key.

    A cleaner that has read up to the second record removes the first, in the same pass as any
    record after it.
    """

    def __init__(self) -> None:
        self._first: dict[bytes, int] = {}
        self._pairs: list[tuple[int, int]] = []
        """Offsets of first and second records: of two pairs the later one begins earlier and ends later."""
        self._least = _NEVER

    def add(self, offsets: Any, codes: Any, hashes: Any) -> None:
        """Add records in offset order, and keep pairs of a record and the next one with the same
        key. A pair is kept only if it begins before all kept ones; the first MOST keys are
        remembered. ``codes`` are the indexes of the keys in ``hashes``.
        """
        names = [one.tobytes() for one in hashes]
        for code, offset in zip(codes.tolist(), offsets.tolist(), strict=True):
            first = self._first.get(names[code])
            if first is not None and first < self._least:
                self._pairs.append((first, offset))
                self._least = first
            elif first is None and offset < self._least and len(self._first) < MOST:
                self._first[names[code]] = offset

    def earliest_second(self, before: Any) -> Any:
        """Return, for each offset in ``before``, the lowest offset of a second record of the kept
        pairs whose first record is before it (excluded); the largest 64-bit integer if there is
        none.
        """
        first, second = np.array([(-1, _NEVER), *self._pairs], np.int64).T[:, 1:]
        at = np.searchsorted(-first, -before, side="right")
        return np.append(second, _NEVER)[at]
