"""Streams over logs that grow, are polled at random moments and restarted from what a checkpoint keeps: each record once, as a naive
consumer has them."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from codecgen.runtime.errors import CodecError
from kafka_log.read import batch_places, progress
from pyspark_kafka_log.losses import DataLossError
from pyspark_kafka_log.stream.offsets import initial_offsets
from tests.shares import later_seeds
from tests.support.growing_logs import Growing
from tests.support.micro_batches import LANES, Checkpoint, Killed, Query, killed_at_random
from tests.support.stream_laws import Row, expected, grow, rows, stream, told

QUICK, MANY = 8, 150


@pytest.fixture(params=["walked", "indexed"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether index files are used for segments as small as these."""
    if request.param == "indexed":
        for module in (batch_places, progress):
            monkeypatch.setattr(module, "SMALL", 0)


def holds(root: Path, seed: int, lane: str) -> Counter[str]:
    """A query is killed again and again, after any step. Nothing is lost: each record from its start on comes once, in order; a batch
    that runs again has the same rows. Returns after which steps it was killed."""
    r = random.Random(seed)
    isolation = r.choice(["read_uncommitted", "read_committed"])
    options: dict[str, Any] = {
        "path": root,
        "startingOffsets": r.choice(["earliest", "latest"]),
        "isolationLevel": isolation,
        "mode": r.choice(["FAILFAST", "PERMISSIVE", "DROPMALFORMED"]),
        "splitBytes": r.choice([150, 1 << 20]),
    }
    if r.random() < 0.5:
        options["maxOffsetsPerTrigger"] = r.randrange(1, 12)
    root.mkdir()
    logs = [Growing(root / "t-0", r)]
    for _ in range(r.randrange(8)):
        logs[0].append()
    checkpoint = Checkpoint()
    kills: Counter[str] = Counter()
    for _ in range(8):
        between = killed_at_random(
            r, r.choice([0.1, 0.3]), lambda: grow(logs, r, root, transactions=True)
        )
        try:
            query = Query(lane, checkpoint, options, between, available_now=r.random() < 0.3)
            for _ in range(r.randrange(1, 6)):
                query.run_batch()
        except Killed as killed:
            kills[str(killed)] += 1
    Query(lane, checkpoint, options).run()
    began = start_of(checkpoint)
    for log in logs:
        of_log = [offset for name, offset, _ in checkpoint.rows if name == log.name]
        assert of_log == sorted(of_log), seed
    wanted = [row for row in expected(logs, isolation) if row[1] >= began.get(row[0], 0)]
    assert sorted(checkpoint.rows) == wanted, seed
    # Spark runs only the last batch again. Any of them has the same rows.
    again = r.randrange(len(checkpoint.offsets))
    alone = Checkpoint(checkpoint.initial, checkpoint.offsets[: again + 1], again)
    Query(lane, alone, options).run_batch()
    assert alone.sink[again] == checkpoint.sink[again], seed
    return kills


def start_of(checkpoint: Checkpoint) -> dict[str, int]:
    """Where a query began, by partition: as the checkpoint of its lane says it."""
    found = checkpoint.initial or initial_offsets(checkpoint.offsets[0])
    assert found is not None
    return {f"t-{number}": offset for number, offset in found.get("t", {}).items()}


STEPS = {"prepared", "start", "end", "logged", "started again", "written", "committed"}


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.usefixtures("small")
def test_each_record_once(tmp_path: Path) -> None:
    """On both lanes."""
    seen: Counter[str] = Counter()
    for seed in range(QUICK):
        seen += holds(tmp_path / str(seed), seed, [*LANES][seed % 2])
    assert len(seen) > len(STEPS) / 2, seen


@pytest.mark.soak
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("lane", LANES)
def test_many_each_record_once(tmp_path: Path, lane: str) -> None:
    seen: Counter[str] = Counter()
    for seed in later_seeds(QUICK, MANY):
        seen += holds(tmp_path / str(seed), seed, lane)
    assert seen.keys() == STEPS


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


def holds_with_a_flipped_bit(root: Path, seed: int, *, only_offsets: bool) -> str:
    """Each record of the other batches comes once, whatever micro-batches there are, or the query fails. Returns which."""
    r = random.Random(seed)
    mode = r.choice(["FAILFAST", "PERMISSIVE", "DROPMALFORMED"])
    log = Growing(root / "t-0", r, transactions=False)
    for _ in range(r.randrange(5, 20)):
        r.choices([log.append, log.roll], [5, 1])[0]()
    if not log.files[-1].batches:
        log.append()
    log.append()
    found = [(file, batch) for file in log.files for batch in file.batches]
    file, damaged = r.choice(found[:-1])
    path = log.directory / f"{file.base:020}.log"
    before = sum(len(batch.data) for batch in file.batches[: file.batches.index(damaged)])
    data = bytearray(path.read_bytes())
    data[before + r.randrange(8 if only_offsets else len(damaged.data))] ^= 1 << r.randrange(8)
    path.write_bytes(data)
    options: dict[str, Any] = {"path": root, "mode": mode, "splitBytes": r.choice([150, 1 << 20])}
    if r.random() < 0.8:
        options["maxOffsetsPerTrigger"] = r.randrange(1, 12)
    checkpoint = Checkpoint()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Query("kafka-log", checkpoint, options).run()
    except (CodecError, DataLossError):
        return "fails"
    values = Counter(value for _, _, value in checkpoint.rows)
    others = {value for _, batch in found if batch is not damaged for value in batch.values}
    assert others <= values.keys(), (seed, others - values.keys())
    assert max(values.values()) == 1, seed
    if mode == "FAILFAST" or only_offsets:
        assert values.keys() == others | {*damaged.values}, seed
    return "reads"


@pytest.mark.slow
@pytest.mark.parametrize("only_offsets", [True, False], ids=["offset", "any"])
def test_a_flipped_bit_hides_no_other_batch(tmp_path: Path, *, only_offsets: bool) -> None:
    """No checksum covers the offset of a batch: a micro-batch does not end at one that cannot be."""
    seen = {
        holds_with_a_flipped_bit(tmp_path / str(seed), seed, only_offsets=only_offsets)
        for seed in range(12)
    }
    assert "reads" in seen and ("fails" in seen or only_offsets)


@pytest.mark.soak
@pytest.mark.parametrize("only_offsets", [True, False], ids=["offset", "any"])
def test_many_flipped_bits_hide_no_other_batch(tmp_path: Path, *, only_offsets: bool) -> None:
    for seed in later_seeds(12, MANY):
        holds_with_a_flipped_bit(tmp_path / str(seed), seed, only_offsets=only_offsets)


def test_a_transaction_without_its_marker_is_told(tmp_path: Path) -> None:
    """It was decided when the micro-batch was logged. What is hidden then is not passed over in silence."""
    r = random.Random(1)
    log = Growing(tmp_path / "t-0", r)
    log.add(1, "data", 2)
    log.add(1, "commit", 1)
    log.add(0, "plain", 3)
    given = {"isolationLevel": "read_committed", "mode": "PERMISSIVE"}
    now = stream(tmp_path, **given)
    start = now.initial()
    end = now.latest(start, limited=True)
    assert len(rows(now, start, end)) == 5
    (file,) = log.files
    path = log.directory / f"{file.base:020}.log"
    data = bytearray(path.read_bytes())
    data[len(file.batches[0].data) + len(file.batches[1].data) - 1] ^= 1
    path.write_bytes(data)
    said = "partition t-0: a transaction is open from offset 0 on, in a micro-batch that ends at 6"
    with pytest.raises(DataLossError, match=said):
        stream(tmp_path, **given).tasks(start, end)
    with pytest.warns(UserWarning, match=said):
        assert rows(stream(tmp_path, failOnDataLoss="false", **given), start, end) == []
