"""Programs for the kernel that writes lines (:mod:`kafka_log.text.line_kernel`), and the memory that it writes to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_log.text import line_kernel as kernel
from kafka_log.text.lines import Cell, Layout
from kafka_log.text.printing import printable
from kafka_log.text.table_output import is_json, json_text

CAPACITY = 4 << 20
"""Bytes of lines that are made at a time, unless one takes more."""

_SLACK = 64
_NUMBERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32())
_ALPHABET = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
_NULL = Cell("")


def is_known(schema: pa.Schema) -> bool:
    """Whether the kernel writes all the types of a schema."""
    return all(map(_is_known, schema.types))


def _is_known(kind: Any) -> bool:
    if pa.types.is_list(kind):
        inner = kind.value_type
        members = [f.type for f in inner] if pa.types.is_struct(inner) else [inner]
        return bool(members) and all(map(_is_flat, members))
    return _is_flat(kind)


def _is_flat(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        return bool(kind.index_type == pa.int32() and kind.value_type == pa.string())
    if pa.types.is_timestamp(kind):
        return bool(kind.unit == "ms")
    return kind in _NUMBERS or kind in (pa.bool_(), pa.binary(), pa.string())


def blocks(batch: pa.RecordBatch, layout: Layout | None) -> Iterator[memoryview]:
    """The lines of a batch, as :func:`kafka_log.text.lines.line_blocks` has them."""
    made = _Program(-1 if layout is None else layout.most)
    names = batch.schema.names
    for i, (field, array) in enumerate(zip(batch.schema, batch.columns, strict=True)):
        if layout is None:
            prefix = f"{', ' if i else '{'}{json_text(names[i])}: "
            made.add(field, array, Cell(prefix))
        else:
            made.add(field, array, layout.cells[i])
    yield from made.run(batch.num_rows)


@dataclass
class _Out:
    """Memory for lines."""

    capacity: int

    def __post_init__(self) -> None:
        self.memory = np.empty(self.capacity + _SLACK, np.uint8)


class _Program:
    """Entries for columns. ``most`` is as in ``format_rows``."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.entries: list[list[int]] = []
        self.kept: list[Any] = []

    def add(self, field: pa.Field, array: Any, cell: Cell) -> None:
        """A column, with its members."""
        if not pa.types.is_list(field.type):
            self._flat(field, array, cell)
            return
        entry = self._entry(kernel.LIST, array, cell)
        entry[kernel.OFFSETS // 8] = array.buffers()[1].address
        inner = array.values
        if pa.types.is_struct(inner.type):
            if inner.null_count:
                raise ValueError("a struct in a list is null")
            fields = list(inner.type)
            entry[kernel.MEMBERS // 8] = len(fields)
            entry[kernel.SUFFIX // 8] = int(self.most < 0)
            for i, member in enumerate(fields):
                prefix = "=" if i else ""
                if self.most < 0:
                    prefix = f"{', ' if i else '{'}{json_text(member.name)}: "
                self._flat(member, inner.field(i), Cell(prefix))
        else:
            entry[kernel.MEMBERS // 8] = 1
            self._flat(field.type.value_field, inner, _NULL)

    def _flat(self, field: pa.Field, array: Any, cell: Cell) -> None:
        kind = array.type
        if pa.types.is_dictionary(kind):
            self._terms(array, cell)
            return
        if kind in _NUMBERS:
            if pa.types.is_unsigned_integer(kind):
                array = array.cast(pa.int64())
            entry = self._entry(kernel.NUMBER, array, cell)
            entry[kernel.WIDTH // 8] = array.type.bit_width // 8
        elif pa.types.is_timestamp(kind):
            entry = self._entry(kernel.TIME, array, cell)
            entry[kernel.WIDTH // 8] = 8
        elif pa.types.is_boolean(kind):
            entry = self._entry(kernel.BOOL, array, cell)
        else:
            what = kernel.BYTES if pa.types.is_binary(kind) else kernel.TEXT
            entry = self._entry(kernel.RAW if is_json(field) else what, array, cell)
            _, offsets, data = array.buffers()
            entry[kernel.OFFSETS // 8] = self._address(offsets)
            entry[kernel.DATA // 8] = self._address(data)
            entry[kernel.END // 8] = 0 if data is None else data.address + data.size
            return
        entry[kernel.DATA // 8] = self._address(array.buffers()[1])

    def _terms(self, array: Any, cell: Cell) -> None:
        """Texts of which there are few, as they are written."""
        write = json_text if self.most < 0 else printable
        texts = [
            (cell.null if text is None else write(text)).encode("utf-8", "backslashreplace")
            for text in array.dictionary.to_pylist()
        ]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        entry = self._entry(kernel.TERM, array.indices, cell)
        entry[kernel.DATA // 8] = self._address(array.indices.buffers()[1])
        entry[kernel.OFFSETS // 8] = self._memory(ends)
        entry[kernel.SUFFIX // 8] = self._literal(b"".join(texts))
        entry[kernel.WIDTH // 8] = max(map(len, texts), default=0)

    def _entry(self, kind: int, array: Any, cell: Cell) -> list[int]:
        """An entry with what all have."""
        entry = [0] * kernel.FIELDS
        prefix, null = cell.prefix.encode("utf-8"), cell.null.encode("utf-8")
        validity = array.buffers()[0] if array.null_count else None
        entry[kernel.KIND // 8] = kind
        entry[kernel.VALIDITY // 8] = self._address(validity)
        entry[kernel.FIRST // 8] = array.offset
        entry[kernel.PREFIX // 8] = self._literal(prefix)
        entry[kernel.PREFIX_SIZE // 8] = len(prefix)
        entry[kernel.NULL // 8] = self._literal(null)
        entry[kernel.NULL_SIZE // 8] = len(null)
        entry[kernel.PAD // 8] = cell.pad
        self.entries.append(entry)
        self.kept.append(array)
        return entry

    def _address(self, buffer: Any) -> int:
        return 0 if buffer is None else int(buffer.address)

    def _literal(self, data: bytes) -> int:
        return self._memory(np.frombuffer(data or b"\0", np.uint8))

    def _memory(self, array: Any) -> int:
        self.kept.append(array)
        return int(array.ctypes.data)

    def run(self, rows: int) -> Iterator[memoryview]:
        """The lines of so many rows."""
        program = np.array(self.entries, np.int64)
        said = np.zeros(4, np.int64)
        out = _Out(CAPACITY)
        table = 0
        first = 0
        while first < rows:
            kernel.format_rows(
                program.ctypes.data,
                len(program),
                first,
                rows,
                out.memory.ctypes.data,
                out.capacity,
                self.most,
                _ALPHABET.ctypes.data,
                table,
                said.ctypes.data,
            )
            first, size, wanted, needs_table = map(int, said)
            if size:
                yield out.memory[:size].data
            if wanted > out.capacity:
                out = _Out(wanted)
            if needs_table:
                table = int(_printable().ctypes.data)


@cache
def _printable() -> Any:
    """A bit for each character that can be printed."""
    characters = map(chr, range(0x110000))
    bits = np.fromiter(map(str.isprintable, characters), np.bool_, 0x110000)
    return np.packbits(bits, bitorder="little")
