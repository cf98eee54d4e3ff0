"""No row is lost because a batch header says something else than the records."""

from __future__ import annotations

import io
import json
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecgen.runtime.errors import CodecError
from kafka_codecs import RECORD_BATCH
from kafka_codecs.arrow import records_numpy
from kafka_log import LogDirectory, discover, read_table, scan_batches
from kafka_log.cli import main
from kafka_log.logs.replicas import read_end_offset
from kafka_log.read.batch_places import split_positions
from kafka_log.read.plan import Split
from kafka_log.read.selection import Selection
from kafka_log.segment import skipping
from kafka_log.segment.row_selection import RowSelection
from kafka_log.segment.scanner import Scanner
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.task_reader import read_split
from tests.shares import examples
from tests.support.header_files import VECTORS, batch_of, file_of
from tests.support.lying_headers import (
    START,
    Row,
    assert_halves,
    cuts,
    lying_segments,
    rows_and_lies,
)
from tests.support.scanned_rows import unpacked

COLUMNS = ("offset", "timestamp")
NAMES: tuple[Literal["offsets", "timestamps"], ...] = ("offsets", "timestamps")


def rows_of(batches: Any) -> list[Row]:
    return [(r["offset"], r["timestamp"]) for batch in batches for r in unpacked(batch)]


def scanned(path: Path, engine: str, **ranges: Any) -> list[Row]:
    """The rows of a file by an engine: the reference codecs, the kernels, or the NumPy readers."""
    name: Any = "construct" if engine == "construct" else "arrow"
    if engine != "numpy":
        return rows_of(read_table(path, COLUMNS, engine=name, **ranges).to_batches())
    selection = RowSelection(control_records=False, **ranges)
    scanner = Scanner(path, COLUMNS, selection=selection, engine=name)
    scanner.kernels = records_numpy
    return rows_of(scanner)


def check_halves(data: st.DataObject, worth: int) -> None:
    """By every engine the same, for every cut of offsets and of timestamps."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(skipping, "WORTH", worth)
        path = file_of(folder, data.draw(lying_segments(VECTORS)))
        rows, lies = rows_and_lies(path)
        if lies:
            assert_reported(path)
        for column, name in enumerate(NAMES):
            cut = data.draw(cuts(rows, column))
            for ranges in ({name: (None, cut)}, {name: (cut, None)}):
                found = [scanned(path, e, **ranges) for e in ("construct", "arrow", "numpy")]
                assert found[0] == found[1] == found[2], (name, cut)
            halves = [scanned(path, "arrow", **{name: r}) for r in ((None, cut), (cut, None))]
            assert_halves(halves, path, column, cut)


def assert_reported(path: Path) -> None:
    """Strict readers and a deep check report a header that agrees with itself, but not with its records."""
    with pytest.raises(CodecError):
        read_table(path, COLUMNS, policy="strict")
    severities = LogDirectory(path.parent).check(deep=True).column("severity").to_pylist()
    assert {"error", "warning"} & {*severities}


WORTHS = st.sampled_from((0, 200, 1 << 20))


@pytest.mark.slow
@settings(max_examples=5)
@given(data=st.data(), worth=WORTHS)
def test_two_halves_are_all_rows(data: st.DataObject, worth: int) -> None:
    check_halves(data, worth)


@pytest.mark.soak
@pytest.mark.slow
@examples(200)
@given(data=st.data(), worth=WORTHS)
def test_two_halves_are_all_rows_at_length(data: st.DataObject, worth: int) -> None:
    check_halves(data, worth)


def dumped(path: Path, *argv: str) -> list[int]:
    """The offsets that the command line prints."""
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(said):
        assert main(["dump", str(path), "--format", "jsonl", *argv]) == 0
    said.seek(0)
    return [json.loads(line)["offset"] for line in said]


def check_halves_of_dump(data: st.DataObject) -> None:
    """By both engines the same rows as by scan, and each batch in one half at least."""
    with tempfile.TemporaryDirectory() as folder:
        path = file_of(folder, data.draw(lying_segments(VECTORS)))
        rows, lies = rows_and_lies(path)
        cut = data.draw(cuts(rows, 0))
        for half in (f":{cut}", f"{cut}:"):
            ranges = (None, cut) if half.startswith(":") else (cut, None)
            wanted = [offset for offset, _ in scanned(path, "construct", offsets=ranges)]
            for engine in ("construct", "arrow"):
                assert dumped(path, "--engine", engine, "--offsets", half) == wanted
        if not lies:
            batches = [dumped_batches(path, half) for half in (f":{cut}", f"{cut}:")]
            assert set(batches[0]) | set(batches[1]) == set(dumped_batches(path, ":"))


@pytest.mark.slow
@settings(max_examples=3)
@given(data=st.data())
def test_two_halves_on_the_command_line(data: st.DataObject) -> None:
    check_halves_of_dump(data)


@pytest.mark.soak
@pytest.mark.slow
@examples(100)
@given(data=st.data())
def test_two_halves_on_the_command_line_at_length(data: st.DataObject) -> None:
    check_halves_of_dump(data)


def dumped_batches(path: Path, offsets: str) -> list[int]:
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(said):
        argv = ["--batches", "--columns", "position", "--format", "jsonl", "--offsets", offsets]
        assert main(["dump", str(path), *argv]) == 0
    said.seek(0)
    return [json.loads(line)["position"] for line in said]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["construct", "arrow", "numpy"])
@pytest.mark.parametrize(
    "field",
    [{"max_timestamp": -1}, {"max_timestamp": START - 1}, {"last_offset_delta": 0}],
    ids=lambda field: next(iter(field)),
)
def test_a_header_that_contradicts_itself_hides_nothing(
    field: dict[str, int], engine: str, tmp_path: Path
) -> None:
    """Max timestamps that some brokers leave unset, and last offset deltas that some clients left 0."""
    path = file_of(str(tmp_path), b"".join(batch_of(base, **field) for base in (0, 3, 6)))
    rows, lies = rows_and_lies(path)
    assert not lies and [offset for offset, _ in rows] == list(range(9))
    for column, name in enumerate(NAMES):
        for cut in sorted(
            {value + by for row in rows for value in row[column:][:1] for by in (0, 1)}
        ):
            halves = [scanned(path, engine, **{name: r}) for r in ((None, cut), (cut, None))]
            assert_halves(halves, path, column, cut)


@pytest.mark.parametrize("engine", ["construct", "arrow", "numpy"])
def test_a_header_that_contradicts_itself_does_not_end_a_range(engine: str, tmp_path: Path) -> None:
    """Its records may lie before its first offset."""
    records = [{"offset_delta": by, "key": None, "value": b""} for by in (2, 1, 1, 0, -5)]
    odd = {"base_offset": 3, "last_offset_delta": 2, "records": records}
    path = file_of(str(tmp_path), batch_of(0) + RECORD_BATCH.build(odd, strict=False))
    found = [offset for offset, _ in scanned(path, engine, offsets=(None, 2))]
    assert found == [0, 1, -2]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["construct", "arrow"])
def test_batches_that_overlap(engine: Any, tmp_path: Path) -> None:
    """A first offset is under no checksum: one that is too large does not hide the batches after it."""
    order = (0, 4096, 6, 9, 12, 3, 15)
    path = file_of(str(tmp_path), b"".join(map(batch_of, order)))
    for cut in range(20):
        halves = [
            [offset for offset, _ in scanned(path, engine, offsets=ranges)]
            for ranges in ((None, cut), (cut, None))
        ]
        every = [base + i for base in order for i in range(3)]
        assert halves == [[o for o in every if o < cut], [o for o in every if o >= cut]], cut
        batches = [
            set(
                scan_batches(path, ["position"], engine=engine, offsets=r).read_all()[0].to_pylist()
            )
            for r in ((None, cut), (cut, None))
        ]
        assert len(batches[0] | batches[1]) == len(order)


def test_a_batch_with_a_delete_horizon_is_in_one_half_at_least(tmp_path: Path) -> None:
    """Its base timestamp is the horizon, which may be later than all of its records."""
    head = {"base_offset": 0, "attributes": {"has_delete_horizon": True}}
    record = {
        "timestamp_delta": -5000,
        "offset_delta": 0,
        "key": b"k",
        "value": None,
        "headers": [],
    }
    times = {"base_timestamp": START + 5000, "max_timestamp": START}
    path = file_of(str(tmp_path), RECORD_BATCH.build({**head, **times, "records": [record]}))
    for cut in (START - 1, START, START + 1, START + 5000, START + 5001):
        found = [
            scan_batches(path, ["position"], timestamps=ranges).read_all().num_rows
            for ranges in ((None, cut), (cut, None))
        ]
        assert sum(found) == 1 or found == [1, 1]


@pytest.mark.parametrize("bases", [(0, 3, 6), (0, 1, 2), (0, 2, 5), (0, 1, 4, 7)])
def test_places_of_offsets_between_batches(tmp_path: Path, bases: tuple[int, ...]) -> None:
    """Where a stream stops reading, and goes on later: no row lies between, and none comes twice."""
    fields = ({"last_offset_delta": 0}, {}, {"last_offset_delta": 0}, {})
    data = [batch_of(base, **more) for base, more in zip(bases, fields, strict=False)]
    path = file_of(str(tmp_path), b"".join(data))
    every = [base + i for base in bases for i in range(3)]
    (partition,) = discover(path.parent)
    (segment,) = partition.segments
    scan = Scan(columns=("offset",))
    assert read_end_offset(partition.segments) == bases[-1] + 3
    for policy in ("kafka", "salvage"):
        wanted = Selection(policy=policy)
        for cut in range(bases[-1] + 4):
            start, stop = split_positions(segment, cut, wanted)
            halves = (
                Split(segment, 0, stop, RowSelection(offsets=(None, cut))),
                Split(segment, start, segment.size, RowSelection(offsets=(cut, None))),
            )
            found = [
                [o for b in read_split(part, scan) for o in b[0].to_pylist()] for part in halves
            ]
            assert found == [[o for o in every if o < cut], [o for o in every if o >= cut]], cut
