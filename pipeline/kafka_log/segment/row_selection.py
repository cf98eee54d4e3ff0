"""Which rows of a stream are wanted: by their offsets and timestamps, whose they are, and whether a consumer sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_log.segment.model import Policy

Range = tuple[int | None, int | None]
"""The first is in, the end is not; None is open."""

EVERYTHING: Range = (None, None)


class Aborted:
    """Transactions whose records are left out: producer id, first offset, last offset. Those of one producer lie apart."""

    def __init__(self, found: Iterable[tuple[int, int, int]] = ()) -> None:
        by_producer: dict[int, list[tuple[int, int]]] = {}
        for producer, first, last in sorted(found):
            by_producer.setdefault(producer, []).append((first, last))
        self._ends: Mapping[int, tuple[Any, Any]] = {
            producer: (np.array([f for f, _ in ranges]), np.array([last for _, last in ranges]))
            for producer, ranges in by_producer.items()
        }

    def __bool__(self) -> bool:
        return bool(self._ends)

    def mask(self, producers: Any, offsets: Any) -> Any:
        """Which rows of transactions are aborted, by their producers and offsets."""
        out = np.zeros(len(producers), bool)
        for producer in np.intersect1d(producers, list(self._ends)).tolist():
            rows = np.flatnonzero(producers == producer)
            firsts, lasts = self._ends[producer]
            at = np.searchsorted(firsts, offsets[rows], side="right") - 1
            out[rows] = (at >= 0) & (offsets[rows] <= lasts[at])
        return out


@dataclass(frozen=True)
class RowSelection:
    """What is wanted of the rows of one file. Where ``control_records`` is False, those that brokers write for
    themselves are left out, as are the records of ``aborted`` transactions."""

    offsets: Range = EVERYTHING
    timestamps: Range = EVERYTHING
    control_records: bool = True
    aborted: Aborted | None = None

    def columns(self) -> tuple[str, ...]:
        """The columns of the view records that decide."""
        wanted = ["offset"] if self.offsets != EVERYTHING else []
        wanted += ["timestamp"] if self.timestamps != EVERYTHING else []
        wanted += [] if self.control_records else ["is_control"]
        wanted += (
            ["offset", "producer_id", "is_transactional", "is_control"] if self.aborted else []
        )
        return tuple(dict.fromkeys(wanted))

    def of(self, batch: pa.RecordBatch, policy: Policy) -> tuple[pa.RecordBatch, bool]:
        """The rows that are wanted, and whether more may follow: under ``kafka`` none does once an offset lies after the
        range, as offsets rise in a log."""
        more = True
        for name, (low, high) in (("offset", self.offsets), ("timestamp", self.timestamps)):
            if (low, high) == EVERYTHING or not batch.num_rows:
                continue
            values = numbers(batch, name)
            mask = None
            if high is not None and values.max() >= high:
                mask = values < high
                if name == "offset" and policy is Policy.KAFKA:
                    more = False
                    batch = batch.slice(0, int(mask.argmin()))
                    values, mask = values[: batch.num_rows], None
            if low is not None and len(values) and values.min() < low:
                mask = values >= low if mask is None else mask & (values >= low)
            if mask is not None:
                batch = batch.filter(pa.array(mask))
        return self._seen(batch), more

    def _seen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows without those that a consumer does not get."""
        keep = None
        if not self.control_records and batch.column("is_control").true_count:
            keep = ~numbers(batch, "is_control")
        if self.aborted and batch.column("is_transactional").true_count:
            data = numbers(batch, "is_transactional") & ~numbers(batch, "is_control")
            gone = data & self.aborted.mask(numbers(batch, "producer_id"), numbers(batch, "offset"))
            keep = ~gone if keep is None else keep & ~gone
        return batch if keep is None or keep.all() else batch.filter(pa.array(keep))


def numbers(batch: pa.RecordBatch, name: str) -> Any:
    """A column of numbers without nulls, as numpy has it."""
    return numbers_of(batch.column(name))


def numbers_of(column: pa.Array) -> Any:
    """Numbers without nulls, as numpy has them."""
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    return column.to_numpy(zero_copy_only=False)
