"""Transaction indexes, held against histories that are known."""

from __future__ import annotations

import random
import shutil
import struct
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory
from tests.paths import SAMPLES
from tests.shares import draw_seeds
from tests.support.check_plants import TX, remove_segment
from tests.support.histories import History, history

SEEDS = draw_seeds(60)


def of_index(made: History) -> list[dict[str, Any]]:
    for path in made.directory.rglob("*.log"):
        path.with_suffix(".index").touch()  # without it a broker builds both
    rows = LogDirectory(made.directory).check().to_pylist()
    return [row for row in rows if row["code"].startswith("txnindex")]


@pytest.mark.parametrize("suffixes", [(), (".txnindex",), (".timeindex", ".txnindex")])
def test_a_segment_without_offset_index(tmp_path: Path, suffixes: tuple[str, ...]) -> None:
    """A broker that finds no .index builds all three, whatever the other two have."""
    directory = tmp_path / "transactions-0"
    directory.mkdir()
    for path in (SAMPLES / "kafka-4.x" / "transactions-0").iterdir():
        if path.suffix in (".log", *suffixes):
            shutil.copy(path, directory / path.name)
        if path.suffix == ".txnindex" and suffixes:
            (directory / path.name).write_bytes(path.read_bytes()[34:] + b"\1\2")
    rows = LogDirectory(tmp_path).check().to_pylist()
    assert {row["severity"] for row in rows} == {"note"}
    assert {row["code"] for row in rows} <= {"index_missing", "timeindex_missing"}
    for path in directory.glob("*.log"):
        path.with_suffix(".index").touch()
    assert "error" in {row["severity"] for row in LogDirectory(tmp_path).check().to_pylist()}


@pytest.mark.slow
def test_without_indexes_every_aborted_transaction_is_missing(tmp_path: Path) -> None:
    found = 0
    for seed in SEEDS:
        made = history(tmp_path / f"t-{seed}", seed)
        rows = of_index(made)
        assert {row["code"] for row in rows} <= {"txnindex_missing_entry"}
        ranges = [(row["first_offset"], row["last_offset"]) for row in rows]
        for first, last in ranges:
            assert first in made.aborted and last in made.markers
        for offset in made.aborted:
            if offset >= made.log_start:
                assert any(first <= offset < last for first, last in ranges)
        found += len(rows)
    assert found > 50


@pytest.mark.share(ci=2)
@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["nothing", "producer", "first", "last"])
def test_entries_that_were_made_from_the_findings(tmp_path: Path, wrong: str) -> None:
    """With an entry for each of them nothing is wrong; with another number in one the entry is, at its byte."""
    planted = 0
    for seed in SEEDS:
        made = history(tmp_path / f"t-{seed}", seed)
        entries: dict[str, list[list[int]]] = {}
        for row in of_index(made):
            producer = int(row["meaning"].partition("of producer ")[2].split()[0])
            entry = [producer, row["first_offset"], row["last_offset"], row["last_offset"] + 1]
            entries.setdefault(row["file"], []).append(entry)
        if not entries:
            continue
        last = entries[max(entries)]
        position = 34 * (len(last) - 1)
        if wrong == "producer":
            last[-1][0] += 100
        elif wrong == "first":
            last[-1][1] = last[-1][2]
        elif wrong == "last":
            last[-1][2] -= 1
        for file, found in entries.items():
            Path(file).write_bytes(b"".join(struct.pack(">hqqqq", 0, *entry) for entry in found))
        rows = {(row["code"], row["byte"]) for row in of_index(made)}
        if wrong == "nothing":
            assert rows == set()
        else:
            assert ("txnindex_entry", position) in rows
            planted += 1
    assert planted > 20 or wrong == "nothing"


ENTRY = struct.Struct(">hqqqq")


def entries_of(path: Path) -> list[tuple[int, ...]]:
    return list(ENTRY.iter_unpack(path.read_bytes()))


def hidden(made: History, producer: int, first: int, last: int) -> set[int]:
    """The committed records that a consumer passes over for an entry."""
    return {
        offset
        for one in made.batches
        if (one.kind, one.producer) == ("data", producer)
        for offset in range(one.offset, one.offset + one.count)
        if first <= offset < last and offset not in made.aborted and offset >= made.log_start
    }


def compact(made: History, rng: random.Random) -> set[int]:
    """Remove batches as a cleaner does: no marker goes before the records that it ends. Returns the offsets of records that are left."""
    left: set[int] = set()
    kept: dict[int, list[bytes]] = {}
    has_data: set[int] = set()
    active = made.batches[-1].base
    for one in made.batches:
        is_marker = one.kind in ("commit", "abort")
        is_cleaned = one.base < active and rng.random() < 0.5
        if is_cleaned and not (is_marker and one.producer in has_data):
            continue
        if is_marker:
            has_data.discard(one.producer)
        else:
            left |= set(range(one.offset, one.offset + one.count))
            has_data |= {one.producer} if one.kind == "data" else set()
        kept.setdefault(one.base, []).append(one.data)
    for path in made.directory.glob("*.log"):
        path.write_bytes(b"".join(kept.get(int(path.stem), [])))
    topic, _, number = made.directory.name.rpartition("-")
    checkpoint = made.directory.parent / "cleaner-offset-checkpoint"
    checkpoint.write_text(f"0\n1\n{topic} {number} {1 << 40}\n")
    return left


@pytest.mark.slow
@pytest.mark.share(ci=2)
@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize(
    "seeds",
    [
        draw_seeds(10),
        pytest.param(draw_seeds(70, first=10), marks=pytest.mark.slow),
        pytest.param(draw_seeds(220, first=80), marks=pytest.mark.soak),
    ],
    ids=str,
)
def test_an_entry_that_begins_too_early_is_found(
    tmp_path: Path, seeds: range, *, is_compacted: bool
) -> None:
    """After compaction if it hides records that are committed, and before it at every offset that is there."""
    found, wanted = 0, len(seeds) // 9
    more = range(
        seeds.stop + 1000, seeds.stop + 1000 + 9 * len(seeds)
    )  # few histories may have none
    for seed in chain(seeds, more):
        if found > wanted and seed in more:
            break
        rng = random.Random(seed)
        made = history(tmp_path / str(seed) / "t-0", seed, indexes=True)
        left = compact(made, rng) if is_compacted else set(made.records)
        offsets = made.records | made.markers
        assert of_index(made) == []
        for path in sorted(made.directory.glob("*.txnindex")):
            whole = path.read_bytes()
            for i, (version, producer, first, last, stable) in enumerate(entries_of(path)):
                early = rng.choice([0, rng.randrange(first + 1)])
                entry = ENTRY.pack(version, producer, early, last, stable)
                path.write_bytes(whole[: i * len(entry)] + entry + whole[(i + 1) * len(entry) :])
                rows = {(row["code"], row["file"], row["byte"]) for row in of_index(made)}
                hides = bool(hidden(made, producer, early, last) & left)
                is_there = early in offsets and early >= made.log_start
                if hides or (is_there and early < first and not is_compacted):
                    assert rows == {("txnindex_entry", str(path), i * len(entry))}
                    found += 1
            path.write_bytes(whole)
    assert found > wanted


@pytest.mark.parametrize(("first", "has_snapshot"), [(36, True), (30, True), (30, False)])
def test_a_beginning_that_a_producer_snapshot_contradicts(
    tmp_path: Path, first: int, *, has_snapshot: bool
) -> None:
    """The records that would tell are deleted. Where the log begins, the transaction had been open from offset 36 on."""
    directory = tmp_path / TX
    shutil.copytree(SAMPLES / "kafka-4.x" / TX, directory)
    remove_segment(directory, 0)
    path = directory / f"{44:020d}.txnindex"
    path.write_bytes(ENTRY.pack(0, 4, first, 44, 45) + path.read_bytes()[ENTRY.size :])
    if not has_snapshot:
        path.with_suffix(".snapshot").unlink()
    rows = LogDirectory(directory).check().to_pylist()
    found = [(r["code"], r["byte"], r["first_offset"]) for r in rows if r["severity"] != "note"]
    assert found == [("txnindex_entry", 0, 30)] * (first == 30 and has_snapshot)
