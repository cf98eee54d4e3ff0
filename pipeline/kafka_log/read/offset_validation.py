"""Validation of offsets by the names of segments and by neighboring batches, as no checksum covers the base offset of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_log.segment.kernels import Engine
from kafka_log.segment.offsets_of_files import MAX_RELATIVE, offsets_of
from kafka_log.segment.placement import FROM_ZERO, find_outside_segment, find_unambiguous
from kafka_log.segment.reader import SegmentReader, batch_damage
from kafka_log.segment.row_masks import numbers, numbers_of

NEIGHBOR_BYTES = 1 << 20
"""Number of bytes after the end of the range whose headers are read too: a later batch checks the offsets of the last one."""

_HEADERS = ("position", "base_offset", "last_offset")
_NONE = np.empty(0, np.int64)
_MOST = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class _Batches:
    """Undamaged batches of a file: their positions, which of them have valid offsets, and why the
    others are invalid.

    ``good`` are the positions of all; ``valid``, ``first`` and ``last`` position, first and last offset of those with valid
    offsets; ``invalid`` describes the offsets of the others, by position.
    """

    good: Any
    valid: Any
    first: Any
    last: Any
    invalid: dict[int, str] = field(default_factory=dict)

    def neighboring_offsets(self, position: int) -> tuple[int, int]:
        """Return the last valid offset before ``position`` (-1 if there is none) and the first one after it (2**63 - 1)."""
        i = int(np.searchsorted(self.valid, position))
        before = int(self.last[i - 1]) if i else -1
        return before, int(self.first[i]) if i < len(self.first) else _MOST

    def find_invalid(self, offsets: Any, positions: Any) -> Any:
        """Return a NumPy mask: True for each row whose offset is invalid, by the offsets of rows
        and the positions of their batches. An invalid batch makes all its rows invalid; a row of a
        damaged batch must lie between the neighboring valid batches.
        """
        invalid = np.isin(positions, np.array([*self.invalid], np.int64))
        at = np.searchsorted(self.good, positions)
        for i in np.flatnonzero(np.append(self.good, -1)[at] != positions).tolist():
            before, after = self.neighboring_offsets(int(positions[i]))
            invalid[i] = not before < offsets[i] < after
        return invalid


class OffsetValidator:
    """Marks rows of a file whose offset is invalid, in the column ``damage``.

    The headers of the file are read before its first rows. Checksums are verified only if the offsets in the headers do not ascend, to
    find out which batches are valid. For files in a store only the names of segments are used, as each header would be a request.
    """

    COLUMNS = ("offset", "position")
    """Columns that the rows must have, and ``damage``."""

    def __init__(self, reader: SegmentReader, engine: Engine) -> None:
        """Prepare the validation of the bytes that ``reader`` reads; nothing is read yet."""
        self._reader = reader
        self._engine = engine
        self._allowed = offsets_of(reader.path, reader.options.next_base)
        self._searched = False
        self._batches: _Batches | None = None
        """None if the batches show no invalid offset."""

    def annotate(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return ``rows`` (at least one) with each invalid offset described in the column
        ``damage``, after what it says already: an offset that does not fit the segment's name or
        the neighboring batches. Return ``rows`` itself if all are valid. The first call reads batch
        headers of the file, unless it is in a store.
        """
        if not self._searched:
            self._searched, self._batches = True, self._find()
        offsets, positions = (numbers(rows, name) for name in self.COLUMNS)
        invalid = np.zeros(len(offsets), np.bool_)
        allowed = self._allowed
        if allowed is not None and not (
            allowed.start <= offsets.min() <= offsets.max() < allowed.stop
        ):
            invalid |= (offsets < allowed.start) | (offsets >= allowed.stop)
        if self._batches is not None:
            invalid |= self._batches.find_invalid(offsets, positions)
        if not invalid.any():
            return rows
        damage = rows.column("damage").to_pylist()
        for row in np.flatnonzero(invalid).tolist():
            reason = f"offset {offsets[row]} {self._reason(int(offsets[row]), int(positions[row]))}"
            damage[row] = reason if damage[row] is None else f"{damage[row]}; {reason}"
        at = rows.schema.get_field_index("damage")
        return rows.set_column(at, rows.schema.field(at), pa.array(damage, pa.string()))

    def _reason(self, offset: int, position: int) -> str:
        """Return why an offset of the batch at ``position`` is invalid, as the end of a sentence:
        it does not fit the batches beside it, or the segment's base offset or the next one.
        """
        allowed, batches = self._allowed, self._batches
        if batches is not None and (allowed is None or offset in allowed):
            return batches.invalid.get(position) or _describe_neighbors(
                *batches.neighboring_offsets(position)
            )
        assert allowed is not None
        said = f"cannot be in a segment that begins at {allowed.start}"
        if allowed.stop <= offset < allowed.start + MAX_RELATIVE + 1:
            return f"{said}: the next one begins at {allowed.stop}"
        return f"{said}: it has room for {MAX_RELATIVE + 1} offsets"

    def _find(self) -> _Batches | None:
        """Return the undamaged batches of the file, with the invalid ones among them. Return None
        if the offsets of all batches ascend, so that no batch contradicts another, or the file is
        in a store.
        """
        if getattr(self._reader.path, "is_remote", False) or self._ascends():
            return None
        position, first, last = self._headers()
        allowed = self._allowed
        base = None if allowed is None else allowed.start
        outside = find_outside_segment(first, last, base, self._reader.options.next_base)
        bounds = FROM_ZERO if allowed is None else (allowed.start, allowed.stop)
        valid = find_unambiguous(first, last, outside, bounds)
        found = _Batches(position, position[valid], first[valid], last[valid])
        for i in np.flatnonzero(~valid).tolist():
            before, after = found.neighboring_offsets(int(position[i]))
            if before < first[i] <= last[i] < after:  # one of two that contradict each other
                before = int(last[i - 1]) if i else -1
                after = int(first[i + 1]) if i + 1 < len(first) else _MOST
            found.invalid[int(position[i])] = _describe_neighbors(before, after)
        return found

    def _options(self) -> dict[str, Any]:
        """Return the keyword options for a scanner of the bytes that are read and of 1 MiB
        after them; of the whole file if the reader has no stop.
        """
        given = self._reader.options
        stop = None if given.stop is None else given.stop + NEIGHBOR_BYTES
        options = {"start": given.start, "stop": stop, "tail": given.tail, "size": given.size}
        return options | {"limits": given.limits, "engine": self._engine}

    def _ascends(self) -> bool:
        """Return whether the file consists of whole batches whose offsets ascend, by their headers.
        Return False if it has damage or an incomplete batch; zeros at its end are allowed.
        """
        from kafka_log.segment.scanner import header_scanner

        scanner = header_scanner(self._reader.path, _HEADERS, on_damage="keep", **self._options())
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
        """Return three NumPy arrays in file order: the position, the first and the last offset of
        each undamaged batch (checksums are verified). If the header does not state the first
        offset, the last one stands in its place. The arrays are empty if there is no such batch.
        """
        from kafka_log.segment.block_reader import BlockScanner
        from kafka_log.segment.blocks import COUNTED

        given = self._reader.options
        options = {
            "salvage_records": given.salvage_records,
            "next_base": given.next_base,
            **self._options(),
        }
        scanner = BlockScanner(given.path, COUNTED, given.policy, records=False, **options)
        parts = [(_NONE,) * 3, *_iterate_undamaged(scanner.items())]
        position, first, last = map(np.concatenate, zip(*parts, strict=True))
        return position, first, last


def _iterate_undamaged(items: Iterator[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield tuples of three arrays, of positions, first and last offsets of undamaged batches in
    file order. A batch without a first offset has its last one in its place.
    """
    from kafka_log.segment.blocks import Block

    for item in items:
        if isinstance(item, Block):
            position, last = (numbers(item.batch_headers, n) for n in ("position", "last_offset"))
            yield position, item.base_offsets(), last
        elif not batch_damage(item):
            first = item.last_offset if item.base_offset is None else item.base_offset
            yield tuple(np.array([[item.position], [first], [item.last_offset]], np.int64))


def _describe_neighbors(before: int, after: int) -> str:
    """Return the end of a sentence that says that an offset does not fit the batches beside it: the
    last offset before (-1: none) and the first one after it (2**63 - 1: none).
    """
    sides = []
    if before >= 0:
        sides.append(f"the one before ends with {before}")
    if after < _MOST:
        sides.append(f"the one after begins with {after}")
    return f"does not fit the batches beside it: {', '.join(sides) or 'there are none'}"
