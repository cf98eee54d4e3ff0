"""Many partitions, each as somebody left it, under one broker that was stopped in order: what it says while it loads them, and what
consumers get."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_codecs import OFFSET_CHECKPOINT
from tests.brokers.brokers import KraftBroker
from tests.brokers.load import CLEAN_MARK, KEPT
from tests.brokers.maven import BrokerError

LOGGERS = ("org.apache.kafka.storage.internals.log", "kafka.log")
LOG_START = "log-start-offset-checkpoint"
LOG_END = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")
_FAILED = re.compile(r"Error while loading logs in \S+/(?P<topic>[^/]+)-0 in ")
# What a broker says of a log that it loads as it is.
ORDINARY = (
    "Loading producer state till offset",
    "Loading producer state from snapshot file",
    "Completed load of Log",
    "Removed fetcher for partitions",
    # Those between the ends of segments, but for the newest one.
    "Deleted producer state snapshot",
    "Reloading from producer snapshot and rebuilding producer state from offset",
    "Producer state recovery took",
)


@dataclass(frozen=True)
class Loaded:
    """What became of one partition: lines of the broker's log, and what a consumer gets (None: an error)."""

    lines: tuple[str, ...]
    records: Mapping[str, Any] | None
    probe: Mapping[str, Any] | None

    @property
    def complaints(self) -> tuple[str, ...]:
        return tuple(line for line in self.lines if not any(text in line for text in ORDINARY))


@contextmanager
def prepared(
    directory: Path, sources: Mapping[str, tuple[Path, int, int]]
) -> Iterator[KraftBroker]:
    """A stopped broker, whose partitions (topics of these names, partition 0) hold the files of directories, and whose checkpoints say
    where their logs begin and end."""
    broker = KraftBroker(directory, {}, heap_mb=384, say=LOGGERS)
    with broker, broker.client() as client:
        for topic in sources:
            client.ask("create_topic", topic=topic, partitions=1, config={})
    for topic, (source, _, _) in sources.items():
        target = broker.log_dir / f"{topic}-0"
        for path in target.iterdir():
            if path.name != KEPT:
                path.unlink()
        for path in source.iterdir():
            if path.name != KEPT:
                shutil.copyfile(path, target / path.name)
    starts = {topic: start for topic, (_, start, _) in sources.items() if start}
    _write(broker.log_dir / LOG_START, starts, sources)
    for name in LOG_END:
        _write(
            broker.log_dir / name, {topic: end for topic, (_, _, end) in sources.items()}, sources
        )
    try:
        yield broker
    finally:
        broker.kill()


def _write(path: Path, offsets: Mapping[str, int], topics: Collection[str]) -> None:
    """Other offsets of some topics in a checkpoint."""
    found = OFFSET_CHECKPOINT.parse(path.read_bytes())
    others = [entry for entry in found.entries or () if entry.topic not in topics]
    entries = [{"topic": t, "partition": 0, "offset": offset} for t, offset in offsets.items()]
    path.write_bytes(OFFSET_CHECKPOINT.build({"entries": [*others, *entries]}))


def loaded(broker: KraftBroker, topics: Mapping[str, Mapping[str, list[int]]]) -> dict[str, Loaded]:
    """Starts the broker, and tells of each topic. ``topics`` have the offsets and times to ask for. A broker that finds a log that it
    cannot load ends at once: it is started again without that one, of which there are lines then and nothing else."""
    mark = (broker.log_dir / CLEAN_MARK).read_bytes()
    text: list[str] = []
    fatal: set[str] = set()
    while True:
        try:
            broker.start()
            break
        except BrokerError:
            lines = broker.last_log().splitlines()
            named = [_FAILED.search(line) for line in lines]
            # What follows the first one may only be that the directory is offline by then.
            failed = {found["topic"] for found in [*filter(None, named)][:1]} - fatal
            if not failed:
                raise
            fatal |= failed
            text += lines
            for topic in failed:
                for path in (broker.log_dir / f"{topic}-0").iterdir():
                    if path.name != KEPT:
                        path.unlink()
            (broker.log_dir / CLEAN_MARK).write_bytes(mark)
    text += broker.log_text().splitlines()
    out = {}
    with broker.client() as client:
        for topic, asked in topics.items():
            place = {"topic": topic, "partition": 0}
            records = probe = None
            try:
                if topic in fatal:
                    raise BrokerError("not loaded")
                answer = client.ask("digest", partitions=[place], limit_ms=1200)
                records = answer[f"{topic}-0"]
                probe = client.ask("probe", **place, **asked)
            except BrokerError:
                pass
            lines = tuple(line for line in text if f"{topic}-0" in line)
            out[topic] = Loaded(lines, records, probe)
    return out
