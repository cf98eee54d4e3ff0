"""The table of transactions: held against histories that are known, what brokers noted of aborted ones, and a naive reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_codecs import TRANSACTION_INDEX
from kafka_log import LogDirectory, Partition, SegmentReader, discover
from kafka_log.inspect.transactions.table import TRANSACTIONS, WANTED
from tests.paths import SAMPLES
from tests.shares import draw_seeds
from tests.support.histories import TIME, history

EXPECTED: dict[str, Any] = json.loads((SAMPLES / "expected.json").read_text())
NOW = TIME + 1000


def rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    table = LogDirectory(path).txn(**options)
    assert table.schema == TRANSACTIONS
    table.validate(full=True)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def of_state(found: list[dict[str, Any]], state: str) -> list[dict[str, Any]]:
    return [row for row in found if row["state"] == state]


# ---------------------------------------------------------------- histories


def test_histories(tmp_path: Path) -> None:
    """What is on the disk follows from what was written, not from a reader."""
    seen = 0
    for seed in draw_seeds(60):
        made = history(tmp_path / f"t-{seed}", seed)
        found = rows(made.directory, now=NOW)
        there = [offset for offset in made.markers if offset >= made.log_start]
        ended = [row["last_offset"] for row in found if row["state"] != "open"]
        assert sorted(ended) == sorted(there), seed
        aborted = sum(row["records"] for row in of_state(found, "aborted"))
        assert aborted == sum(1 for offset in made.aborted if offset >= made.log_start), seed
        opened = of_state(found, "open")
        stable = min((row["first_offset"] for row in opened), default=None)
        assert stable == made.last_stable_offset, seed
        if stable is not None:
            end = max(
                (o for o in (*made.records, *made.markers) if o >= made.log_start), default=-1
            )
            hidden = max(end + 1 - max(stable, made.log_start), 0)
            assert {row["hides"] for row in opened} == {hidden}, seed
            seen += 1
    assert seen > 10


def test_histories_as_a_naive_reader_has_them(tmp_path: Path) -> None:
    for seed in draw_seeds(40):
        made = history(tmp_path / f"t-{seed}", seed)
        if made.log_start:
            continue  # what began before is in no batch
        for row, (producer, offsets, end) in zip(
            sorted(rows(made.directory, now=NOW), key=_by_end),
            naive(discover(made.directory)[0]),
            strict=True,
        ):
            assert row["producer_id"] == producer
            assert row["records"] == len(offsets)
            assert row["first_offset"] == min(offsets, default=None)
            state, marker = end
            assert row["state"] == state
            assert row["last_offset"] == (max(offsets) if marker is None else marker)
            assert row["duration_ms"] == (NOW - TIME if marker is None else 0)


def naive(partition: Partition) -> list[tuple[int, list[int], tuple[str, int | None]]]:
    """Producer, offsets of its records, how it ended and where: by all records, one after the other."""
    going: dict[int, list[int]] = {}
    out: list[tuple[int, list[int], tuple[str, int | None]]] = []
    for segment in partition.segments:
        for batch in SegmentReader(segment.path):
            for record in batch.records if batch.is_transactional else ():
                if record.control is None:
                    going.setdefault(batch.producer_id, []).append(record.offset)
                else:
                    state = {"COMMIT": "committed", "ABORT": "aborted"}[str(record.control.type)]
                    of = going.pop(batch.producer_id, [])
                    out.append((batch.producer_id, of, (state, record.offset)))
    left = [(producer, of, ("open", None)) for producer, of in going.items()]
    return out + sorted(left, key=lambda one: min(one[1]))


def _by_end(row: dict[str, Any]) -> tuple[bool, int]:
    is_open = row["state"] == "open"
    return is_open, row["first_offset"] if is_open else row["last_offset"]


# ---------------------------------------------------------------- brokers


@pytest.mark.parametrize(
    "directory",
    sorted({path.parent for path in SAMPLES.rglob("*.txnindex")}),
    ids=lambda p: f"{p.parent.name}-{p.name}",
)
def test_aborted_ones_are_those_of_the_brokers_index(directory: Path) -> None:
    noted = [
        (entry.producer_id, entry.first_offset, entry.last_offset)
        for path in sorted(directory.glob("*.txnindex"))
        for entry in TRANSACTION_INDEX.parse(path.read_bytes()).entries
    ]
    found = [
        (row["producer_id"], row["first_offset"], row["last_offset"])
        for row in of_state(rows(directory), "aborted")
        if row["first_offset"] is not None
    ]
    assert found == [entry for entry in noted if entry in found]
    if "compacted" not in directory.name:  # there the records of aborted ones are gone
        assert found == noted
        assert found


@pytest.mark.parametrize("folder", sorted(EXPECTED))
def test_what_is_hidden_is_what_consumers_do_not_get(folder: str) -> None:
    hidden = {
        f"{row['topic']}-{row['partition']}": row["hides"]
        for row in rows(SAMPLES / folder, states="open", now=0)
    }
    ends = {
        name: both["read_uncommitted"]["end_offset"] - both["read_committed"]["end_offset"]
        for name, both in EXPECTED[folder]["partitions"].items()
        if "read_committed" in both
    }
    assert hidden == {name: n for name, n in ends.items() if n}
    assert hidden


def test_names_and_states_of_coordinators() -> None:
    found = rows(SAMPLES / "kafka-4.x", states="open")
    assert [(r["transactional_id"], r["coordinator_state"]) for r in found] == [
        ("tx-hanging", "Ongoing")
    ]
    names = {row["transactional_id"] for row in rows(SAMPLES / "kafka-4.x")}
    assert {"tx-one", "tx-two", "tx-segments", "tx-compacted-again-0"} <= names
    alone = rows(SAMPLES / "kafka-4.x" / "transactions-0")
    assert {row["transactional_id"] for row in alone} == {None}


def test_coordinators_are_asked_whatever_topics_are_chosen() -> None:
    log = LogDirectory(SAMPLES / "kafka-4.x", topics="transactions", partitions=2)
    assert log.txn(states="open").column("transactional_id").to_pylist() == ["tx-hanging"]


def test_epochs_that_end_with_each_transaction() -> None:
    """Transactions v2: a marker has the epoch after that of its data, and ends it all the same."""
    found = rows(SAMPLES / "kafka-4.x" / "transactions-1")
    assert [(row["producer_epoch"], row["state"]) for row in found] == [
        (0, "committed"),
        (1, "aborted"),
        (2, "committed"),
        (3, "aborted"),
    ]


def test_open_ones_come_first_and_can_be_chosen() -> None:
    whole = rows(SAMPLES / "kafka-4.x")
    assert [row["state"] == "open" for row in whole[:2]] == [True, False]
    for state in ("open", "aborted", "committed"):
        assert rows(SAMPLES / "kafka-4.x", states=state, now=0) == [
            row | {"duration_ms": -row["first_timestamp"].timestamp() * 1000 if state == "open" else row["duration_ms"]}
            for row in of_state(whole, state)
        ]  # fmt: skip
    both = rows(SAMPLES / "kafka-4.x", states=["aborted", "committed"], producers=3)
    assert both == [row for row in whole if row["producer_id"] == 3]
    assert both
    with pytest.raises(ValueError, match="known: open, aborted, committed, hanging"):
        rows(SAMPLES / "kafka-4.x", states="Open")


def test_the_commands_words_are_those_of_the_table() -> None:
    from kafka_log.inspect.transactions.command import MINUTES, STATES
    from kafka_log.inspect.transactions.hanging import MAX_TIMEOUT_MS

    assert STATES == WANTED
    assert MINUTES * 60_000 == MAX_TIMEOUT_MS


@pytest.mark.parametrize("bounds", [(-3, None), (-9, -4), (-999, 3), (None, -1)])
def test_negative_offsets_count_from_the_end(
    tmp_path: Path, bounds: tuple[int | None, int | None]
) -> None:
    """Of each partition, as in slices of Python."""
    wanted: list[dict[str, Any]] = []
    for seed in range(4):
        made = history(tmp_path / "logs" / f"t-{seed}", seed)
        end = max(*made.records, *made.markers) + 1
        absolute = range(end)[slice(*bounds)]
        wanted += rows(made.directory, now=NOW, offsets=(absolute.start, absolute.stop))
    found = rows(tmp_path / "logs", now=NOW, offsets=bounds)
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))
    assert wanted
