"""Layouts of Kafka's messages, held against the message classes of Kafka itself: their fields, random values, broken bytes."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from crc32c import crc32c

from codecgen.runtime.errors import CodecError
from tests.brokers.message_shapes import (
    CONTROL,
    codec,
    kafka_shape,
    layout_of,
    plans,
    prefix,
    shape,
)
from tests.brokers.messages import Request, answers, damaged, messages
from tests.brokers.topic_messages import FILE, lines, topic_messages
from tests.shares import draw_seeds

pytestmark = pytest.mark.broker

TOPICS = [json.loads(line)["message"] for line in FILE.read_text("utf-8").splitlines()]
MESSAGES = [*CONTROL, *TOPICS]
CASES = [(message, plan.version or 0) for message in MESSAGES for plan in plans(message)]
RANDOM, BROKEN = 60, 12
"""Messages that are made up of each version, and broken ones made of each."""
IN_TOPICS = 20
"""The same of a message in a topic: there are many."""

Case = tuple[str, int]


@pytest.fixture(scope="module")
def kafka() -> dict[str, dict[str, Any]]:
    return messages()


@pytest.fixture(scope="module")
def made() -> dict[Case, list[bytes]]:
    """What Kafka's classes write of messages that were made up, by message and version."""
    asked: list[Request] = [
        {"message": message, "version": version, "random": seed}
        for message, version in CASES
        for seed in draw_seeds(RANDOM if message in CONTROL else IN_TOPICS)
    ]
    out: dict[Case, list[bytes]] = {case: [] for case in CASES}
    for request, answer in zip(asked, answers(asked), strict=True):
        # Of a structure that is tagged and null Kafka's Schema writes what its class cannot read.
        if "hex" in answer or request["message"] != "ConsumerGroupMemberMetadataValue":
            data = with_checksum(request["message"], bytes.fromhex(answer["hex"]))
            out[request["message"], request["version"]].append(data)
    return out


@pytest.fixture(scope="module")
def judged(made: dict[Case, list[bytes]]) -> dict[Case, list[tuple[bytes, dict[str, Any]]]]:
    """Bytes that were changed, cut off or inserted, with what Kafka's classes make of them."""
    broken: list[tuple[Case, bytes]] = []
    for case, written in made.items():
        r = random.Random(f"{case[0]} {case[1]}")
        for data in written:
            for _ in range(BROKEN):
                broken.append((case, with_checksum(case[0], damaged(data, r))))
    asked: list[Request] = [
        {"message": message, "version": version, "hex": data.hex()}
        for (message, version), data in broken
    ]
    out: dict[Case, list[tuple[bytes, dict[str, Any]]]] = {case: [] for case in CASES}
    for (case, data), answer in zip(broken, answers(asked), strict=True):
        out[case].append((data, answer))
    return out


def with_checksum(message: str, data: bytes) -> bytes:
    """What a class writes or is given, with the checksum that a broker works out for it."""
    if message != "ProducerSnapshot" or len(data) < 4:
        return data
    return crc32c(data[4:]).to_bytes(4, "big") + data[4:]


def test_kafka_has_no_other_messages(kafka: dict[str, dict[str, Any]]) -> None:
    assert topic_messages(kafka) == TOPICS


@pytest.mark.parametrize("message", MESSAGES)
def test_kafka_has_no_other_versions(kafka: dict[str, dict[str, Any]], message: str) -> None:
    ours = [plan.version or 0 for plan in plans(message)]
    assert ours == [int(v) for v in kafka[message]["versions"]], layout_of(message)


@pytest.mark.parametrize(("message", "version"), CASES)
def test_the_fields_are_those_of_kafka(
    kafka: dict[str, dict[str, Any]], message: str, version: int
) -> None:
    assert shape(message, version) == kafka_shape(kafka[message]["versions"][str(version)])


def test_a_new_field_of_kafka_is_noticed(kafka: dict[str, dict[str, Any]]) -> None:
    """The comparison above sees each field, wherever it stands, tagged or not."""
    for message, version in CASES:
        fields = kafka[message]["versions"][str(version)]
        for i in range(len(fields) + 1):
            more = [*fields[:i], {"name": "brand_new", "type": "INT32"}, *fields[i:]]
            assert kafka_shape(more) != shape(message, version)
        tagged = [*fields, {"tag": 99, "name": "brand_new", "type": "INT32"}]
        assert kafka_shape(tagged) != shape(message, version)


def test_the_data_of_the_quick_tests_is_what_kafka_says() -> None:
    assert lines() == FILE.read_text("utf-8").splitlines()


@pytest.mark.parametrize(("message", "version"), CASES)
def test_what_kafka_writes_is_read_and_written_again(
    made: dict[Case, list[bytes]], message: str, version: int
) -> None:
    layout, before = codec(message, version), prefix(message, version)
    assert len(made[message, version]) >= IN_TOPICS // 2
    for written in made[message, version]:
        data = before + written
        assert layout.build(layout.parse(data)) == data


@pytest.mark.share(ci=3)
@pytest.mark.parametrize(("message", "version"), CASES)
def test_what_kafka_refuses_is_refused(
    judged: dict[Case, list[tuple[bytes, dict[str, Any]]]], message: str, version: int
) -> None:
    """Bytes that were changed, cut off or inserted: both read them, with the same values, or neither does."""
    layout, before = codec(message, version), prefix(message, version)
    refused = 0
    for data, answer in judged[message, version]:
        try:
            value = layout.parse(before + data, strict=False)
        except CodecError:
            assert "error" in answer or answer["left"], data.hex()
            refused += 1
            continue
        assert "error" not in answer, (data.hex(), answer)
        if "unwritable" in answer:  # tags that it does not know, and that do not ascend
            with pytest.raises(CodecError):
                layout.build(value)
            continue
        again = before + with_checksum(message, bytes.fromhex(answer["again"]))
        assert layout.parse(again) == value, data.hex()
    assert refused > len(judged[message, version]) // 20
