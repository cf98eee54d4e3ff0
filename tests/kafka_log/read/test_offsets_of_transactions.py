"""Offsets decide which records are committed, and no checksum covers them: read_committed returns the right rows, or says that it cannot."""

from __future__ import annotations

import random
import shutil
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.errors import CodecError
from kafka_log import LogDirectory, SegmentReader, read_table
from kafka_log.cli import main
from kafka_log.segment.offset_order import COLUMNS, OffsetOrder
from pyspark_kafka_log.losses import DataLossError
from pyspark_kafka_log.options import parse
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.filters import parse_filters
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.task_reader import read_splits
from tests.paths import SAMPLES
from tests.shares import draw_seeds
from tests.support.check_plants import TX, flip
from tests.support.misplaced_segments import MISPLACED, misplaced_log

ROWS = ("key", "value")
LOGS = [f"kafka-4.x/{TX}", "kafka-4.x/transactions-0", "kafka-2.8/compacted-0"]
READS: list[dict[str, Any]] = [
    {},
    {"engine": "construct"},
    {"on_damage": "keep"},
    {"policy": "salvage"},
    {"policy": "strict"},
]


def counted(batches: Any) -> Counter[str]:
    return Counter(str(row) for batch in batches for row in batch.to_pylist())


def committed(path: Path, **options: Any) -> Counter[str] | None:
    """The rows that read_committed returns; None if it says that it cannot know them all."""
    lost: list[Any] = []
    try:
        rows = read_table(
            path,
            ROWS,
            isolation="read_committed",
            on_lost=lambda *loss: lost.append(loss),
            **options,
        )
    except CodecError:
        return None
    return None if lost else counted([rows])


def planned(root: Path, **options: str) -> Counter[str] | None:
    """The rows that a query of Spark plans and reads; None if it fails."""
    given_options = {"path": str(root), "isolationLevel": "read_committed", **options}
    try:
        tasks = plan(parse(given_options), parse_filters(()))
        return counted(b for t in tasks for b in read_splits(t, Scan(columns=ROWS)))
    except (CodecError, DataLossError):
        return None


def with_one_flipped_bit(log: Path, root: Path, random_: random.Random) -> Path:
    """A copy of a log in which one bit of a base offset is wrong, perhaps without indexes and snapshots."""
    copy = root / log.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(log, copy)
    if random_.random() < 0.4:
        for path in [*copy.glob("*index"), *copy.glob("*.snapshot")]:
            path.unlink()
    batches = [
        (path, batch.position) for path in copy.glob("*.log") for batch in SegmentReader(path)
    ]
    path, position = random_.choice(sorted(batches))
    bit = random_.choice([*range(12), *range(12), *range(12, 64)])
    flip(path, position + 7 - bit // 8, bit % 8)
    return copy


@pytest.mark.slow
@pytest.mark.share(9, ci=3)
@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("seed", draw_seeds(9))
def test_a_flipped_offset_hides_nothing_in_silence(log: str, seed: int, tmp_path: Path) -> None:
    random_ = random.Random(f"{log} {seed}")
    want = committed(SAMPLES / log)
    assert want
    for _ in range(4):
        copy = with_one_flipped_bit(SAMPLES / log, tmp_path, random_)
        for options in READS:
            assert committed(copy, **options) in (None, want), options
        assert planned(tmp_path, splitBytes=str(random_.choice((300, 3000)))) in (None, want)


@pytest.mark.parametrize("indexes", [True, False])
def test_the_error_names_the_batch(indexes: bool, tmp_path: Path) -> None:
    log = misplaced_log(tmp_path, "of transactions, copied", indexes=indexes)
    (log / f"{20:020d}.log").unlink()
    path = sorted(log.glob("*.log"))[1]
    batch = list(SegmentReader(path))[2]
    flip(path, batch.position + 1, 4)  # 2**52 is added
    with pytest.raises(CodecError, match="offsets decide which records are committed") as raised:
        read_table(log, isolation="read_committed")
    assert raised.value.where.file == str(path)
    following = batch.position + batch.size
    assert raised.value.where.position == following  # its offset is below that of the wrong one
    read_table(log)
    with pytest.warns(UserWarning, match="offsets decide which records"):
        read_table(log, isolation="read_committed", on_damage="keep")
    assert main(["dump", str(log), "--isolation", "read_committed"]) == 1
    assert main(["dump", str(log), "--policy", "salvage", "--isolation", "read_committed"]) == 1
    assert main(["txn", str(log)]) == 1


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE", "DROPMALFORMED"])
def test_queries_say_it(mode: str, tmp_path: Path) -> None:
    log = tmp_path / TX
    shutil.copytree(SAMPLES / "kafka-4.x" / TX, log)
    path = sorted(log.glob("*.log"))[0]
    flip(path, list(SegmentReader(path))[3].position + 2, 0)
    assert planned(tmp_path, mode=mode) is None
    if mode != "FAILFAST":
        with pytest.warns(UserWarning, match="offsets decide which records"):
            assert planned(tmp_path, mode=mode, failOnDataLoss="false")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MISPLACED if "transactions" in name])
def test_misplaced_segments_are_no_damaged_offsets(name: str, tmp_path: Path) -> None:
    for indexes in (True, False):
        log = misplaced_log(tmp_path / str(indexes), name, indexes=indexes)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for options in READS:
                assert committed(log, **options) is not None
            LogDirectory(log).txn()


@st.composite
def batches_of_files(draw: st.DrawFn) -> list[tuple[int, int | None, int]]:
    """Positions with first and last offsets, mostly ascending."""
    rows: list[tuple[int, int | None, int]] = []
    offset = draw(st.integers(0, 60))
    for position in range(draw(st.integers(0, 8))):
        first = offset + draw(st.sampled_from((0, 0, 0, 1, 5, -1, -7)))
        last = first + draw(st.sampled_from((0, 0, 3, -1)))
        rows.append((position * 100, draw(st.sampled_from((first, first, None))), last))
        offset = last + 1
    return rows


@given(batches_of_files(), st.lists(st.integers(0, 8)), st.sampled_from((None, 30, 70)))
def test_columns_are_compared_as_batches_are(
    rows: list[tuple[int, int | None, int]], cuts: list[int], next_base: int | None
) -> None:
    name = f"{20:020d}.log"
    one, other = OffsetOrder(name, next_base), OffsetOrder(name, next_base)
    for row in rows:
        one.add_batch(*row)
    ends = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    schema = pa.schema([pa.field(column, pa.int64()) for column in COLUMNS])
    for begin, end in pairwise(ends):
        # Whoever falls back to another reader adds some batches twice.
        part = rows[max(begin - 1, 0) : end]
        other.add_headers(
            pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in part], schema)
            .combine_chunks()
            .to_batches()[0]
        )
    one.finish()
    other.finish()
    assert str(one.error) == str(other.error)


@pytest.mark.parametrize(
    ("offsets", "next_base", "wrong"),
    [
        ([(20, 22), (23, 25), (26, 28)], 29, None),
        ([(20, 22), (25, 25), (28, 28)], 40, None),  # compaction leaves gaps
        ([(20, 22), (22, 25)], None, 1),
        ([(20, 22), (500, 502), (26, 28)], None, 2),
        ([(4, 6), (23, 25), (26, 28)], 29, 0),
        ([(4, 6), (7, 9), (23, 25)], 29, None),  # the file has a wrong name
        ([(20, 22), (23, 25), (500, 502)], 29, 2),
        ([(20, 22), (23, 25), (500, 502)], None, None),
        ([(40, 42), (43, 45), (46, 48)], 29, None),
        ([(20, 22), (23, 31), (32, 35)], 29, None),  # the segments overlap
        ([(4, 6)], 29, 0),
        ([(40, 42)], 29, 0),
        ([(20, 22)], 29, None),
        ([], 29, None),
    ],
)
def test_which_batch_is_wrong(
    offsets: list[tuple[int, int]], next_base: int | None, wrong: int | None
) -> None:
    order = OffsetOrder(f"{20:020d}.log", next_base)
    for i, (first, last) in enumerate(offsets):
        order.add_batch(i * 100, first, last)
    order.finish()
    found = None if order.error is None else order.error.where.position
    assert found == (None if wrong is None else wrong * 100)
