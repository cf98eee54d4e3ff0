"""Arrow arrays that NumPy readers make of vectors."""

from __future__ import annotations

import pyarrow as pa
import pytest

from codecgen.runtime.arrow.numpy_memory import missing
from codecgen.runtime.arrow.view import Column


@pytest.mark.parametrize("element", [pa.int8(), pa.string(), pa.struct({"x": pa.int64()})])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_list_that_a_case_lacks_is_empty(element: pa.DataType, rows: int) -> None:
    kind = pa.list_(element)
    found = missing(Column("tags", "list", 0), kind, rows)
    found.validate(full=True)
    assert found.type == kind
    assert found.to_pylist() == [[]] * rows
