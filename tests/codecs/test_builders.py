"""What builders fill in, and that no edit of a parsed batch gives bytes that contradict each other."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecgen.runtime.errors import BuildError
from kafka_codecs import LOG_ENTRY, MESSAGE_V0, RECORD_BATCH, RecordBatch
from kafka_codecs.records.message import messages_offset as message_offset
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
    with pytest.raises(BuildError, match="a whole number is needed, not 'noon'"):
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


def test_a_constant_is_refused_if_it_is_another_one() -> None:
    batch: Any = built({"timestamp": T})
    batch["magic"] = 3
    with pytest.raises(BuildError) as refused:
        RECORD_BATCH.build(batch)
    assert refused.value.where.path == "magic"
    assert refused.value.reason.startswith(
        "3 was given, but record_batch has 2 here; leave magic out"
    )
    with pytest.raises(BuildError, match="1 was given, but message has 0 here"):
        MESSAGE_V0.build({"magic": 1})


def test_offsets_beyond_64_bits_are_refused() -> None:
    most = (1 << 63) - 1
    assert built({"offset": most}).last_offset == most
    for first in (most, most - 1):
        with pytest.raises(BuildError, match="breaks the rule last_offset_in_range"):
            built({}, {}, {}, base_offset=first)
    with pytest.raises(BuildError, match="breaks the rule last_offset_from_base"):
        built(last_offset_delta=-1)
    assert built(last_offset_delta=0).record_count == 0


def test_reserved_bits_are_refused() -> None:
    batch: Any = built({"timestamp": T})
    batch.attributes["unused"] = 1
    with pytest.raises(BuildError, match="reserved bits are set") as refused:
        RECORD_BATCH.build(batch)
    assert refused.value.where.path == "attributes.unused"
    data = RECORD_BATCH.build(batch, strict=False)
    assert RECORD_BATCH.parse(data, strict=False).attributes.unused == 1


def wrapper(version: int) -> Any:
    """Three messages with the offsets 19 to 21."""
    first = 19 if version == 0 else 0
    messages = [{"magic": version, "offset": first + i, "value": b"v"} for i in range(3)]
    values = {"magic": version, "offset": 21, "attributes": {"compression": "gzip"}, "messages": messages}  # fmt: skip
    return LOG_ENTRY.parse(LOG_ENTRY.build(values))


def offsets(entry: Any) -> list[int]:
    return [message_offset(entry, item) for item in entry.messages]


@pytest.mark.parametrize("version", [0, 1])
def test_a_message_of_a_wrapper_keeps_its_offset(version: int) -> None:
    entry = wrapper(version)
    del entry.messages[0]
    assert offsets(LOG_ENTRY.parse(LOG_ENTRY.build(entry))) == [20, 21]
    for copied in (copy.deepcopy(entry), pickle.loads(pickle.dumps(entry)), {**entry}):
        copied["messages"] = copied["messages"][:-1]
        with pytest.raises(BuildError, match="offset" if version else "the rule offset_of_wrapper"):
            LOG_ENTRY.build(copied)
        copied["offset"] = 20
        assert offsets(LOG_ENTRY.parse(LOG_ENTRY.build(copied))) == [20]
    added = wrapper(version)
    added.messages.append({"magic": version, "offset": added.messages[-1].offset + 1})
    with pytest.raises(BuildError) as refused:
        LOG_ENTRY.build(added)
    if version == 1:
        assert refused.value.where.path == "messages[0].offset"
        assert refused.value.reason.startswith(
            "offset was 19 when the element was parsed, and is 18 beside the elements that are there now: set offset of "
            "the message for them"
        )
    added["offset"] = 22
    assert offsets(LOG_ENTRY.parse(LOG_ENTRY.build(added))) == [19, 20, 21, 22]


def test_a_wrapper_moves_as_a_whole() -> None:
    entry = wrapper(1)
    entry["offset"] = 121
    assert offsets(LOG_ENTRY.parse(LOG_ENTRY.build(entry))) == [119, 120, 121]


def test_messages_of_another_version_are_refused_in_a_wrapper() -> None:
    entry = wrapper(1)
    entry.messages[0] = {"magic": 0, "offset": 0}
    with pytest.raises(BuildError, match="an element of version 0 cannot be inside version 1"):
        LOG_ENTRY.build(entry)
    assert LOG_ENTRY.parse(LOG_ENTRY.build(entry, strict=False), strict=False)


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


@pytest.mark.parametrize("delta", [b"x", "1", [1], {}, 1.5])
def test_a_delta_that_is_no_number_is_refused_beside_an_offset(delta: object) -> None:
    for name in ("offset", "timestamp"):
        record = {"offset": 1, name: 1, f"{name}_delta": delta}
        with pytest.raises(BuildError, match="a whole number is needed") as refused:
            RECORD_BATCH.build({"records": [record]})
        assert refused.value.where.path == f"records[0].{name}_delta"


def test_a_delta_of_none_is_worked_out() -> None:
    record: Any = {"offset": 7, "offset_delta": None, "timestamp": T, "timestamp_delta": None}
    assert built(record) == built({"offset": 7, "timestamp": T})


def test_an_array_is_no_constant() -> None:
    pair = np.array([1, 2])
    with pytest.raises(BuildError, match="was given, but record_batch has 2 here"):
        RECORD_BATCH.build({"magic": pair, "records": [{}]})
    values: Any = {"magic": 1, "offset": 1, "attributes": {"compression": "gzip"}, "messages": [{"magic": pair}]}  # fmt: skip
    with pytest.raises(BuildError, match="cannot be inside version 1"):
        LOG_ENTRY.build(values)
