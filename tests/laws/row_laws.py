"""Laws about the functions of rows: they give what the laws' own reading of a view says."""

from __future__ import annotations

import importlib
from typing import Any

from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits, Session, Source
from codecgen.runtime.rows import Place
from tests.laws.made import Generated
from tests.laws.memory import Broken
from tests.laws.reference import Entry, float_bits


def row_functions(
    made: Generated, name: str, data: bytes, entries: list[Entry], limits: Limits
) -> None:
    """The functions of rows give the rows of entries that are as they should be. Raises Broken."""
    view = getattr(importlib.import_module(f"{made.package}.rows.{name}"), name.upper())
    for entry in entries:
        if entry.rows is None or entry.header_only:
            continue
        own = data[entry.start : entry.end]
        source = Source(own, Session(limits=limits))
        try:
            layout = view.of.case(source)
            opened = layout.open(source)
            place = Place(entry.start, len(own))
            rows = [tuple(map(plain, row)) for row in view.rows(layout, opened, place)]
        except CodecError as error:
            raise Broken(f"rows of {name}: {own.hex()} is refused: {error}") from error
        wanted = [tuple(map(plain, row.values())) for row in entry.rows]
        if rows != wanted:
            raise Broken(f"rows of {name}: {own.hex()} is {rows}, not {wanted}")


def plain(value: Any) -> Any:
    """A value with structs and lists as tuples, and floats by their bits."""
    if isinstance(value, dict):
        return tuple(map(plain, value.values()))
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    return float_bits(value) if isinstance(value, float) else value
