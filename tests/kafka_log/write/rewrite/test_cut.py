"""kafka-log cut: whole batches of a range, as a log of their own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import RECORD_BATCH
from kafka_log import LogDirectory, SegmentReader, discover, encode, read_table
from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.shares import examples
from tests.support.batches import batch, message
from tests.support.salvage_rows import GAPS, files, problems, rows, said
from tests.support.segment_files import put

SMALL = SAMPLES / "kafka-4.x" / "segments.small-1"
BATCHES = [b for s in discover(SMALL)[0].segments for b in SegmentReader(s.path)]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cut")


@pytest.mark.slow
@given(st.integers(0, 120), st.integers(0, 60), st.integers())
@examples(25)
def test_batches_of_a_range_of_offsets(scratch: Path, low: int, count: int, n: int) -> None:
    out = scratch / f"{low}-{count}-{n}"
    LogDirectory(SMALL).cut(out, offsets=(low, low + count))
    selected = set(range(low, low + count))
    inside = [b for b in BATCHES if selected & set(range(b.base_offset or 0, b.last_offset + 1))]
    wanted = [r.offset for b in inside for r in b.records]
    assert [int(row[0]) for row in rows(out)] == wanted
    whole = b"".join(files(SMALL, ".log").values())
    assert b"".join(files(out, ".log").values()) in whole  # bytes as they were
    assert problems(out) == []
    if wanted:
        (partition,) = discover(out)
        assert partition.segments[0].base_offset <= wanted[0]


@pytest.mark.parametrize(("low", "high"), [(-5, None), (-9, -4), (-999, 3), (None, -1)])
def test_negative_offsets_count_from_the_end(
    tmp_path: Path, low: int | None, high: int | None
) -> None:
    """As in slices of Python."""
    wanted = range(BATCHES[-1].next_offset)[low:high]
    LogDirectory(SMALL).cut(tmp_path / "relative", offsets=(low, high))
    LogDirectory(SMALL).cut(tmp_path / "absolute", offsets=(wanted.start, wanted.stop))
    assert rows(tmp_path / "relative") == rows(tmp_path / "absolute") != []


@pytest.mark.slow
@pytest.mark.parametrize("low", range(9))
@pytest.mark.parametrize("last_offset_delta", [0, 1])
def test_a_header_that_contradicts_itself_loses_no_record(
    last_offset_delta: int, low: int, tmp_path: Path
) -> None:
    """It says less offsets than records. The batch is in the cut if one of its records is."""
    records: list[Any] = [{"key": b"k", "value": b"v"}] * 3
    data = [
        RECORD_BATCH.build({"base_offset": base, "records": records, **lie}, strict=False)
        for base, lie in ((0, {}), (3, {"last_offset_delta": last_offset_delta}), (6, {}))
    ]
    put(tmp_path / "in", (0, b"".join(data)))
    LogDirectory(tmp_path / "in").cut(tmp_path / "out", offsets=(low, 9))
    found = [int(row[0]) for row in rows(tmp_path / "out")]
    assert found == list(range(low - low % 3, 9))


def test_the_offsets_of_messages_count_if_that_of_their_wrapper_is_wrong(tmp_path: Path) -> None:
    table = pa.table({"offset": [2, 3, 4], "value": [b"v"] * 3})
    data = b"".join(encode(table, magic=0, codec="gzip"))
    put(tmp_path / "in", (2, (1000).to_bytes(8, "big") + data[8:]))
    log = LogDirectory(tmp_path / "in")
    assert said(log.cut(tmp_path / "none", offsets=(100, 2000)), "rewritten") == []
    log.cut(tmp_path / "all", offsets=(0, 5))
    assert [int(row[0]) for row in rows(tmp_path / "all")] == [2, 3, 4]
    assert problems(tmp_path / "all") == []


def test_batches_of_a_range_of_times(tmp_path: Path) -> None:
    times = read_table(SMALL, ["timestamp"])["timestamp"].cast("int64").to_pylist()
    low, high = sorted(times)[len(times) // 3], sorted(times)[len(times) // 2]
    LogDirectory(SMALL).cut(tmp_path, timestamps=(low, high))
    wanted = [
        r.offset
        for b in BATCHES
        if any(low <= r.timestamp < high for r in b.records)
        for r in b.records
    ]
    assert [int(row[0]) for row in rows(tmp_path)] == wanted
    assert problems(tmp_path, GAPS) == []


def test_the_log_begins_where_it_is_cut(tmp_path: Path) -> None:
    LogDirectory(SMALL).cut(tmp_path, offsets=(50, 100))
    (partition,) = discover(tmp_path)
    assert [s.base_offset for s in partition.segments] == [45, 81]
    epochs = (tmp_path / "segments.small-1" / "leader-epoch-checkpoint").read_text()
    assert epochs.splitlines()[2].endswith(" 45")


def test_damage_elsewhere_is_nobodys_concern(tmp_path: Path) -> None:
    parts = [batch(i * 3, size=50) for i in range(10)] + [message(30)]
    data = bytearray(b"".join(parts))
    data[len(parts[0]) + 90] ^= 1
    source = put(tmp_path / "t-0", (0, bytes(data)))
    table = LogDirectory(source).cut(tmp_path / "a", offsets=(12, None))
    assert said(table, "lost") == []
    table = LogDirectory(source).cut(tmp_path / "b", offsets=(0, 12))
    (lost,) = said(table, "lost")
    assert (lost["first_offset"], lost["last_offset"]) == (3, 5)


@pytest.mark.parametrize("change", ["cut off", "remove"])
def test_an_output_that_was_changed_since_is_not_complete(
    change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["cut", str(SMALL), "--out", str(tmp_path / "out"), "--offsets", "0:60"]
    assert main(command) == 0 == main(command)
    path = max((tmp_path / "out").rglob("*.log"))
    if change == "remove":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])
    assert main(command) == 2
    assert "its files were changed after they were written" in capsys.readouterr().err
    shutil.rmtree(path.parent)
    assert main(command) == 0 and path.exists()


def test_nothing_is_in_the_range(tmp_path: Path) -> None:
    table = LogDirectory(SMALL).cut(tmp_path, offsets=(1000, 2000))
    assert files(tmp_path, ".log") == {}
    assert said(table, "lost") == []


def test_what_is_no_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cut", str(SMALL), "--out", str(tmp_path)]) == 2
    assert "--offsets" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["cut", str(SMALL), "--out", str(tmp_path), "--offsets", "5"])
    with pytest.raises(ValueError):
        LogDirectory(SMALL).cut(tmp_path, offsets=(5, 4))
