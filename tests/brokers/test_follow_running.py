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
from tests.brokers.brokers import KraftBroker
from tests.brokers.process import wait_until
from tests.paths import ROOT
from tests.support.broker_load import CONFIG, SECONDS, LoadThread

pytestmark = [pytest.mark.broker, pytest.mark.slow]

TOPICS = ("orders", "deleted", "cleaned")


def test_each_record_that_a_broker_writes_is_printed_once(tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    errors = tmp_path / "errors"
    with KraftBroker(tmp_path / "broker", CONFIG) as broker:
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
                time.sleep(SECONDS / 2)
                load.is_stopped.set()
                load.join()
                size = -1
                while size != (grown := printed.stat().st_size):  # what is left to print
                    size = grown
                    time.sleep(3)
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
            there = read_table(
                broker.log_dir / f"{topic}-0",
                ["offset"],
                control_records=True,
                deleted_records=True,
            )
            begun = found[0]
            missing = {o for o in there.column(0).to_pylist() if o >= begun} - set(found)
            assert not missing, topic
        assert len(rows) > 3 * load.rounds
