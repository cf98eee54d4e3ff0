"""Wherever a log lies, the rows on both sides of a cut are all rows, each once: on a disk, in a store, in a tier, in deleted segments."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_codecs import LOG_ENTRY
from kafka_log import LogDirectory, read_table, scan_batches
from tests.shares import examples
from tests.support.mixed_logs import START, mixed_log

pytest.importorskip("fsspec")

from tests.support.stores import counted, put

COLUMNS = ("topic", "partition", "state", "segment", "offset", "timestamp")
ID = "WTscIl6vTOe-sFdJ50q{}_w"
TIER = "kafka-tiered-storage"
Row = tuple[Any, ...]
Where = Literal["disk", "store", "tier", "tier in a store", "deleted", "copied"]
PLACES: tuple[Where, ...] = ("disk", "store", "tier", "tier in a store", "deleted", "copied")
Indexes = Literal["none", "whole", "garbled"]


def made(root: Path, r: random.Random, where: Where, indexes: Indexes) -> None:
    """Two partitions of all formats, some of their segments elsewhere or deleted."""
    for number in range(2):
        mixed_log(root / f"t-{number}", r.randrange(1 << 20), entries=5)
    if indexes != "none":
        _write_indexes(root, r, indexes == "garbled")
    for number in range(2):
        for path in sorted((root / f"t-{number}").glob("*.log"))[: r.randrange(3)]:
            _move(root, path, where, r)


def _write_indexes(root: Path, r: random.Random, garbled: bool) -> None:
    out = root.parent / "indexes"
    LogDirectory(root).reindex(out, interval_bytes=r.choice((0, 60, 200)))
    for path in sorted(out.rglob("*index")):
        data = bytearray(path.read_bytes())
        for _ in range(r.randrange(1, 4) if garbled and data else 0):
            data[r.randrange(len(data))] ^= 1 << r.randrange(8)
        (root / path.relative_to(out)).write_bytes(data)


def _move(root: Path, path: Path, where: Where, r: random.Random) -> None:
    """Do with a segment what a place asks for. A copy in a tier may also lie on the disk, as all of a broker's do for a while."""
    if where in ("tier", "tier in a store"):
        target = root / TIER / f"{path.parent.name}-{ID.format(9)}" / f"{path.stem}-{ID.format(0)}"
        target.parent.mkdir(parents=True, exist_ok=True)
        for end in (".log", ".index", ".timeindex"):
            if path.with_suffix(end).exists():
                shutil.copy(path.with_suffix(end), target.with_name(target.name + end))
        if r.random() < 0.5:
            path.unlink()
    elif where == "deleted":
        path.rename(path.with_name(f"{path.name}.deleted"))
    elif where == "copied":
        shutil.copy(path, path.with_name(f"{path.name}.deleted"))


def rows_of(path: str | Path, **options: Any) -> list[Row]:
    """The rows in the order in which they come."""
    table = read_table(path, COLUMNS, control_records=True, include="all", **options)
    return [tuple(row.values()) for row in table.to_pylist()]


def check_halves(
    seed: int, where: Where, indexes: Indexes, engine: str, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder, counted():
        root = Path(folder) / "logs"
        made(root, random.Random(seed), where, indexes)
        path = put(root, "counted://logs") if where.endswith("store") else root
        every = rows_of(path, engine=engine)
        assert {row[1] for row in every} == {0, 1}
        cut = data.draw(st.sampled_from(sorted({row[4] for row in every})))
        time = data.draw(st.integers(START - 1, START + 101))
        for name, value in (("offsets", cut), ("timestamps", time)):
            halves: list[Any] = [(None, value), (value, None)]
            below, above = (rows_of(path, engine=engine, **{name: half}) for half in halves)
            assert below == [row for row in every if _is_below(row, name, value)], name
            assert above == [row for row in every if not _is_below(row, name, value)], name
        both = [rows_of(path, engine=engine, partitions=number) for number in range(2)]
        assert both[0] + both[1] == every
        assert sorted(_batches(path, cut)) == sorted({*_batches(path, None)})


def _is_below(row: Row, name: str, value: int) -> bool:
    if name == "offsets":
        return bool(row[4] < value)
    return row[5] is None or row[5].timestamp() * 1000 < value - 0.5


def _batches(path: str | Path, cut: int | None) -> set[Row]:
    """The places of all batches, or of those on either side of a cut."""
    halves: list[Any] = [(None, None)] if cut is None else [(None, cut), (cut, None)]
    columns = [*COLUMNS[:4], "position"]
    tables = [
        scan_batches(path, columns, include="all", offsets=half).read_all() for half in halves
    ]
    return {tuple(row.values()) for table in tables for row in table.to_pylist()}


SEEDS = st.integers(0, 1 << 20)
ENGINES = st.sampled_from(["construct", "arrow"])
INDEXES: st.SearchStrategy[Indexes] = st.sampled_from(["none", "whole", "garbled"])


@settings(max_examples=2)
@given(SEEDS, st.sampled_from(PLACES), INDEXES, ENGINES, st.data())
def test_two_halves_are_all_rows(
    seed: int, where: Where, indexes: Indexes, engine: str, data: st.DataObject
) -> None:
    check_halves(seed, where, indexes, engine, data)


@pytest.mark.slow
@pytest.mark.share(ci=3)
@pytest.mark.parametrize("where", PLACES)
@examples(15)
@given(SEEDS, INDEXES, ENGINES, st.data())
def test_two_halves_are_all_rows_at_length(
    where: Where, seed: int, indexes: Indexes, engine: str, data: st.DataObject
) -> None:
    check_halves(seed, where, indexes, engine, data)


@pytest.mark.parametrize("path", ["counted://logs", None])
def test_a_wrapper_that_the_range_cuts_is_read(tmp_path: Path, path: str | None) -> None:
    """The headers say of the next message that it lies after the range, before the reference codecs have read the wrapper."""
    root = tmp_path / "logs"
    (root / "t-0").mkdir(parents=True)

    def message(offset: int) -> dict[str, Any]:
        plain = {"attributes": {"compression": "none"}, "key": None, "value": b"v"}
        return {"offset": offset, "magic": 1, "timestamp": START, **plain}

    wrapper = {**message(3), "attributes": {"compression": "snappy"}}
    wrapper = {k: v for k, v in wrapper.items() if k != "value"}
    wrapper["messages"] = [message(i) for i in range(3)]
    data = b"".join(map(LOG_ENTRY.build, (message(0), wrapper, message(4))))
    (root / "t-0" / f"{0:020}.log").write_bytes(data)
    with counted():
        place = root if path is None else put(root, path)
        for engine in ("arrow", "construct"):
            for end, offsets in ((2, [0, 1]), (3, [0, 1, 2]), (4, [0, 1, 2, 3])):
                table = read_table(place, ["offset"], engine=engine, offsets=(None, end))
                assert table["offset"].to_pylist() == offsets, (engine, end)
