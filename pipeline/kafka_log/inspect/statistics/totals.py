"""Sum up batches by topic, partition, producer, codec, day, hour or minute, 65,536 batches at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.inspect.statistics.columns import IS_REST, MEASURES, PERIODS, By
from kafka_log.segment.header_columns import Arrays
from kafka_log.segment.model import codec_label, timestamp_type_label

ROWS = 1 << 16
"""Number of buffered batches that are summed up together."""

GROUPS = 1 << 17
"""Number of rows of sums after which rows with the same keys are added up."""

FACETS = ("magic", "codec_number", "timestamp_type")
"""Columns whose distinct values are listed."""


class Sums:
    """Totals (:data:`MEASURES`) of all batches that were added, by the keys ``by``.

    Memory grows with the number of key values, not with batches.

    Args:
        by: The keys.
        topics: Topic number of each place. Places are numbers that the caller assigns to partitions.
        deep: Whether records are decoded; periods are then those of records.
    """

    def __init__(self, by: Sequence[By], topics: Sequence[int], deep: bool = False) -> None:
        self.by = tuple(by)
        self.splits = deep and not PERIODS.keys().isdisjoint(by)
        self.topics = np.array(topics, np.int64)
        self.keys = tuple(dict.fromkeys(_KEY_OF[name] for name in by)) or ("all",)
        self._held: list[tuple[int, Arrays]] = []
        self._rows = 0
        self._sums: list[pa.Table] = []
        self._facets: list[pa.Table] = []
        self._producers: list[pa.Table] = []

    def add(self, place: int, arrays: Arrays) -> None:
        """Buffer the batches of a place (index into ``topics``), with one row per period if
        periods are those of records, and sum them up after ROWS rows.
        """
        arrays = split_by_period(arrays, splits=self.splits)
        rows = len(arrays["size"])
        if rows:
            self._held.append((place, arrays))
            self._rows += rows
        if self._rows >= ROWS:
            self._flush()

    def _flush(self) -> None:
        """Sum up the buffered batches by key and forget them; do nothing if there are none. Compact
        the sums if they have more than GROUPS rows.
        """
        if not self._held:
            return
        names = self._held[0][1]
        arrays = {n: np.concatenate([part[n] for _, part in self._held]) for n in names}
        lengths = [len(part["size"]) for _, part in self._held]
        places = np.repeat([place for place, _ in self._held], lengths)
        self._held, self._rows = [], 0
        keys = {name: _KEYS[name](self, places, arrays) for name in self.keys}
        measures = {
            name: pa.array(m.compute(arrays), mask=None if m.mask is None else m.mask(arrays))
            for name, m in MEASURES.items()
        }
        self._sums.append(_add_up(pa.table({**keys, **measures}), self.keys))
        facets = {
            "magic": arrays["magic"],
            "codec_number": arrays["codec"],
            "timestamp_type": arrays["timestamp_type"],
        }
        self._facets.append(_distinct(pa.table({**keys, **facets}), (*self.keys, *FACETS)))
        producer = pa.array(arrays["producer_id"], mask=arrays["producer_id"] < 0)
        own = (*self.keys, "a_producer")
        self._producers.append(_distinct(pa.table({**keys, "a_producer": producer}), own))
        if sum(len(t) for t in (*self._sums, *self._facets, *self._producers)) > GROUPS:
            self._compact()

    def _compact(self) -> None:
        """Add up the tables of sums, and remove duplicates from the tables of distinct values, so
        that one table of each is left. Do nothing if nothing was summed up yet.
        """
        if self._sums:
            self._sums = [_add_up(pa.concat_tables(self._sums), self.keys)]
            self._facets = [_distinct(pa.concat_tables(self._facets), (*self.keys, *FACETS))]
            own = (*self.keys, "a_producer")
            self._producers = [_distinct(pa.concat_tables(self._producers), own)]

    def table(self, keys: Sequence[str] | None = None) -> pa.Table:
        """Return one row per combination of ``keys``, sorted by them, null last. It has the keys,
        :data:`MEASURES`, the texts ``magics``, ``codecs`` and ``timestamp_types``, and the number
        of ``producers``. ``keys`` are some of the keys of this object (None: all); an empty
        sequence returns one row for all batches. Return no row if no batch was added.
        """
        self._flush()
        self._compact()
        wanted = self.keys if keys is None else tuple(keys) or ("all",)
        if not self._sums:
            kinds = {n: pa.array([], pa.int64()) for n in (*wanted, *MEASURES, "producers")}
            texts = {n: pa.array([], pa.string()) for n in ("magics", "codecs", "timestamp_types")}
            return pa.table({**kinds, **texts})
        tables = (self._sums[0], self._facets[0], self._producers[0])
        if wanted == ("all",) != self.keys:
            tables = tuple(
                t.append_column("all", pa.array(np.zeros(len(t), np.int64))) for t in tables
            )
        sums = _add_up(tables[0], wanted).sort_by([(name, "ascending") for name in wanted])
        places = {row: i for i, row in enumerate(_row_tuples(sums, wanted))}
        texts = _list_facets(_distinct(tables[1], (*wanted, *FACETS)), wanted, places)
        producers = np.zeros(len(sums), np.int64)
        counted = _distinct(tables[2], (*wanted, "a_producer"))
        counted = counted.filter(pc.is_valid(counted.column("a_producer")))
        for row in _row_tuples(counted, wanted):
            producers[places[row]] += 1
        for name, values in texts.items():
            sums = sums.append_column(name, pa.array(values, pa.string()))
        return sums.append_column("producers", pa.array(producers))


def _add_up(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return a table with one row for each combination of ``keys``, in which each measure is the
    sum, minimum or maximum of its rows.
    """
    made = table.group_by(list(keys), use_threads=False).aggregate(
        [(name, measure.how) for name, measure in MEASURES.items()]
    )
    names = [*keys, *(f"{name}_{measure.how}" for name, measure in MEASURES.items())]
    return made.select(names).rename_columns([*keys, *MEASURES])


def _distinct(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the distinct rows of some columns."""
    return table.select(list(names)).group_by(list(names), use_threads=False).aggregate([])


def _row_tuples(table: pa.Table, names: Sequence[str]) -> Any:
    """Iterate over the values of some columns as tuples."""
    return zip(*(table.column(name).to_pylist() for name in names), strict=True)


def _list_facets(
    facets: pa.Table, keys: Sequence[str], places: dict[Any, int]
) -> dict[str, list[str]]:
    """Return the columns ``magics``, ``codecs`` and ``timestamp_types``: for each row a text with
    its distinct values, sorted by number and separated by spaces. ``places`` has the row number of
    each combination of ``keys``.
    """
    found: list[tuple[set[int], ...]] = [tuple(set() for _ in FACETS) for _ in places]
    values = _row_tuples(facets, FACETS)
    for row, facet_values in zip(_row_tuples(facets, keys), values, strict=True):
        for distinct, value in zip(found[places[row]], facet_values, strict=True):
            distinct.add(value)
    words: list[tuple[str, Callable[[int], str]]] = [
        ("magics", lambda n: f"v{n}"),
        ("codecs", format_codec),
        ("timestamp_types", lambda n: timestamp_type_label(n) or "none"),
    ]
    return {
        name: [" ".join(map(word, sorted(sets[i]))) for sets in found]
        for i, (name, word) in enumerate(words)
    }


def format_codec(number: int) -> str:
    """Return the name of a codec, ``unknown(N)`` for an unknown number."""
    return codec_label(number) or f"unknown({number})"


def split_by_period(arrays: Arrays, *, splits: bool) -> Arrays:
    """Return batches with the column :data:`IS_REST` instead of ``periods``. If ``splits``, a batch
    with records of several periods has one row per period, newest last, with the record counts and
    timestamps of that period. IS_REST is True in all of these rows but the last one, else False.
    """
    made = {name: array for name, array in arrays.items() if name != "periods"}
    several = [i for i, one in enumerate(arrays["periods"]) if one is not None] if splits else []
    if not several:
        return {**made, IS_REST: np.zeros(len(arrays["size"]), np.bool_)}
    counts = np.ones(len(arrays["size"]), np.int64)
    counts[several] = [len(arrays["periods"][i]) for i in several]
    made = {name: np.repeat(array, counts) for name, array in made.items()}
    ends = np.cumsum(counts)
    is_rest = np.ones(int(ends[-1]), np.bool_)
    is_rest[ends - 1] = False  # the newest period is the last one
    columns = ("records", "late", "least_timestamp", "largest_timestamp")
    for i in several:
        rows = slice(int(ends[i] - counts[i]), int(ends[i]))
        for name, values in zip(
            columns, list(zip(*arrays["periods"][i], strict=True))[1:], strict=True
        ):
            made[name][rows] = values
    return {**made, IS_REST: is_rest}


def _period_starts(length: int) -> Callable[[Sums, Any, Arrays], Any]:
    """Return a function that returns the start of each row's period of ``length`` milliseconds,
    null without a timestamp or records. Its arguments are Sums, one that is ignored, and the rows as columns.
    The period is that of the records in the row if Sums splits batches by period, else that of the
    batch's largest timestamp.
    """

    def starts(sums: Sums, _: Any, arrays: Arrays) -> Any:
        times = arrays["largest_timestamp" if sums.splits else "max_timestamp"]
        return pa.array(times // length * length, mask=(times < 0) | (arrays["records"] == 0))

    return starts


def _producer_ids(_: Sums, __: Any, arrays: Arrays) -> Any:
    """Return the producer ids, null for batches without one."""
    return pa.array(arrays["producer_id"], mask=arrays["producer_id"] < 0)


_KEY_OF: dict[By, str] = {
    "topic": "topic_number",
    "partition": "place",
    "producer": "producer_id",
    "codec": "codec_key",
    **{name: name for name in PERIODS},
}

_KEYS: dict[str, Callable[[Sums, Any, Arrays], Any]] = {
    "topic_number": lambda sums, places, _: pa.array(sums.topics[places]),
    "place": lambda _, places, __: pa.array(places.astype(np.int64)),
    "producer_id": _producer_ids,
    "codec_key": lambda _, __, arrays: pa.array(arrays["codec"]),
    **{name: _period_starts(length) for name, length in PERIODS.items()},
    "all": lambda _, places, __: pa.array(np.zeros(len(places), np.int64)),
}
"""Functions that compute the key columns."""
