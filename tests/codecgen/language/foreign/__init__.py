"""Bytes of foreign formats with a value in each field, packed by the numbers of their specifications: no schema is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Case:
    """A layout of a foreign format, with bytes in which numbers differ and have their first bit set where they can.

    Attributes:
        format: Folder of the schema, and a file of it: `protobuf/wire`; without a file the one with the folder's name.
        codec: Name of the generated codec.
        data: Its bytes.
        values: All values in the order of the bytes; enum values by their labels.
        derived: Paths of values that a builder finds by itself.
        others: Other bytes that are right, with the values that differ from `values`.
        refused: Bytes that strict readers refuse, with the path of the error.
        never: Bytes that lenient readers refuse too, with the path of the error.
        is_open: Whether the layout takes all bytes to the end.
    """

    format: str
    codec: str
    data: bytes
    values: Mapping[str, Any]
    derived: tuple[str, ...] = ()
    others: tuple[tuple[bytes, Mapping[str, Any]], ...] = ()
    refused: tuple[tuple[bytes, str], ...] = ()
    never: tuple[tuple[bytes, str], ...] = ()
    is_open: bool = field(default=False, kw_only=True)

    @property
    def name(self) -> str:
        return f"{self.format}-{self.codec.lower()}"


def put(data: bytes, at: int, new: bytes) -> bytes:
    """Return `data` with `new` in the place of the bytes from `at` on."""
    return data[:at] + new + data[at + len(new) :]
