"""Times that DuckDB cannot hold are refused by row and column; all others come back as they were."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.read.sql.lazy_tables import LazyTable, connect, stream_result
from kafka_log.read.sql.time_ranges import TimeRangeError, check_times

_END = 1 << 63
TYPES = [
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")),
    pa.date32(),
]


def limits(kind: Any) -> tuple[int, int]:
    """The lowest and the highest number that a type holds."""
    bits = 31 if pa.types.is_date32(kind) else 63
    return -(1 << bits), (1 << bits) - 1


@st.composite
def times(draw: Any) -> tuple[Any, int | None]:
    kind = draw(st.sampled_from(TYPES))
    low, high = limits(kind)
    factor = 1 if pa.types.is_date32(kind) else {"s": 10**6, "ms": 10**3}.get(kind.unit, 1)
    near = [edge // factor + step for edge in (low, high) for step in range(-2, 3)]
    numbers = st.integers(low, high) | st.sampled_from([n for n in near if low <= n <= high])
    return kind, draw(st.none() | numbers)


@pytest.mark.slow
@given(times())
def test_duckdb_returns_what_is_not_refused(drawn: tuple[Any, int | None]) -> None:
    kind, number = drawn
    batch = pa.RecordBatch.from_arrays([pa.array([None, number], kind)], ["t"])
    try:
        check_times(batch)
    except TimeRangeError:
        is_refused = True
    else:
        is_refused = False
    if is_refused:
        assert number is not None
        return
    connection = duckdb.connect()
    connection.register("rows", pa.Table.from_batches([batch]))
    found = stream_result(connection.sql("select t, t::varchar as text from rows")).read_all()
    plain = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    assert found.column("t").cast(kind).cast(plain).to_pylist() == [None, number]
    assert "infinity" not in str(found.column("text")[1].as_py())


@pytest.mark.parametrize(
    ("column", "name"),
    [
        (pa.array([0, 1 << 60], pa.timestamp("ms", "UTC")), "value"),
        (pa.array([{"a": 0}, {"a": 1 << 60}], pa.struct([("a", pa.timestamp("ms"))])), "value.a"),
        (pa.array([[0, 1], [0, 1 << 60]], pa.list_(pa.timestamp("ms"))), "value"),
        (pa.array([None, (1 << 31) - 1], pa.date32()), "value"),
    ],
)
def test_the_row_and_the_column_are_named(column: Any, name: str) -> None:
    arrays = [pa.array([7, 8]), column, pa.array([3, 4])]
    batch = pa.RecordBatch.from_arrays(arrays, ["offset", "value", "other"])
    check_times(batch.slice(0, 1))
    with pytest.raises(TimeRangeError, match="row with offset 8") as caught:
        check_times(batch)
    assert (caught.value.column, caught.value.place) == (name, {"offset": 8})
    errors: list[BaseException] = []

    def read(names: Any) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(batch.select(names).schema, [batch.select(names)])

    connection = connect({"rows": LazyTable(batch.schema, read, errors.append)})
    with pytest.raises(duckdb.Error):
        stream_result(connection.sql("select value from rows")).read_all()
    assert str(errors[0]) == str(caught.value)
    assert stream_result(connection.sql("select other from rows")).read_all().num_rows == 2
