"""What is written from tables, under a real broker: it takes the files as they are, makes the same indexes of them, and consumers read
every record; its own producer sends keys to the same partitions."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import kafka_log
from kafka_log.write.sink.commit import commit, new_job
from kafka_log.write.sink.log_format import LogFormat
from kafka_log.write.sink.staging import write_task
from tests.paths import SAMPLES
from tests.support.written import CODE_PATHS, CODECS, TIME, records
from tests.support.written_logs import taken_in

from .filler import Filler
from .load import load_into_broker
from .records import Rec, noise

pytestmark = pytest.mark.broker


def written(tmp: Path, kinds: list[tuple[int, str]]) -> dict[str, Path]:
    """Partitions that were written, by a word for each."""
    found: dict[str, Path] = {}
    for magic, codec in kinds:
        out = tmp / f"{magic}-{codec}"
        to = LogFormat("t", 2, codec, magic=magic, batch_bytes=1000, segment_bytes=9000)
        for _ in range(2):  # the second goes after the first; each has three tasks
            job = new_job(out, to)
            staged = []
            for task in range(3):
                given = records(300, task, headers=magic == 2, times=magic > 0)
                staged.append(write_task(job, task, given.to_batches()))
            commit(replace(job), staged)
        for partition in kafka_log.discover(out):
            word = f"{codec} in {magic}: {partition.partition}"
            found[word] = partition.directory
    for sample, name in (
        ("kafka-4.x", "codecs-1"),
        ("kafka-4.x", "segments.small-1"),
        ("kafka-2.8", "v1-1"),
    ):
        out = tmp / sample
        shutil.copytree(SAMPLES / sample / name, out / name)
        topic, _, number = name.rpartition("-")
        given = records(50).append_column("partition", pa.array([int(number)] * 50))
        kafka_log.write_log(out, given, topic=topic, segment_bytes=1000, batch_bytes=300)
        found[f"after {name}"] = out / name
    columns = [
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestamp_type",
        "key",
        "value",
        "headers",
    ]
    copied = kafka_log.scan(SAMPLES / "kafka-4.x", columns, topics=["codecs", "compacted"])
    kafka_log.write_log(tmp / "copied", copied)
    for partition in kafka_log.discover(tmp / "copied"):
        found[f"copied {partition.topic}-{partition.partition}"] = partition.directory
    return found


@pytest.mark.parametrize(
    "kinds", [CODE_PATHS, pytest.param(CODECS, marks=pytest.mark.soak)], ids=["code paths", "all"]
)
def test_a_broker_takes_what_is_written(tmp_path: Path, kinds: list[tuple[int, str]]) -> None:
    made = written(tmp_path, kinds)
    assert len(made) > 2 * len(kinds) + 4
    taken_in(tmp_path, made, other_indexes="after")


@pytest.mark.soak
def test_a_running_broker_is_noticed(tmp_path: Path) -> None:
    with load_into_broker(tmp_path / "broker", {}) as broker:
        with pytest.raises(kafka_log.DirectoryError, match="a broker is running in it"):
            kafka_log.write_log(broker.log_dir, records(5), topic="t")
        assert list(broker.log_dir.glob(".kafka-log*")) == []


@pytest.mark.soak
def test_keys_go_where_a_producer_sends_them(tmp_path: Path) -> None:
    keys = [b"", b"a", *(noise(f"key {i}", i % 40 + 1) for i in range(300))]
    sent = [Rec(TIME, key, b"v").to_json() for key in keys]
    with load_into_broker(tmp_path / "broker", {}) as broker:
        with broker.client() as client:
            Filler(broker, client, TIME).topic("keys", 7)
            Filler(broker, client, TIME).plain("one", "none")
            client.ask("send", producer="one", topic="keys", partition=-1, records=sent)
        broker.stop()
        theirs = kafka_log.read_table(broker.log_dir, ["partition", "key"], topics="keys")
        broker.start()
    kafka_log.write_log(
        tmp_path / "ours", pa.table({"key": keys, "value": keys}), topic="keys", partitions=7
    )
    ours = kafka_log.read_table(tmp_path / "ours", ["partition", "key"])

    def placed(table: pa.Table) -> list[tuple[int, bytes]]:
        return sorted((row["partition"], row["key"]) for row in table.to_pylist())

    assert placed(ours) == placed(theirs)
