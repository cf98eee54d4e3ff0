"""The text files of log directories: as brokers and Kafka's own classes wrote them, and what Kafka's readers take."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from codecgen.runtime.errors import ParseError
from kafka_codecs import (
    LEADER_EPOCH_CHECKPOINT,
    META_PROPERTIES,
    OFFSET_CHECKPOINT,
    PARTITION_METADATA,
)
from tests.paths import SAMPLES, VECTORS

FILES = VECTORS / "files"
CODECS: dict[str, Any] = {
    "leader-epoch-checkpoint": LEADER_EPOCH_CHECKPOINT,
    "recovery-point-offset-checkpoint": OFFSET_CHECKPOINT,
    "log-start-offset-checkpoint": OFFSET_CHECKPOINT,
    "replication-offset-checkpoint": OFFSET_CHECKPOINT,
    "cleaner-offset-checkpoint": OFFSET_CHECKPOINT,
    "partition.metadata": PARTITION_METADATA,
    "meta.properties": META_PROPERTIES,
}


def found(name: str) -> list[Path]:
    return sorted(path for folder in (SAMPLES, FILES) for path in folder.rglob(name))


@pytest.mark.parametrize("name", CODECS)
def test_files_are_built_as_they_were(name: str) -> None:
    paths = found(name)
    for path in paths:
        data = path.read_bytes()
        assert CODECS[name].build(CODECS[name].parse(data, file=str(path))) == data, path
    assert len(paths) >= {"leader-epoch-checkpoint": 41, "partition.metadata": 25}.get(name, 2)


def test_what_kafka_wrote() -> None:
    """The values that the program gave to Kafka's classes."""
    epochs = LEADER_EPOCH_CHECKPOINT.parse(
        (FILES / "p/leader-epoch-checkpoint").read_bytes()
    ).epochs
    assert [tuple(epoch.values()) for epoch in epochs] == [(0, 0), (7, 100)]
    offsets = OFFSET_CHECKPOINT.parse(
        (FILES / "replication-offset-checkpoint").read_bytes()
    ).entries
    assert [tuple(entry.values()) for entry in offsets] == [("my-topic", 3, 133)]
    none = OFFSET_CHECKPOINT.parse((FILES / "recovery-point-offset-checkpoint").read_bytes())
    assert none.entry_count == 0 and none.entries == []
    topic = PARTITION_METADATA.parse((FILES / "p/partition.metadata").read_bytes()).topic_id
    assert topic == uuid.UUID(int=(1 << 64) + 2)
    meta = META_PROPERTIES.parse((FILES / "meta.properties").read_bytes())
    assert (meta.version, meta.node_id, meta.cluster_id) == (1, 3, "Tid/5:x=y")
    assert meta.directory_id == uuid.UUID(int=(1 << 64) + 2) and meta.broker_id is None
    assert meta.comments == ["", "Sat Nov 21 03:04:58 UTC 2026"]


def test_the_broker_of_the_samples() -> None:
    old = META_PROPERTIES.parse((SAMPLES / "kafka-2.8/meta.properties").read_bytes())
    assert (old.version, old.broker_id, old.node_id, old.directory_id) == (0, 1, None, None)
    new = META_PROPERTIES.parse((SAMPLES / "kafka-4.x/meta.properties").read_bytes())
    assert (new.version, new.broker_id) == (1, None)
    assert isinstance(new.node_id, int) and isinstance(new.directory_id, uuid.UUID)
    old.cluster_id = "another"
    assert b"cluster.id=another\n" in META_PROPERTIES.build(old)


# ---------------------------------------------------------------- what Kafka's readers take

STRICT, LENIENT, NOBODY = "strict", "lenient", "nobody"
EPOCHS: list[tuple[bytes, str]] = [
    (b"0\n2\n0 0\n7 100\n", STRICT),
    (b"0\n1\n-1 -1\n", STRICT),
    (b"0\n0\n", STRICT),
    (b"", STRICT),
    (b"0\n", LENIENT),  # "missing count line -> empty list"
    (b"0", LENIENT),
    (b"0\r\n1\r\n0 0\r\n", LENIENT),
    (b"0\r1\r0 0\r", LENIENT),
    (b"0\n1\n0 0", LENIENT),
    (b"0\n1\n0   0\n", LENIENT),
    (b"0\n1\n0\t0\n", LENIENT),
    (b"0\n1\n0 0 \n", LENIENT),
    (b"0\n1\n+0 007\n", LENIENT),
    (b"+0\n01\n0 0\n", LENIENT),
    (b"0\n1\n 0 0\n", NOBODY),  # "leading whitespace -> extra empty part -> malformed"
    (b"1\n0\n", NOBODY),
    (b"-1\n0\n", NOBODY),
    (b"0\n1\n", NOBODY),
    (b"0\n1\n0 0\n1 1\n", NOBODY),  # "also when there are more"
    (b"0\n1\n0 0\n\n", NOBODY),
    (b"0\n1\n0\n", NOBODY),
    (b"0\n1\n0 0 0\n", NOBODY),
    (b"0\n1\nx 0\n", NOBODY),
    (b"0\n1\n0 x\n", NOBODY),
    (b"0\n1\n2147483648 0\n", NOBODY),
    (b"0\n1\n0 9223372036854775808\n", NOBODY),
    (b"0 \n0\n", NOBODY),
    (b"x\n0\n", NOBODY),
    (b"0\nx\n", NOBODY),
    (b"\n", NOBODY),
]
OFFSETS: list[tuple[bytes, str]] = [
    (b"0\n1\nmy-topic 3 133\n", STRICT),
    (b"0\n2\na 0 1\na 0 2\n", STRICT),  # "duplicate partitions: last wins"
    (b"0\n1\na -1 -1\n", STRICT),
    (b"", STRICT),
    (b"0\n", LENIENT),
    (b"0\n1\na  0\t1\n", LENIENT),
    (b"0\r\n1\r\na 0 1\r\n", LENIENT),
    (b"0\n1\na 0 1", LENIENT),
    (b"0\n1\na 0 01\n", LENIENT),
    (b"0\n1\na\xff 0 1\n", LENIENT),
    (b"1\n0\n", NOBODY),
    (b"-1\n0\n", NOBODY),
    (b"0\n0\na 0 1\n", NOBODY),
    (b"0\n1\na 2147483648 0\n", NOBODY),
    (b"0\n1\na 0 9223372036854775808\n", NOBODY),
    (b"0\n1\na 0\n", NOBODY),
    (b"0\n1\na b 0 1\n", NOBODY),
    (b"0\n1\na 0 x\n", NOBODY),
]
ID = b"AAAAAAAAAAAAAAAAAAAAAQ"
METADATA: list[tuple[bytes, str]] = [
    (b"version: 0\ntopic_id: " + ID, STRICT),
    (b"version: 0\ntopic_id: " + ID + b"\n", LENIENT),
    (b"version: 0\r\ntopic_id: " + ID, LENIENT),
    (b"version: 2147483647\ntopic_id: " + ID, LENIENT),
    (b"version: 7\ntopic_id: " + ID, LENIENT),  # "version >= 0 accepted (any larger)"
    (b"version:  \t0\ntopic_id: " + ID, LENIENT),
    (b"version: 0\ntopic_id: " + ID + b"\nmore", LENIENT),  # "extra lines ignored"
    (b"version\xff: 0\ntopic_id: " + ID, LENIENT),
    (b"version: 2147483648\ntopic_id: " + ID, NOBODY),
    (b"x: 0\ny: " + ID, LENIENT),  # "keys are not checked, only positions"
    (b"version: 0\ntopic_id: " + ID + b"==", LENIENT),
    (b"version: -1\ntopic_id: " + ID, NOBODY),
    (b"version:0\ntopic_id: " + ID, NOBODY),
    (b"version: 0\n", NOBODY),
    (b"version: 0\ntopic_id: " + ID[1:], NOBODY),
    (b"version: 0\ntopic_id: " + ID + b"A", NOBODY),
    (b"topic_id: " + ID + b"\nversion: 0", NOBODY),
    (b"", NOBODY),
]
ONE = b"version=1\nnode.id=3\ncluster.id=c\n"
PROPERTIES: list[tuple[bytes, str]] = [
    (b"#\n#now\n" + ONE, STRICT),
    (ONE, STRICT),
    (ONE + b"other.key=x\n", STRICT),
    (b"version=0\nbroker.id=1\n", STRICT),
    (b"broker.id=1\n", STRICT),  # "version absent or 0"
    (b"version=0\n", STRICT),
    (b"", STRICT),
    (ONE.replace(b"=", b" : "), LENIENT),
    (ONE.replace(b"\n", b"\r\n"), LENIENT),
    (b"\n! now\n" + ONE, LENIENT),
    (b"ver\\\n  sion=1\nnode.id=\\u0033\ncluster\\.id=c", LENIENT),
    (ONE + b"node.id=4\n", LENIENT),
    (ONE[:-1], LENIENT),
    (ONE + b"x=\xff\n", LENIENT),
    (b"version=01\nnode.id=3\ncluster.id=c\n", LENIENT),
    (b"version=1\nnode.id=-3\ncluster.id=c\n", STRICT),
    (b"broker.id=-1\n", STRICT),
    (b"broker.id=2147483648\n", NOBODY),
    (b"version=1\nnode.id=2147483648\ncluster.id=c\n", NOBODY),
    (b"version=2\nnode.id=3\ncluster.id=c\n", NOBODY),
    (b"version=-1\n", NOBODY),
    (b"version=one\n", NOBODY),
    (b"version=1\nnode.id=3\n", NOBODY),  # "cluster.id was not found."
    (b"version=1\ncluster.id=c\n", NOBODY),  # "node.id was not found."
    (b"version=1\nnode.id=x\ncluster.id=c\n", NOBODY),
    (ONE + b"directory.id=abc\n", NOBODY),
]
CASES = [
    (codec, data, reader)
    for codec, cases in (
        (LEADER_EPOCH_CHECKPOINT, EPOCHS),
        (OFFSET_CHECKPOINT, OFFSETS),
        (PARTITION_METADATA, METADATA),
        (META_PROPERTIES, PROPERTIES),
    )
    for data, reader in cases
]


@pytest.mark.parametrize(("codec", "data", "reader"), CASES, ids=[repr(case[1]) for case in CASES])
def test_what_kafka_takes(codec: Any, data: bytes, reader: str) -> None:
    """Lenient readers take what Kafka takes; strict ones what it writes."""
    if reader == STRICT:
        assert codec.build(codec.parse(data)) == data
    else:
        with pytest.raises(ParseError):
            codec.parse(data)
    if reader == NOBODY:
        with pytest.raises(ParseError) as caught:
            codec.parse(data, strict=False)
        assert caught.value.where.line is not None and caught.value.where.position is not None
    else:
        noted: list[ParseError] = []
        codec.parse(data, strict=False, findings=noted)
        assert bool(noted) == (reader == LENIENT)


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize("codec", [LEADER_EPOCH_CHECKPOINT, OFFSET_CHECKPOINT])
def test_many_lines(codec: Any) -> None:
    """More than 16 bits count."""
    last = "1 1" if codec is LEADER_EPOCH_CHECKPOINT else "a 1 1"
    data = f"0\n{1 << 15}\n".encode() + f"{last}\n".encode() * (1 << 15)
    assert codec.build(codec.parse(data)) == data


def test_what_kafka_refuses_and_no_schema_says() -> None:
    """A topic id of zero: the language has no rules about uuids."""
    data = b"version: 0\ntopic_id: " + b"A" * 22
    assert PARTITION_METADATA.parse(data).topic_id == uuid.UUID(int=0)


def test_the_value_of_a_key_that_stands_twice() -> None:
    found = META_PROPERTIES.parse(ONE + b"node.id=4\n", strict=False)
    assert found.node_id == 4
    assert META_PROPERTIES.build(found) == ONE.replace(b"3", b"4")


EDGES: list[tuple[Any, str, int]] = [
    (LEADER_EPOCH_CHECKPOINT, "0\n1\n{} 5\n", 32),
    (LEADER_EPOCH_CHECKPOINT, "0\n1\n5 {}\n", 64),
    (OFFSET_CHECKPOINT, "0\n1\ntopic {} 5\n", 32),
    (OFFSET_CHECKPOINT, "0\n1\ntopic 5 {}\n", 64),
    (META_PROPERTIES, "broker.id={}\nversion=0\n", 32),
    (META_PROPERTIES, "node.id={}\nversion=1\ncluster.id=a\n", 32),
]
"""A text, the place of a number, and how many bits Kafka's readers have for it: an int or a long of Java."""


@pytest.mark.parametrize(("codec", "text", "bits"), EDGES, ids=[repr(case[1]) for case in EDGES])
def test_numbers_at_the_edges(codec: Any, text: str, bits: int) -> None:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    for number in (low, high):
        data = text.format(number).encode()
        assert codec.build(codec.parse(data)) == data
    for number in (low - 1, high + 1):
        with pytest.raises(ParseError):
            codec.parse(text.format(number).encode(), strict=False)


def test_the_version_that_is_written() -> None:
    topic = {"topic_id": uuid.UUID(int=1)}
    assert PARTITION_METADATA.build(topic) == b"version: 0\ntopic_id: " + ID
