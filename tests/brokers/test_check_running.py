"""A broker that writes, rolls, compacts and deletes while its log directory is checked: nothing is wrong."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from kafka_log import LogDirectory, read_table
from kafka_log.cli import main
from tests.brokers.brokers import Broker
from tests.support.broker_load import BROKERS, CONFIG, FIRST_DELETION_S, SECONDS, LoadThread

pytestmark = [pytest.mark.broker, pytest.mark.slow]


@pytest.mark.parametrize("kind", BROKERS)
def test_nothing_is_wrong_under_load(tmp_path: Path, kind: type[Broker]) -> None:
    seen: Counter[str] = Counter()
    checks = 0
    with kind(tmp_path / "broker", CONFIG) as broker:
        load = LoadThread(broker, 500)
        load.start()
        end = time.monotonic() + FIRST_DELETION_S[kind] + SECONDS
        try:
            while time.monotonic() < end and load.error is None:
                if not load.rounds:  # the oldest broker's directory has no partition yet
                    time.sleep(0.1)
                    continue
                alone = "cleaned" if checks % 3 == 2 else None
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
@pytest.mark.parametrize("kind", BROKERS)
@pytest.mark.parametrize("delay_ms", [60_000, 0])
def test_commands_read_segments_that_retention_takes(
    tmp_path: Path, kind: type[Broker], delay_ms: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker deletes a segment a minute after it gave it another name, or at once: then a line says so, and the answer is good."""
    runs = 0
    with kind(tmp_path / "broker", CONFIG) as broker:
        load = LoadThread(broker, delay_ms)
        load.start()
        end = time.monotonic() + FIRST_DELETION_S[kind] + SECONDS / 2
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
