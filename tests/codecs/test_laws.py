"""Laws of the generated codecs: what is built parses to the same, and damage is noticed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.errors import CodecError, ParseError
from kafka_codecs import LOG_ENTRY, RECORD_BATCH, Compression, TimestampType
from kafka_codecs.drafts.kip_98 import KIP_98_MESSAGE_SET
from tests.codecs.strategies import kip_98_message_sets, messages, record_batches

ENUMS = {"compression": Compression, "timestamp_type": TimestampType}


def same(given: Any, parsed: Any, name: str = "") -> bool:
    """Whether all that was given came back. What the builder works out is beside it."""
    if isinstance(given, dict):
        return all(same(value, parsed[key], key) for key, value in given.items())
    if isinstance(given, list):
        return len(given) == len(parsed) and all(map(same, given, parsed))
    if name in ENUMS:
        return ENUMS[name].find(given) is parsed
    return bool(given == parsed)


@given(record_batches())
def test_a_built_batch_parses_to_what_was_given(batch: dict[str, Any]) -> None:
    data = RECORD_BATCH.build(batch)
    parsed = RECORD_BATCH.parse(data)
    assert same(batch, parsed)
    assert parsed.record_count == len(batch["records"])
    assert parsed.batch_length == len(data) - 12
    assert RECORD_BATCH.parse(RECORD_BATCH.build(parsed)) == parsed


@given(messages())
def test_a_built_message_parses_to_what_was_given(message: dict[str, Any]) -> None:
    data = LOG_ENTRY.build(message)
    parsed = LOG_ENTRY.parse(data)
    assert same(message, parsed)
    assert LOG_ENTRY.parse(LOG_ENTRY.build(parsed)) == parsed


@given(kip_98_message_sets())
def test_a_built_draft_parses_to_what_was_given(message_set: dict[str, Any]) -> None:
    parsed = KIP_98_MESSAGE_SET.parse(KIP_98_MESSAGE_SET.build(message_set))
    assert same(message_set, parsed)


@given(record_batches(), st.data())
def test_every_prefix_fails_with_a_place(batch: dict[str, Any], data: st.DataObject) -> None:
    whole = RECORD_BATCH.build(batch)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ParseError) as caught:
        RECORD_BATCH.parse(whole[:cut], file="f.log", position=1000)
    where = caught.value.where
    assert where.file == "f.log"
    assert where.position is not None
    assert 1000 <= where.position <= 1000 + cut
    assert where.path
    assert where.schema and where.schema.startswith("records/")


@given(record_batches(codecs=["none"], at_least=1), st.data())
def test_a_flipped_bit_is_found_or_changes_an_unprotected_field(
    batch: dict[str, Any], data: st.DataObject
) -> None:
    whole = bytearray(RECORD_BATCH.build(batch))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    unprotected = {"base_offset", "partition_leader_epoch"}
    start = {name: RECORD_BATCH.offset_of(name) for name in unprotected}
    inside = [n for n in unprotected if start[n] <= at < start[n] + RECORD_BATCH.size_of(n)]
    if not inside:
        with pytest.raises(ParseError):
            RECORD_BATCH.parse(bytes(whole))
        return
    # A base offset that is changed so may leave no room for the last offset, which a rule refuses.
    parsed = RECORD_BATCH.parse(bytes(whole), strict=False)
    assert parsed[inside[0]] != batch[inside[0]]
    assert parsed | {inside[0]: batch[inside[0]]} == RECORD_BATCH.parse(RECORD_BATCH.build(batch))
    if parsed["base_offset"] + parsed["last_offset_delta"] < 1 << 63:
        assert RECORD_BATCH.parse(bytes(whole)) == parsed


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_give_a_value_or_an_error_of_ours(data: bytes, strict: bool) -> None:
    for layout in (RECORD_BATCH, LOG_ENTRY, KIP_98_MESSAGE_SET):
        try:
            layout.parse(data, strict=strict)
        except CodecError:
            pass


@given(record_batches(at_least=1), st.data())
def test_a_damaged_batch_gives_a_value_or_an_error_of_ours(
    batch: dict[str, Any], data: st.DataObject
) -> None:
    whole = bytearray(RECORD_BATCH.build(batch))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    for strict in (True, False):
        try:
            RECORD_BATCH.parse(bytes(whole), strict=strict)
        except CodecError as error:
            assert error.where.path
