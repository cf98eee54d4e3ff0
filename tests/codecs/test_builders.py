"""What builders fill in, and that no edit of a parsed batch gives bytes that contradict each other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecgen.runtime.errors import BuildError
from kafka_codecs import RECORD_BATCH, RecordBatch
from tests.codecs.strategies import record_batches

T = 1700000000000


def built(*records: dict[str, Any], **fields: Any) -> RecordBatch:
    return RECORD_BATCH.parse(RECORD_BATCH.build({**fields, "records": records}))


def test_keys_and_values_are_enough() -> None:
    batch = built({"key": b"k", "value": b"v"}, {"value": b"w"}, {"key": b"l"})
    assert [r.offset_delta for r in batch.records] == [0, 1, 2]
    assert [(r.key, r.value, r.headers) for r in batch.records] == [
        (b"k", b"v", []),
        (None, b"w", []),
        (b"l", None, []),
    ]
    assert (batch.base_offset, batch.last_offset_delta) == (0, 2)
    assert (batch.base_timestamp, batch.max_timestamp) == (-1, -1)


def test_records_say_offsets_and_timestamps() -> None:
    batch = built(
        {"offset": 7, "timestamp": T, "value": b""},
        {"offset": 9, "timestamp": T + 5, "value": b""},
        {"offset": 12, "timestamp": T - 1, "value": b""},
    )
    assert (batch.base_offset, batch.last_offset, batch.max_timestamp) == (7, 12, T + 5)
    assert [r.offset for r in batch.records] == [7, 9, 12]
    assert [r.timestamp for r in batch.records] == [T, T + 5, T - 1]


def test_the_base_that_is_given_counts() -> None:
    batch = built({"offset": 7, "timestamp": T + 1, "value": b""}, base_offset=5, base_timestamp=T)
    [record] = batch.records
    assert (record.offset_delta, record.timestamp_delta) == (2, 1)
    assert (batch.last_offset, batch.max_timestamp) == (7, T + 1)


def test_what_is_given_is_not_changed() -> None:
    record = {"offset": 7, "value": b""}
    values = {"records": [record]}
    RECORD_BATCH.build(values)
    assert values == {"records": [{"offset": 7, "value": b""}]}


def test_max_timestamp_is_the_largest_one_of_deltas_too() -> None:
    batch = built({"timestamp_delta": 3}, {"timestamp_delta": 9}, {}, base_timestamp=T)
    assert batch.max_timestamp == T + 9


def test_values_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(BuildError) as caught:
        RECORD_BATCH.build({"base_offset": 5, "records": [{"offset": 7, "offset_delta": 1}]})
    assert caught.value.reason == (
        "offset is 7, but base_offset 5 and offset_delta 1 make it 6: give one of the two"
    )
    assert caught.value.where.path == "records[0].offset"
    assert caught.value.where.schema is not None
    with pytest.raises(BuildError, match="a number is needed, not 'noon'"):
        RECORD_BATCH.build({"records": [{"timestamp": "noon"}]})
    with pytest.raises(BuildError, match="leave max_timestamp out, and the builder works it out"):
        RECORD_BATCH.build({"max_timestamp": 5, "records": [{"timestamp": T}]})
    with pytest.raises(BuildError, match="record has no field 'ofset'"):
        RECORD_BATCH.build({"records": [{"ofset": 7}]})


def test_a_record_that_is_added_needs_a_header_that_is_worked_out_again() -> None:
    batch = built({"timestamp": T}, {"timestamp": T + 1})
    batch.records.append({"timestamp": T + 9, "value": b"new"})  # type: ignore[attr-defined]
    with pytest.raises(BuildError, match="leave last_offset_delta out"):
        RECORD_BATCH.build(batch)
    del batch["last_offset_delta"], batch["max_timestamp"]
    again = RECORD_BATCH.parse(RECORD_BATCH.build(batch))
    assert (again.record_count, again.last_offset_delta, again.max_timestamp) == (3, 2, T + 9)


NUMBERS = [
    *("base_offset", "batch_length", "partition_leader_epoch", "crc", "last_offset_delta"),
    *("base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence"),
    "record_count",
]
SMALL = st.integers(-2, 5)


@st.composite
def edits(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    return draw(
        st.lists(
            st.one_of(
                st.tuples(st.just("set"), st.sampled_from(NUMBERS), SMALL),
                st.tuples(st.just("leave out"), st.sampled_from(NUMBERS)),
                st.tuples(st.just("bit"), st.sampled_from(["is_control", "is_transactional"])),
                st.tuples(st.just("add"), st.fixed_dictionaries({}, optional={"offset": SMALL})),
                st.tuples(st.just("remove"), st.integers(0, 5)),
                st.tuples(
                    st.just("change"),
                    st.integers(0, 5),
                    st.sampled_from(["offset", "offset_delta", "timestamp", "timestamp_delta"]),
                    SMALL,
                ),
            ),
            min_size=1,
            max_size=4,
        )
    )


def edit(batch: Any, kind: str, *how: Any) -> None:
    if kind == "set":
        batch[how[0]] = how[1]
    elif kind == "leave out":
        batch.pop(how[0], None)
    elif kind == "bit":
        batch.attributes[how[0]] = not batch.attributes[how[0]]
    elif kind == "add":
        batch.records.append(dict(how[0]))
    elif how[0] < len(batch.records):
        if kind == "remove":
            del batch.records[how[0]]
        else:
            batch.records[how[0]][how[1]] = how[2]


@given(record_batches(), edits())
@settings(deadline=None)
def test_an_edited_batch_is_built_as_a_good_one_or_refused(
    values: dict[str, Any], changes: list[tuple[Any, ...]]
) -> None:
    batch: Any = RECORD_BATCH.parse(RECORD_BATCH.build(values))
    for change in changes:
        edit(batch, *change)
    try:
        data = RECORD_BATCH.build(batch)
    except BuildError as error:
        assert error.where.path is not None
        return
    again = RECORD_BATCH.parse(
        data
    )  # strict: length, count and checksum fit, and all rules are met
    derived = {"batch_length", "crc", "record_count", "records"}
    for name, value in batch.items():
        if name not in derived:
            assert again[name] == value, name
    for record, given_record in zip(again.records, batch.records, strict=True):
        for name, value in given_record.items():
            if name not in ("length", "timestamp"):  # LogAppendTime has another timestamp
                assert getattr(record, name) == value, name
    assert RECORD_BATCH.build(again) == data
