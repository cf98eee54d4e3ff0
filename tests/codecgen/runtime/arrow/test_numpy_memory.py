"""Arrow arrays of the NumPy readers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.arrow.numpy_memory import missing
from codecgen.runtime.arrow.view import Column

LEAVES = (
    pa.int8(),
    pa.uint64(),
    pa.bool_(),
    pa.float64(),
    pa.timestamp("ms"),
    pa.binary(16),
    pa.binary(),
    pa.string(),
)


def fields(kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(kinds.flatmap(lambda kind: st.builds(pa.field, st.just("m"), st.just(kind), st.booleans())), min_size=1, max_size=3)  # fmt: skip


KINDS = st.recursive(
    st.sampled_from(LEAVES),
    lambda kinds: (
        fields(kinds).map(
            lambda found: pa.struct([f.with_name(f"m{i}") for i, f in enumerate(found)])
        )
        | kinds.map(lambda kind: pa.list_(pa.field("element", kind, nullable=False)))
    ),
    max_leaves=6,
)


@given(KINDS, st.integers(0, 20))
def test_nulls_are_valid_and_have_members_that_are_not_null(kind: Any, rows: int) -> None:
    array = missing(Column("c", "struct", 0, nullable=True), kind, rows)
    array.validate(full=True)
    assert array.to_pylist() == [None] * rows
    # Arrow's casts refuse nulls of fields that are not nullable, inside of null structs too.
    assert [inner.null_count for inner in required(array)] == [0] * len(required(array))


def required(array: Any) -> list[Any]:
    """Return the arrays of members that are not nullable, at every depth of structs."""
    if not pa.types.is_struct(array.type):
        return []
    found = []
    for i, field in enumerate(array.type):
        found += [array.field(i)] * (not field.nullable) + required(array.field(i))
    return found
