"""Tables that are wrong in themselves: offsets that go back or beyond, indices and views of nothing, types and columns that
are not those of the view. They are refused, whatever memory they speak of."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from tests.fuzz.checked import Broken
from tests.fuzz.made_tables import NAMES, TYPES, Case
from tests.fuzz.probe_encode import EncoderProbe
from tests.support.column_values import Layout, array

Allocate = Callable[[int], Any]
DATA = bytes(range(65, 91)) * 3
FAR = (-1, -(1 << 31), (1 << 31) - 1, 1 << 30, len(DATA) + 1, 0)
WRONG: tuple[Callable[[int], Any], ...] = (
    lambda n: pa.array([[1]] * n),
    lambda n: pa.array(["x"] * n),
    lambda n: pa.array([0.5] * n),
    lambda n: pa.array([{"key": "a"}] * n),
    lambda n: pa.array([[{"key": "a", "value": 1}]] * n),
    lambda n: pa.array([[{"name": "a", "value": b""}]] * n),
    lambda n: pa.RunEndEncodedArray.from_arrays(pa.array([n], pa.int32()), pa.array([1])),
    lambda n: pa.UnionArray.from_sparse(pa.array([0] * n, pa.int8()), [pa.array([b"x"] * n)]),
)
"""Arrays of types that no column of the view can be made of, but for those in ``FITTING``."""
FITTING = {"key": {1}, "value": {1}}


def run_broken(probe: EncoderProbe, case: Case, seed: int, number: int) -> bool:
    """Write a case with something broken in it; False where none could be made. Raises Broken."""
    r = random.Random(seed << 40 | number)
    if not case.rows:
        return False
    probe.inputs.reset()
    layout = Layout(probe.inputs.allocate, np.random.default_rng(case.layout_seed))
    arrays = {name: array(values, layout) for name, values in case.given.items()}
    kind = r.choice((_columns, _types, _types, _offsets, _offsets, _indices, _views, _headers, _headers))  # fmt: skip
    made: tuple[dict[str, Any], bool] | None
    try:
        made = kind(arrays, case, r, probe.inputs.allocate)
    except pa.ArrowInvalid:
        return False  # Arrow sees it at once
    if made is None:
        return False
    columns, refused = made
    names = [name.rstrip("*") for name in columns]
    fields = [pa.field(n, a.type) for n, a in zip(names, columns.values(), strict=True)]
    batch = pa.RecordBatch.from_arrays(list(columns.values()), schema=pa.schema(fields))
    if not refused and r.random() < 0.7:
        first = r.randrange(case.rows)
        batch = batch.slice(first, r.randrange(1, case.rows - first + 1))
    written = probe.run(case, [batch])
    if refused and written.error is None:
        raise Broken(f"what is broken ({kind.__name__}) is written: {batch.schema}")
    return True


Made = tuple[dict[str, Any], bool] | None
"""Columns, by names of which stars are taken off, and whether they must be refused."""


def _columns(arrays: dict[str, Any], case: Case, r: random.Random, allocate: Allocate) -> Made:
    some = r.choice(list(arrays.values()))
    if r.random() < 0.3:
        return {**arrays, "topic": some}, True
    if r.random() < 0.5:
        name = r.choice(list(arrays))
        return {**arrays, f"{name}*": arrays[name]}, True
    if "offset" in case.settings.constants:
        return None
    return {"position": some, **{n: a for n, a in arrays.items() if n != "offset"}}, True


def _types(arrays: dict[str, Any], case: Case, r: random.Random, allocate: Allocate) -> Made:
    name = r.choice(NAMES)
    which = r.randrange(len(WRONG))
    aside = name in case.settings.constants or (name == "codec" and case.settings.codec)
    aside = aside or (name == "magic" and case.settings.magic is not None)
    refused = not aside and which not in FITTING.get(name, ())
    return {**arrays, name: WRONG[which](case.rows)}, refused


def _text(kind: Any, ends: Any, allocate: Allocate) -> Any:
    width = np.int64 if kind in (pa.large_binary(), pa.large_string()) else np.int32
    buffers = [None, _placed(ends.astype(width).tobytes(), allocate), _placed(DATA, allocate)]
    return pa.Array.from_buffers(kind, len(ends) - 1, buffers)


def _placed(data: bytes, allocate: Allocate) -> Any:
    buffer = allocate(len(data))
    ctypes.memmove(buffer.address, data, len(data))
    return buffer


def _bent(n: int, r: random.Random, most: int = len(DATA)) -> Any:
    """Offsets of which one or two in the middle are not in order."""
    ends = np.sort(np.array([r.randrange(most + 1) for _ in range(n + 1)], np.int64))
    for _ in range(r.choice((1, 2))):
        ends[r.randrange(n + 1)] = r.choice((*FAR, most - 1))
    return ends


def _offsets(arrays: dict[str, Any], case: Case, r: random.Random, allocate: Allocate) -> Made:
    kind = r.choice((pa.binary(), pa.binary(), pa.string(), pa.large_binary(), pa.large_string()))
    ends = _bent(case.rows, r)
    if kind == pa.large_binary() and r.random() < 0.3:
        ends[r.randrange(len(ends))] += 1 << 32
    bad = bool((np.diff(ends) < 0).any() or ends[0] < 0 or ends[-1] > len(DATA))
    name = r.choice(("key", "value"))
    return {**arrays, name: _text(kind, ends, allocate)}, bad and r.random() < 0.5


def _indices(arrays: dict[str, Any], case: Case, r: random.Random, allocate: Allocate) -> Made:
    name = r.choice(("key", "value", "producer_id", "magic", "timestamp", "codec"))
    if name in ("key", "value"):
        values = _text(pa.binary(), _bent(3, r) if r.random() < 0.5 else np.arange(4), allocate)
    else:
        values = pa.array([1, 2, 3])
    indices = [r.choice((0, 1, 2, 2, 3, -1, 1 << 30, -(1 << 31))) for _ in range(case.rows)]
    made = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), values, safe=False)
    return {**arrays, name: made}, False


def _views(arrays: dict[str, Any], case: Case, r: random.Random, allocate: Allocate) -> Made:
    views = np.zeros((case.rows, 4), np.int32)
    views[:, 0] = [r.choice((0, 5, 12, 13, 40)) for _ in range(case.rows)]
    views[:, 3] = [r.randrange(30) for _ in range(case.rows)]
    views[r.randrange(case.rows), r.choice((0, 2, 3))] = r.choice((-1, 7, 1 << 30, -(1 << 31), 41))
    kind = r.choice((pa.binary_view(), pa.string_view()))
    buffers = [None, _placed(views.tobytes(), allocate), _placed(DATA, allocate)]
    made = pa.Array.from_buffers(kind, case.rows, buffers)
    return {**arrays, r.choice(("key", "value")): made}, False


def _headers(arrays: dict[str, Any], case: Case, r: random.Random, allocate: Allocate) -> Made:
    key, value = (
        _text(kind, _bent(8, r) if r.random() < 0.4 else np.arange(9), allocate)
        for kind in (r.choice((pa.string(), pa.string(), pa.binary(), pa.large_string())), pa.binary())
    )  # fmt: skip
    fields = [pa.field("key", key.type, key.type != pa.string()), pa.field("value", value.type)]
    structs = pa.StructArray.from_arrays([key, value], fields=fields)
    ends = _bent(case.rows, r, 8) if r.random() < 0.5 else np.sort([r.randrange(9) for _ in range(case.rows + 1)])  # fmt: skip
    if key.type == pa.string() and r.random() < 0.7:
        kind = TYPES["headers"]
        buffers = [None, _placed(ends.astype(np.int32).tobytes(), allocate)]
        made = pa.Array.from_buffers(kind, case.rows, buffers, children=[structs])
    elif r.random() < 0.5:
        made = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs)
    else:
        made = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), structs)
    return {**arrays, "headers": made}, False
