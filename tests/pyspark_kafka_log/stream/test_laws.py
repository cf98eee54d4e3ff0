"""Streams over logs that grow, are polled at random moments and restarted from what a checkpoint keeps: each record once, as a naive
consumer has them."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kafka_log.read import batch_places, progress
from pyspark_kafka_log.losses import DataLossError
from tests.shares import later_seeds
from tests.support.growing_logs import Growing
from tests.support.stream_laws import Row, expected, grow, rows, stream, told

QUICK, MANY = 8, 150


@pytest.fixture(params=["walked", "indexed"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether index files are used for segments as small as these."""
    if request.param == "indexed":
        for module in (batch_places, progress):
            monkeypatch.setattr(module, "SMALL", 0)


def holds(root: Path, seed: int) -> None:
    """Nothing is lost: each record once, in order; a batch that runs again has the same rows."""
    r = random.Random(seed)
    isolation = r.choice(["read_uncommitted", "read_committed"])
    options: dict[str, Any] = {
        "isolationLevel": isolation,
        "mode": r.choice(["FAILFAST", "PERMISSIVE", "DROPMALFORMED"]),
        "splitBytes": r.choice([150, 1 << 20]),
    }
    if r.random() < 0.5:
        options["maxOffsetsPerTrigger"] = r.randrange(1, 12)
    root.mkdir()
    logs = [Growing(root / "t-0", r)]
    now = stream(root, **options)
    start = told(now.initial())
    got: list[Row] = []
    batches: list[tuple[Any, Any, list[Row]]] = []
    for step in range(40):
        if step < 25:
            grow(logs, r, root, transactions=True)
        if r.random() < 0.25:
            now = stream(root, **options)
        end = told(now.latest(start, limited=r.random() < 0.9))
        if end == start:
            continue
        found = rows(now, start, end)
        batches.append((start, end, found))
        got += found
        start = end
        again = r.choice(batches)
        assert rows(stream(root, **options), *again[:2]) == again[2], seed
    while (end := told(now.latest(start, limited=True))) != start:
        got += rows(now, start, end)
        start = end
    for log in logs:
        of_log = [offset for name, offset, _ in got if name == log.name]
        assert of_log == sorted(of_log), seed
    assert sorted(got) == expected(logs, isolation), seed


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.usefixtures("small")
def test_each_record_once(tmp_path: Path) -> None:
    for seed in range(QUICK):
        holds(tmp_path / str(seed), seed)


@pytest.mark.soak
@pytest.mark.usefixtures("small")
def test_many_each_record_once(tmp_path: Path) -> None:
    for seed in later_seeds(QUICK, MANY):
        holds(tmp_path / str(seed), seed)


def loses(root: Path, seed: int) -> Counter[str]:
    """Logs are truncated and deleted from: it is told when what was read is another log, or what was not read is gone, and then only;
    and what is there comes once."""
    r = random.Random(seed)
    root.mkdir()
    log = Growing(root / "t-0", r, transactions=False)
    now = stream(root, failOnDataLoss="false")
    start = told(now.initial())
    got: list[Row] = []
    seen: Counter[str] = Counter()
    read: list[tuple[int, str]] = []  # what was read of the log as it is
    for _ in range(30):
        lost = False
        for _ in range(r.randrange(5)):
            r.choices([log.append, log.roll, log.tear, log.delete, log.truncate], [10, 2, 1, 1, 1])[
                0
            ]()
        position = start.get("t", {}).get("0", 0)
        there = dict(log.uncommitted())
        if log.start > position:
            lost = True
        kept = [(o, v) for o, v in read if o < log.start or there.get(o) == v]
        lost = lost or kept != read
        if r.random() < 0.3:
            now = stream(root, failOnDataLoss="false")
        if lost:
            with pytest.raises(DataLossError, match="partition t-0"):
                stream(root).latest(start, limited=True)
        else:
            stream(root).latest(start, limited=True)
        seen[f"lost {lost}"] += 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            while (end := told(now.latest(start, limited=True))) != start:
                got += rows(now, start, end)
                start = end
        assert bool(caught) == lost, seed
        read = log.uncommitted()
        assert len(got) == len(set(got)), seed
        assert {(log.name, *row) for row in read} <= set(got), seed
    return seen


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_losses_are_told(tmp_path: Path) -> None:
    seen = sum((loses(tmp_path / str(seed), seed) for seed in range(QUICK)), Counter())
    assert min(seen.values()) > 5 and len(seen) == 2, seen


@pytest.mark.soak
@pytest.mark.usefixtures("small")
def test_many_losses_are_told(tmp_path: Path) -> None:
    for seed in later_seeds(QUICK, MANY):
        loses(tmp_path / str(seed), seed)
