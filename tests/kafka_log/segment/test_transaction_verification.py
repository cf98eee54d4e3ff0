"""Transaction indexes in stores: readers compare them with the batches that they read, and give no row by an index that lies or is lost."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

pytest.importorskip("fsspec")

from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.errors import CodecError, ValueRefused
from kafka_codecs import TRANSACTION_INDEX
from kafka_log import read_table, scan
from kafka_log.cli import main
from kafka_log.logs import transaction_files
from kafka_log.segment.row_selection import Aborted
from tests.paths import SAMPLES
from tests.shares import examples
from tests.support.growing_logs import Batch, Growing
from tests.support.histories import history
from tests.support.stores import counted, put

Entry = Any
"""The fields of an entry of a transaction index by name."""
KINDS = [("arrow", "kafka"), ("arrow", "strict"), ("construct", "kafka"), ("construct", "strict")]


@pytest.fixture(autouse=True)
def indexes_are_read() -> Iterator[None]:
    """No segment is so small that its headers are read."""
    with counted(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction_files, "MAX_SCANNED_BYTES", -1)
        yield


def grown(directory: Path, seed: int) -> Growing:
    """A log of segments that all have an index, and of an empty one."""
    growing = Growing(directory, random.Random(seed))
    for _ in range(3):
        for _ in range(8):
            growing.append()
        while not growing.files[-1].aborted:
            growing.append()
        growing.roll()
    return growing


def entries_of(path: Path) -> list[Entry]:
    names = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
    parsed = TRANSACTION_INDEX.parse(path.read_bytes()).entries
    return [{name: getattr(entry, name) for name in names} for entry in parsed]


def contradicts(growing: Growing, entry: Entry) -> bool:
    """Whether the batches at the ends of an entry are others, or a marker lies between them."""
    producer, first, last = (entry[name] for name in ("producer_id", "first_offset", "last_offset"))
    there = growing.batches()

    def at(offset: int) -> Batch:
        return next(b for b in there if b.offset <= offset < b.end)

    begin, end = at(first), at(last)
    if (begin.offset, begin.producer, begin.kind) != (first, producer, "data"):
        return True
    markers = [b for b in there if b.producer == producer and b.kind in ("commit", "abort")]
    ends = next((b for b in markers if b.offset > first), None)
    return ends is not end or end.kind != "abort"


def rows(engine: Any, policy: str, **options: Any) -> list[int]:
    table = read_table(
        "counted://b", ["offset"], policy, isolation="read_committed", engine=engine, **options
    )
    found: list[int] = table["offset"].to_pylist()
    return found


@pytest.mark.slow
@examples(25)
@given(
    st.integers(0, 1 << 30),
    st.sampled_from(KINDS),
    st.sampled_from(["nothing", "producer", "last", "first", "other"]),
    st.integers(0, 2),
    st.sampled_from([-1, 1, 100]),
)
def test_an_index_that_batches_contradict_gives_no_wrong_row(
    seed: int, kind: tuple[str, str], lie: str, file: int, by: int
) -> None:
    with TemporaryDirectory() as directory, counted():
        growing = grown(Path(directory, "t-0"), seed)
        path = sorted(growing.directory.glob("*.txnindex"))[file]
        entries = entries_of(path)
        if lie == "other":
            other = grown(Path(directory, "other", "u-0"), seed + 1)
            entries = entries_of(sorted(other.directory.glob("*.txnindex"))[file])
        elif lie != "nothing":
            name = {"producer": "producer_id"}.get(lie, f"{lie}_offset")
            entries[seed % len(entries)][name] += by
        end = growing.end
        wrong = any(
            not 0 <= e["first_offset"] <= e["last_offset"] < end or contradicts(growing, e)
            for e in entries
        )
        assert wrong or lie in ("first", "other", "nothing")
        path.write_bytes(TRANSACTION_INDEX.build({"entries": entries}))
        put(growing.directory, "counted://b/t-0")
        right = [offset for offset, _ in growing.committed()]
        low, high = sorted(random.Random(seed).choices(range(end), k=2))
        try:
            found = rows(*kind)
        except CodecError as error:
            assert wrong and isinstance(error, ValueRefused), error
        else:
            assert found == right or not wrong
        if lie in ("nothing", "producer", "last"):
            try:
                found = rows(*kind, offsets=(low, high))
            except CodecError:
                assert wrong
            else:
                assert found == [offset for offset in right if low <= offset < high]


@pytest.mark.slow
@examples(25)
@given(st.integers(0, 1 << 30), st.sampled_from(KINDS))
def test_histories_with_gaps_and_stops_are_not_doubted(seed: int, kind: tuple[str, str]) -> None:
    with TemporaryDirectory() as directory, counted():
        made = history(Path(directory, "t-0"), seed, indexes=True)
        put(made.directory, "counted://b/t-0")
        assert rows(*kind) == made.committed()


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "policy"), KINDS)
def test_logs_of_brokers_are_not_doubted(engine: str, policy: str) -> None:
    """Compacted ones too: the cleaner removes batches and empties markers."""
    directories = {path.parent for path in SAMPLES.rglob("*.txnindex") if path.stat().st_size}
    assert any("compact" in directory.name for directory in directories)
    for directory in sorted(directories):
        with counted():
            put(directory, f"counted://b/{directory.name}")
            here = read_table(directory, ["offset"], policy, isolation="read_committed")
            assert rows(engine, policy) == here["offset"].to_pylist()


def with_commit_for_abort(tmp_path: Path) -> Growing:
    """A log whose index says that a committed transaction is aborted: its producer, first offset and marker are there."""
    for seed in range(100):
        growing = grown(tmp_path / f"{seed}" / "t-0", seed)
        there = growing.files[0].batches
        of_one = [b for b in there if b.producer == 1]
        marker = next((b for b in of_one if b.kind in ("commit", "abort")), None)
        if marker is not None and marker.kind == "commit":
            break
    else:
        pytest.fail("no such log")
    first = of_one[0]
    path = next(iter(sorted(growing.directory.glob("*.txnindex"))))
    entry: Entry = {
        "version": 0,
        "producer_id": marker.producer,
        "first_offset": first.offset,
        "last_offset": marker.offset,
        "last_stable_offset": 0,
    }
    path.write_bytes(TRANSACTION_INDEX.build({"entries": [entry]}))
    put(growing.directory, "counted://b/t-0")
    return growing


@pytest.mark.parametrize(("engine", "policy"), KINDS)
def test_a_commit_marker_in_the_place_of_an_abort_marker(
    tmp_path: Path, engine: str, policy: str
) -> None:
    with_commit_for_abort(tmp_path)
    with pytest.raises(ValueRefused, match="is not the abort marker of this transaction"):
        rows(engine, policy)


def test_batches_are_read_where_damage_is_accepted(tmp_path: Path) -> None:
    growing = with_commit_for_abort(tmp_path)
    assert rows("auto", "salvage") == [offset for offset, _ in growing.committed()]


def test_the_command_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with_commit_for_abort(tmp_path)
    out = tmp_path / "out.parquet"
    arguments = ["counted://b", "--isolation", "read_committed", "--out", str(out)]
    assert main(["export", *arguments]) != 0
    assert "the transaction index says" in capsys.readouterr().err
    assert not out.exists()


def test_the_command_fails_without_the_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    growing = grown(tmp_path / "t-0", 5)
    for path in growing.directory.glob("*.log"):
        path.with_suffix(".timeindex").touch()
        path.with_suffix(".txnindex").unlink(missing_ok=True)
    put(growing.directory, "counted://b/t-0")
    out = tmp_path / "out.parquet"
    arguments = ["counted://b", "--isolation", "read_committed", "--out", str(out)]
    assert main(["export", *arguments]) != 0
    assert "Copy the .txnindex files too" in capsys.readouterr().err
    assert not out.exists()


def test_a_transaction_around_the_selected_offsets_is_looked_up(tmp_path: Path) -> None:
    """No batch of the selected offsets tells whether it was aborted. Headers are read if it was not."""
    growing = grown(tmp_path / "t-0", 5)
    path = sorted(growing.directory.glob("*.txnindex"))[-1]
    entries = entries_of(path)
    marker = next(b for b in growing.batches() if b.offset == entries[-1]["last_offset"])
    data = [b for b in growing.batches() if b.kind == "data" and b.producer != marker.producer]
    aim = data[0]
    entries[-1] |= {"producer_id": aim.producer, "first_offset": 0}
    path.write_bytes(TRANSACTION_INDEX.build({"entries": entries}))
    put(growing.directory, "counted://b/t-0")
    right = [o for o, _ in growing.committed() if aim.offset <= o < aim.end]
    assert rows("auto", "kafka", offsets=(max(aim.offset, 1), aim.end)) == [o for o in right if o]


def test_verified_or_not_stays_with_a_part(tmp_path: Path) -> None:
    unverified = Aborted([(1, 0, 9)], is_verified=False)
    assert not unverified.limit_to_offsets(0, 5).is_verified
    assert unverified.limit_to_offsets(10, 20).is_verified  # there is nothing to compare
    assert Aborted([(1, 0, 9)]).is_verified


def with_lost_indexes(directory: Path, seed: int, removed: int) -> tuple[Growing, list[int]]:
    """A log in the store without the transaction indexes whose bits are set, and its committed offsets by the files on disk."""
    r = random.Random(seed)
    growing = Growing(directory, r)
    for _ in range(r.randrange(2, 6)):
        for _ in range(r.randrange(1, 9)):
            growing.append()
        growing.roll()
    for path in growing.directory.glob("*.log"):
        path.with_suffix(".timeindex").touch()
    table = read_table(growing.directory, ["offset"], isolation="read_committed")
    right: list[int] = table["offset"].to_pylist()
    assert right == [offset for offset, _ in growing.committed()]
    for i, path in enumerate(sorted(growing.directory.glob("*.txnindex"))):
        if removed >> i & 1:
            path.unlink()
    put(growing.directory, "counted://b/t-0")
    return growing, right


@pytest.mark.slow
@examples(60)
@given(st.integers(0, 1 << 30), st.sampled_from(KINDS), st.integers(0, 63), st.integers(0, 400))
def test_lost_indexes_give_no_wrong_row(
    seed: int, kind: tuple[Any, str], removed: int, chunk_bytes: int
) -> None:
    """Of any part of the offsets: the marker may lie after it, and in another segment. Rows before the error are right too, for whoever
    reads no further.
    """
    with TemporaryDirectory() as directory, counted():
        growing, right = with_lost_indexes(Path(directory, "t-0"), seed, removed)
        r = random.Random(seed)
        ranges = [sorted(r.choices(range(growing.end + 1), k=2)) for _ in range(4)]
        for low, high in ((0, growing.end), *ranges):
            expected = [offset for offset in right if low <= offset < high]
            found: list[int] = []
            try:
                for batch in scan(
                    "counted://b",
                    ["offset"],
                    kind[1],
                    isolation="read_committed",
                    engine=kind[0],
                    offsets=(low, high),
                    chunk_bytes=chunk_bytes + 100,
                ):
                    found += batch["offset"].to_pylist()
            except ValueRefused as error:
                assert removed and "has no transaction index" in str(error), error
                assert found == expected[: len(found)]
            else:
                assert found == expected


@pytest.mark.slow
@examples(25)
@given(st.integers(0, 1 << 30), st.sampled_from(KINDS))
def test_logs_whose_aborts_have_their_indexes_are_not_doubted(
    seed: int, kind: tuple[str, str]
) -> None:
    """Kafka writes no index of a segment without aborts."""
    with TemporaryDirectory() as directory, counted():
        growing, right = with_lost_indexes(Path(directory, "t-0"), seed, 0)
        low, high = sorted(random.Random(seed).choices(range(growing.end + 1), k=2))
        assert rows(*kind) == right
        assert rows(*kind, offsets=(low, high)) == [o for o in right if low <= o < high]
