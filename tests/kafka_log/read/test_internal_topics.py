"""What ``dump`` shows of Kafka's own topics."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kafka_log.cli import main
from kafka_log.logs.names import INTERNAL_TOPICS
from kafka_log.read.internal_topics import internal_topic
from tests.paths import SAMPLES

NEW = SAMPLES / "kafka-4.x"
OFFSETS = NEW / "__consumer_offsets-0" / "00000000000000000000.log"


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(["dump", *arguments])
    return capsys.readouterr().out


@pytest.mark.parametrize("path", sorted(NEW.glob("__*/*.log")) + sorted(NEW.glob("__*/*-*.checkpoint")), ids=lambda p: f"{p.parent.name}-{p.name}")  # fmt: skip
def test_every_record_of_the_samples_is_decoded(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.loads(x) for x in shown(capsys, str(path), "--format", "vectors").splitlines()]
    found = [x for x in lines if x["type"] == "record" and "control" not in x]
    assert found
    for record in found:
        assert "error" not in record["decoded"]
        assert record["decoded"]["value"] is not None or record["value"] is None


def test_text_is_that_of_kafkas_own_tool(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, str(OFFSETS))
    assert '{"type":"2","data":{"group":"group-classic"}}  {"version":"3","data":' in text
    assert '"subscription":{"topics":["codecs"]' in text, "members of a classic group are opened"
    text = shown(capsys, str(NEW / "__transaction_state-0"))
    assert '"transactionStatus":"CompleteCommit"' in text
    text = shown(capsys, str(NEW / "__cluster_metadata-0"))
    assert '  null  {"type":"TOPIC_RECORD","version":0,"data":{"name":"codecs","topicId":"' in text


def test_it_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert '"type"' not in shown(capsys, str(OFFSETS), "--decode", "none")
    raw = shown(capsys, str(OFFSETS), "--decode", "none", "--format", "vectors")
    assert "decoded" not in raw


def test_a_directory_of_another_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "from-the-disk.log"
    shutil.copy(OFFSETS, copy)
    assert '"group-classic"' not in shown(capsys, str(copy))
    assert '{"group":"group-classic"}' in shown(capsys, str(copy), "--decode", "__consumer_offsets")


def test_other_topics_are_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert "decoded" not in shown(capsys, str(NEW / "codecs-0"), "--format", "vectors")


@pytest.mark.parametrize(
    ("topic", "key", "value", "expected"),
    [
        ("__consumer_offsets", None, None, "a record of this topic has a key"),
        ("__consumer_offsets", b"\0\x63", None, "the type or version 99 is unknown"),
        ("__consumer_offsets", b"\0", None, "key"),
        ("__consumer_offsets", b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\3\0", "value"),
        (
            "__consumer_offsets",
            b"\0\1\0\1g\0\1t\0\0\0\0",
            b"\0\x63\0",
            "the type or version 99 is unknown",
        ),
        ("__cluster_metadata", None, None, "a record of this topic has a value"),
        ("__cluster_metadata", None, b"\1\x63\0\0", "no such record, or version, is known"),
        ("__cluster_metadata", None, b"\1\2\x63\0", "no such record, or version, is known"),
        ("__cluster_metadata", None, b"\2\2\0\0", "frame_version"),
    ],
)
def test_what_cannot_be_read_is_said(
    topic: str, key: bytes | None, value: bytes | None, expected: str
) -> None:
    decoder = internal_topic(topic)
    assert decoder is not None
    found = decoder.decode(key, value, file="x.log", position=40)
    assert found.error is not None
    assert expected in str(found.error)
    assert "x.log" in str(found.error)


def test_any_bytes_have_an_answer() -> None:
    for topic in INTERNAL_TOPICS:
        decoder = internal_topic(topic)
        assert decoder is not None
        for first in range(256):
            for data in (
                bytes([first]),
                bytes([0, first]),
                bytes([1, first, 0, 0]),
                bytes([first] * 9),
            ):
                for value in (None, data):
                    decoder.decode(data, value)


def test_topics_that_are_not_kafkas_own() -> None:
    assert internal_topic("orders") is None
