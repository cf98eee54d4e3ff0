"""What a consumer gets of a log at each isolation level: held against histories that are known, and real brokers' logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kafka_log
from kafka_log import Policy
from tests.paths import SAMPLES
from tests.shares import draw_seeds, later_seeds
from tests.support.histories import history

EXPECTED: dict[str, Any] = json.loads((SAMPLES / "expected.json").read_text())
QUICK, MANY = 40, 3000


def offsets(path: Path, **options: Any) -> list[int]:
    found: list[int] = kafka_log.read_table(path, ["offset"], **options)["offset"].to_pylist()
    return found


def holds(directory: Path, seed: int, engine: str) -> None:
    made = history(directory / f"t-{seed}", seed)
    for isolation, wanted in (
        ("read_uncommitted", made.uncommitted()),
        ("read_committed", made.committed()),
    ):
        for policy in Policy:
            found = offsets(made.directory, isolation=isolation, policy=policy, engine=engine)
            assert found == wanted, (seed, isolation, policy)
    everything = {*made.uncommitted(), *(o for o in made.markers if o >= made.log_start)}
    assert offsets(made.directory, control_records=True, engine=engine) == sorted(everything)


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize("engine", ["arrow", "construct"])
def test_random_histories(tmp_path: Path, engine: str) -> None:
    for seed in range(QUICK):
        holds(tmp_path, seed, engine)


@pytest.mark.soak
def test_many_random_histories(tmp_path: Path) -> None:
    for seed in later_seeds(QUICK, MANY):
        holds(tmp_path, seed, "auto")


def test_histories_have_what_is_hard(tmp_path: Path) -> None:
    """The seeds above reach the cases that they are for."""
    made = [history(tmp_path / f"t-{seed}", seed) for seed in range(QUICK)]
    stable = [(h, h.last_stable_offset) for h in made]
    cases = {
        "aborted records": sum(1 for h in made if h.aborted),
        "an open transaction": sum(1 for _, end in stable if end is not None),
        "an open one that is older than the log": sum(
            1 for h, end in stable if end is not None and end < h.log_start
        ),
        "an aborted one that began before the log": sum(
            1 for h in made if any(o < h.log_start for o in h.aborted) and h.log_start
        ),
        "several segments": sum(1 for h in made if len(list(h.directory.glob("*.log"))) > 1),
    }
    assert all(count > 2 for count in cases.values()), cases


@pytest.mark.slow
def test_ranges_and_isolation_go_together(tmp_path: Path) -> None:
    for seed in draw_seeds(20):
        made = history(tmp_path / f"t-{seed}", seed)
        whole = made.committed()
        if not whole:
            continue
        low, high = whole[0], whole[-1]
        for bounds in ((low, high), (low + 1, None), (None, high), (high + 1, None), (high, high)):
            found = offsets(made.directory, isolation="read_committed", offsets=bounds)
            first = low if bounds[0] is None else bounds[0]
            end = high + 1 if bounds[1] is None else bounds[1]
            assert found == [o for o in whole if first <= o < end], (seed, bounds)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("folder", "partition"),
    [(folder, name) for folder in EXPECTED for name in EXPECTED[folder]["partitions"]],
)
def test_brokers_logs_as_their_consumers_read_them(folder: str, partition: str) -> None:
    expected = EXPECTED[folder]["partitions"][partition]
    for isolation in ("read_uncommitted", "read_committed"):
        if isolation not in expected:
            continue
        wanted = expected[isolation]
        bounds = (wanted["start_offset"], None)  # DeleteRecords has cut off what lies before
        found = offsets(SAMPLES / folder / partition, isolation=isolation, offsets=bounds)
        assert len(found) == wanted["count"]
        ends = (found[0], found[-1]) if found else (None, None)
        assert ends == (wanted["first_offset"], wanted["last_offset"])


def test_markers_are_no_data() -> None:
    path = SAMPLES / "kafka-4.x" / "transactions-0"
    columns = ["offset", "is_control"]
    everything = kafka_log.read_table(path, columns, control_records=True)
    data = kafka_log.read_table(path, columns)
    assert sum(everything["is_control"].to_pylist()) == everything.num_rows - data.num_rows == 8
    assert not any(data["is_control"].to_pylist())


def test_an_unknown_isolation_is_refused() -> None:
    path = SAMPLES / "kafka-4.x" / "transactions-0"
    with pytest.raises(ValueError, match="known: read_uncommitted, read_committed"):
        kafka_log.scan(path, isolation="committed")  # type: ignore[arg-type]


def test_a_snapshot_that_is_damaged_knows_of_nothing(tmp_path: Path) -> None:
    """As for brokers, which delete it and read the log."""
    for seed in range(QUICK):
        made = history(tmp_path / f"t-{seed}", seed)
        snapshots = list(made.directory.glob("*.snapshot"))
        if (
            made.log_start
            and made.last_stable_offset is not None
            and made.last_stable_offset < made.log_start
        ):
            break
    else:
        pytest.fail("no history has a transaction that is older than its log")
    assert made.committed() == []
    assert offsets(made.directory, isolation="read_committed") == []
    for snapshot in snapshots:
        data = bytearray(snapshot.read_bytes())
        data[-1] ^= 1
        snapshot.write_bytes(data)
    assert offsets(made.directory, isolation="read_committed") != []
