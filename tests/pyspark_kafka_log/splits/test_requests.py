"""What planning asks a store for, besides listings."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("fsspec")

from kafka_log.logs import transaction_files
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.splits.plan import plan
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


def test_committed_records_take_one_for_each_segment_and_a_few_for_each_partition(
    stored: Path,
) -> None:
    """One for the newest snapshot, and four at most that bear out the transaction indexes."""
    found = reads(stored, isolationLevel="read_committed")
    few = 1 + transaction_files.REQUESTS_PER_LOOKUP
    for number in range(PARTITIONS):
        names = [name for name in found if f"/t-{number}/" in name]
        assert SEGMENTS < len(names) <= SEGMENTS + few, names
        kinds = Counter(name.rpartition(".")[2] for name in names)
        assert kinds["txnindex"] == SEGMENTS - AT_THE_END
        small = {path.name for path in sorted((stored / f"t-{number}").glob("*.log"))[-AT_THE_END:]}
        assert sum(name.rpartition("/")[2] in small for name in names) == AT_THE_END


def test_segments_that_are_cut_take_two_for_each_cut_and_one(stored: Path) -> None:
    """That of the offset index, and blocks of the batches where the cuts are."""
    found = Counter(name.rpartition(".")[0] for name in reads(stored, splitBytes=str(LARGE)))
    assert found
    for name, count in found.items():
        size = (stored / name.removeprefix("/b/")).with_suffix(".log").stat().st_size
        cuts = -(-size // LARGE) - 1
        assert cuts > 0 and count <= 1 + 2 * cuts, (name, size, count)
