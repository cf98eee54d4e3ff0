"""Findings chosen by offsets, times and producers, beside the records that they mean, read one by one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_codecs import RECORD_BATCH
from kafka_log import LogDirectory, read_table
from kafka_log.cli import main
from tests.paths import SAMPLES
from tests.support.lying_headers import START, with_header

NAMES = ("segments.small-0", "segments.small-1", "transactions-1")


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Positions in indexes that are none, entries of aborted transactions that are gone, one batch whose bytes are not its own, and a
    file that nobody knows."""
    for name in NAMES:
        shutil.copytree(SAMPLES / "kafka-4.x" / name, tmp_path / name)
        for path in (tmp_path / name).iterdir():
            data = bytearray(path.read_bytes())
            if path.suffix == ".index" and data:
                data[7] ^= 1
            elif path.suffix == ".txnindex":
                del data[:34]
            elif path.name == "00000000000000000042.log":
                data[500] ^= 1
            path.write_bytes(data)
    (tmp_path / NAMES[0] / "notes.txt").touch()
    return tmp_path


def records(path: Path) -> dict[tuple[str, int], list[tuple[int, int, int]]]:
    """Offsets, times and producers of all good records."""
    names = ["topic", "partition", "offset", "timestamp", "producer_id"]
    table = read_table(path, names, policy="salvage", on_damage="drop", control_records=True)
    table = table.set_column(3, "timestamp", table["timestamp"].cast(pa.int64()))
    found: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
    for topic, partition, *rest in zip(*(table[name].to_pylist() for name in names), strict=True):
        found.setdefault((topic, partition), []).append(tuple(rest))
    return found


def concerned(row: dict[str, Any], there: Any) -> list[tuple[int, int, int]]:
    """The records with the offsets of a finding. Where it says no last one it is that of the segment."""
    first, last = row["first_offset"], row["last_offset"]
    path = Path(row["file"])
    if first is None or path.suffix == "":
        return []
    if last is None:
        bases = sorted(int(other.stem) for other in path.parent.glob("*.log"))
        last = min((base - 1 for base in bases if base > int(path.stem)), default=None)
    owner = re.search(r"transaction of producer (\d+)", row["meaning"])
    return [
        one
        for one in there[row["topic"], row["partition"]]
        if first <= one[0]
        and (last is None or one[0] <= last)
        and (owner is None or one[2] == int(owner[1]))
    ]


@pytest.mark.slow
def test_times_choose_findings(damaged: Path) -> None:
    """What concerns records of that time stays, what concerns records of another time alone goes, and the rest nobody knows."""
    every = LogDirectory(damaged).check().to_pylist()
    there = records(damaged)
    times = sorted({time for rows in there.values() for _, time, _ in rows})
    assert len(every) > 8
    kept_some = dropped_some = 0
    for low, high in zip(times[:: len(times) // 9], times[3 :: len(times) // 9], strict=False):
        found = LogDirectory(damaged).check(timestamps=(low, high)).to_pylist()
        assert all(row in every for row in found)
        for row in every:
            mine = concerned(row, there)
            if not mine or any(low <= time < high for _, time, _ in mine):
                assert row in found, (row, low, high)
            elif max(t for _, t, _ in mine) < low or min(t for _, t, _ in mine) >= high:
                dropped_some += row not in found
            kept_some += row in found
    assert kept_some and dropped_some


def test_producers_choose_findings(damaged: Path) -> None:
    every = LogDirectory(damaged).check().to_pylist()
    there = records(damaged)
    producers = {producer for rows in there.values() for *_, producer in rows}
    assert len(producers) > 3
    for producer in [*producers, 987654]:
        found = LogDirectory(damaged).check(producers=producer).to_pylist()
        for row in every:
            mine = concerned(row, there)
            if row["code"] == "txnindex_missing_entry":
                assert (row in found) == (f" producer {producer} " in row["meaning"])
            elif not any(p == producer for *_, p in mine):
                # Batches are meant whole: one of them may begin before the first of these records.
                assert row not in found or not mine or row["last_offset"] is None, row
            else:
                assert row in found
    gone = [row for row in every if row["code"] == "batch_checksum"]
    assert gone and all(row in found for row in gone)  # nobody knows whose they are


@pytest.mark.parametrize(
    ("fields", "filters"),
    [
        ({"max_timestamp": -1}, {"timestamps": (START + 3000, None)}),
        ({"max_timestamp": START - 1}, {"timestamps": (START + 3000, START + 3001)}),
        ({"last_offset_delta": 0}, {"offsets": (5, None)}),
        ({"last_offset_delta": 0}, {"offsets": (6, 7)}),
    ],
)
def test_a_header_that_contradicts_itself_hides_no_finding(
    tmp_path: Path, fields: dict[str, int], filters: Any
) -> None:
    """The finding of a batch with rows of the ranges, of which the header knows nothing."""
    records = [{"timestamp_delta": 1000 * i, "offset_delta": i} for i in range(4)]
    head = {"base_timestamp": START, "max_timestamp": START + 3000, "last_offset_delta": 3}
    whole = [
        RECORD_BATCH.build({"base_offset": 4 * i, "records": records, **head}) for i in range(3)
    ]
    whole[1] = with_header(whole[1], **fields)
    path = tmp_path / "t-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(b"".join(whole))
    log = LogDirectory(tmp_path)
    outside: list[Any] = [{"offsets": (None, 4)}, {"producers": 5}]
    every, found, *others = (
        [
            row["byte"]
            for row in log.check(deep=True, on_checked=lambda _: None, **chosen).to_pylist()
            if row["code"] == "batch_rules"
        ]
        for chosen in ({}, filters, *outside)
    )
    assert every == found == [len(whole[0])]
    assert others == [[], []]


@pytest.mark.parametrize(
    ("fields", "filters"),
    [
        ({"last_offset_delta": 0}, {"offsets": (3, None)}),
        ({"max_timestamp": -1}, {"timestamps": (START + 3000, None)}),
        ({"max_timestamp": -1}, {"timestamps": (None, START - 999)}),
    ],
)
def test_a_batch_whose_header_contradicts_itself_is_judged(
    tmp_path: Path, fields: dict[str, int], filters: Any
) -> None:
    """No record is read without `deep`, and the header rules nothing out."""
    times = (0, -1000, 2000, 3000)
    records = [{"timestamp_delta": time, "offset_delta": i} for i, time in enumerate(times)]
    head = {"base_timestamp": START, "max_timestamp": START + 3000, "last_offset_delta": 3}
    data = with_header(RECORD_BATCH.build({"base_offset": 0, "records": records, **head}), **fields)
    path = tmp_path / "t-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(data)
    counts: list[int] = []
    LogDirectory(tmp_path).check(on_checked=counts.append, **filters)
    assert sum(counts) == 1


def test_all_of_them_choose(damaged: Path) -> None:
    log = LogDirectory(damaged)
    wide = log.check(offsets=(None, None), timestamps=(0, None)).to_pylist()
    assert wide == log.check().to_pylist()
    narrow = log.check(offsets=(42, 60), producers=[-1]).to_pylist()
    assert all(row["first_offset"] is None or row["first_offset"] < 60 for row in narrow)
    with pytest.raises(ValueError, match="timestamps is"):
        log.check(timestamps=(3, 1))


def test_on_the_command_line(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    partition = damaged / "transactions-1"
    name = "00000000000000000000.index"  # its findings are about no batch
    shutil.copy(SAMPLES / "kafka-4.x" / partition.name / name, partition / name)
    assert main(["check", str(partition)]) == 1
    assert main(["check", str(partition), "--producer", "987654", "--time", ":2030-01-01"]) == 0
    out = capsys.readouterr().out
    assert out.count("error: txnindex_missing_entry") == 1
    assert main(["check", str(partition), "--time", "2031-01-01:"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [(-90, None), (-90, -40), (None, -60), (-9999, 45)])
def test_negative_offsets_count_from_the_end(
    damaged: Path, bounds: tuple[int | None, int | None]
) -> None:
    """Of each partition: findings are those of the absolute offsets."""
    for name in NAMES:
        log = LogDirectory(damaged / name)
        end = max(offset for offset, *_ in next(iter(records(damaged / name).values()))) + 1
        absolute = range(end)[slice(*bounds)]
        wanted = log.check(offsets=(absolute.start, absolute.stop)).to_pylist()
        assert log.check(offsets=bounds).to_pylist() == wanted, name
