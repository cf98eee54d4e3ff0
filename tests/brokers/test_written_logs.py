"""What salvage, cut and reindex write, under a real broker: it takes the files as they are, and makes the same indexes of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_codecs import OFFSET_CHECKPOINT
from kafka_log import LogDirectory, SegmentReader, discover, read_table
from tests.paths import SAMPLES
from tests.support.salvage_rows import files
from tests.support.written_logs import (
    digest,
    no_errors,
    taken_in,
)

from .brokers import KraftBroker
from .expected import consume, partitions
from .load import load_into_broker
from .process import wait_until

pytestmark = pytest.mark.broker

LOG_START = "log-start-offset-checkpoint"


def flip(path: Path, at: float) -> None:
    """Change a byte inside of the batch that lies about there in a segment, and none of its first."""
    batches = list(SegmentReader(path))
    batch = batches[int(at * len(batches))]
    data = bytearray(path.read_bytes())
    data[batch.position + batch.size - 5] ^= 4
    path.write_bytes(data)


def damaged(source: Path, target: Path, at: float) -> Path:
    """A copy of a partition with a damaged batch in each segment."""
    shutil.copytree(source, target)
    for path in target.glob("*.log"):
        if path.stat().st_size:
            flip(path, at)
    return target


def written(tmp: Path) -> dict[str, Path]:
    """Partitions that were written, by a word for each."""
    found: dict[str, Path] = {}

    def add(word: str, out: Path) -> None:
        for partition in discover(out):
            name = f"{partition.topic}-{partition.partition}"
            if not name.startswith("__"):
                found[f"{word}: {name}"] = partition.directory

    for version in ("kafka-2.8", "kafka-4.x"):
        LogDirectory(SAMPLES / version).salvage(tmp / version)
        add(version, tmp / version)
    four, old = SAMPLES / "kafka-4.x", SAMPLES / "kafka-2.8"
    hurt = [four / "codecs-1", four / "transactions-1", four / "segments.small-1"]
    hurt += [four / "idempotent-0", old / "v1-1", old / "v0-0", old / "mixed-0"]
    for i, source in enumerate(hurt):
        copy = damaged(source, tmp / "hurt" / f"{i}" / source.name, 0.3)
        for word, options in (("damaged", {}), ("all", {"keep_damaged": True})):
            LogDirectory(copy).salvage(tmp / word / f"{i}", **options)
            add(f"{word} {i}", tmp / word / f"{i}")
        LogDirectory(copy).salvage(tmp / "flat" / f"{i}", flatten=True)
        add(f"flat {i}", tmp / "flat" / f"{i}")
    LogDirectory(four, topics=["transactions", "segments.small"]).salvage(tmp / "f", flatten=True)
    add("flat", tmp / "f")
    small = LogDirectory(four / "segments.small-1")
    small.cut(tmp / "cut", offsets=(50, 90))
    add("cut", tmp / "cut")
    first = read_table(four / "segments.small-1", ["timestamp"])["timestamp"].cast("int64")
    middle = sorted(first.to_pylist())[len(first) // 2]
    small.cut(tmp / "late", timestamps=(middle, None))
    add("late", tmp / "late")
    LogDirectory(four, topics="segments.small").reindex(tmp / "indexes")
    reindexed = sorted((tmp / "indexes").glob("segments*"))
    assert len(reindexed) == 2
    for made in reindexed:
        for path in (four / made.name).glob("*.log"):
            shutil.copyfile(path, made / path.name)
        found[f"reindexed: {made.name}"] = made
    return found


def test_a_broker_takes_what_is_written(tmp_path: Path) -> None:
    made = written(tmp_path)
    assert len(made) > 60
    taken_in(tmp_path, made | repaired(tmp_path / "repaired") | merged(tmp_path / "merged"))


def repaired(tmp_path: Path) -> dict[str, Path]:
    """Repair logs of which each segment has a flipped bit, in compressed batches too. They are what they were before."""
    four, old = SAMPLES / "kafka-4.x", SAMPLES / "kafka-2.8"
    made = {}
    for source in (four / "codecs-1", four / "transactions-1", old / "v1-1"):
        copy = damaged(source, tmp_path / "hurt" / source.name, 0.3)
        table = LogDirectory(copy).salvage(tmp_path / "out" / source.name, repair=True)
        assert {"repaired"} <= {*table.column("what").to_pylist()}
        assert not {"lost", "rewritten", "not repaired"} & {*table.column("what").to_pylist()}
        made[f"repaired: {source.name}"] = out = tmp_path / "out" / source.name / source.name
        assert files(out, ".log") == files(source, ".log") != {}
    return made


def merged(tmp_path: Path) -> dict[str, Path]:
    """Merge two replicas that are damaged in other batches of each segment. The result is what they were before."""
    made = {}
    for name in ("transactions-1", "segments.small-1"):
        source = SAMPLES / "kafka-4.x" / name
        first, second = (
            damaged(source, tmp_path / word / name, at) for word, at in (("a", 0.3), ("b", 0.8))
        )
        table = LogDirectory(first).merge(second, tmp_path / "out")
        assert {"replaced"} <= {*table.column("what").to_pylist()} <= {"kept", "replaced", "open"}
        made[f"merged: {name}"] = out = tmp_path / "out" / name
        assert files(out, ".log") == files(source, ".log") != {}
    return made


def wait_for_topics(broker: KraftBroker, names: set[str]) -> None:
    """Wait until the broker has a folder for each topic: it answers that a topic is made before it has them."""

    def missing() -> set[str]:
        return names - {name.rpartition("-")[0] for name in partitions(broker.log_dir)}

    wait_until(lambda: not missing(), 60, lambda: f"no folder of {missing()}")


@pytest.mark.soak
def test_a_node_starts_on_salvaged_metadata(tmp_path: Path) -> None:
    """A controller and broker knows its topics by what salvage has written, also where the log begins after its snapshot."""
    names = {f"topic-{i}" for i in range(40)}
    with KraftBroker(tmp_path / "broker") as broker:
        with broker.client() as client:
            for name in sorted(names):
                client.ask("create_topic", topic=name, partitions=2, config={})
        home = broker.log_dir / "__cluster_metadata-0"
        wait_for_topics(broker, names)
        expected = consume(broker)
        broker.stop()
        for flatten, word in ((False, "whole"), (True, "flat"), (False, "late")):
            source = home
            if word == "late":
                newest = max(home.glob("*.checkpoint"))
                end = int(newest.name[:20])
                assert end > 0
                LogDirectory(home).cut(tmp_path / "part", (end, None))
                source = tmp_path / "part" / home.name
                assert [int(path.stem) for path in source.glob("*.log")] == [end]
                shutil.copyfile(newest, source / newest.name)
            known = LogDirectory(source).metadata("topics")
            assert names <= set(known.column("topic").to_pylist())
            LogDirectory(source).salvage(tmp_path / word, flatten=flatten)
            made = tmp_path / word / home.name
            assert LogDirectory(made).metadata("topics") == known
            assert not (made / "quorum-state").exists()
            shutil.rmtree(home)
            shutil.copytree(made, home)
            broker.start()
            found = consume(broker)
            no_errors(broker)
            assert found == expected, word
            # It goes on to write.
            with broker.client() as client:
                client.ask("create_topic", topic=f"more-{word}", partitions=1, config={})
            wait_for_topics(broker, {f"more-{word}"})
            expected = consume(broker)
            names.add(f"more-{word}")
            broker.stop()


@pytest.mark.soak
def test_a_log_starts_where_it_did(tmp_path: Path) -> None:
    """The file beside the partitions is what a broker wants: without it the records come back that were deleted."""
    four = SAMPLES / "kafka-4.x"
    made: dict[str, Callable[[LogDirectory, Path], Any]] = {
        "salvaged": lambda log, out: log.salvage(out),
        "flat": lambda log, out: log.salvage(out, flatten=True),
        "part": lambda log, out: log.cut(out, (0, 12)),
        "other": lambda log, out: log.convert(out, codec="lz4"),
    }
    sources: dict[str, Path] = {}
    written: dict[str, int] = {}

    def starts(path: Path) -> dict[str, int]:
        found = OFFSET_CHECKPOINT.parse(path.read_bytes())
        return {entry.topic: entry.offset for entry in found.entries or ()}

    for topic, make in made.items():
        source = tmp_path / "disk" / topic
        shutil.copytree(four / "trimmed-0", source / f"{topic}-0")
        entries = [{"topic": topic, "partition": 0, "offset": 7}]
        (source / LOG_START).write_bytes(OFFSET_CHECKPOINT.build({"entries": entries}))
        make(LogDirectory(source), tmp_path / topic)
        sources[f"{topic}-0"] = tmp_path / topic / f"{topic}-0"
        written |= starts(tmp_path / topic / LOG_START)
    with load_into_broker(tmp_path / "broker", sources, recover=False) as broker:
        for start in (0, 7):
            found = consume(broker)
            for name, source in sources.items():
                for isolation in ("read_uncommitted", "read_committed"):
                    theirs, ours = found[name][isolation], digest(source, isolation, start)
                    assert ours["count"] > 3
                    assert {key: theirs[key] for key in ours} == ours, (name, start)
            broker.stop()
            path = broker.log_dir / LOG_START
            assert starts(path) == (written if start else {})
            entries = [{"topic": t, "partition": 0, "offset": at} for t, at in written.items()]
            path.write_bytes(OFFSET_CHECKPOINT.build({"entries": entries}))
            broker.start()
        no_errors(broker)
