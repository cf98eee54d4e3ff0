"""``kafka-log dump --follow`` beside a broker that writes, rolls, compacts and deletes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafka_log import read_table
from tests.brokers.brokers import Broker
from tests.brokers.process import wait_until
from tests.paths import ROOT
from tests.support.broker_load import BROKERS, CONFIG, FIRST_DELETION_S, SECONDS, LoadThread

pytestmark = [pytest.mark.broker, pytest.mark.slow]

TOPICS = ("orders", "deleted", "cleaned")
CATCH_UP_S = 120
"""Seconds that the follower may lag behind the broker."""


def read_offsets(broker: Broker, topic: str) -> list[int]:
    """Return the offsets of all records of a topic."""
    path = broker.log_dir / f"{topic}-0"
    rows = read_table(path, ["offset"], control_records=True, deleted_records=True)
    offsets: list[int] = rows.column(0).to_pylist()
    return offsets


def last_printed(printed: Path) -> dict[str, int]:
    """Return the last offset of each topic in the whole lines of the output."""
    lines = printed.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()
    return {row["topic"]: row["offset"] for row in map(json.loads, lines)}


@pytest.mark.parametrize("kind", BROKERS)
def test_each_record_that_a_broker_writes_is_printed_once(
    tmp_path: Path, kind: type[Broker]
) -> None:
    printed = tmp_path / "printed"
    errors = tmp_path / "errors"
    with kind(tmp_path / "broker", CONFIG) as broker:
        load = LoadThread(broker, 500)
        load.start()
        try:
            while load.error is None and load.rounds < 3:
                time.sleep(0.1)
            command = [sys.executable, "-m", "kafka_log", "dump", str(broker.log_dir), "--follow"]
            options = ["--topic", ",".join(TOPICS), "--format", "jsonl", "--control-records"]
            columns = ["--columns", "topic,offset"]
            with printed.open("wb") as out, errors.open("wb") as err:
                follower = subprocess.Popen(
                    [*command, *options, *columns], stdout=out, stderr=err, cwd=ROOT
                )
                wait_until(
                    lambda: printed.stat().st_size > 0 or follower.poll() is not None,
                    60,
                    lambda: "nothing is printed",
                )
                time.sleep(FIRST_DELETION_S[kind] + SECONDS / 2)
                load.is_stopped.set()
                load.join()
                last = {topic: read_offsets(broker, topic)[-1] for topic in TOPICS}
                end = time.monotonic() + CATCH_UP_S
                while time.monotonic() < end and not last.items() <= last_printed(printed).items():
                    time.sleep(1)
                time.sleep(1)
                follower.send_signal(signal.SIGTERM)
                code = follower.wait(30)
        finally:
            load.is_stopped.set()
            load.join()
        assert load.error is None
        assert code == 0, errors.read_text(encoding="utf-8")
        rows = list(map(json.loads, printed.read_text(encoding="utf-8").splitlines()))
        for topic in TOPICS:
            found = [row["offset"] for row in rows if row["topic"] == topic]
            assert found == sorted(set(found)), topic
            begun = found[0]
            missing = {o for o in read_offsets(broker, topic) if o >= begun} - set(found)
            assert not missing, topic
        assert len(rows) > 3 * load.rounds
