"""Streams over logs that lie in stores and in tiered storage: what is new, grown, moved and gone there, without Spark; then in Spark."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_log import read_table
from pyspark_kafka_log.options import OptionError, parse
from pyspark_kafka_log.plan import plan
from pyspark_kafka_log.stream.options import parse_stream
from pyspark_kafka_log.stream.polling import DataLossError
from tests.log.test_tiers import IDS, TIER, local, remote
from tests.spark.growing_logs import Growing
from tests.spark.logs import batch, build
from tests.spark.test_stream_laws import Row, expected, rows, stream, told

# ---------------------------------------------------------------- tiers


def tiered(log: Growing, root: Path) -> None:
    """The broker copies what it has done with into the tier, as it lies, and local retention deletes some of that."""
    tier = root / TIER / f"{log.name}-{IDS[-1]}"
    tier.mkdir(parents=True, exist_ok=True)
    for path in sorted(log.directory.glob("*.log"))[:-1]:
        if not list(tier.glob(f"{path.stem}-*")):
            for one in path.parent.glob(f"{path.stem}.*"):
                if one.suffix != ".snapshot":  # that of a copy is of its end
                    # Names end as ids do: a letter of 64, and one of four.
                    name = f"{path.stem}-{int(path.stem):021d}A{one.suffix}"
                    shutil.copy(one, tier / name)
    for _ in range(log.r.randrange(3)):
        if len(list(log.directory.glob("*.log"))) > 1:
            first = min(log.directory.glob("*.log"))
            for one in log.directory.glob(f"{first.stem}.*"):
                one.unlink()


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("seed", range(6))
def test_each_record_once_wherever_it_lies(tmp_path: Path, seed: int, isolation: str) -> None:
    """The first segments move into the tier while a stream reads, and restarts; what it reads is what was written."""
    r = random.Random(seed)
    logs = [Growing(tmp_path / f"t-{i}", r) for i in range(2)]
    options = {
        "include": "remote",
        "isolationLevel": isolation,
        "maxOffsetsPerTrigger": 9,
    }
    now = stream(tmp_path, **options)
    at = told(now.initial())
    got: list[Row] = []
    for step in range(40):
        for log in logs:
            # What is local only in the tier is out of the hands of who grows the log: it does not write there again.
            for _ in range(r.randrange(5)):
                r.choices([log.append, log.roll], [10, 3])[0]()
            tiered(log, tmp_path)
        if r.random() < 0.3:
            now = stream(tmp_path, **options)
        end = told(now.latest(at, limited=step < 30))
        got += rows(now, at, end)
        at = end
    assert sorted(got) == expected(logs, isolation)
    assert len(list(tmp_path.rglob("*A.log"))) > 10
    late = stream(tmp_path, **options)
    again = told(late.latest(told(late.initial()), limited=False))
    assert sorted(rows(late, told(late.initial()), again)) == expected(logs, isolation)
    with pytest.raises(DataLossError, match="are gone"):
        stream(tmp_path).tasks(told(late.initial()), again)


def test_copies_that_go_on_behind_others(tmp_path: Path) -> None:
    """After a leader change a segment begins within the one before: each offset comes of one of them."""
    remote(tmp_path, 0, 0, 70)
    remote(tmp_path, 1, 40, 90)
    local(tmp_path, 80, 100)
    now = stream(tmp_path, include="remote")
    start = {"t": {"0": 0}}
    whole = [row[1] for row in rows(now, start, now.latest(start, limited=False))]
    assert whole == list(range(100))
    for first in range(0, 100, 7):
        for end in range(first, 101, 9):
            found = rows(now, {"t": {"0": first}}, {"t": {"0": end}})
            assert [row[1] for row in found] == list(range(first, end))


def test_aborted_transactions_of_copies_that_go_on_behind_others(tmp_path: Path) -> None:
    """A transaction that was aborted lies in the first copy, behind where the second one begins."""
    of_producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    transactional = {"is_transactional": True, "is_control": False}
    control = {"is_transactional": True, "is_control": True}
    first = [
        batch(0, [b"0", b"1"]),
        batch(2, [b"2", b"3"], **of_producer, attributes=transactional),
    ]
    abort = batch(4, [b"\0\0\0\0\0\1"], **of_producer, attributes=control)
    abort["records"][0]["key"] = b"\0\0\0\0"
    after = batch(5, [b"5"])
    tier = tmp_path / TIER / f"t-0-{IDS[-1]}"
    tier.mkdir(parents=True)
    (tier / f"{0:020d}-{IDS[0]}.log").write_bytes(build(*first, abort))
    (tier / f"{2:020d}-{IDS[1]}.log").write_bytes(build(first[1], abort, after))
    found = read_table(tmp_path, ["offset"], include="remote", isolation="read_committed")
    assert found["offset"].to_pylist() == [0, 1, 5]
    given = {"path": str(tmp_path), "include": "remote", "isolationLevel": "read_committed"}
    assert [o for task in plan(parse(given)) for o in offsets_of(task)] == [0, 1, 5]
    now = stream(tmp_path, include="remote", isolationLevel="read_committed")
    start = {"t": {"0": 0}}
    assert [row[1] for row in rows(now, start, now.latest(start, limited=False))] == [0, 1, 5]


def offsets_of(task: Any) -> Iterator[int]:
    from kafka_log.tables.splits import Scan, read_splits

    for one in read_splits(task, Scan(("offset",))):
        yield from one["offset"].to_pylist()


def test_the_tier_is_the_only_one_beside_the_log(tmp_path: Path) -> None:
    for include in ("deleted", "remote,deleted", "all"):
        with pytest.raises(OptionError, match="with remote those in tiered storage"):
            parse_stream({"path": str(tmp_path), "include": include})
