"""Arrays that other producers make, sound ones that lack what they do not need, and broken ones, which are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from codecgen.runtime.arrow.casts import RowRefused
from codecgen.runtime.arrow.output_buffers import arrow_type
from kafka_codecs.arrow.records import RECORDS
from tests.support.record_tables import decoded, written

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


FAR = 1 << 30
GOOD = np.arange(4)


def texts(kind: pa.DataType, ends: Any) -> pa.Array:
    width = np.int64 if kind in (pa.large_binary(), pa.large_string()) else np.int32
    buffers = [None, numbers(*ends, kind=width), pa.py_buffer(b"abc")]
    return pa.Array.from_buffers(kind, 3, buffers)


def views(*view: int) -> pa.Array:
    buffers = [None, numbers(*(view * 3)), pa.py_buffer(b"abc")]
    return pa.Array.from_buffers(pa.binary_view(), 3, buffers)


def indices(values: pa.Array, *found: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(found, pa.int32()), values, safe=False)


def headers(key: pa.DataType, ends: Any, keys: Any = GOOD, large: bool = False) -> pa.Array:
    fields = [pa.field("key", key), pa.field("value", pa.binary())]
    parts = [texts(key, keys), texts(pa.binary(), GOOD)]
    structs = pa.StructArray.from_arrays(parts, fields=fields)
    if large:
        return pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), structs)
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs)


BENT = [0, FAR, 1, 3]
BROKEN = {
    "offsets": ("key", texts(pa.binary(), BENT)),
    "offsets of text": ("key", texts(pa.string(), BENT)),
    "large offsets": ("key", texts(pa.large_binary(), [0, 1 << 40, 2, 3])),
    "a view of no buffer": ("key", views(100, 0, 7, 0)),
    "a view beyond a buffer": ("key", views(100, 0, 0, FAR)),
    "a view of less than nothing": ("key", views(-5, 0, 0, 0)),
    "an index beyond the values": ("key", indices(texts(pa.binary(), GOOD), 0, FAR, 1)),
    "an index below 0": ("key", indices(texts(pa.binary(), GOOD), 0, -7, 1)),
    "values of a dictionary": ("key", indices(texts(pa.binary(), BENT), 0, 1, 0)),
    "an index of a version": ("magic", indices(pa.array([2, 1]), 0, FAR, 1)),
    "lists": ("headers", headers(pa.string(), BENT)),
    "lists to be cast": ("headers", headers(pa.binary(), BENT)),
    "large lists": ("headers", headers(pa.string(), BENT, large=True)),
    "keys": ("headers", headers(pa.string(), GOOD, BENT)),
    "keys to be cast": ("headers", headers(pa.binary(), GOOD, BENT)),
    "large keys": ("headers", headers(pa.large_string(), GOOD, BENT)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_refused(name: str) -> None:
    """Whatever memory it speaks of; parts of it too, whose first value may be the broken one."""
    column, array = BROKEN[name]
    rows = pa.record_batch([OFFSET, array], ["offset", column])
    with pytest.raises(ValueError, match="the record batch is broken"):
        written(rows)
    for first in (1, 2):
        try:
            written(rows.slice(first))
        except ValueError as error:
            assert "is broken" in str(error) or "is no version" in str(error)


def test_versions_of_other_types() -> None:
    for kind in (pa.string(), pa.binary(), pa.float64(), pa.uint8()):
        versions = pa.array([1, 1, 2], pa.int64()).cast(
            pa.string() if kind == pa.binary() else kind
        )
        rows = pa.table({"offset": OFFSET, "magic": versions.cast(kind)})
        assert decoded(written(rows), ["magic"]).column(0).to_pylist() == [1, 1, 2]
    for bad in (["2", "2", "x"], [2.0, 2.0, 2.5]):
        rows = pa.table({"offset": OFFSET, "magic": pa.array(bad)})
        with pytest.raises(RowRefused) as found:
            written(rows)
        assert (found.value.row, found.value.column) == (2, "magic")
    for wrong in (pa.array([[1], [2], [2]]), pa.array([{"magic": 2}] * 3)):
        with pytest.raises(ValueError, match=r"the column magic is .*, not int64"):
            written(pa.table({"offset": OFFSET, "magic": wrong}))


class Marked(pa.ExtensionType):
    """A type of Python, which has no hash."""

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "tests.marked")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, _: bytes) -> Marked:
        return cls(storage)


def marked(values: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(Marked(values.type), values)


def in_header(values: pa.Array) -> pa.Array:
    """Return headers with one of ``values`` in each row."""
    names = ["key", "value"]
    pairs = pa.StructArray.from_arrays([pa.array(["k"] * len(values)), values], names)
    return pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), pairs)


def in_dictionary(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(range(len(values)), pa.int32()), values)


IDS = pa.array([b"%016d" % i for i in range(3)], pa.binary(16)).cast(pa.uuid())
EXTENDED: dict[str, tuple[str, pa.Array]] = {
    "number": ("offset", marked(OFFSET)),
    "unknown meaning": ("key", marked(pa.array([b"a", None, b"c"]))),
    "canonical": ("key", IDS),
    "version": ("magic", marked(pa.array([2, 2, 2]))),
    "member": ("headers", in_header(IDS)),
    "entries of a map": (
        "headers",
        pa.array([[("k", b"v" * 16)]] * 3, pa.map_(pa.string(), pa.binary(16))).cast(
            pa.map_(pa.string(), pa.uuid())
        ),
    ),
    "dictionary": ("key", in_dictionary(IDS)),
    "list": ("key", marked(pa.array([[1], [2], [3]]))),
}


@pytest.mark.parametrize("name", EXTENDED)
def test_extension_types_are_refused(name: str) -> None:
    column, values = EXTENDED[name]
    rows = {"offset": OFFSET} | {column: values}
    with pytest.raises(ValueError, match=rf"the column {column} .*\bcast it to ") as caught:
        written(pa.table(rows))
    assert "extension<" in str(caught.value)


def test_extension_types_of_columns_that_are_not_written() -> None:
    rows = pa.table({"offset": OFFSET, "position": marked(OFFSET), "leader_epoch": marked(OFFSET)})
    assert decoded(written(rows, leader_epoch=3), ["leader_epoch"]).column(0).to_pylist() == [3] * 3


def test_storage_of_an_extension_type_is_written_after_a_cast() -> None:
    rows = pa.table({"offset": OFFSET, "key": IDS})
    rows = rows.set_column(1, "key", rows["key"].cast(pa.binary(16)))
    assert decoded(written(rows), ["key"]).column(0).to_pylist() == IDS.storage.to_pylist()
