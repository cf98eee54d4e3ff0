"""Rows of a dump: what a scan gives, with keys and values read, and told what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.inspect.dump.decoding import Decoder
from kafka_log.segment.row_damage import COLUMNS as ROW_DAMAGE
from kafka_log.text.json_values import make_json_field

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
"""Those that are there without being asked for."""

TOLD = tuple(ROW_DAMAGE)
_READ = ("key", "value")


class DumpRows:
    """How rows of one partition become those of a dump.

    ``names`` are the columns. ``control`` says that control records are among them. ``told`` adds :data:`TOLD`: to all rows, or
    (``sparse``) to those of which there is something to say. ``fixed`` are columns that are texts whatever they hold.
    """

    def __init__(
        self,
        topic: str,
        names: Sequence[str],
        decoder: Decoder,
        *,
        control: bool,
        told: bool,
        sparse: bool,
        fixed: Sequence[str] | None = None,
    ) -> None:
        self.topic = topic
        self.decoder = decoder
        self.names = (*names, *TOLD) if told else tuple(names)
        self.sparse = told and sparse
        self.control = control
        self.fixed = fixed
        wanted = [n for n in _READ if n in self.names and decoder.changes(topic, n)]
        self.read = list(fixed) if fixed is not None else wanted
        reads = self.read or (control and fixed is None)
        hidden: tuple[str, ...] = (*_READ, "position", "segment") if reads else ()
        hidden += ("is_control",) if control and reads else ()
        self.needed = tuple(dict.fromkeys((*self.names, *hidden)))

    def parts(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows of a batch of a scan for the columns ``needed``: those one after the other that have the same columns."""
        if not self.sparse:
            yield self.shape(batch)
            return
        told = _told(batch)
        borders = [0, *(np.flatnonzero(told[1:] != told[:-1]) + 1).tolist(), batch.num_rows]
        for start, end in pairwise(borders):
            yield self.shape(batch.slice(start, end - start))

    def shape(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of one that have the same columns."""
        read = self.read
        controls = [False] * batch.num_rows
        if "is_control" in self.needed:
            controls = batch.column("is_control").to_pylist()
            if any(controls) and self.fixed is None:
                read = [name for name in _READ if name in self.names]
        names = self.names
        if self.sparse and not is_told(batch):
            names = tuple(name for name in names if name not in TOLD)
        columns = {name: (batch.schema.field(name), batch.column(name)) for name in names}
        if read:
            file = batch.column("segment")[0].as_py() if batch.num_rows else ""
            positions = batch.column("position").to_pylist()
            keys, values = batch.column("key"), batch.column("value")
            found = self.decoder.columns(self.topic, file, keys, values, controls, positions)
            for name, texts in zip(_READ, found, strict=True):
                if name in read:
                    columns[name] = make_json_field(name), pa.array(texts, pa.string())
        fields = [field for field, _ in columns.values()]
        arrays = [array for _, array in columns.values()]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def is_told(batch: pa.RecordBatch) -> bool:
    """Whether there is something to say of a row."""
    is_good = batch.column("crc_ok")
    bad = batch.column("damage").null_count < batch.num_rows
    return bad or bool(is_good.null_count) or is_good.false_count > 0


def _told(batch: pa.RecordBatch) -> Any:
    """Of which rows there is something to say."""
    if not is_told(batch):
        return np.zeros(batch.num_rows, np.bool_)
    bad = pc.or_(
        pc.invert(pc.fill_null(batch.column("crc_ok"), False)), batch.column("damage").is_valid()
    )
    return bad.to_numpy(zero_copy_only=False)


def without_no_time(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Null in the place of timestamps that say that there is none."""
    at = batch.schema.get_field_index("timestamp")
    if at < 0:
        return batch
    times = batch.column(at)
    none = pc.equal(times.view(pa.int64()), -1)
    if not pc.any(none).as_py():
        return batch
    return batch.set_column(at, "timestamp", pc.if_else(none, None, times))
