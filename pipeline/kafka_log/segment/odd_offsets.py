"""Rows whose offsets cannot be. No checksum covers the first offset of a batch: the names of segments and the batches beside it do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_log.segment.kernels import Engine
from kafka_log.segment.offsets_of_files import MAX_RELATIVE, offsets_of
from kafka_log.segment.placement import certain, outside
from kafka_log.segment.reader import SegmentReader, batch_damage
from kafka_log.segment.row_masks import numbers, numbers_of

BEHIND = 1 << 20
"""Bytes behind those that are read of which the headers are looked at too: the batch there says whether the last one may be."""

_HEADERS = ("position", "base_offset", "last_offset")
_NONE = np.empty(0, np.int64)
_MOST = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class _Batches:
    """Good batches of a file: where they lie; of those whose offsets can be, the place, the first and the last offset; and what is to be
    said of the others, by their places."""

    good: Any
    placed: Any
    first: Any
    last: Any
    odd: dict[int, str] = field(default_factory=dict)

    def around(self, position: int) -> tuple[int, int]:
        """The last offset before a place, and the first one after it."""
        i = int(np.searchsorted(self.placed, position))
        before = int(self.last[i - 1]) if i else -1
        return before, int(self.first[i]) if i < len(self.first) else _MOST

    def wrong(self, offsets: Any, places: Any) -> Any:
        """Which rows have offsets that cannot be. Of batches that are not good each may be wrong by itself."""
        wrong = np.isin(places, np.array([*self.odd], np.int64))
        at = np.searchsorted(self.good, places)
        for i in np.flatnonzero(np.append(self.good, -1)[at] != places).tolist():
            before, after = self.around(int(places[i]))
            wrong[i] = not before < offsets[i] < after
        return wrong


class OddOffsets:
    """Tells rows of a file of which the offset cannot be, in their column ``damage``. ``reader`` says what is read of it.

    The headers of a file are looked through when its first rows come. Only where their offsets do not rise its checksums are verified, to
    know which batches are to be believed. Files in a store are asked for their names only: each header would be a request.
    """

    COLUMNS = ("offset", "position")
    """What it needs of the rows."""

    def __init__(self, reader: SegmentReader, engine: Engine) -> None:
        self._reader = reader
        self._engine = engine
        self._allowed = offsets_of(reader.path, reader.next_base)
        self._looked = False
        self._batches: _Batches | None = None
        """None: there is nothing to say of any."""

    def tell(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows."""
        if not self._looked:
            self._looked, self._batches = True, self._find()
        offsets, places = (numbers(rows, name) for name in self.COLUMNS)
        wrong = np.zeros(len(offsets), np.bool_)
        allowed = self._allowed
        if allowed is not None and not (
            allowed.start <= offsets.min() <= offsets.max() < allowed.stop
        ):
            wrong |= (offsets < allowed.start) | (offsets >= allowed.stop)
        if self._batches is not None:
            wrong |= self._batches.wrong(offsets, places)
        if not wrong.any():
            return rows
        told = rows.column("damage").to_pylist()
        for row in np.flatnonzero(wrong).tolist():
            said = f"offset {offsets[row]} {self._why(int(offsets[row]), int(places[row]))}"
            told[row] = said if told[row] is None else f"{told[row]}; {said}"
        at = rows.schema.get_field_index("damage")
        return rows.set_column(at, rows.schema.field(at), pa.array(told, pa.string()))

    def _why(self, offset: int, position: int) -> str:
        allowed, batches = self._allowed, self._batches
        if batches is not None and (allowed is None or offset in allowed):
            return batches.odd.get(position) or _between(*batches.around(position))
        assert allowed is not None
        said = f"cannot be in a segment that begins at {allowed.start}"
        if allowed.stop <= offset < allowed.start + MAX_RELATIVE + 1:
            return f"{said}: the next one begins at {allowed.stop}"
        return f"{said}: it has room for {MAX_RELATIVE + 1} offsets"

    def _find(self) -> _Batches | None:
        if getattr(self._reader.path, "is_remote", False) or self._rises():
            return None
        position, first, last = self._headers()
        base = None if self._allowed is None else self._allowed.start
        placed = certain(first, last, outside(first, last, base, self._reader.next_base))
        found = _Batches(position, position[placed], first[placed], last[placed])
        for i in np.flatnonzero(~placed).tolist():
            before, after = found.around(int(position[i]))
            if before < first[i] <= last[i] < after:  # one of two that contradict each other
                before = int(last[i - 1]) if i else -1
                after = int(first[i + 1]) if i + 1 < len(first) else _MOST
            found.odd[int(position[i])] = _between(before, after)
        return found

    def _options(self) -> dict[str, Any]:
        reader = self._reader
        stop = None if reader.stop is None else reader.stop + BEHIND
        options = {"start": reader.start, "stop": stop, "tail": reader.tail, "size": reader.size}
        return options | {"limits": reader.limits, "engine": self._engine}

    def _rises(self) -> bool:
        """Whether the file is one of whole batches, as far as their headers say, with offsets that rise."""
        from kafka_log.segment.columnar import BatchScanner

        scanner = BatchScanner(self._reader.path, _HEADERS, on_damage="keep", **self._options())
        before = -1
        for headers in scanner:
            last = numbers(headers, "last_offset")
            bases = headers.column("base_offset")
            first = np.where(bases.is_null(), last, numbers_of(bases.fill_null(0)))
            if first[0] <= before or bool((last < first).any() | (first[1:] <= last[:-1]).any()):
                return False
            before = int(last[-1])
        return scanner.end is not None and scanner.end.stop in ("eof", "zeros")

    def _headers(self) -> tuple[Any, Any, Any]:
        """Of all good batches the place, the first and the last offset."""
        from kafka_log.segment.block_reader import BlockScanner
        from kafka_log.segment.blocks import COUNTED

        reader = self._reader
        options = {"rescue": reader.rescue, "next_base": reader.next_base, **self._options()}
        scanner = BlockScanner(reader.path, COUNTED, reader.policy, records=False, **options)
        parts = [(_NONE,) * 3, *_parts(scanner.items())]
        position, first, last = map(np.concatenate, zip(*parts, strict=True))
        return position, first, last


def _parts(items: Iterator[Any]) -> Iterator[tuple[Any, Any, Any]]:
    from kafka_log.segment.blocks import Block

    for item in items:
        if isinstance(item, Block):
            position, last = (numbers(item.batch_headers, n) for n in ("position", "last_offset"))
            yield position, item.base_offsets(), last
        elif not batch_damage(item):
            first = item.last_offset if item.base_offset is None else item.base_offset
            yield tuple(np.array([[item.position], [first], [item.last_offset]], np.int64))


def _between(before: int, after: int) -> str:
    sides = []
    if before >= 0:
        sides.append(f"the one before ends with {before}")
    if after < _MOST:
        sides.append(f"the one after begins with {after}")
    return f"does not fit the batches beside it: {', '.join(sides) or 'there are none'}"
