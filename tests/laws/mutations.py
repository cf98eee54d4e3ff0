"""Bytes and values that are not what they were."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any
from uuid import UUID

EDGES = (0, 1, 2, 127, 128, 129, 254, 255)


def mutated(data: bytes, r: random.Random, number: int) -> Iterator[bytes]:
    """Some mutants: a cut, a flipped bit, other bytes, bytes more or less, a varint with another end."""
    for _ in range(number):
        part = bytearray(data)
        for _ in range(r.choice((1, 1, 1, 2))):
            _mutate(part, r)
        yield bytes(part)


def _mutate(part: bytearray, r: random.Random) -> None:
    kind = r.randrange(7)
    at = r.randrange(len(part)) if part else 0
    if kind == 0:
        del part[at:]
    elif kind == 1 and part:
        part[at] ^= 1 << r.randrange(8)
    elif kind == 2 and part:
        part[at] = r.choice(EDGES)
    elif kind == 3:
        part[at:at] = bytes(r.choice(EDGES) for _ in range(r.choice((1, 1, 2, 9))))
    elif kind == 4:
        del part[at : at + r.choice((1, 1, 2, 4))]
    elif kind == 5:
        part += bytes(r.choice(EDGES) for _ in range(r.choice((1, 2, 8))))
    elif part:
        # A varint that goes on: one byte more, with the same number or another one.
        part[at] |= 0x80
        part[at + 1 : at + 1] = r.choice((b"\0", b"\x80\0", b"\x01", b"\xff" * 9))


LEAVES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, 3, -1, -2, 63, 64, 127, 128, 255, 1 << 31, -(1 << 31), 1 << 63, 1 << 64),
    *(1.0, 0.5, float("nan"), "", "none", "NONE", "x\0", "\ud800", b"", b"x\0", bytes(200), bytearray(b"k")),
    *(memoryview(b"v"), UUID(int=5), [], (), {}, {"_known": 1}, [None], [1, 2], {"unknown": 1}, object),
)  # fmt: skip
"""What values are replaced by: of each type, and at the ends of ranges."""


def mutated_values(value: Any, r: random.Random, number: int) -> Iterator[Any]:
    """Some mutants of a value to build: fields left out, added, replaced and exchanged, elements more, fewer or in
    another order, other classes of mappings and sequences. The value itself stays as it is.
    """
    for _ in range(number):
        mutant = copy.deepcopy(value)
        for _ in range(r.choice((1, 1, 1, 2, 3))):
            mutant = _changed(mutant, r)
        yield mutant


def _leaf(r: random.Random) -> Any:
    """Another value; containers are new ones."""
    found = r.choice(LEAVES)
    return copy.copy(found) if isinstance(found, dict | list) else found


def _changed(value: Any, r: random.Random) -> Any:
    """A value with one change, here or inside of it."""
    if isinstance(value, dict) and value and r.randrange(8):
        name = r.choice(list(value))
        kind = r.randrange(8)
        if kind == 0:
            del value[name]
        elif kind == 1:
            value[name] = value[r.choice(list(value))]
        elif kind == 2:
            value[r.choice(("_known", "unknown", "offset", "timestamp"))] = _leaf(r)
        else:
            value[name] = _changed(value[name], r)
        return value
    if isinstance(value, dict):
        return r.choice((dict(value), list(value), _leaf(r), _leaf(r)))
    if isinstance(value, list | tuple) and value and r.randrange(8):
        items = list(value)
        at = r.randrange(len(items))
        kind = r.randrange(8)
        if kind == 0:
            del items[at]
        elif kind == 1:
            items.insert(at, items[at])
        elif kind == 2:
            items.reverse()
        elif kind == 3:
            return tuple(items)
        else:
            items[at] = _changed(items[at], r)
        return items
    if type(value) is int and r.randrange(2):
        return value + r.choice((1, -1, 7, 300, -300, 1 << 32))
    return _leaf(r)
