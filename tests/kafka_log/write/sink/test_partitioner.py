"""Kafka's partitioner, against the numbers of Kafka's own tests and a plain computation."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.write.sink.partitioner import StickyPartitioner, murmur2, partition_by_key
from tests.support.murmur2 import plain

KAFKAS = {  # org.apache.kafka.common.utils.UtilsTest
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def test_the_numbers_of_kafkas_tests() -> None:
    found = murmur2(pa.array(list(KAFKAS), pa.binary())).astype(np.int32)
    assert found.tolist() == list(KAFKAS.values())


@given(
    st.lists(st.none() | st.binary(max_size=70), max_size=40), st.integers(0, 5), st.integers(1, 50)
)
def test_hashes_are_those_of_the_plain_computation(
    keys: list[bytes | None], skipped: int, partitions: int
) -> None:
    array = pa.array(keys, pa.binary()).slice(skipped)
    kept = keys[skipped:]
    assert murmur2(array).tolist() == [0 if key is None else plain(key) for key in kept]
    found = partition_by_key(array, partitions).tolist()
    for key, partition in zip(kept, found, strict=True):
        if key is not None:
            assert partition == (plain(key) & 0x7FFFFFFF) % partitions


def test_records_without_a_key_take_turns_by_bytes() -> None:
    sizes = np.full(100, 30)
    whole = StickyPartitioner(3, 300).of(sizes, 4)
    assert whole.tolist() == [(3 + i // 10) % 4 for i in range(100)]
    parts = StickyPartitioner(3, 300)
    assert (
        np.concatenate([parts.of(sizes[:7], 4), parts.of(sizes[7:], 4)]).tolist() == whole.tolist()
    )
