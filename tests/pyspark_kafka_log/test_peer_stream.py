"""Streams of Spark's Kafka source, from a broker that runs, and of ours, from its directory: equal micro-batches, and offsets that go
from the one to the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.brokers.filler import Filler
from tests.brokers.records import small
from tests.support.spark_peer import OURS, THEIRS, Failed, Peer, Streamed

pytestmark = [pytest.mark.broker, pytest.mark.spark]

SMALL = "segments.small"
EARLIEST = {"startingOffsets": "earliest"}
COMMITTED = {"kafka.isolation.level": "read_committed"}
LATE = str(10**14)


@pytest.mark.share(ci=11)
@pytest.mark.parametrize(
    ("options", "batches"),
    [
        ({"subscribe": "codecs,features,empty", "includeHeaders": "true", **EARLIEST}, 1),
        ({"subscribe": "transactions", **EARLIEST}, 1),
        ({"subscribe": "transactions", "maxOffsetsPerTrigger": "20", **EARLIEST}, 5),
        ({"subscribe": "transactions", **EARLIEST, **COMMITTED}, 1),
        ({"subscribePattern": "ments|rimmed", "maxOffsetsPerTrigger": "100", **EARLIEST}, 3),
        ({"assign": {"compacted": [1]}, **EARLIEST}, 1),
        ({"subscribe": "trimmed"}, 1),
        ({"subscribe": "trimmed", "startingOffsets": {"trimmed": {"0": 9}}}, 1),
        (
            {
                "subscribe": "trimmed",
                "startingOffsets": {"trimmed": {"0": 3}},
                "failOnDataLoss": "false",
            },
            1,
        ),
        (
            {
                "subscribe": SMALL,
                "startingTimestamp": LATE,
                "startingOffsetsByTimestampStrategy": "latest",
            },
            1,
        ),
        ({"subscribe": "transactions", "minOffsetsPerTrigger": "1000", **EARLIEST}, 1),
    ],
    ids=str,
)
def test_micro_batches(kafka4: Peer, tmp_path: Path, options: dict[str, Any], batches: int) -> None:
    found = kafka4.same_stream(tmp_path, **options)
    assert len(found.batches) == batches


@pytest.mark.soak
def test_times(kafka4: Peer, tmp_path: Path) -> None:
    time = kafka4.first_time + 60_000
    one = kafka4.same_stream(tmp_path / "all", subscribe=SMALL, startingTimestamp=str(time))
    each = {SMALL: {"0": time, "1": time}}
    options = {"subscribe": SMALL, "startingOffsetsByTimestamp": each}
    assert kafka4.same_stream(tmp_path / "each", **options).rows == one.rows > 0


@pytest.mark.share(ci=7)
@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": {"trimmed": {"0": 3}}},
        {"startingOffsets": {"trimmed": {"0": 99}}},
        {"startingOffsets": {"trimmed": {"0": 9, "1": 9}}},
        {"startingTimestamp": LATE},
        {"endingOffsets": "latest"},
        {"maxOffsetsPerTrigger": "1", "minOffsetsPerTrigger": "2"},
        {"maxOffsetsPerTrigger": "many"},
    ],
    ids=str,
)
def test_what_both_refuse(kafka4: Peer, tmp_path: Path, options: dict[str, Any]) -> None:
    for source in (THEIRS, *OURS):
        found = kafka4.stream(source, {"subscribe": "trimmed", **options}, tmp_path)
        assert isinstance(found, Failed), source


@pytest.mark.soak
def test_what_comes_later(kafka4: Peer, tmp_path: Path) -> None:
    """Queries that began at the end go on from their checkpoints when there is more."""
    with kafka4.broker.client() as client:
        filler = Filler(kafka4.broker, client, kafka4.first_time)
        filler.topic("later", 2)
        options = {"subscribe": "later", **COMMITTED}
        assert kafka4.same_stream(tmp_path, **options).rows == 0
        producer = filler.transactional("later", "zstd")
        for end in ("commit", "abort", "commit"):
            producer.do("begin")
            for partition in range(2):
                producer.send("later", partition, small(end, 4 + partition, kafka4.first_time))
            producer.do(end)
        assert kafka4.same_stream(tmp_path, **options).rows == 18
        producer.do("begin")
        producer.send("later", 0, small("open", 3, kafka4.first_time))
        plain = filler.plain("plain", "none")
        plain.send("later", 1, small("plain", 2, kafka4.first_time))
        assert kafka4.same_stream(tmp_path, **options).rows == 2
        producer.do("commit")
        assert kafka4.same_stream(tmp_path, **options).rows == 3


@pytest.mark.soak
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_offsets_go_from_one_source_to_the_other(
    kafka4: Peer, tmp_path: Path, isolation: str
) -> None:
    """What a stream of one has not read, batches and streams of all of them read from the offsets in its progress."""
    options = {
        "subscribe": f"codecs,transactions,{SMALL}",
        "maxOffsetsPerTrigger": "300",
        "kafka.isolation.level": isolation,
    }
    for source in (THEIRS, *OURS):
        found = kafka4.stream(source, {**options, **EARLIEST}, tmp_path / "first")
        assert isinstance(found, Streamed)
        assert len(found.batches) > 1
        read = json.dumps(found.offsets[0])
        assert ("@leaderEpochs" in read) == (source != THEIRS)
        left = pa.concat_tables(found.batches[1:]).num_rows
        rest = {**options, "startingOffsets": read}
        assert kafka4.same(**rest) == left > 0
        assert kafka4.same_stream(tmp_path / f"rest-{source}", **rest).rows == left
