"""Sequence numbers of producers: what is missing of them, and what comes again, where no offset is missing."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kafka_log import LogDirectory
from kafka_log.inspect.producers.table import SEQUENCES, sequence_distance
from tests.paths import SAMPLES
from tests.shares import draw_seeds
from tests.support.check_plants import pieces, renumbered
from tests.support.made_topics import entry

SAMPLE = SAMPLES / "kafka-4.x" / "idempotent-0" / f"{0:020d}.log"
DAY = 24 * 60 * 60 * 1000

Sent = tuple[int, int, int, int]
"""Producer, epoch, first sequence number, how many records."""


def write(path: Path, batches: Sequence[Sent], times: Sequence[int] = (), start: int = 0) -> None:
    """A segment of batches that follow on each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    offset, data = start, b""
    for i, (producer, epoch, sequence, count) in enumerate(batches):
        record = {"timestamp_delta": 0, "key": None, "value": b"v", "headers": []}
        data += entry(
            offset,
            None,
            None,
            times[i] if times else 1000 + i,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            last_offset_delta=count - 1,
            records=[record | {"offset_delta": k} for k in range(count)],
        )
        offset += count
    path.write_bytes(data)


def told(path: Path, **options: Any) -> list[tuple[str, str, int, int, int]]:
    """Severity, code, the first offset, the last one, how many sequence numbers are missing.

    None of the records at the offsets is lost.
    """
    rows = [
        row
        for row in LogDirectory(path).check(**options).to_pylist()
        if row["code"].startswith("sequences_")
    ]
    assert {row["records"] for row in rows} <= {None}
    return [
        (r["severity"], r["code"], r["first_offset"], r["last_offset"], _missing(r["meaning"]))
        for r in rows
    ]


def _missing(meaning: str) -> int:
    """The number of missing records, which the missing numbers fit."""
    said = re.search(r"(\d+) records? with the sequence numbers? (\d+)(?: to (\d+))?", meaning)
    if said is None:
        return 0
    first, last = int(said[2]), int(said[3] or said[2])
    assert int(said[1]) == (last - first) % SEQUENCES + 1
    return int(said[1])


LOG = f"orders-0/{0:020d}.log"


def test_what_follows_is_good(tmp_path: Path) -> None:
    """Producers beside each other, epochs that begin anew, the last number before the first one, no numbers at all."""
    last = SEQUENCES - 1
    write(
        tmp_path / LOG,
        [
            *((1, 0, 0, 3), (2, 0, 7, 2), (1, 0, 3, 1), (2, 0, 9, 1), (1, 1, 0, 2), (2, 1, 5, 2)),
            *((1, 1, 2, 2), (3, 0, last - 1, 1), (3, 0, last, 3), (3, 0, 2, 1), (-1, -1, -1, 2)),
        ],
    )
    write(tmp_path / f"orders-0/{20:020d}.log", [(1, 1, 4, 1), (3, 0, 3, 1)], start=20)
    assert told(tmp_path) == []


@pytest.mark.parametrize("between", [[], [(2, 0, 0, 4)], [(2, 0, 0, 1), (1, 1, 0, 1)]])
def test_numbers_that_are_missing(tmp_path: Path, between: list[Sent]) -> None:
    write(tmp_path / LOG, [(1, 0, 0, 3), *between, (1, 0, 10, 2), (1, 0, 12, 1)])
    at = 3 + sum(count for *_, count in between)
    assert told(tmp_path) == [("warning", "sequences_missing", at, at + 1, 7)]
    (row,) = [r for r in LogDirectory(tmp_path).check().to_pylist() if r["severity"] == "warning"]
    found = pieces(tmp_path / LOG)
    assert row["byte"] == sum(map(len, found[: len(between) + 1]))
    assert "begins with sequence number 10 of producer 1, epoch 0" in row["meaning"]
    assert "7 records with the sequence numbers 3 to 9 are not in the log before" in row["meaning"]
    assert "copy the whole partition" in row["remedy"]
    assert "kafka-log producers" in row["remedy"]


def test_numbers_that_are_missing_between_segments(tmp_path: Path) -> None:
    write(tmp_path / LOG, [(1, 0, 0, 3), (2, 0, 0, 1)])
    write(tmp_path / f"orders-0/{4:020d}.log", [(1, 0, 4, 2)], start=4)
    assert told(tmp_path) == [("warning", "sequences_missing", 4, 5, 1)]
    assert told(tmp_path / f"orders-0/{4:020d}.log") == []


@pytest.mark.parametrize("base", [5, 6])
def test_where_offsets_are_missing_too_these_are_told(tmp_path: Path, base: int) -> None:
    """Compaction and damage take both."""
    write(tmp_path / LOG, [(1, 0, 0, 3)])
    write(tmp_path / f"orders-0/{base:020d}.log", [(1, 0, 9, 2)], start=base)
    assert told(tmp_path) == []


def test_numbers_that_come_again(tmp_path: Path) -> None:
    write(tmp_path / LOG, [(1, 0, 0, 3), (1, 0, 3, 2), (1, 0, 3, 2), (1, 0, 4, 2), (1, 0, 6, 1)])
    assert told(tmp_path) == [
        ("warning", "sequences_twice", 5, 6, 0),
        ("warning", "sequences_twice", 7, 8, 0),
    ]


@pytest.mark.parametrize(("pause", "expected"), [(DAY - 1, "warning"), (DAY, "note")])
@pytest.mark.parametrize("sequence", [0, 9])
def test_a_producer_that_the_broker_may_have_forgotten(
    tmp_path: Path, pause: int, expected: str, sequence: int
) -> None:
    write(tmp_path / LOG, [(1, 0, 0, 3), (1, 0, sequence, 2)], [1000, 1000 + pause])
    assert [severity for severity, *_ in told(tmp_path)] == [expected]


def test_records_that_were_deleted_are_of_nobody(tmp_path: Path) -> None:
    """Brokers forget producers of which all records lie before the start of the log: these begin at 0 again."""
    write(tmp_path / LOG, [(1, 0, 0, 3), (1, 0, 0, 3), (1, 0, 3, 1)])
    assert len(told(tmp_path)) == 1
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    assert told(tmp_path) == []


def test_one_producer_of_many(tmp_path: Path) -> None:
    write(tmp_path / LOG, [(1, 0, 0, 1), (2, 0, 0, 1), (1, 0, 5, 1), (2, 0, 7, 1)])
    assert len(told(tmp_path)) == 2
    assert told(tmp_path, producers=[2]) == [("warning", "sequences_missing", 3, 3, 6)]


def test_at_most_a_hundred_are_named(tmp_path: Path) -> None:
    write(tmp_path / LOG, [(1, 0, 2 * i, 1) for i in range(150)])
    assert len(told(tmp_path)) == 100


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ([0, 1, 3, 4, 5, 6, 7], [("warning", "sequences_missing", 7, 9, 3)]),
        ([0, 1, 2, 3, 3, 4, 5, 6, 7], [("warning", "sequences_twice", 10, 11, 0)]),
    ],
)
def test_a_real_log_with_other_offsets(
    tmp_path: Path, order: list[int], expected: list[Any]
) -> None:
    """A batch is taken out, or is there twice, and the offsets follow on each other."""
    path = tmp_path / "idempotent-0" / SAMPLE.name
    path.parent.mkdir()
    shutil.copy(SAMPLE, path)
    renumbered(path, order)
    assert told(tmp_path) == expected


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "orders"])
def test_topics_that_coordinators_write_have_no_sequences(tmp_path: Path, topic: str) -> None:
    """The coordinator writes base sequence 0 into each batch of a transaction, and the broker does not check it."""
    directory = tmp_path / f"{topic}-0"
    write(directory / f"{0:020d}.log", [(1, 0, 0, 1), (1, 0, 0, 2), (1, 1, 0, 1), (1, 1, 0, 1)])
    has_sequences = topic == "orders"
    assert [code for _, code, *_ in told(tmp_path)] == ["sequences_twice"] * 2 * has_sequences
    rows = LogDirectory(tmp_path).producers().to_pylist()
    assert [(row["duplicates"], row["gaps"]) for row in rows] == [(int(has_sequences), 0)] * 2
    assert [row["batches"] for row in rows] == [2, 2]
    assert [(row["first_sequence"], row["last_sequence"]) for row in rows] == (
        [(0, 1), (0, 0)] if has_sequences else [(None, None)] * 2
    )


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "python"])
@pytest.mark.parametrize("seed", draw_seeds(20))
def test_against_one_batch_after_the_other(tmp_path: Path, seed: int, engine: str) -> None:
    rng = random.Random(seed)
    sent: list[Sent] = []
    following: dict[tuple[int, int], int] = {}
    for _ in range(200):
        key = rng.randrange(5), rng.randrange(2)
        sequence = following.get(key, SEQUENCES - 5)
        if rng.random() < 0.1:
            sequence = (sequence + rng.randrange(-4, 5)) % SEQUENCES
        count = rng.randrange(1, 4)
        following[key] = (sequence + count) % SEQUENCES
        sent.append((*key, sequence, count))
    cut = rng.randrange(1, 200)
    write(tmp_path / LOG, sent[:cut])
    start = sum(count for *_, count in sent[:cut])
    write(tmp_path / f"orders-0/{start:020d}.log", sent[cut:], start=start)
    assert sorted(told(tmp_path, engine=engine), key=lambda row: row[2]) == list(expected_of(sent))


def expected_of(sent: Sequence[Sent]) -> Any:
    """By the rule, one batch after the other."""
    last: dict[tuple[int, int], int] = {}
    offset = 0
    for producer, epoch, first, count in sent:
        key = producer, epoch
        end = (first + count - 1) % SEQUENCES
        where = offset, offset + count - 1
        offset += count
        if key in last:
            ahead = sequence_distance(last[key], first)
            if ahead > 1:
                yield "warning", "sequences_missing", *where, ahead - 1
            elif ahead < 1:
                yield "warning", "sequences_twice", *where, 0
            if sequence_distance(last[key], end) < 0:
                continue
        last[key] = end
