"""Batches of Arrow have as many rows as is said, and what is more than was expected comes with the next ones."""

from __future__ import annotations

import pytest

from codecgen.runtime.arrow.decoder import Chunk, Decoder, Rows, choose
from kafka_codecs import MESSAGE_V1, RECORD_BATCH
from kafka_codecs.arrow.records import RECORDS


def decoded(parts: list[bytes], max_rows: int = 1 << 20) -> list[Rows]:
    data = b"".join(parts)
    decoder = Decoder(RECORDS, choose(RECORDS, ("offset", "value")), max_rows=max_rows)
    chunk = Chunk(len(data))
    chunk.view()[: len(data)] = data
    chunk.size = len(data)
    found = list(decoder.decode(chunk, 0))
    assert all(isinstance(item, Rows) for item in found)
    return [item for item in found if isinstance(item, Rows)]


def messages(sizes: list[int]) -> list[bytes]:
    return [
        bytes(MESSAGE_V1.build({"offset": i, "timestamp": 1, "key": None, "value": bytes(size)}))
        for i, size in enumerate(sizes)
    ]


def batches(sizes: list[int], each: int) -> list[bytes]:
    return [
        bytes(
            RECORD_BATCH.build(
                {
                    "base_offset": each * i,
                    "records": [
                        {"offset_delta": k, "key": None, "value": bytes(size), "headers": []}
                        for k in range(each)
                    ],
                }
            )
        )
        for i, size in enumerate(sizes)
    ]


def check(found: list[Rows], sizes: list[int]) -> None:
    rows = [row for item in found for row in item.batch.to_pylist()]
    assert rows == [{"offset": i, "value": bytes(size)} for i, size in enumerate(sizes)]
    for item in found:
        item.batch.validate(full=True)
    ends = [item.end for item in found]
    assert [item.start for item in found] == [0, *ends[:-1]]


@pytest.mark.parametrize("most", [1, 2, 3, 7, 100])
def test_rows_are_bounded(most: int) -> None:
    sizes = [5, 100_000, *range(20), 70_000, 0, 0, 3]
    found = decoded(messages(sizes), most)
    assert all(1 <= item.batch.num_rows <= most for item in found)
    assert sum(item.entries for item in found) == len(sizes)
    check(found, sizes)


def test_an_entry_with_more_rows_than_the_bound_comes_alone() -> None:
    found = decoded(batches([1, 2, 3], 5), 2)
    assert [item.batch.num_rows for item in found] == [5, 5, 5]
    check(found, [size for size in (1, 2, 3) for _ in range(5)])


@pytest.mark.parametrize("build", [messages, lambda sizes: batches(sizes, 1)])
def test_values_that_become_larger_and_smaller(build: object) -> None:
    sizes = [1] * 3000 + [10_000] * 30 + [0] * 500 + [200_000] * 3 + [7] * 2000
    assert callable(build)
    found = decoded(build(sizes))
    check(found, sizes)
    # Nothing is set aside that is much larger than what it holds.
    held = sum(item.batch.get_total_buffer_size() for item in found)
    assert held < 2 * sum(sizes) + 40 * len(sizes) + 16_384 * len(found)
    assert len(found) < 40


def test_an_odd_message_after_others_ends_where_it_ends() -> None:
    """Also when nothing is known of the rows yet, and the table of the index holds older entries."""
    decoder = Decoder(RECORDS, choose(RECORDS, ("offset", "value")))
    good = messages([3, 100_000, 5])
    wrong = bytearray(good[0])
    wrong[12] ^= 1  # the checksum
    for parts in ([*good, *good], [bytes(wrong)], [bytes(wrong), good[1]], [good[1], bytes(wrong)]):
        data = b"".join(parts)
        chunk = Chunk(len(data))
        chunk.view()[: len(data)] = data
        chunk.size = len(data)
        found = list(decoder.decode(chunk, 0))
        assert found[0].start == 0
        ends = [item.end for item in found]
        assert ends[-1] == len(data)
        assert [item.start for item in found[1:]] == ends[:-1]
        rejected = [item for item in found if not isinstance(item, Rows)]
        assert len(rejected) == parts.count(bytes(wrong))
        decoder.shares = None


def test_entries_of_two_kinds_that_take_turns() -> None:
    keys = {"offset_delta": 0, "key": bytes(20_000), "value": None, "headers": []}
    values = {"offset_delta": 0, "key": None, "value": bytes(20_000), "headers": []}
    kinds = [keys, values]
    parts = [
        bytes(RECORD_BATCH.build({"base_offset": i, "records": [kinds[i % 2]]})) for i in range(200)
    ]
    data = b"".join(parts)
    decoder = Decoder(RECORDS, choose(RECORDS, ("key", "value")))
    chunk = Chunk(len(data))
    chunk.view()[: len(data)] = data
    chunk.size = len(data)
    found = [item for item in decoder.decode(chunk, 0) if isinstance(item, Rows)]
    assert sum(item.entries for item in found) == 200
    assert len(found) < 20
    rows = [row for item in found for row in item.batch.to_pylist()]
    assert rows == [
        {"key": kinds[i % 2]["key"], "value": kinds[i % 2]["value"]} for i in range(200)
    ]
