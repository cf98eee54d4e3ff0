"""Puts segment files under a broker and lets it serve them."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .brokers import KraftBroker

CLEAN_MARK = ".kafka_cleanshutdown"
# The topic's id, which the metadata knows too; all else belongs to the records.
KEPT = "partition.metadata"


@contextmanager
def load_into_broker(
    directory: Path, partitions: Mapping[str, Path], *, recover: bool = True
) -> Iterator[KraftBroker]:
    """A running KRaft broker whose partitions ("topic-0") hold the *.log files of the given folders.

    The broker goes through them as after a crash: it checks every batch, cuts the log at the first that it does not
    accept, and writes the indexes and producer snapshots anew. Without ``recover`` it takes all files of the folders as
    they are, as after a clean stop.
    """
    topics: dict[str, int] = defaultdict(int)
    for name in partitions:
        topic, _, number = name.rpartition("-")
        topics[topic] = max(topics[topic], int(number) + 1)
    with KraftBroker(directory) as broker:
        with broker.client() as client:
            for topic, count in topics.items():
                client.ask("create_topic", topic=topic, partitions=count, config={})
        broker.stop()
        for name, source in partitions.items():
            _replace(broker.log_dir / name, source, "*.log" if recover else "*")
        if recover:
            (broker.log_dir / CLEAN_MARK).unlink()
        broker.start()
        yield broker


def _replace(target: Path, source: Path, which: str) -> None:
    for path in target.iterdir():
        if path.name != KEPT:
            path.unlink()
    for path in source.glob(which):
        if path.name == KEPT:
            continue
        shutil.copyfile(path, target / path.name)
