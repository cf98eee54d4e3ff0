"""Two replicas of partitions: whether they part, where, and what else is not the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from kafka_log.logs.partitions import Partition
from kafka_log.report.diff.answer import DIFFERENCES, alone, row_of
from kafka_log.report.diff.side import Advance
from kafka_log.report.diff.walk import walk

Pair = tuple[Partition | None, Partition | None]


def diff_table(pairs: Sequence[Pair], advance: Advance = lambda _: None) -> pa.Table:
    """A row for each partition of two directories, in the columns of :data:`DIFFERENCES`. Raises OSError."""
    rows = []
    for a, b in pairs:
        if a is None or b is None:
            rows.append(alone(a, b))
        else:
            rows.append(row_of(a, b, walk(a, b, advance)))
    return pa.Table.from_pylist(rows, DIFFERENCES)


def pairs_of(
    a: Sequence[Partition], b: Sequence[Partition], *, whatever_their_names: bool
) -> list[Pair]:
    """The partitions of two directories by topic and number. ``whatever_their_names``: one on each side are a pair anyway."""
    if whatever_their_names and len(a) == len(b) == 1:
        return [(a[0], b[0])]
    return list(_by_name(a, b))


def _by_name(a: Sequence[Partition], b: Sequence[Partition]) -> Iterator[Pair]:
    of_a = {(p.topic, p.partition): p for p in a}
    of_b = {(p.topic, p.partition): p for p in b}
    for key in sorted(of_a.keys() | of_b.keys()):
        yield of_a.get(key), of_b.get(key)
