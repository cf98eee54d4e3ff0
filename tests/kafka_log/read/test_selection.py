"""One set of filters: by every engine and every way in, the rows are those that a naive reader picks."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codecgen.runtime.errors import CodecError
from kafka_codecs import LOG_ENTRY, RECORD_BATCH
from kafka_log import SegmentReader, discover, read_table, scan_batches
from kafka_log.cli import main
from kafka_log.read.isolation import PartitionFilters
from kafka_log.read.plan import Split
from kafka_log.read.selection import Selection
from kafka_log.segment import skipping
from kafka_log.segment.kernels import Engine
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.task_reader import read_split
from tests.paths import SAMPLES
from tests.shares import examples
from tests.support.lying_headers import with_header
from tests.support.mixed_logs import KEYS, NAMES, PRODUCERS, START, VALUES, mixed_log, naive, seen

ENGINES: Any = ("construct", "arrow")


def ranges(first: int, last: int) -> st.SearchStrategy[Any]:
    bound = st.none() | st.integers(first, last)
    return st.tuples(bound, bound).map(
        lambda pair: pair if None in pair else tuple(sorted(pair, key=lambda n: n or 0))
    )


def subset(values: tuple[Any, ...]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(values), unique=True, max_size=3)


HEADERS = st.lists(
    st.sampled_from(NAMES) | st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), max_size=2
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "offsets": ranges(0, 90),
        "timestamps": ranges(START - 1, START + 101),
        "keys": subset(KEYS),
        "headers": HEADERS,
        "producers": subset(PRODUCERS),
        "isolation": st.sampled_from(("read_uncommitted", "read_committed")),
        "control_records": st.booleans(),
    },
)
SEEDS = st.integers(0, 1 << 20)


def scanned(path: Path, **options: Any) -> list[int]:
    found: list[int] = read_table(path, ["offset"], **options).column("offset").to_pylist()
    return found


@pytest.mark.slow
@examples(60)
@given(
    seed=SEEDS,
    filters=FILTERS,
    chunk_bytes=st.sampled_from((100, 1 << 20)),
    worth=st.sampled_from((0, 200, 1 << 20)),
)
def test_rows_are_those_of_a_naive_reader(
    seed: int, filters: dict[str, Any], chunk_bytes: int, worth: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, patch.object(skipping, "WORTH", worth):
        path = mixed_log(Path(folder) / "t-0", seed)
        every = seen(path)
        for policy in ("kafka", "strict", "salvage"):
            wanted = naive(every, filters)
            for engine in ENGINES:
                options: Any = {"engine": engine, "chunk_bytes": chunk_bytes, "policy": policy}
                assert scanned(path, **filters, **options) == wanted, (engine, policy)
        selection = Selection(**filters)
        assert scanned(path, selection=selection) == wanted
        assert in_splits(path, selection, seed) == wanted


def in_splits(path: Path, selection: Selection, seed: int) -> list[int]:
    """The same in pieces of segments, as Spark reads them."""
    r = random.Random(seed)
    (partition,) = discover(path)
    rows = PartitionFilters(selection).filter_for(partition)
    found: list[int] = []
    for segment in partition.segments:
        starts = [batch.position for batch in SegmentReader(segment.path)][1:]
        cuts = [0, *sorted(r.sample(starts, 2)), segment.size]
        for start, stop in pairwise(cuts):
            part = Split(segment, start, stop, rows)
            for batch in read_split(part, Scan(columns=("offset",), engine=r.choice(ENGINES))):
                found += batch.column(0).to_pylist()
    return found


@pytest.mark.slow
@examples(30)
@given(seed=SEEDS, low=st.none() | st.integers(-60, 60), high=st.none() | st.integers(-60, 60))
def test_negative_offsets_count_from_the_end(seed: int, low: int | None, high: int | None) -> None:
    """As in slices of Python."""
    if low is not None and high is not None and low > high and (low < 0) == (high < 0):
        with pytest.raises(
            ValueError, match="the first is above the end: give the lower one first"
        ):
            Selection(offsets=(low, high))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = mixed_log(Path(folder) / "t-0", seed)
        every = seen(path)
        wanted = range(every[-1].batch.next_offset)[low:high]
        for engine in ENGINES:
            for policy in ("kafka", "strict", "salvage"):
                given = {"offsets": (low, high), "engine": engine, "policy": policy}
                found = scanned(path, control_records=True, **given)
                assert found == [one.record.offset for one in every if one.record.offset in wanted]
        columns = ["base_offset", "last_offset"]
        batches = scan_batches(path, columns, offsets=(low, high)).read_all()
        lasts = batches.column("last_offset").to_pylist()
        assert {one.batch.last_offset for one in every if one.record.offset in wanted} <= {*lasts}
        assert not wanted or all(last >= wanted.start for last in lasts)


@pytest.mark.parametrize("policy", ["kafka", "strict", "salvage"])
def test_the_end_of_a_log_is_that_of_its_last_batch(policy: str, tmp_path: Path) -> None:
    """Its last offsets may have no records, as after a compaction."""
    records = [{"offset_delta": i, "value": b"v"} for i in range(3)]
    log = tmp_path / "t-0"
    log.mkdir()
    batch = RECORD_BATCH.build({"base_offset": 0, "last_offset_delta": 9, "records": records})
    (log / f"{0:020d}.log").write_bytes(batch)
    assert scanned(log, offsets=(-8, None), policy=policy) == [2]


def renamed(path: Path, change: str) -> None:
    """Make the last segment, or a copy of it, one that a broker deletes soon; or cut it off."""
    last = max(path.iterdir())
    if change == "deleted":
        last.rename(last.with_name(f"{last.name}.deleted"))
    elif change == "copied":
        shutil.copy(last, last.with_name(f"{last.name}.deleted"))
    elif change == "torn":
        last.write_bytes(last.read_bytes()[:-1])


@pytest.mark.slow
@examples(30)
@given(
    seed=SEEDS,
    count=st.integers(1, 40),
    change=st.sampled_from(["none", "deleted", "copied", "torn"]),
    policy=st.sampled_from(["kafka", "salvage"]),
    filters=st.fixed_dictionaries(
        {}, optional={"include": st.just("deleted"), "isolation": st.just("read_committed")}
    ),
)
def test_the_last_offsets_are_those_of_what_is_read(
    seed: int, count: int, change: str, policy: str, filters: dict[str, Any]
) -> None:
    """Segments that are asked for besides, torn batches that salvage reads, and open transactions move the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = mixed_log(Path(folder) / "t-0", seed)
        renamed(path, change)
        options: Any = {"policy": policy, "control_records": True, **filters}
        every = scanned(path, **options)
        found = scanned(path, offsets=(-count, None), **options)
        before = scanned(path, offsets=(None, -count), **options)
        assert sorted(before + found) == sorted(every)
        assert len({*found}) <= count
        assert max(before, default=-1) < min(found, default=1 << 62)
        # The last offset delta may be above the last record, and all of a transaction be aborted.
        assert found or not every or count < 9 or "isolation" in filters


@pytest.mark.parametrize("argv", [["dump"], ["dump", "--batches"], ["stat"], ["keys"]])
def test_the_last_offsets_on_the_command_line(
    argv: list[str], tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Damage that lies in front of them is not met: what is not asked for is not read."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    for base in (0, 20):
        data = [LOG_ENTRY.build(_batch(base + i, i, "none")) for i in range(0, 20, 2)]
        data[0] = data[0][:-1] + b"?"
        (folder / f"{base:020}.log").write_bytes(b"".join(data))
    is_header_pass = argv == ["stat"]
    code = main([*argv, str(folder), "--offsets", "-3:", "--format", "jsonl"])
    rows = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    if argv == ["dump"]:
        assert [row["offset"] for row in rows] == [37, 38, 39]
    elif argv == ["dump", "--batches"]:
        assert [row["base_offset"] for row in rows] == [36, 38]
    else:
        assert [row["records"] for row in rows] == [4 if is_header_pass else 3]
    assert code == 0 or argv != ["dump"]


@pytest.mark.parametrize("argv", [["dump"], ["dump", "--batches"], ["stat"], ["stat", "--deep"]])
def test_the_last_offsets_with_deleted_segments_on_the_command_line(
    argv: list[str], tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """They are counted from one end, that of the later segment, whatever its state."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    for base, end in ((0, ".log"), (20, ".log.deleted")):
        data = [LOG_ENTRY.build(_batch(base + i, i, "none")) for i in range(0, 20, 2)]
        (folder / f"{base:020}{end}").write_bytes(b"".join(data))
    argv = [*argv, str(folder), "--offsets", "-4:", "--format", "jsonl", "--include", "deleted"]
    assert main(argv) == 0
    rows = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    if "--batches" in argv:
        assert [row["base_offset"] for row in rows] == [36, 38]
    elif argv[0] == "dump":
        assert [row["offset"] for row in rows] == [36, 37, 38, 39]
    else:
        assert {row["state"]: row["records"] for row in rows} == {"live": 0, "deleted": 4}


def test_the_last_offsets_of_a_header_that_contradicts_itself(tmp_path: Path) -> None:
    whole = LOG_ENTRY.build(_batch(0, 1, "gzip"))
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(with_header(whole, last_offset_delta=0))
    assert scanned(folder, offsets=(-1, None)) == [1]


@pytest.mark.slow
@examples(40)
@given(seed=SEEDS, filters=FILTERS, worth=st.sampled_from((0, 200, 1 << 20)))
def test_rows_around_damage(seed: int, filters: dict[str, Any], worth: int) -> None:
    """What salvage can read is filtered as all else is. No checksum is over the first offset of a batch: one that is changed may lie in
    another file than its name says, which is then not read."""
    filters.pop("isolation", None)
    r = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, patch.object(skipping, "WORTH", worth):
        path = mixed_log(Path(folder) / "t-0", seed)
        for file in path.iterdir():
            data = bytearray(file.read_bytes())
            for _ in range(r.randrange(3)):
                data[r.randrange(len(data))] ^= 1 << r.randrange(8)
            file.write_bytes(data)
        files_of = filters.get("offsets", (None, None))
        wanted = naive(seen(path, "salvage", files_of), filters)
        for engine in ENGINES:
            assert scanned(path, policy="salvage", engine=engine, **filters) == wanted, engine


@pytest.mark.slow
@examples(30)
@given(seed=SEEDS, filters=FILTERS)
@example(seed=546, filters={"offsets": (1, None)})
def test_batches_are_those_of_a_naive_reader(seed: int, filters: dict[str, Any]) -> None:
    """By headers: no batch is missing that has a record which is wanted, and none is there that lies outside."""
    filters = {n: filters[n] for n in ("offsets", "timestamps", "producers") if n in filters}
    with tempfile.TemporaryDirectory() as folder:
        path = mixed_log(Path(folder) / "t-0", seed)
        every = seen(path)
        needed = {one.batch.last_offset for one in every if naive([one], filters)}
        possible = {b.last_offset for b in (one.batch for one in every) if _may(b, filters)}
        for engine in ENGINES:
            batches = scan_batches(path, ["last_offset"], engine=engine, **filters).read_all()
            found = set(batches.column(0).to_pylist())
            if filters.get("timestamps", (None, None))[1] is None:
                assert needed - _markers(every) <= found
            assert found <= possible


def _markers(every: Any) -> set[int]:
    return {one.batch.last_offset for one in every if one.batch.is_control}


def _may(batch: Any, filters: dict[str, Any]) -> bool:
    low, high = filters.get("offsets", (None, None))
    begin, _ = filters.get("timestamps", (None, None))
    return (
        (low is None or batch.last_offset >= low or not _says_last_offset(batch))
        and (high is None or not batch.has_base_offset or batch.base_offset < high)
        and (begin is None or batch.max_timestamp >= begin)
        and batch.producer_id in filters.get("producers", PRODUCERS)
    )


def _says_last_offset(batch: Any) -> bool:
    """Whether the header does: some producers left a compressed message of version 1 at offset 0, whatever the offsets in it."""
    return batch.magic != 1 or batch.codec == "none" or batch.last_offset != 0


@pytest.mark.parametrize("worth", [0, 1 << 20])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_what_is_not_wanted_is_not_decompressed(
    codec: str, engine: Any, worth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that cannot be decompressed, under a checksum that is right, harm those alone who want one of them."""
    monkeypatch.setattr(skipping, "WORTH", worth)
    batches = [_batch(base, producer, codec) for base, producer in ((0, 1), (2, 2), (4, 3))]
    whole = LOG_ENTRY.build(batches[1])
    garbled = bytearray(whole[:61] + b"\xff" * len(whole[61:]))
    garbled[17:21] = _crc32c(bytes(garbled[21:])).to_bytes(4, "big")
    path = tmp_path / "t.log"
    path.write_bytes(LOG_ENTRY.build(batches[0]) + garbled + LOG_ENTRY.build(batches[2]))
    with pytest.raises(CodecError):
        scanned(path, engine=engine)
    assert scanned(path, producers=[1, 3], engine=engine) == [0, 1, 4, 5]
    assert scanned(path, offsets=(4, None), engine=engine) == [4, 5]
    assert scanned(path, timestamps=(START + 4, None), engine=engine) == [4, 5]
    with pytest.raises(CodecError):
        scanned(path, producers=[2], engine=engine)
    with pytest.raises(CodecError):
        scanned(path, producers=[1], policy="strict", engine=engine)
    garbled[70] ^= 1  # now the checksum is wrong: that is seen wherever it lies
    path.write_bytes(LOG_ENTRY.build(batches[0]) + garbled + LOG_ENTRY.build(batches[2]))
    with pytest.raises(CodecError, match="crc"):
        scanned(path, producers=[1], engine=engine)


def _batch(base: int, producer: int, codec: str) -> dict[str, Any]:
    records: list[Any] = [
        {"timestamp_delta": 0, "offset_delta": i, "key": None, "value": b"v" * 40, "headers": []}
        for i in range(2)
    ]
    times = {"base_timestamp": START + base, "max_timestamp": START + base}
    whose = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
    batch = {"magic": 2, "base_offset": base, "attributes": {"compression": codec}}
    return batch | times | whose | {"last_offset_delta": 1, "records": records}


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


# ---------------------------------------------------------------- what was not possible


def test_committed_records_around_damage(tmp_path: Path) -> None:
    """Damage that is kept does not end the search for transactions."""
    path = mixed_log(tmp_path / "t-0", 7)
    last = max(path.iterdir())
    data = bytearray(last.read_bytes())
    whole = scanned(path, isolation="read_committed")
    data[-1] ^= 1
    last.write_bytes(data)
    for engine in ENGINES:
        for policy in ("kafka", "salvage"):
            options: Any = {"policy": policy, "on_damage": "keep", "isolation": "read_committed"}
            assert set(scanned(path, engine=engine, **options)) <= set(whole)
    with pytest.raises(CodecError):
        scanned(path)


@pytest.mark.slow
def test_views_tell_of_damage(tmp_path: Path) -> None:
    source = next(
        p for p in sorted((SAMPLES / "kafka-4.x").glob("__consumer_offsets-*/*.log"))
        if p.stat().st_size
    )  # fmt: skip
    copy = tmp_path / source.parent.name / source.name
    copy.parent.mkdir()
    data = bytearray(source.read_bytes())
    columns = ["group", "committed_offset", "record_offset", "crc_ok", "damage"]
    copy.write_bytes(data)
    table = read_table(copy.parent, columns, view="offsets")
    assert table.num_rows and set(table.column("crc_ok").to_pylist()) == {True}
    data[17] ^= 1  # the checksum of the first batch
    copy.write_bytes(data)
    for engine in ENGINES:
        rows = read_table(
            copy.parent,
            columns,
            "salvage",
            view="offsets",
            isolation="read_uncommitted",
            engine=engine,
        ).to_pylist()
        assert {row["crc_ok"] for row in rows} >= {False}
        assert all((row["damage"] is None) == row["crc_ok"] for row in rows)


@pytest.mark.parametrize("engine", ["arrow", "construct"])
@pytest.mark.parametrize("columns", [["damage"], ["crc_ok", "damage"], ["damage", "offset"]])
def test_what_is_told_of_rows_in_a_range(columns: list[str], engine: Engine) -> None:
    """The column that such a scan reads for the number of rows is that of the range."""
    where = SAMPLES / "kafka-4.x" / "codecs-0"
    found = read_table(where, columns, offsets=(3, 9), policy="salvage", engine=engine)
    assert found.schema.names == columns
    assert found.num_rows == 6
