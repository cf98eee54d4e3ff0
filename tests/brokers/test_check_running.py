"""A broker that writes, rolls, compacts and deletes while its log directory is checked: nothing is wrong."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from kafka_log import LogDirectory, read_table
from kafka_log.cli import main
from tests.brokers.brokers import KraftBroker
from tests.brokers.filler import Filler
from tests.brokers.records import Rec
from tests.brokers.scenarios import SMALL_4

pytestmark = [pytest.mark.broker, pytest.mark.slow]

SECONDS = float(os.environ.get("CHECK_SECONDS", "20"))
"""How long the broker is checked: 600 in a soak."""

CONFIG = {
    "log.retention.check.interval.ms": 300,
    "log.initial.task.delay.ms": 100,
    "offsets.topic.segment.bytes": 1 << 20,
}


class Load(threading.Thread):
    """Writes into topics that are deleted from, compacted and written in transactions, until it is stopped."""

    def __init__(self, broker: KraftBroker, delay_ms: int) -> None:
        super().__init__()
        self.delay_ms = delay_ms
        self.broker = broker
        self.is_stopped = threading.Event()
        self.rounds = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with self.broker.client() as client:
                self._write(Filler(self.broker, client, 0))
        except Exception as error:  # told by the test
            self.error = error

    def _write(self, filler: Filler) -> None:
        small = {**SMALL_4, "file.delete.delay.ms": self.delay_ms}
        filler.topic("deleted", 1, {**small, "retention.bytes": 9000})
        filler.topic("cleaned", 1, {**small, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})  # fmt: skip
        filler.topic("orders", 1, {**small, "retention.bytes": 30000})
        plain = filler.plain("plain", "none")
        transactional = filler.transactional("transactional", "lz4")
        while not self.is_stopped.is_set():
            now = int(time.time() * 1000)
            records = [Rec(now, b"key %d" % (self.rounds % 7), os.urandom(60)) for _ in range(5)]
            for topic in ("deleted", "cleaned"):
                plain.send(topic, 0, records)
            transactional.do("begin")
            last = transactional.send("orders", 0, records)
            transactional.send_offsets("group", "orders", 0, self.rounds)
            transactional.do("abort" if self.rounds % 3 == 0 else "commit")
            if self.rounds % 50 == 49:
                filler.delete_records("orders", 0, last - 20)
            self.rounds += 1


def test_nothing_is_wrong_under_load(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    checks = 0
    with KraftBroker(tmp_path / "broker", CONFIG) as broker:
        load = Load(broker, 500)
        load.start()
        end = time.monotonic() + SECONDS
        try:
            while time.monotonic() < end and load.error is None:
                alone = "cleaned" if checks % 3 == 2 and load.rounds else None
                logs = LogDirectory(broker.log_dir, topics=alone)
                for row in logs.check(deep=checks % 2 == 0).to_pylist():
                    seen[row["code"]] += 1
                    said = row["file"], row["byte"], row["code"], row["meaning"]
                    assert row["severity"] == "note", said
                checks += 1
        finally:
            load.is_stopped.set()
            load.join()
        assert load.error is None
        bases = sorted(int(path.stem) for path in (broker.log_dir / "deleted-0").glob("*.log"))
        assert bases[0] > 0, "retention has deleted nothing"
        assert len(bases) > 1, "no segment was rolled"
        offsets = read_table(broker.log_dir / "cleaned-0", ["offset"]).column(0).to_pylist()
        assert len(offsets) < offsets[-1] - offsets[0] + 1, "the cleaner has removed nothing"
        states = LogDirectory(broker.log_dir, topics="orders").txn().column("state").to_pylist()
        assert {"committed", "aborted"} <= {*states}
    assert checks > 5 and load.rounds > 20
    print(f"{checks} checks in {load.rounds} rounds: {dict(seen)}")
    assert not [r for r in LogDirectory(broker.log_dir).check().to_pylist() if r["severity"] != "note"]  # fmt: skip


COMMANDS = (["stat"], ["stat", "--deep"], ["txn"], ["producers"], ["keys"], ["dump"], ["dump", "--batches"])  # fmt: skip


@pytest.mark.share(ci=2)
@pytest.mark.parametrize("delay_ms", [60_000, 0])
def test_commands_read_segments_that_retention_takes(
    tmp_path: Path, delay_ms: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker deletes a segment a minute after it gave it another name, or at once: then a line says so, and the answer is good."""
    runs = 0
    with KraftBroker(tmp_path / "broker", CONFIG) as broker:
        load = Load(broker, delay_ms)
        load.start()
        end = time.monotonic() + SECONDS
        try:
            while time.monotonic() < end and load.error is None:
                for command in COMMANDS:
                    arguments = [str(broker.log_dir), "--topic", "deleted", "--topic", "orders"]
                    code = main([*command, *arguments]) if load.rounds else 0
                    assert code == 0, (command, capsys.readouterr().err)
                    capsys.readouterr()
                    runs += load.rounds > 0
        finally:
            load.is_stopped.set()
            load.join()
        assert load.error is None
    assert runs > 20
