"""Rows of a dump: rows of a scan with decoded keys and values, and with damage columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_log.inspect.dump.decoding import KeyValueDecoder
from kafka_log.read.schemas import PARTS
from kafka_log.segment.row_damage import COLUMNS as ROW_DAMAGE
from kafka_log.text.json_values import make_json_field

DEFAULT_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
"""Default columns."""

DAMAGE_COLUMNS = tuple(ROW_DAMAGE)

PROBLEM_COLUMNS = {name: f"{name}_problem" for name in PARTS}
"""Columns with the reasons why keys and values are not decoded with schemas."""


class DumpRows:
    """Converter from the rows of a scan of one partition to the rows of a dump.

    Args:
        topic: Topic of the partition.
        names: Output columns.
        decoder: Decoder of keys and values.
        control: Whether the rows include control records.
        with_damage: Add :data:`DAMAGE_COLUMNS`.
        sparse: Add them only to rows with damage.
        text_columns: Columns of keys and values that are always text. By default decoded columns, and all of a batch with
            control records.
        problem_columns: Columns of keys and values that :data:`PROBLEM_COLUMNS` always follow. By default those that are
            decoded with schemas.
    """

    def __init__(
        self,
        topic: str,
        names: Sequence[str],
        decoder: KeyValueDecoder,
        *,
        control: bool,
        with_damage: bool,
        sparse: bool,
        text_columns: Sequence[str] | None = None,
        problem_columns: Sequence[str] | None = None,
    ) -> None:
        self.topic = topic
        self.decoder = decoder
        self.names = (*names, *DAMAGE_COLUMNS) if with_damage else tuple(names)
        self.sparse = with_damage and sparse
        self.control = control
        self.text_columns = text_columns
        self.problem_columns = problem_columns
        wanted = [n for n in PARTS if n in self.names and decoder.may_decode(topic, n)]
        self.read = list(text_columns) if text_columns is not None else wanted
        self.reads_control = control and any(name in self.names for name in PARTS)
        reads = self.read or self.reads_control
        hidden: tuple[str, ...] = (*PARTS, "position", "segment") if reads else ()
        hidden += ("is_control",) if self.reads_control else ()
        hidden += ("headers", "offset") if reads and decoder.formats.uses_columns else ()
        self.needed = tuple(dict.fromkeys((*self.names, *hidden)))

    def split_rows(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the output rows of one batch of a scan of the columns ``needed``. If ``sparse``,
        split it where damaged rows begin or end, because only they have the damage columns; else
        yield it whole.
        """
        if not self.sparse:
            yield self.build_rows(batch)
            return
        is_damaged = _damage_mask(batch)
        borders = [
            0,
            *(np.flatnonzero(is_damaged[1:] != is_damaged[:-1]) + 1).tolist(),
            batch.num_rows,
        ]
        for start, end in pairwise(borders):
            yield self.build_rows(batch.slice(start, end - start))

    def build_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the output rows of a batch of a scan. Keys and values of all its rows are decoded
        into text if their format says so or, unless ``text_columns`` is given, if any of its rows
        is a control record. The decoder counts control records that cannot be decoded, also if
        their bytes are not shown as text. If ``sparse`` and no row is damaged or has an unverified checksum, the
        damage columns are left out. Undecodable bytes are shown as bytes; if they are decoded with
        schemas, one of :data:`PROBLEM_COLUMNS` follows. Formats that need schemas raise a
        ValueError, DirectoryError, OSError or ModuleNotFoundError if these cannot be used.
        """
        read, decoder = self.read, self.decoder
        if self.text_columns is None and batch.num_rows:
            read = [name for name in read if decoder.is_decoded(self.topic, name)]
        controls = [False] * batch.num_rows
        if self.reads_control:
            controls = batch.column("is_control").to_pylist()
            if any(controls) and self.text_columns is None:
                read = [name for name in PARTS if name in self.names]
        names = self.names
        if self.sparse and not has_damage(batch):
            names = tuple(name for name in names if name not in DAMAGE_COLUMNS)
        columns = {name: (batch.schema.field(name), batch.column(name)) for name in names}
        problems: dict[str, list[str | None]] = {}
        if read or any(controls):
            file = batch.column("segment")[0].as_py() if batch.num_rows else ""
            positions = batch.column("position").to_pylist()
            keys, values = batch.column("key"), batch.column("value")
            headers = batch.column("headers") if decoder.formats.uses_columns else None
            found = decoder.decode_columns(
                self.topic, file, keys, values, controls, positions, headers
            )
            problems.update(found.problems)
            for name in read:
                columns[name] = make_json_field(name), pa.array(found.texts[name], pa.string())
        fields, arrays = [], []
        for name, (field, array) in columns.items():
            fields.append(field)
            arrays.append(array)
            if name in (problems if self.problem_columns is None else self.problem_columns):
                reasons = problems.get(name, [None] * batch.num_rows)
                fields.append(pa.field(PROBLEM_COLUMNS[name], pa.string()))
                arrays.append(pa.array(reasons, pa.string()))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def split_at_problems(
    rows: pa.RecordBatch, offsets: pa.Array
) -> Iterator[tuple[pa.RecordBatch, str | None]]:
    """Yield rows in order without :data:`PROBLEM_COLUMNS`, in slices: rows with one reason, with a
    line for text that follows them, and rows that are decoded, with None. ``offsets`` has the offset
    of each row.
    """
    names = {
        name: column for name, column in PROBLEM_COLUMNS.items() if column in rows.schema.names
    }
    plain = rows.drop_columns(list(names.values()))
    columns = [rows.column(column).to_pylist() for column in names.values()]
    problems = list(zip(*columns, strict=True)) or [()] * rows.num_rows
    for reasons, group in groupby(range(rows.num_rows), key=problems.__getitem__):
        found = list(group)
        first, last = offsets[found[0]], offsets[found[-1]]
        where = (
            f"the row above (offset {first})"
            if len(found) == 1
            else f"the {len(found):,} rows above (offsets {first} to {last})"
        )
        line = "; ".join(
            f"{name} not decoded: {reason}"
            for name, reason in zip(names, reasons, strict=True)
            if reason is not None
        )
        yield plain.slice(found[0], len(found)), f"!! {where}: {line}" if line else None


def has_damage(batch: pa.RecordBatch) -> bool:
    """Return whether any row has an unverified or wrong checksum, or damage."""
    is_good = batch.column("crc_ok")
    damaged = batch.column("damage").null_count < batch.num_rows
    return damaged or bool(is_good.null_count) or is_good.false_count > 0


def _damage_mask(batch: pa.RecordBatch) -> Any:
    """Return a NumPy mask of the rows whose checksum is wrong or unverified (``crc_ok`` False or
    null), or that have a text in ``damage``. The batch must have both columns.
    """
    if not has_damage(batch):
        return np.zeros(batch.num_rows, np.bool_)
    damaged = pc.or_(
        pc.invert(pc.fill_null(batch.column("crc_ok"), False)), batch.column("damage").is_valid()
    )
    return damaged.to_numpy(zero_copy_only=False)


def null_missing_timestamps(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with null instead of the timestamp -1, which means that a record has none.
    Return it unchanged if it has no column ``timestamp`` or no such value.
    """
    at = batch.schema.get_field_index("timestamp")
    if at < 0:
        return batch
    times = batch.column(at)
    none = pc.equal(times.view(pa.int64()), -1)
    if not pc.any(none).as_py():
        return batch
    return batch.set_column(at, "timestamp", pc.if_else(none, None, times))
