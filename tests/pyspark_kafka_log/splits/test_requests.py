"""What planning asks a store for, besides listings."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("fsspec")

from codecgen.runtime.errors import ValueRefused
from kafka_codecs import TRANSACTION_INDEX
from kafka_log import read_table
from kafka_log.logs import transaction_files
from kafka_log.segment.kernels import Engine
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.task_reader import read_splits
from pyspark_kafka_log.totals import totals_of
from tests.support.growing_logs import Growing
from tests.support.stores import Counted, counted, put

LARGE = 2000
"""Bytes above which the headers of a segment are not read here. It is 4 MiB elsewhere."""

PARTITIONS, SEGMENTS = 2, 8
AT_THE_END = 2
"""Small segments at the end of a partition."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Partitions of large segments with aborted transactions, and of small ones after them."""
    root = tmp_path_factory.mktemp("grown")
    for number in range(PARTITIONS):
        growing = Growing(root / f"t-{number}", random.Random(number), pad=100)
        for segment in range(SEGMENTS):
            file = growing.files[-1]
            while segment < SEGMENTS - AT_THE_END and (
                sum(len(batch.data) for batch in file.batches) <= LARGE or not file.aborted
            ):
                growing.append()
            growing.append()
            if segment < SEGMENTS - 1:
                growing.roll()
    return root


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["arrow", "construct"])
@pytest.mark.parametrize("cut", ["", "700"])
def test_tasks_compare_transaction_indexes_with_batches(
    stored: Path, tmp_path: Path, engine: Engine, cut: str
) -> None:
    """A task that reads rows fails, and one that counts them. Which split has the batch does not matter."""
    root = tmp_path / "logs"
    shutil.copytree(stored / "t-0", root / "t-0")
    path = sorted(root.rglob("*.txnindex"))[1]
    options = {"isolationLevel": "read_committed", **({"splitBytes": cut} if cut else {})}
    right = read_table(root, ["offset"], isolation="read_committed").num_rows
    scan = Scan(columns=("offset",), engine=engine)
    with counted(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction_files, "MAX_SCANNED_BYTES", LARGE)
        for producer in (0, 100):
            entries = TRANSACTION_INDEX.parse(path.read_bytes()).entries
            entries[0].producer_id += producer
            path.write_bytes(TRANSACTION_INDEX.build({"entries": entries}))
            put(root, "counted://b")
            tasks = plan(parse({"path": "counted://b", **options}), parallelism=1)
            splits = [split for task in tasks for split in task]
            assert len(splits) > SEGMENTS or not cut
            if not producer:
                assert sum(batch.num_rows for batch in read_splits(splits, scan)) == right
                assert totals_of(splits, scan, ())["t", 0].rows == right
                continue
            with pytest.raises(ValueRefused, match="the transaction index says that producer 10"):
                list(read_splits(splits, scan))
            with pytest.raises(ValueRefused, match="the transaction index says that producer 10"):
                totals_of(splits, scan, ())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["arrow", "construct"])
def test_tasks_give_no_wrong_row_without_transaction_indexes(
    tmp_path: Path, engine: Engine
) -> None:
    """Each task alone: a query may run only some, and the marker may lie in the split of another."""
    scan = Scan(columns=("offset",), engine=engine)
    refused = 0
    for seed in range(6):
        growing = Growing(tmp_path / f"{seed}" / "t-0", random.Random(seed))
        for _ in range(4):
            for _ in range(8):
                growing.append()
            growing.roll()
        committed = {offset for offset, _ in growing.committed()}
        for path in growing.directory.glob("*.log"):
            path.with_suffix(".timeindex").touch()
        for i, path in enumerate(sorted(growing.directory.glob("*.txnindex"))):
            if seed >> i & 1 == 0:
                path.unlink()
        with counted(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(transaction_files, "MAX_SCANNED_BYTES", -1)
            put(growing.directory, "counted://b/t-0")
            options = {"isolationLevel": "read_committed", "splitBytes": "300"}
            tasks = plan(parse({"path": "counted://b", **options}), parallelism=1)
            for split in (split for task in tasks for split in task):
                try:
                    batches = list(read_splits([split], scan))
                except ValueRefused as error:
                    refused += 1
                    assert "has no transaction index" in str(error)
                    with pytest.raises(ValueRefused, match="has no transaction index"):
                        totals_of([split], scan, ())
                    continue
                found = [offset for batch in batches for offset in batch["offset"].to_pylist()]
                assert committed.issuperset(found)
                count = totals_of([split], scan, ()).get(("t", 0))
                assert (0 if count is None else count.rows) == len(found)
    assert refused


def reads(root: Path, **options: str) -> list[str]:
    """Return the names of the files of which planning reads something, one for each request."""
    with counted() as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction_files, "MAX_SCANNED_BYTES", LARGE)
        put(root, "counted://b")
        store.no_requests()
        assert plan(parse({"path": "counted://b", **options}), parallelism=1)
        return [name for name, *_ in Counted.read]


def test_all_records_take_none(stored: Path) -> None:
    assert reads(stored) == []


@pytest.mark.parametrize("policy", ["kafka", "strict"])
def test_committed_records_take_one_for_each_segment_and_one_for_each_partition(
    stored: Path, policy: str
) -> None:
    """That of the partition is the newest snapshot. Tasks compare the transaction indexes with batches."""
    found = reads(stored, isolationLevel="read_committed", policy=policy)
    for number in range(PARTITIONS):
        names = [name for name in found if f"/t-{number}/" in name]
        assert len(names) == SEGMENTS + 1, names
        kinds = Counter(name.rpartition(".")[2] for name in names)
        assert kinds["txnindex"] == SEGMENTS - AT_THE_END
        small = {path.name for path in sorted((stored / f"t-{number}").glob("*.log"))[-AT_THE_END:]}
        assert sum(name.rpartition("/")[2] in small for name in names) == AT_THE_END


def test_logs_without_aborts_take_one_for_each_partition(tmp_path: Path) -> None:
    """Kafka writes no transaction index of such a segment. The listing has its other indexes."""
    growing = Growing(tmp_path / "t-0", random.Random(3), pad=100)
    growing.kinds = ("commit",)
    for _ in range(4):
        while growing.started or sum(len(b.data) for b in growing.files[-1].batches) <= LARGE:
            growing.append()
        growing.roll()
    assert not list(growing.directory.glob("*.txnindex"))
    for path in growing.directory.glob("*.log"):
        path.with_suffix(".timeindex").touch()
    names = reads(tmp_path, isolationLevel="read_committed")
    assert Counter(name.rpartition(".")[2] for name in names) == {"snapshot": 1}
    for path in growing.directory.glob("*.timeindex"):
        path.unlink()
    names = reads(tmp_path, isolationLevel="read_committed")
    assert Counter(name.rpartition(".")[2] for name in names)["log"] >= 4


def test_transactions_are_looked_up_once_where_offsets_are_named(stored: Path) -> None:
    """The last stable offset, with which these are compared, is that of the same look-up."""
    named = '{"t": {"0": 1, "1": 1}}'
    found = reads(stored, isolationLevel="read_committed", startingOffsets=named)
    kinds = Counter(name.rpartition(".")[2] for name in found)
    assert kinds["snapshot"] == PARTITIONS
    assert kinds["txnindex"] == PARTITIONS * (SEGMENTS - AT_THE_END)


def test_segments_that_are_cut_take_two_for_each_cut_and_one(stored: Path) -> None:
    """That of the offset index, and blocks of the batches where the cuts are."""
    found = Counter(name.rpartition(".")[0] for name in reads(stored, splitBytes=str(LARGE)))
    assert found
    for name, count in found.items():
        size = (stored / name.removeprefix("/b/")).with_suffix(".log").stat().st_size
        cuts = -(-size // LARGE) - 1
        assert cuts > 0 and count <= 1 + 2 * cuts, (name, size, count)
