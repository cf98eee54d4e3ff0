"""What a store is asked for, and what becomes of reads that fail."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest

from tests.shares import examples

pytest.importorskip("fsspec")

from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.errors import CodecError
from kafka_codecs import TRANSACTION_INDEX
from kafka_log import LogDirectory, discover, read_table, scan, scan_batches, write_segment
from kafka_log.logs import transaction_files
from kafka_log.logs.partitions import Partition
from kafka_log.logs.transactions import Transactions, read_transactions
from kafka_log.read.isolation import Known, PartitionFilters
from kafka_log.read.selection import Selection
from kafka_log.segment import buffered_files, remote_files
from kafka_log.segment.buffered_files import BufferedBlocks, BufferedPath
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.segment.remote_files import BLOCK, FIRST, SECTOR, RemoteFile
from kafka_log.segment.remote_paths import RemotePath
from tests.paths import SAMPLES
from tests.support.growing_logs import Growing
from tests.support.stores import Counted, counted, put

NAME = "00000000000000000000"
RECORDS, VALUE = 4096, 12 << 10


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition of one segment of 50 MB, with its indexes."""
    root = tmp_path_factory.mktemp("large")
    content = random.Random(1).randbytes(VALUE)
    rows = {
        "offset": range(RECORDS),
        "timestamp": range(RECORDS),
        "value": [b"%9d" % i + content for i in range(RECORDS)],
    }
    (root / "made" / "big-0").mkdir(parents=True)
    path = root / "made" / "big-0" / f"{NAME}.log"
    assert write_segment(path, pa.table(rows), batch_bytes=100 << 10) > 48 << 20
    LogDirectory(root / "made").reindex(root / "indexes")
    for kind in ("index", "timeindex"):
        found = next((root / "indexes").rglob(f"{NAME}.{kind}"))
        path.with_suffix(f".{kind}").write_bytes(found.read_bytes())
    return root / "made"


@pytest.fixture
def store(large: Path) -> Iterator[type[Counted]]:
    with counted() as store:
        put(large, "counted://b")
        store.no_requests()
        yield store


def test_a_range_of_offsets_takes_the_bytes_around_it(store: type[Counted], large: Path) -> None:
    there = read_table("counted://b", ["offset", "value"], offsets=(3000, 3010))
    assert there["offset"].to_pylist() == list(range(3000, 3010))
    assert there.equals(read_table(large, ["offset", "value"], offsets=(3000, 3010)))
    assert store.bytes_read(".log") <= 4 * BLOCK
    assert len(store.read) < 12


def test_a_time_takes_the_bytes_after_it(store: type[Counted]) -> None:
    found = read_table("counted://b", ["offset"], timestamps=(3800, 3810))
    assert found["offset"].to_pylist() == list(range(3800, 3810))
    assert store.bytes_read(".log") <= 4 * BLOCK


def test_all_of_it_is_read_once_in_blocks(store: type[Counted], large: Path) -> None:
    size = (large / "big-0" / f"{NAME}.log").stat().st_size
    assert sum(b.num_rows for b in scan("counted://b", ["offset"])) == RECORDS
    assert size <= store.bytes_read(".log") <= size + BLOCK
    assert len(store.read) <= size // BLOCK + 8
    assert store.listed == ["/b", "/b/big-0"]


def test_where_a_log_ends_is_at_its_end(store: type[Counted]) -> None:
    from kafka_log.logs.replicas import LogEnd, read_log_end

    [partition] = discover("counted://b")
    assert read_log_end(partition.segments) == LogEnd(-1, RECORDS)
    assert store.bytes_read(".log") <= 4 * FIRST


def test_a_directory_is_listed_once_and_no_file_is_asked_about(tmp_path: Path) -> None:
    with counted() as store:
        put(SAMPLES / "kafka-4.x", "counted://b")
        store.no_requests()
        directory = LogDirectory("counted://b")
        directory.ls(segments=True)
        directories = len({p.directory for p in directory.partitions})
        assert len(store.listed) == len(set(store.listed)) <= directories + 2
        assert set(store.asked) <= {"/b", "/b/kafka-tiered-storage"}
        assert store.read == []
        store.no_requests()
        directory.check()
        assert len(store.listed) == len(set(store.listed))


def test_a_directory_is_listed_anew(tmp_path: Path) -> None:
    with counted() as store:
        put(SAMPLES / "kafka-4.x" / "codecs-1", "counted://b/codecs-1")
        before = read_table("counted://b")
        put(SAMPLES / "kafka-4.x" / "codecs-2", "counted://b/codecs-2")
        assert read_table("counted://b").num_rows > before.num_rows
        assert store.listed.count("/b") == 2


@examples(60)
@given(st.data())
def test_any_reads_give_what_is_there(data: st.DataObject) -> None:
    """The law of a file: what is read at a place lies there, in whatever order, and whether or not others read it who keep what they read."""
    content = random.Random(2).randbytes(10_000)
    with counted() as store, pytest.MonkeyPatch.context() as patch, ExitStack() as files:
        for name, number in [("FIRST", 64), ("BLOCK", 512), ("GAP", 100), ("SECTOR", 128)]:
            patch.setattr(remote_files, name, number)
        patch.setattr(buffered_files, "BLOCK", data.draw(st.sampled_from([512, 20_000])))
        store().pipe("/f", content)
        path = RemotePath("counted://f")
        paths = [path] if data.draw(st.booleans()) else [BufferedPath(path, BufferedBlocks())] * 3
        opened = [files.enter_context(path.open(buffering=0)) for path in paths]
        for _ in range(data.draw(st.integers(1, 20))):
            file = data.draw(st.sampled_from(opened))
            assert file.seek(0, 2) == len(content)
            place = data.draw(st.integers(0, len(content) + 10))
            count = data.draw(st.integers(0, 1500))
            file.seek(place)
            found = b""
            while len(found) < count and (more := file.read(count - len(found))):
                found += more
            assert found == content[place : place + count]


def test_a_walk_takes_whole_blocks() -> None:
    content = random.Random(3).randbytes(2 * BLOCK + 5)
    with counted() as store:
        store().pipe("/f", content)
        with BufferedPath(RemotePath("counted://f"), BufferedBlocks()).open(buffering=0) as file:
            found = b"".join(iter(lambda: file.read(1 << 16), b""))
        assert found == content
        assert [end - start for _, start, end in store.read] == [BLOCK, BLOCK, 5]


# ---------------------------------------------------------------- transactions


def grown(directory: Path, seed: int) -> None:
    """A partition of some segments, of which the first may be deleted."""
    r = random.Random(seed)
    growing = Growing(directory, r)
    for _ in range(r.randrange(5, 40)):
        r.choices([growing.append, growing.roll, growing.delete], [12, 3, 1])[0]()


def committed_of(partition: Partition) -> Transactions:
    """The transactions that a read of committed records finds."""
    known: Known = {}
    PartitionFilters(Selection(isolation="read_committed"), known=known).filter_for(partition)
    [found] = known.values()
    return found


@pytest.mark.slow
@examples(20)
@given(st.lists(st.integers(0, 1 << 30), min_size=1, max_size=2))
def test_transactions_take_a_request_for_each_segment_and_partition(seeds: list[int]) -> None:
    """What is found is what a walk over all headers on a disk finds."""
    with TemporaryDirectory() as directory, counted() as store:
        for i, seed in enumerate(seeds):
            grown(Path(directory, f"t-{i}"), seed)
        put(Path(directory), "counted://b")
        there, here = discover("counted://b"), discover(directory)
        store.no_requests()
        found = [committed_of(partition) for partition in there]
        assert found == [read_transactions(partition.segments) for partition in here]
        segments = sum(len(partition.segments) for partition in there)
        assert len(store.read) <= segments + len(there)
        assert len(store.read) == len(set(store.read))


@pytest.mark.slow
@examples(20)
@given(st.integers(0, 1 << 30), st.integers(-1, 1500))
def test_transactions_of_larger_segments_are_what_is_kept(seed: int, walked: int) -> None:
    """Of each its transaction index, and a producer snapshot or the headers; and where the log ends, and some batches."""
    with TemporaryDirectory() as directory, counted() as store, pytest.MonkeyPatch.context() as p:
        p.setattr(transaction_files, "MAX_SCANNED_BYTES", walked)
        grown(Path(directory, "t-0"), seed)
        put(Path(directory), "counted://b")
        [there], [here] = discover("counted://b"), discover(directory)
        store.no_requests()
        assert committed_of(there) == read_transactions(here.segments)
        assert len(store.read) <= 3 * len(there.segments) + 2


@pytest.mark.slow
@examples(10)
@given(st.integers(0, 1 << 30))
def test_transaction_indexes_take_a_request_for_each_segment(seed: int) -> None:
    """Segments are larger than what is walked. The partition takes one for the newest snapshot."""
    with TemporaryDirectory() as directory, counted() as store, pytest.MonkeyPatch.context() as p:
        p.setattr(transaction_files, "MAX_SCANNED_BYTES", -1)
        growing = Growing(Path(directory, "t-0"), random.Random(seed))
        for _ in range(12):
            while not growing.files[-1].aborted:
                growing.append()
            growing.roll()
        put(Path(directory), "counted://b")
        [there], [here] = discover("counted://b"), discover(directory)
        store.no_requests()
        assert committed_of(there) == read_transactions(here.segments)
        assert len(store.read) <= len(there.segments) + 1
        kinds = Counter(name.rpartition(".")[2] for name, *_ in store.read)
        assert kinds["txnindex"] == len(there.segments) - 1


@pytest.mark.parametrize("walked", [transaction_files.MAX_SCANNED_BYTES, -1])
def test_an_index_that_lies_is_not_believed(tmp_path: Path, walked: int) -> None:
    """That of small segments is not read; what that of larger ones says is compared with their batches when rows are read."""
    growing = Growing(tmp_path / "t-0", random.Random(1))
    while not growing.files[-1].aborted or growing.started:
        growing.append()
    growing.roll()
    growing.append()
    [here] = discover(tmp_path)
    assert transaction_files.read_transactions_from_files(here.segments) == read_transactions(
        here.segments
    )
    [path] = here.directory.glob("*.txnindex")
    entries = TRANSACTION_INDEX.parse(path.read_bytes()).entries
    entries[-1].producer_id += 100
    path.write_bytes(TRANSACTION_INDEX.build({"entries": entries}))
    with counted() as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction_files, "MAX_SCANNED_BYTES", walked)
        put(tmp_path, "counted://b")
        [there] = discover("counted://b")
        store.no_requests()
        if walked < 0:
            assert not committed_of(there).is_verified
            with pytest.raises(CodecError, match="transaction index says that producer 10"):
                read_table("counted://b", isolation="read_committed")
        else:
            assert committed_of(there) == read_transactions(here.segments)
        assert any(name.endswith(".txnindex") for name, *_ in store.read) is (walked < 0)


def test_a_transaction_that_began_before_a_log_without_its_first_snapshot(tmp_path: Path) -> None:
    """The newest snapshot says that it is open. The log itself has nothing of it."""
    for seed in range(100):
        growing = Growing(tmp_path / f"t-{seed}", random.Random(seed))
        for _ in range(3):
            for _ in range(6):
                growing.append()
            growing.roll()
        growing.delete()
        (growing.directory / f"{growing.start:020}.snapshot").unlink()
        [here] = discover(growing.directory)
        kept = transaction_files.read_transactions_from_files(here.segments)
        if kept is not None and kept != read_transactions(here.segments):
            break
    else:
        pytest.fail("no such log")
    with counted():
        put(growing.directory, f"counted://b/{growing.name}")
        [there] = discover("counted://b")
        assert committed_of(there) == kept


# ---------------------------------------------------------------- reads that fail


def test_an_error_names_url_and_byte(store: type[Counted]) -> None:
    store.bad["/b/big-0/" + NAME + ".log"] = [(20 << 20, (20 << 20) + 1)]
    with pytest.raises(CodecError) as caught:
        read_table("counted://b")
    assert isinstance(caught.value, UnreadableError)
    assert f"counted://b/big-0/{NAME}.log" in str(caught.value)
    assert "TimeoutError: no answer" in str(caught.value)
    assert 19 << 20 <= (caught.value.where.position or 0) <= 20 << 20


def test_what_is_read_ahead_and_cut_off_is_asked_for_again(
    store: type[Counted], large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = RemoteFile._fetch
    cut: set[int] = set()

    def fetch_less(file: RemoteFile, start: int, end: int) -> bytes:
        """Lose a byte in the first answer to each request that is made ahead."""
        data = fetch(file, start, end)
        if not threading.current_thread().name.startswith("kafka-log-read-ahead") or start in cut:
            return data
        cut.add(start)
        return data[:-1]

    monkeypatch.setattr(RemoteFile, "_fetch", fetch_less)
    name = f"big-0/{NAME}.log"
    with RemotePath(f"counted://b/{name}").open(buffering=0) as file:
        found = b"".join(iter(lambda: file.read(1 << 16), b""))
    assert found == (large / name).read_bytes()
    assert cut


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize("engine", ["arrow", "construct"])
def test_salvage_loses_what_a_bad_range_has(store: type[Counted], large: Path, engine: str) -> None:
    """All batches are there but those that have bytes of the sectors with a bad one."""
    bad = [(5 << 20, (5 << 20) + 9), (30 << 20, (32 << 20) + 1)]
    store.bad[f"/b/big-0/{NAME}.log"] = bad
    lost = []
    options = {"engine": engine, "on_lost": lambda _, range_: lost.append(range_)}
    found = scan("counted://b", ["offset"], "salvage", **options).read_all()  # type: ignore[arg-type]
    rows = set(found["offset"].to_pylist())
    batches = scan_batches(large, ["position", "size", "base_offset", "last_offset"]).read_all()
    touched = {sector for a, b in bad for sector in range(a // SECTOR, (b - 1) // SECTOR + 1)}
    near = {
        sector + i for sector in touched for i in range(5)
    }  # more are given up the longer it lasts
    kept = 0
    for position, size, first, last in zip(*batches.to_pydict().values(), strict=True):
        sectors = set(range(position // SECTOR, (position + size - 1) // SECTOR + 1))
        here = set(range(first, last + 1))
        if not sectors & near:
            assert here <= rows
            kept += 1
        elif any(position < b and a < position + size for a, b in bad):
            assert not here <= rows  # those before the bad byte are
            assert any(range_.start <= position < range_.end for range_ in lost)
    assert kept > 300
    assert len(store.failed) <= 20  # each is tried again by the library of a store


def test_a_refused_file_is_asked_for_once(store: type[Counted]) -> None:
    store.wrong = PermissionError
    store.bad[f"/b/big-0/{NAME}.log"] = [(0, 1 << 30)]
    with pytest.raises(UnreadableError, match=r"the store refuses it \(no answer\)"):
        read_table("counted://b")
    lost = []
    store.no_requests()
    table = read_table("counted://b", None, "salvage", on_lost=lambda _, r: lost.append(r))
    assert table.num_rows == 0
    assert sum(r.end - r.start for r in lost) > 48 << 20
    assert len([one for one in store.read if one[0].endswith(".log")]) <= 3


def test_a_file_that_is_gone(store: type[Counted]) -> None:
    found = discover("counted://b")
    del store.store[f"/b/big-0/{NAME}.log"]
    with pytest.raises(UnreadableError, match="No such file or directory: it cannot be read"):
        read_table(found)
    lost = []
    read_table(found, None, "salvage", on_lost=lambda _, r: lost.append(r))
    assert [(r.start, r.end) for r in lost] == [(0, found[0].segments[0].size)]


def test_a_directory_that_is_refused(store: type[Counted]) -> None:
    put(SAMPLES / "kafka-4.x" / "codecs-1", "counted://b/codecs-1")
    store.refused.add("/b/big-0")
    with pytest.raises(PermissionError, match="counted://b/big-0"):
        discover("counted://b")
    lost = []
    table = read_table("counted://b", None, "salvage", on_lost=lambda p, _: lost.append(str(p)))
    assert table.equals(read_table(SAMPLES / "kafka-4.x" / "codecs-1", list(table.column_names)))
    assert lost == ["counted://b/big-0"]
