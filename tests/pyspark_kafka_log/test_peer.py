"""Batch queries of Spark's Kafka source, from brokers that run, and of ours, from their directories: equal DataFrames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.brokers.brokers import ZookeeperBroker
from tests.brokers.records import CODECS
from tests.brokers.scenarios import fill_kafka_2_8
from tests.support.spark_peer import Peer, peer

pytestmark = [pytest.mark.broker, pytest.mark.spark]

TOPICS = {
    "kafka4": "codecs,features,append-time,idempotent,transactions,segments.small,trimmed,empty,compacted,compacted-again",
    "kafka28": "v0,v1,append-time,mixed,codecs,transactions,segments.small,trimmed,v1-compacted,compacted",
}
SMALL = "segments.small"
COMMITTED = {"kafka.isolation.level": "read_committed"}
LATE = 10**14
HOUR = 3_600_000


@pytest.fixture(scope="module")
def kafka28(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    broker = ZookeeperBroker(tmp_path_factory.mktemp("kafka28"))
    with peer(session, broker, fill_kafka_2_8) as made:
        yield made


@pytest.fixture(params=["kafka4", pytest.param("kafka28", marks=pytest.mark.soak)])
def either(request: pytest.FixtureRequest) -> tuple[Peer, str]:
    return request.getfixturevalue(request.param), request.param


def trimmed(first: int, end: int = -1) -> dict[str, Any]:
    """Options for a partition that DeleteRecords has cut at 7 and that ends at 15."""
    return {
        "subscribe": "trimmed",
        "startingOffsets": {"trimmed": {"0": first}},
        "endingOffsets": {"trimmed": {"0": end}},
    }


def open_transaction(first: int, end: int = -1) -> dict[str, Any]:
    """Options for a topic whose partition 2 has an open transaction from offset 5 on, and ends at 10."""
    return {
        "subscribe": "transactions",
        "startingOffsets": {"transactions": {"0": -2, "1": -2, "2": first}},
        "endingOffsets": {"transactions": {"0": -1, "1": -1, "2": end}},
        **COMMITTED,
    }


def two(first: int, second: int) -> dict[str, Any]:
    return {SMALL: {"0": first, "1": second}}


# ---------------------------------------------------------------- records


def test_every_record_at_both_isolations(either: tuple[Peer, str]) -> None:
    both, name = either
    options = {"subscribe": TOPICS[name], "includeHeaders": "true"}
    assert 0 < both.same(**options, **COMMITTED) < both.same(**options)
    found = (
        both.session.read.format("kafka-log")
        .options(subscribe=TOPICS[name], includeMetadata="true", mode="FAILFAST")
        .load(str(both.broker.log_dir))
    )
    made = {(row.magic, row.compression) for row in found.select("magic", "compression").collect()}
    old = {(magic, codec) for magic in (0, 1) for codec in CODECS[:4]}
    assert {(2, codec) for codec in CODECS} | (old if name == "kafka28" else set()) == made
    types = {row.timestampType for row in found.select("timestampType").distinct().collect()}
    assert types == ({-1, 0, 1} if name == "kafka28" else {0, 1})


@pytest.mark.soak
def test_every_record_by_default(either: tuple[Peer, str]) -> None:
    """Without headers, and at the isolation that is the default."""
    both, name = either
    options = {"subscribe": TOPICS[name]}
    assert both.same(**options, **{"kafka.isolation.level": "read_uncommitted"}) == both.same(**options)  # fmt: skip


# ---------------------------------------------------------------- options


SAME: list[dict[str, Any]] = [
    {"subscribe": " trimmed , empty,,trimmed"},
    {"subscribePattern": "egm"},
    {"subscribePattern": " ^tri.*d$ "},
    {"subscribePattern": ".*s"},
    {"subscribePattern": "nothing"},
    {"assign": {SMALL: [1], "transactions": [0, 2]}},
    {"subscribe": "trimmed", "startingOffsets": "EARLIEST", "endingOffsets": "latest"},
    trimmed(-2, -1),
    trimmed(9, 12),
    trimmed(7, 7),
    trimmed(15),
    trimmed(15, 15),
    {**trimmed(0), "failOnDataLoss": "false"},
    {**trimmed(3, 5), "failOnDataLoss": "false"},
    {**trimmed(5, 9), "failOnDataLoss": "false"},
    {**trimmed(-2, 20), "failOnDataLoss": "false"},
    {**trimmed(16, 18), "failOnDataLoss": "false"},
    {"subscribe": SMALL, "startingOffsets": two(9, 4), "endingOffsets": two(100, -1)},
    {"subscribe": SMALL, "startingOffsets": two(9, 4), "endingOffsets": two(100, 30), **COMMITTED},
    open_transaction(2),
    open_transaction(5),
    open_transaction(2, 5),
    {**open_transaction(2, 8), "failOnDataLoss": "false"},
    {"subscribe": SMALL, "minPartitions": "7"},
    {"subscribe": SMALL, "maxRecordsPerPartition": "5", **COMMITTED},
    {"subscribe": "features", "includeHeaders": "TRUE", "minPartitions": "3"},
    {
        "subscribe": "trimmed",
        "groupIdPrefix": "a",
        "fetchOffset.numRetries": "2",
        "fetchOffset.retryIntervalMs": "10",
        "maxOffsetsPerTrigger": "3",
        "minOffsetsPerTrigger": "1",
        "maxTriggerDelay": "1s",
        "kafka.fetch.max.bytes": "100000",
        "kafka.group.id": "g",
    },
]


@pytest.mark.share(ci=27)
@pytest.mark.parametrize("options", SAME, ids=str)
def test_options(kafka4: Peer, options: dict[str, Any]) -> None:
    kafka4.same(**options)


@pytest.mark.parametrize(
    "times",
    [(100_001,), pytest.param((1, 2500, HOUR, LATE), marks=pytest.mark.soak)],
    ids=["one", "others"],
)
@pytest.mark.share(ci=2)
@pytest.mark.parametrize(
    ("name", "topics", "isolation"),
    [
        ("kafka4", f"{SMALL},transactions", COMMITTED),
        ("kafka4", "append-time,trimmed,features,compacted,codecs", {}),
        pytest.param("kafka28", "v1,mixed,append-time,v1-compacted", {}, marks=pytest.mark.soak),
    ],
)
def test_times_of_all_partitions(
    name: str,
    topics: str,
    isolation: dict[str, str],
    times: tuple[int, ...],
    request: pytest.FixtureRequest,
) -> None:
    both: Peer = request.getfixturevalue(name)
    first = both.first_time
    some = {"subscribe": topics, **isolation}
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    for time in (first + after for after in times):
        both.same(**some, **latest, startingTimestamp=str(time))
        both.same(**some, endingTimestamp=str(time))
    assert both.outcome(**some, startingTimestamp=str(LATE)) == "both fail"


@pytest.mark.soak
def test_times_of_each_partition(kafka4: Peer) -> None:
    begin, end = kafka4.first_time + 60_000, kafka4.first_time + 300_000
    starting = {"subscribe": SMALL, "startingOffsetsByTimestamp": two(begin, begin + 40_000)}
    ending = {"endingOffsetsByTimestamp": two(end, LATE)}
    every = kafka4.same(subscribe=SMALL)
    assert 0 < kafka4.same(**starting, **ending) < kafka4.same(**starting) < every
    assert kafka4.same(**starting, **ending, **COMMITTED) > 0
    assert kafka4.same(**starting, endingOffsets=two(50, 50)) > 0
    # Times come before offsets, and the one for all partitions before those of each.
    assert kafka4.same(**starting, startingOffsets="latest") == kafka4.same(**starting)
    both = {"startingTimestamp": str(end), "endingTimestamp": str(end + 90_000)}
    assert 0 < kafka4.same(**both, **starting, **ending) == kafka4.same(subscribe=SMALL, **both)


# ---------------------------------------------------------------- what fails


FAIL: list[dict[str, Any]] = [
    {"subscribe": "nope,trimmed"},
    {"assign": {"nope": [0]}},
    {"subscribe": " ,"},
    {"subscribePattern": ""},
    {"subscribePattern": "("},
    {"assign": "x"},
    {"subscribe": "trimmed", "subscribePattern": "trimmed"},
    {"subscribe": "trimmed", "startingOffsets": "latest"},
    {"subscribe": "trimmed", "endingOffsets": "earliest"},
    {"subscribe": "trimmed", "startingOffsets": "first"},
    {"subscribe": SMALL, "startingOffsets": {SMALL: {"0": 9}}},
    {"subscribe": SMALL, "startingOffsets": {SMALL: {"0": 9, "1": 4, "2": 6}}},
    {"subscribe": SMALL, "startingOffsetsByTimestamp": {SMALL: {"0": 9}}},
    trimmed(-1),
    trimmed(-2, -2),
    trimmed(-3),
    trimmed(0),
    trimmed(-2, 3),
    trimmed(12, 9),
    trimmed(16),
    trimmed(-2, 20),
    open_transaction(6),
    open_transaction(2, 10),
    {"subscribe": SMALL, "startingTimestamp": "-5"},
    {"subscribe": SMALL, "startingTimestamp": "now"},
    {"subscribe": "trimmed", "includeHeaders": "yes"},
    {"subscribe": "trimmed", "failOnDataLoss": "yes"},
    {"subscribe": "trimmed", "minPartitions": "0"},
    {"subscribe": "trimmed", "maxRecordsPerPartition": "x"},
    {"subscribe": "trimmed", "kafka.isolation.level": "serializable"},
]


@pytest.mark.share(ci=36)
@pytest.mark.parametrize("options", FAIL, ids=str)
def test_what_both_refuse(kafka4: Peer, options: dict[str, Any]) -> None:
    assert kafka4.outcome(**options) == "both fail"


def test_an_end_before_the_start_by_time(kafka4: Peer) -> None:
    begin, end = str(kafka4.first_time + 300_000), str(kafka4.first_time + 60_000)
    options = {"subscribe": SMALL, "startingTimestamp": begin, "endingTimestamp": end}
    assert kafka4.outcome(**options) == "both fail"


# The table of docs/spark/kafka-source.md says why these differ.
DIFFERENT: list[tuple[str, dict[str, Any]]] = [
    ("ours fails", {"assign": {SMALL: [5]}}),
    ("ours fails", {"subscribe": "trimmed", "anotherOption": "1"}),
    ("ours fails", {"subscribePattern": "^__"}),
    ("ours fails", {"subscribePattern": "\\p{Lower}+d$"}),
    ("theirs fails", {}),
    ("theirs fails", {"subscribe": "trimmed", "kafka.auto.offset.reset": "earliest"}),
    ("theirs fails", {"subscribe": "trimmed", "kafka.isolation.level": "READ_COMMITTED"}),
    ("theirs fails", {**trimmed(12, 9), "failOnDataLoss": "false"}),
    ("theirs fails", {**trimmed(16), "failOnDataLoss": "false"}),
]


@pytest.mark.share(ci=9)
@pytest.mark.parametrize(("outcome", "options"), DIFFERENT, ids=str)
def test_what_differs(kafka4: Peer, outcome: str, options: dict[str, Any]) -> None:
    assert kafka4.outcome(**options) == outcome


def test_topics_of_brokers_are_read_by_ours_alone(kafka4: Peer) -> None:
    for options in ({"subscribe": "__consumer_offsets"}, {"assign": {"__consumer_offsets": [0]}}):
        counts = [kafka4.read(source, options)[1].num_rows for source in ("kafka", "kafka-log")]  # type: ignore[index]
        assert counts[0] == 0 < counts[1]


@pytest.mark.soak
def test_times_of_the_oldest_messages_are_known_to_ours_alone(kafka28: Peer) -> None:
    """A broker refuses to look for times where messages have none: there are none as late, says ours."""
    ending = {"subscribe": "v0", "endingTimestamp": str(LATE)}
    assert kafka28.outcome(**ending) == "theirs fails"
    assert kafka28.outcome(subscribe="v0", startingTimestamp="0") == "both fail"
