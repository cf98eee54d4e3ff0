"""Turn the filters of a query on topic, partition, offset and timestamp into ranges to read.

Spark checks each row again, so a range may only exclude rows that no filter accepts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from kafka_log.segment.ranges import EVERYTHING, MAX_OFFSET, Range

Filter = tuple[str, str, Any]
"""A column, an operator (=, <, <=, >, >=, in), and a value, or several for ``in``. Times are microseconds since 1970."""

MILLISECOND_US = 1000


@dataclass(frozen=True)
class RowRanges:
    """The rows that filters leave: half-open ranges and sets, None for no restriction. ``timestamps`` are in milliseconds."""

    offsets: Range = EVERYTHING
    timestamps: Range = EVERYTHING
    partitions: Range = EVERYTHING
    topics: frozenset[str] | None = None
    only_partitions: frozenset[int] | None = None
    only_offsets: frozenset[int] | None = None
    """The offsets of the range ``offsets`` that are wanted."""

    def may_contain(self, topic: str, partition: int) -> bool:
        """Return whether the query's conditions on topic and partition number admit a partition.
        Other conditions are not considered.
        """
        low, high = self.partitions
        return (
            (self.topics is None or topic in self.topics)
            and (self.only_partitions is None or partition in self.only_partitions)
            and (low is None or partition >= low)
            and (high is None or partition < high)
        )


EVERY_ROW = RowRanges()


def parse_filters(filters: Iterable[Filter]) -> RowRanges:
    """Return the ranges of topic, partition, offset and timestamp that remain if all filters hold.
    Ignore filters on other columns, with other operators, or with values of another type. An empty
    ``in`` leaves no topic or partition; on other columns it is ignored. Negative offset bounds and
    timestamps between milliseconds are adjusted without losing rows.
    """
    out = RowRanges()
    for column, operator, value in filters:
        values = list(value) if operator == "in" else [value]
        if column == "topic" and operator in ("=", "in") and _are_all(str, values):
            out = replace(out, topics=_intersect_values(out.topics, values))
        if column == "partition" and operator in ("=", "in") and _are_all(int, values):
            out = replace(out, only_partitions=_intersect_values(out.only_partitions, values))
        if not values or not _are_all(int, values):
            continue
        if column == "partition":
            out = replace(
                out, partitions=intersect_ranges(out.partitions, _operator_range(operator, values))
            )
        elif column == "offset":
            out = replace(
                out,
                offsets=intersect_ranges(
                    out.offsets, _drop_negative_bounds(_operator_range(operator, values))
                ),
            )
            if operator == "in":
                out = replace(out, only_offsets=_intersect_values(out.only_offsets, values))
        elif column == "timestamp":
            # No set as for offsets: a header bounds the timestamps of its records only from above.
            low, high = _operator_range(operator, values)
            wanted = _round_up_to_ms(low), _round_up_to_ms(high)
            out = replace(out, timestamps=intersect_ranges(out.timestamps, wanted))
    return out


def _are_all(kind: type, values: Iterable[Any]) -> bool:
    """Return whether all values are of a type. A bool does not count as an int."""
    return all(isinstance(value, kind) and not isinstance(value, bool) for value in values)


def _intersect_values(before: frozenset[Any] | None, values: Iterable[Any]) -> frozenset[Any]:
    """Return ``values`` that are in ``before``, all of them if ``before`` is None."""
    return frozenset(values) if before is None else before & frozenset(values)


def _operator_range(operator: str, values: list[int]) -> Range:
    """Return the half-open range of 64-bit numbers that an operator admits; for ``in`` the range
    from the smallest to the largest value. An unknown operator admits all, (None, None). A lower
    limit beyond 64 bits gives an empty range with equal ends; an upper one becomes None.
    """
    low, high = {
        "=": (min(values), max(values) + 1),
        "in": (min(values), max(values) + 1),
        ">": (values[0] + 1, None),
        ">=": (values[0], None),
        "<": (None, values[0]),
        "<=": (None, values[0] + 1),
    }.get(operator, EVERYTHING)
    if low is not None and low > MAX_OFFSET:
        return MAX_OFFSET, MAX_OFFSET
    return low, None if high is not None and high > MAX_OFFSET else high


def _drop_negative_bounds(offsets: Range) -> Range:
    """Return an offset range without negative bounds, which would count from the end of a log."""
    low, high = offsets
    return None if low is None or low < 0 else low, None if high is None else max(high, 0)


def _round_up_to_ms(microseconds: int | None) -> int | None:
    """Return the first millisecond that is not before a time in microseconds, None for None."""
    return None if microseconds is None else -(-microseconds // MILLISECOND_US)


def intersect_ranges(a: Range, b: Range) -> Range:
    """Return the intersection of two half-open ranges, in which None is no limit. Without common
    numbers both ends are the lower of the two limits.
    """
    lows = [low for low in (a[0], b[0]) if low is not None]
    highs = [high for high in (a[1], b[1]) if high is not None]
    low, high = max(lows, default=None), min(highs, default=None)
    return (min(low, high) if low is not None and high is not None else low), high
