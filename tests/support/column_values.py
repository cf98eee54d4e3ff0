"""The values of columns as NumPy arrays, and Arrow arrays made of them with whatever before and after the rows."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

Generator = np.random.Generator
Allocate = Callable[[int], Any]


@dataclass(frozen=True, slots=True)
class Values:
    """Values of an Arrow type. ``valid`` is None where nothing is null; ``ends`` are offsets into ``data``, or, of
    lists, into the elements, which ``members`` are parts of."""

    kind: pa.DataType
    rows: int
    valid: Any = None
    data: Any = None
    ends: Any = None
    members: tuple[Values, ...] = ()

    def part(self, first: int, last: int) -> Values:
        valid = None if self.valid is None else self.valid[first:last]
        if self.ends is None:
            return replace(self, rows=last - first, valid=valid, data=self.data[first:last])
        ends = self.ends[first : last + 1]
        start, end = int(ends[0]), int(ends[-1])
        ends = ends - start
        if self.members:
            members = tuple(member.part(start, end) for member in self.members)
            return replace(self, rows=last - first, valid=valid, ends=ends, members=members)
        data = self.data[start:end]
        return replace(self, rows=last - first, valid=valid, ends=ends, data=data)


def numbers(kind: pa.DataType, data: Any, valid: Any = None) -> Values:
    return Values(kind, len(data), valid, data)


def texts(kind: pa.DataType, sizes: Any, data: Any, valid: Any = None) -> Values:
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return Values(kind, len(sizes), valid, data[: ends[-1]], ends)


def lists(kind: pa.DataType, sizes: Any, members: tuple[Values, ...], valid: Any = None) -> Values:
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return Values(kind, len(sizes), valid, None, ends, members)


@dataclass(frozen=True, slots=True)
class Layout:
    """How arrays lie in memory: ``allocate`` gives that; where ``g`` is there, junk lies before the rows, so that they
    begin anywhere, now and then after them, and what may be left out is there or not."""

    allocate: Allocate
    g: Generator | None = None

    def lead(self, most: int = 20) -> int:
        if self.g is None or self.g.random() < 0.3:
            return 0
        return int(self.g.integers(0, most))

    def often(self, chance: float) -> bool:
        return self.g is not None and bool(self.g.random() < chance)


def plain() -> Layout:
    return Layout(lambda size: pa.allocate_buffer(size))


def array(values: Values, layout: Layout) -> Any:
    """An Arrow array of the values."""
    kind, rows = values.kind, values.rows
    lead = layout.lead()
    trail = layout.lead(5) if layout.often(0.15) else 0
    count = lead + rows + trail
    validity, missing = _validity(values, lead, count, layout)
    if values.members:
        before, front = layout.lead(3), layout.lead(4)
        back = layout.lead(3) if layout.often(0.2) else 0
        padded = [_padded(member, before + front, back, layout) for member in values.members]
        children = [array(member, layout) for member in padded]
        elements = front + int(values.ends[-1]) + back
        structs = pa.Array.from_buffers(
            kind.value_type, elements, [None], 0, before, children=children
        )
        ends = _buffer(_ends(values, lead, trail, front, back), layout)
        return pa.Array.from_buffers(
            kind, rows, [validity, ends], missing, lead, children=[structs]
        )
    if values.ends is not None:
        front = layout.lead(40)
        back = layout.lead(70) if layout.often(0.2) else 0
        ends = _ends(values, lead, trail, front, back)
        data = _bytes(values.data, front, back)
        buffers = [validity, _buffer(ends, layout), _buffer(data, layout)]
        return pa.Array.from_buffers(kind, rows, buffers, missing, lead)
    if pa.types.is_boolean(kind):
        bits = _bits(values.data, lead, count, layout)
        return pa.Array.from_buffers(kind, rows, [validity, bits], missing, lead)
    width = kind.bit_width // 8
    if not count and layout.often(0.2):
        return pa.Array.from_buffers(kind, 0, [None, None])  # producers may leave it out
    data = _bytes(np.ascontiguousarray(values.data).view(np.uint8), lead * width, trail * width)
    return pa.Array.from_buffers(kind, rows, [validity, _buffer(data, layout)], missing, lead)


def _validity(values: Values, lead: int, count: int, layout: Layout) -> tuple[Any, int]:
    """The bitmap, and how many are null, which arrays may leave open."""
    if values.valid is None:
        if not layout.often(0.2):
            return None, 0
        valid = np.ones(values.rows, np.bool_)
    else:
        valid = values.valid
    missing = -1 if layout.often(0.5) else int(values.rows - np.count_nonzero(valid))
    return _bits(valid, lead, count, layout), missing


def _bits(data: Any, lead: int, count: int, layout: Layout) -> Any:
    bits = np.zeros(count, np.bool_)
    if layout.g is not None and lead:
        bits[:lead] = layout.g.random(lead) < 0.5
    bits[lead : lead + len(data)] = data
    return _buffer(np.packbits(bits, bitorder="little"), layout)


def _ends(values: Values, lead: int, trail: int, front: int, back: int) -> Any:
    """Offsets; those of rows before and after say something about what lies there."""
    rows = values.rows
    ends = np.empty(lead + rows + trail + 1, np.int32)
    ends[:lead] = np.minimum(np.arange(lead), front)
    ends[lead : lead + rows + 1] = values.ends + front
    if trail:
        last = front + int(values.ends[-1])
        ends[lead + rows + 1 :] = last + np.minimum(np.arange(1, trail + 1), back)
    return ends


def _padded(member: Values, front: int, back: int, layout: Layout) -> Values:
    """With elements before and after that no row has, with bytes that are no text."""
    if not front and not back:
        return member
    valid = None
    if member.valid is not None:
        valid = np.concatenate([np.ones(front, np.bool_), member.valid, np.ones(back, np.bool_)])
    before, after = (np.arange(n + 1) * 2 for n in (front, back))
    last = 2 * front + int(member.ends[-1])
    ends = np.concatenate([before[:-1], member.ends + 2 * front, last + after[1:]])
    data = _bytes(member.data, 2 * front, 2 * back)
    return replace(member, rows=member.rows + front + back, valid=valid, data=data, ends=ends)


def _bytes(data: Any, front: int, back: int) -> Any:
    if not front and not back:
        return data
    out = np.full(front + len(data) + back, 0xFE, np.uint8)
    out[front : front + len(data)] = data
    return out


def _buffer(data: Any, layout: Layout) -> Any:
    """The bytes in memory of the layout; some producers' buffers have more bytes than they need."""
    data = np.ascontiguousarray(data).view(np.uint8)
    spare = int(layout.g.integers(1, 80)) if layout.g is not None and layout.often(0.08) else 0
    buffer = layout.allocate(len(data) + spare)
    if len(data):
        ctypes.memmove(buffer.address, data.ctypes.data, len(data))
    return buffer
