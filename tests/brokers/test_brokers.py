"""What real brokers leave on disk is what the samples and their expectations claim."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from .brokers import KraftBroker
from .expected import METADATA, consume
from .headers import CONTROL, DELETE_HORIZON, TIMESTAMP_TYPE, TRANSACTIONAL, walk_partition
from .load import load_into_broker
from .make_samples import Made
from .maven import BrokerError
from .readback import java_read, record_digest
from .records import CODECS, Rec, large, rejected, small

pytestmark = pytest.mark.broker
TOP_FILES = {
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
    "meta.properties",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
}


def rows_of(records: Iterable[Rec]) -> list[dict[str, Any]]:
    """What was sent, as a reader should give it back."""
    rows = []
    for offset, record in enumerate(records):
        sent = record.to_json()
        headers = [
            [name, None if v is None else base64.b64encode(v).decode()]
            for name, v in record.headers
        ]
        rows.append(
            {
                "offset": offset,
                "timestamp": record.time,
                "key": sent["k"],
                "value": sent["v"],
                "headers": headers,
            }
        )
    return rows


def consumed(made: Made, name: str, isolation: str = "read_uncommitted") -> dict[str, Any]:
    result: dict[str, Any] = made.expected["partitions"][name][isolation]
    return result


def suffixes(directory: Path) -> set[str]:
    return {path.suffix for path in directory.iterdir()}


def test_kafka_4_leaves_every_kind_of_file(kafka4_logs: Made) -> None:
    logs = kafka4_logs.log_dir
    assert {path.name for path in logs.iterdir() if path.is_file()} >= TOP_FILES
    segments = suffixes(logs / "segments.small-1")
    assert segments >= {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".metadata"}
    assert len(list((logs / "segments.small-0").glob("*.log"))) >= 3
    assert len(list((logs / METADATA).glob("*-*.checkpoint"))) >= 2
    assert all((path / "partition.metadata").is_file() for path in logs.iterdir() if path.is_dir())


@pytest.mark.soak
def test_kafka_2_8_leaves_every_kind_of_file(kafka28_logs: Made) -> None:
    logs = kafka28_logs.log_dir
    assert {path.name for path in logs.iterdir() if path.is_file()} >= TOP_FILES
    assert suffixes(logs / "segments.small-1") >= {".log", ".index", ".timeindex", ".txnindex"}


def test_every_batch_of_kafka_4_is_v2(kafka4_logs: Made) -> None:
    directories = [path for path in kafka4_logs.log_dir.iterdir() if path.is_dir()]
    headers = [header for directory in directories for header in walk_partition(directory)]
    assert {header.magic for header in headers} == {2}


@pytest.mark.soak
def test_magics_of_kafka_2_8(kafka28_logs: Made) -> None:
    magics = {
        path.name: [header.magic for header in walk_partition(path)]
        for path in kafka28_logs.log_dir.iterdir()
        if path.is_dir()
    }
    kinds = {name.rpartition("-")[0] for name in magics}
    assert kinds >= {"v0", "v1", "append-time", "mixed", "codecs"}
    for name, found in magics.items():
        if name.startswith("v0-"):
            assert set(found) == {0}, name
        elif name.startswith(("v1-", "append-time-")):
            assert set(found) == {1}, name
        elif name.startswith("mixed-"):
            assert set(found) == {0, 1, 2} and found == sorted(found), name
        else:
            assert set(found) == {2}, name


def test_each_codec_has_its_partition(made: Made) -> None:
    for number in range(1, len(CODECS)):
        headers = walk_partition(made.log_dir / f"codecs-{number}")
        assert {header.codec for header in headers} == {number}


@pytest.mark.soak
def test_each_codec_of_old_versions_has_its_partition(kafka28_logs: Made) -> None:
    for number in range(4):
        for topic in ("v0", "v1"):
            headers = walk_partition(kafka28_logs.log_dir / f"{topic}-{number}")
            assert {header.codec for header in headers} == {number}


def test_the_consumer_reads_what_was_sent(made: Made) -> None:
    time_ = made.expected["first_time"]
    for number, codec in enumerate(CODECS[1:], start=1):
        sent = [
            *small(codec, 1, time_),
            *small(f"{codec}-many", 60, time_ + 1000),
            *large(codec, time_ + 100_000),
        ]
        found = consumed(made, f"codecs-{number}")
        assert (found["count"], found["sha256"]) == (len(sent), record_digest(rows_of(sent)))


def test_the_consumer_reads_the_odd_records(kafka4_logs: Made) -> None:
    time_ = kafka4_logs.expected["first_time"]
    sent = rows_of([*rejected(time_), *rejected(time_ + 60_000)])
    for number in range(2):
        assert consumed(kafka4_logs, f"features-{number}")["sha256"] == record_digest(sent)


def test_transactions(made: Made) -> None:
    for name in ("transactions-0", "transactions-1", "segments.small-1"):
        every, committed = consumed(made, name), consumed(made, name, "read_committed")
        assert 0 < committed["count"] < every["count"]
        assert committed["end_offset"] == every["end_offset"]
        aborted = made.expected["partitions"][name]["on_disk"]["control_records"]["ABORT"]
        indexes = (made.log_dir / name).glob("*.txnindex")
        assert sum(path.stat().st_size for path in indexes) == 34 * aborted
    hanging = consumed(made, "transactions-2", "read_committed")
    assert hanging["end_offset"] < consumed(made, "transactions-2")["end_offset"]
    headers = walk_partition(made.log_dir / "transactions-2")
    assert headers[-2].attributes & (TRANSACTIONAL | CONTROL) == TRANSACTIONAL


def test_compaction_leaves_its_marks(made: Made) -> None:
    headers = walk_partition(made.log_dir / "compacted-0")
    count = sum(header.count or 0 for header in headers)
    assert any(header.count == 0 for header in headers)
    assert count < headers[-1].last_offset + 1
    # A batch that kept some of its records.
    assert any(0 < (h.count or 0) <= h.last_offset - h.base_offset for h in headers)


def test_compaction_of_kafka_4_leaves_horizons(kafka4_logs: Made) -> None:
    kept = walk_partition(kafka4_logs.log_dir / "compacted-0")
    for control in (0, CONTROL):
        assert any(
            header.attributes & (DELETE_HORIZON | CONTROL) == DELETE_HORIZON | control
            for header in kept
        )
    # A later pass empties an end marker's batch.
    again = walk_partition(kafka4_logs.log_dir / "compacted-again-0")
    assert any(header.count == 0 and header.attributes & CONTROL for header in again)


@pytest.mark.soak
def test_compaction_of_message_sets(kafka28_logs: Made) -> None:
    for number in range(2):
        on_disk = kafka28_logs.expected["partitions"][f"v1-compacted-{number}"]["on_disk"]
        end = consumed(kafka28_logs, f"v1-compacted-{number}")["end_offset"]
        assert 0 < on_disk["records"] < end


def test_append_time(made: Made) -> None:
    for number in range(2):
        headers = walk_partition(made.log_dir / f"append-time-{number}")
        assert headers and all(header.attributes & TIMESTAMP_TYPE for header in headers)


def test_the_log_starts_inside_a_batch(made: Made) -> None:
    assert consumed(made, "trimmed-0")["first_offset"] == 7
    assert walk_partition(made.log_dir / "trimmed-0")[0].base_offset == 0


def test_a_broker_takes_segments_over(kafka4_logs: Made, tmp_path: Path) -> None:
    names = ("transactions-0", "transactions-2", "compacted-0", "codecs-4", "segments.small-1")
    sources = {name: kafka4_logs.log_dir / name for name in names}
    with load_into_broker(tmp_path, sources) as broker:
        found = consume(broker)
    for name in names:
        assert found[name] == {
            isolation: consumed(kafka4_logs, name, isolation)
            for isolation in ("read_uncommitted", "read_committed")
        }


def test_java_read_says_what_is_wrong(kafka4_logs: Made, tmp_path: Path) -> None:
    source = kafka4_logs.log_dir / "idempotent-0" / f"{0:020}.log"
    whole = java_read(source)
    assert whole[-1]["error"] is None
    assert [row["type"] for row in whole[:2]] == ["batch", "record"]
    content = bytearray(source.read_bytes())
    second = next(row for row in whole[1:] if row["type"] == "batch")
    content[second["position"] + 70] ^= 1
    damaged = tmp_path / source.name
    damaged.write_bytes(content)
    read = java_read(damaged)
    assert "CorruptRecordException" in read[-1]["error"]
    assert read[-1]["iteratedBytes"] == second["position"]


def test_an_error_names_the_log(tmp_path: Path) -> None:
    broker = KraftBroker(tmp_path / "broker", {"log.cleaner.threads": "no number"})
    with pytest.raises(BrokerError, match=r"broker\.log"):
        broker.start()


def test_no_broker_outlives_its_python(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        f"from {KraftBroker.__module__} import KraftBroker\n"
        "broker = KraftBroker(Path(sys.argv[1])); broker.start()\n"
        "print(broker.bootstrap_servers, flush=True); time.sleep(60)\n"
    )
    path = os.pathsep.join(entry or "." for entry in sys.path)
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "broker")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    with child:
        assert child.stdout is not None
        host, _, port = child.stdout.readline().strip().rpartition(":")
        with socket.create_connection((host, int(port)), timeout=5):
            pass
        child.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        child.wait(10)
    assert not _answers(host, int(port), 30)


def _answers(host: str, port: int, limit_s: float) -> bool:
    """Whether the port still takes connections when the time is over."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        try:
            socket.create_connection((host, port), timeout=1).close()
        except OSError:
            return False
        time.sleep(0.2)
    return True
