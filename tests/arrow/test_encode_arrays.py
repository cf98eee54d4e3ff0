"""Arrays that other producers make, sound ones that lack what they do not need, and broken ones, which are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from codecgen.runtime.arrow.buffers import arrow_type
from kafka_codecs.arrow.records import RECORDS
from tests.arrow.tables import decoded, written

OFFSET = pa.array([1, 2, 3], pa.int64())


def numbers(*values: int, kind: Any = np.int32) -> pa.Buffer:
    return pa.py_buffer(np.array(values, kind).tobytes())


def test_buffers_may_have_any_number_of_bytes() -> None:
    ends = pa.py_buffer(bytes(numbers(0, 1, 2, 3)) + b"\xff")
    keys = pa.Array.from_buffers(pa.binary(), 3, [None, ends, pa.py_buffer(b"abc")])
    data = written(pa.record_batch([OFFSET, keys], ["offset", "key"]))
    assert decoded(data, ["key"]).column(0).to_pylist() == [b"a", b"b", b"c"]


@pytest.mark.parametrize("name", ["offset", "producer_id", "is_control", "delete_horizon", "magic"])
def test_arrays_without_rows_need_no_buffers(name: str) -> None:
    empty = pa.Array.from_buffers(arrow_type(RECORDS.column(name)), 0, [None, None])
    columns = {"offset": OFFSET.slice(0, 0)} | {name: empty}
    assert written(pa.record_batch(list(columns.values()), list(columns))) == b""


@pytest.mark.parametrize("key", [pa.string(), pa.binary()])
def test_lists_without_rows_need_no_offsets(key: pa.DataType) -> None:
    kind = pa.list_(pa.struct([("key", key), ("value", pa.binary())]))
    children = [pa.array([], kind.value_type)]
    empty = pa.Array.from_buffers(kind, 0, [None, None], children=children)
    rows = pa.record_batch([OFFSET.slice(0, 0), empty], ["offset", "headers"])
    assert written(rows) == b""


def test_no_row_is_lost_where_all_columns_are_constants() -> None:
    for rows in (
        pa.table({"offset": OFFSET}),
        pa.table({"producer_id": OFFSET}),
        pa.concat_tables([pa.table({"magic": pa.array([m] * 2)}) for m in (2, 1, 1)]),
    ):
        data = written(rows, offset=7, producer_id=-1)
        assert decoded(data, ["offset"]).column(0).to_pylist() == [7] * rows.num_rows
