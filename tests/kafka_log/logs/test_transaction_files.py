"""What brokers keep of transactions, beside a walk over all batches: the same, or not believed."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_codecs import PRODUCER_SNAPSHOT, TRANSACTION_INDEX
from kafka_log import discover, read_table
from kafka_log.logs.transaction_files import read_transactions_from_files
from kafka_log.logs.transactions import AbortedTransaction, Transactions, read_transactions
from tests.paths import SAMPLES
from tests.shares import draw_seeds, later_seeds
from tests.support.histories import History, history

QUICK, MANY = 80, 3000
LOGS = sorted(
    p.directory for broker in ("kafka-2.8", "kafka-4.x") for p in discover(SAMPLES / broker)
)


def there(directory: Path) -> Any:
    return discover(directory)[0].segments


def committed(directory: Path) -> list[int]:
    table = read_table(directory, ["offset"], isolation="read_committed")
    found: list[int] = table["offset"].to_pylist()
    return found


def of_log(found: Transactions, start: int) -> tuple[Any, ...]:
    """What says something of records from ``start`` on."""
    aborted = tuple(t for t in found.aborted if t.last_offset >= start)
    return aborted, found.last_stable_offset, found.open_first_offsets


def holds(directory: Path, seed: int, engine: Any = "auto") -> Transactions | None:
    made = history(directory / f"t-{seed}", seed, indexes=True)
    segments = there(made.directory)
    found = read_transactions_from_files(segments, engine)
    if found is not None:
        assert of_log(found, made.log_start) == of_log(
            read_transactions(segments), made.log_start
        ), seed
    assert committed(made.directory) == made.committed(), seed
    return found


@pytest.mark.share(ci=2)
@pytest.mark.slow
@pytest.mark.parametrize("engine", ["arrow", "construct"])
def test_random_histories(tmp_path: Path, engine: str) -> None:
    found = [holds(tmp_path, seed, engine) for seed in range(QUICK)]
    assert sum(one is not None for one in found) > QUICK * 0.9


@pytest.mark.soak
def test_many_random_histories(tmp_path: Path) -> None:
    for seed in later_seeds(QUICK, MANY):
        holds(tmp_path, seed)
        shutil.rmtree(tmp_path / f"t-{seed}")


@pytest.mark.parametrize("path", LOGS, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_brokers_logs(path: Path) -> None:
    segments = there(path)
    found = read_transactions_from_files(segments)
    walked = read_transactions(segments)
    assert found is not None
    assert (found.last_stable_offset, found.open_first_offsets) == (
        walked.last_stable_offset,
        walked.open_first_offsets,
    )
    if "compacted" not in path.name:  # the cleaner keeps entries as long as it must, and no longer
        assert found.aborted == walked.aborted


def with_aborts(tmp_path: Path) -> list[History]:
    """Histories that end transactions in segments before the last."""
    made = [history(tmp_path / f"t-{seed}", seed, indexes=True) for seed in range(QUICK)]
    return [m for m in made if list(m.directory.glob("*.txnindex"))]


@pytest.mark.slow
def test_indexes_that_are_missing(tmp_path: Path) -> None:
    cases = with_aborts(tmp_path)
    for made in cases:
        for path in made.directory.glob("*.txnindex"):
            path.unlink()
        assert committed(made.directory) == made.committed()
    assert len(cases) > 20


@pytest.mark.slow
def test_snapshots_that_are_missing(tmp_path: Path) -> None:
    for seed in range(QUICK):
        made = history(tmp_path / f"t-{seed}", seed, indexes=True)
        for path in made.directory.glob("*.snapshot"):
            if int(path.stem) != made.log_start:
                path.unlink()
        assert committed(made.directory) == made.committed()


@pytest.mark.slow
@pytest.mark.parametrize("seed", draw_seeds(1, first=7))
def test_files_that_lie(tmp_path: Path, seed: int) -> None:
    """Bytes that are changed, and entries of transactions that there are not."""
    r = random.Random(seed)
    doubted = 0
    for made in with_aborts(tmp_path)[::3]:
        path = r.choice(sorted(made.directory.glob("*.txnindex")))
        data = path.read_bytes()
        entries = [vars_of(e) for e in TRANSACTION_INDEX.parse(data).entries]
        whole = read_transactions_from_files(there(made.directory))
        for lie in (
            data[:-1],
            data + data[-34:],
            b"",
            bytes([data[0] ^ 1]) + data[1:],
            built(entries, producer_id=1),
            built(entries, last_offset=1),
            built(entries, last_offset=-1),
        ):
            path.write_bytes(lie)
            doubted += read_transactions_from_files(there(made.directory)) != whole
            if entries[-1]["last_offset"] >= made.log_start:
                assert committed(made.directory) == made.committed(), (made.directory, lie)
        path.write_bytes(data)
    assert doubted > 30


def vars_of(entry: Any) -> dict[str, int]:
    names = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
    return {name: getattr(entry, name) for name in names}


def built(entries: list[dict[str, int]], **change: int) -> bytes:
    """An index whose last entry says something else."""
    last = {name: value + change.get(name, 0) for name, value in entries[-1].items()}
    return TRANSACTION_INDEX.build({"entries": [*entries[:-1], last]})


def test_a_snapshot_of_another_log(tmp_path: Path) -> None:
    """Open transactions that the log does not have."""
    made = history(tmp_path / "t-0", 3, indexes=True)
    segment = there(made.directory)[-1]
    entry = {"producer_id": 99, "producer_epoch": 0, "timestamp": 1, "current_txn_first_offset": 0}
    for path in made.directory.glob("*.snapshot"):
        path.write_bytes(PRODUCER_SNAPSHOT.build({"version": 1, "entries": [entry]}))
    if made.log_start == 0:
        assert committed(made.directory) == made.committed()
    assert segment.has_canonical_name


def test_an_entry_of_a_transaction_that_began_before_the_log(tmp_path: Path) -> None:
    """Its records are gone; what is left of it is aborted all the same."""
    for seed in range(100):
        made = history(tmp_path / f"t-{seed}", seed, indexes=True)
        found = read_transactions_from_files(there(made.directory))
        if found and any(t.first_offset < made.log_start <= t.last_offset for t in found.aborted):
            break
    else:
        pytest.fail("no such history")
    assert isinstance(found.aborted[0], AbortedTransaction)
    assert committed(made.directory) == made.committed()
