"""Which of several copies of the same offsets is merged: equal batches by their headers, others by their records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from codecgen.runtime.arrow.decoder import choose, schema_of
from kafka_codecs.columns.records import RECORDS
from kafka_log.inspect.diff.record_comparison import COLUMNS, RecordComparison, read_records
from kafka_log.inspect.diff.side import HEADER, Side
from kafka_log.inspect.merge.candidates import Candidates
from kafka_log.inspect.merge.replica import Replica
from kafka_log.segment.row_masks import numbers

COMPARED_BYTES = 4 << 20
"""Maximum number of bytes of overlapping batches whose records are compared at once, unless one range of offsets has more."""

CONTRADICTION = "the replicas have different records at these offsets in the same leader epoch"
SCATTERED = "no replica has all records at these offsets: of several batches that share them, one is written"


@dataclass(frozen=True, slots=True)
class Choice:
    """The batches that are merged, and what they leave out.

    Attributes:
        chosen: Mask of the candidates to merge: one of each content at most, and no two overlap.
        lacks: For each replica, a mask of the chosen batches of which it lacks a record.
        contradictions: Offset ranges that are lost although replicas have them, with the reason.
    """

    chosen: Any
    lacks: dict[int, Any]
    contradictions: list[tuple[int, int, str]]

    def copies_of(self, batches: Candidates, replaced: Candidates, number: int) -> Any:
        """Return the indexes of the batches of replica ``number`` that overlap those in
        ``replaced``, ascending.
        """
        own = np.flatnonzero(batches.replica == number)
        at = np.searchsorted(replaced.last, batches.first[own])
        inside = at < len(replaced)
        inside[inside] = replaced.first[at[inside]] <= batches.last[own][inside]
        return own[inside]


def choose_copies(batches: Candidates, replicas: Sequence[Replica]) -> Choice:
    """Return which of the candidates ``batches`` (sorted by first offset, content and rank) to
    merge. Of equal batches that is the one with the lowest rank; of batches that share offsets,
    those of the replica with the most records there. If others have records that it lacks, the
    range is a contradiction too; if records differ at one offset, no batch is chosen. A batch that
    cannot be decoded counts as without records. Raise CodecError for one that can no longer be read.
    """
    count = len(batches)
    is_new = np.append(np.ones(min(count, 1), np.bool_), np.diff(batches.content) != 0)
    chosen = is_new.copy()  # candidates of one content are sorted by rank
    contradictions: list[tuple[int, int, str]] = []
    highest = np.maximum.accumulate(batches.last) if count else batches.last
    starts = np.flatnonzero(
        np.append(np.ones(min(count, 1), np.bool_), batches.first[1:] > highest[:-1])
    )
    bounds = np.append(starts, count)
    has_several = np.add.reduceat(is_new, starts) > 1 if count else np.zeros(0, np.bool_)
    cluster = np.repeat(np.arange(len(starts)), np.diff(bounds))
    fewer: dict[int, set[int]] = {one.number: set() for one in replicas}
    """Clusters of which a replica has some records, but not all that are chosen."""
    for k, views in _read_views(batches, replicas, bounds, np.flatnonzero(has_several).tolist()):
        low, high = int(bounds[k]), int(bounds[k + 1])
        chosen[low:high] = False
        found = _choose_view(views)
        offsets = int(batches.first[low]), int(batches.last[low:high].max())
        if found is None:
            contradictions.append((*offsets, CONTRADICTION))
            continue
        if not found.is_superset:
            contradictions.append((*offsets, SCATTERED))
        own = low + np.flatnonzero(batches.replica[low:high] == found.number)
        for i in own.tolist():
            same = low + np.flatnonzero(batches.content[low:high] == batches.content[i])
            chosen[same[0]] = True
        for number in found.fewer:
            fewer[number].add(k)
    lacks = {}
    for one in replicas:
        has = np.zeros(len(starts), np.bool_)
        has[cluster[batches.replica == one.number]] = True
        has[list(fewer[one.number])] = False
        lacks[one.number] = ~has[cluster[chosen]]
    return Choice(chosen, lacks, contradictions)


@dataclass(frozen=True, slots=True)
class _View:
    """The view that is chosen of a cluster: number of its replica, whether it has all records, and
    the replicas that have fewer.
    """

    number: int
    is_superset: bool
    fewer: tuple[int, ...]


def _choose_view(views: dict[int, pa.RecordBatch]) -> _View | None:
    """Return the replica with the most records, the first of equal ones; None if two replicas have
    different records at the same offset (leader epochs may differ). ``views`` has the records of
    each replica, by preference.
    """
    best = max(views, key=lambda number: views[number].num_rows)
    fewer, is_superset = [], True
    names = list(views)
    for i, number in enumerate(names):
        for other in names[:i]:
            one = RecordComparison(views[other], views[number])
            if len(one.differ) and not one.only_epochs:
                return None
        found = RecordComparison(views[best], views[number])
        is_superset &= not found.only_b.num_rows
        if found.only_a.num_rows:
            fewer.append(number)
    return _View(best, is_superset, tuple(fewer))


def _read_views(
    batches: Candidates, replicas: Sequence[Replica], bounds: Any, clusters: Sequence[int]
) -> Iterator[tuple[int, dict[int, pa.RecordBatch]]]:
    """Yield the index of each cluster of overlapping batches with the records that each replica has
    there, the replica of the lowest rank first. ``bounds`` has the first candidate of each cluster.
    Batches that cannot be decoded have no records. Raise CodecError for one that can no longer be read.
    """
    group: list[int] = []
    size = 0
    sizes = batches.gather(replicas, "size")
    for k in clusters:
        group.append(k)
        size += int(sizes[bounds[k] : bounds[k + 1]].sum())
        if size >= COMPARED_BYTES:
            yield from _read_group(batches, replicas, bounds, group)
            group, size = [], 0
    yield from _read_group(batches, replicas, bounds, group)


def _read_group(
    batches: Candidates, replicas: Sequence[Replica], bounds: Any, group: Sequence[int]
) -> Iterator[tuple[int, dict[int, pa.RecordBatch]]]:
    """Yield the clusters ``group`` with the records that each replica has there. The batches of a
    replica are read in one pass. Raise CodecError if a batch is gone, cannot be read or has changed
    since the replica was read.
    """
    if not group:
        return
    rows = np.concatenate([np.arange(bounds[k], bounds[k + 1]) for k in group])
    of = batches.take(rows)
    tables = {
        one.number: read_batch_records(one, np.sort(of.index[of.replica == one.number]))
        for one in replicas
        if (of.replica == one.number).any()
    }
    for k in group:
        low, high = int(bounds[k]), int(bounds[k + 1])
        first, last = int(batches.first[low]), int(batches.last[low:high].max())
        order = np.lexsort((batches.rank[low:high],))
        names = dict.fromkeys(batches.replica[low:high][order].tolist())
        yield k, {number: _slice_offsets(tables[number], first, last) for number in names}


def read_batch_records(one: Replica, rows: Any) -> pa.RecordBatch:
    """Return the records of the batches of a replica with the indexes ``rows`` (ascending), by
    offset, in the columns COLUMNS. A batch that cannot be decoded is left out. Raise CodecError for
    one that is gone, cannot be read or has changed since the replica was read.
    """
    wanted = np.zeros(len(rows), HEADER)
    for name in ("position", "size", "first", "last"):
        wanted[name] = getattr(one.headers, name)[rows]
    wanted["segment"] = one.segment[rows]
    side = Side(one.partition, lambda _: None)
    schema = schema_of(choose(RECORDS, COLUMNS))
    table = pa.Table.from_batches(
        list(read_records(side, wanted, 0, None, raise_if_changed=True)), schema
    )
    merged: pa.RecordBatch = next(iter(table.combine_chunks().to_batches()), None)
    return pa.RecordBatch.from_pylist([], schema) if merged is None else merged


def _slice_offsets(rows: pa.RecordBatch, first: int, last: int) -> pa.RecordBatch:
    """Return the rows with offsets from ``first`` to ``last`` (both included)."""
    offsets = numbers(rows, "offset")
    low, high = np.searchsorted(offsets, [first, last + 1])
    return rows.slice(int(low), int(high - low))
