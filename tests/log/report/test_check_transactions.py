"""Transaction indexes, held against histories that are known."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory
from tests.support.histories import History, history

SEEDS = range(60)


def of_index(made: History) -> list[dict[str, Any]]:
    rows = LogDirectory(made.directory).check().to_pylist()
    return [row for row in rows if row["code"].startswith("txnindex")]


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
