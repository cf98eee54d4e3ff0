"""Which open transactions hang: held against the rule of ``kafka-transactions.sh find-hanging``, written down anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import TransactionStatus
from kafka_log import LogDirectory
from kafka_log.inspect.transactions.coordinator_states import (
    Coordinators,
    IdState,
    is_whole,
    transaction_state_partition,
)
from kafka_log.inspect.transactions.hanging import LOST_MARKER, Clock, judge_transaction
from kafka_log.logs.names import CLEAN_SHUTDOWN
from kafka_log.logs.transactions import ObservedTransaction, TransactionState
from tests.shares import examples
from tests.support.coordinator_logs import TIME, data_of, log, marker_of, state_of, states
from tests.support.tiers import IDS, TIER

MINUTE = 60_000
LATER = TIME + 60 * MINUTE
PLACE = ("orders", 3)
LISTED = {"ONGOING", "PREPARE_COMMIT", "PREPARE_ABORT", "PREPARE_EPOCH_FENCE"}
"""States in which Kafka's DescribeTransactions lists partitions."""


def opened(root: Path | LogDirectory, **options: Any) -> dict[str, Any]:
    """The one transaction that is open below a directory."""
    found = root if isinstance(root, LogDirectory) else LogDirectory(root)
    (row,) = found.txn(states="open", **options).to_pylist()
    return dict(row)


# ---------------------------------------------------------------- the rule


@pytest.mark.slow
@examples(300)
@given(
    producer=st.sampled_from([7, 8]),
    status=st.sampled_from([None, *TransactionStatus]),
    places=st.sets(st.sampled_from([PLACE, ("orders", 4), ("other", 3)])),
    age=st.sampled_from([0, MINUTE, MINUTE + 1, 60 * MINUTE]),
    is_known=st.booleans(),
)
def test_as_kafkas_own_tool_finds_them(
    producer: int, status: Any, places: set[tuple[str, int]], age: int, is_known: bool
) -> None:
    number = None if status is None else int(status)
    state = IdState("tx", 0, producer, number, MINUTE, TIME, frozenset(places))
    known = Coordinators({"tx": state}, {7: "tx"} if is_known else {}, True, True)
    one = ObservedTransaction(TransactionState.OPEN, 7, 0, 5, 9, TIME, TIME, 5)
    said = judge_transaction(one, PLACE, known, Clock(TIME + age, False, MINUTE), is_cut=False)
    # find-hanging: candidates are old; it looks the id up by the producer, and describes it.
    is_candidate = age > MINUTE
    described = (
        places if is_known and producer == 7 and status is not None and status.name in LISTED else set()
    )  # fmt: skip
    assert said.is_hanging == (is_candidate and PLACE not in described)
    assert said.reason


def test_its_own_timeout_counts_where_it_is_known(tmp_path: Path) -> None:
    log(tmp_path, "orders-3", [data_of(0, 7)])
    states(tmp_path, state_of("tx", "complete_abort", timeout=30 * MINUTE))
    row = opened(tmp_path, now=TIME + 29 * MINUTE)
    assert (row["hanging"], row["coordinator_state"]) == (False, "CompleteAbort")
    assert "not older than 1800000 ms" in row["reason"]
    assert opened(tmp_path, now=TIME + 31 * MINUTE)["hanging"]
    assert opened(tmp_path)["hanging"]


@pytest.mark.parametrize(
    ("records", "hanging", "reason"),
    [
        ([state_of("tx", "ongoing", 7, [PLACE])], False, "will end it (state Ongoing)"),
        ([state_of("tx", "prepare_commit", 7, [PLACE])], False, "will end it (state PrepareCommit)"),
        ([state_of("tx", "ongoing", 7, [("orders", 2)])], True, "(state Ongoing) does not contain the partition"),
        ([state_of("tx", "ongoing", 7, [PLACE]), state_of("tx", None)], True, "has forgotten"),
        ([state_of("tx", "ongoing", 7, [PLACE]), state_of("tx", "empty", 7)], True, "no ongoing transaction (state Empty)"),
        ([state_of("tx", "ongoing", 7, [PLACE]), state_of("tx", "ongoing", 9, [PLACE])], True, "uses producer 9 now"),
        ([state_of("tx", "ongoing", 9, [PLACE])], True, "no transactional id uses the producer"),
        (
            [state_of("tx", "complete_commit", 9, version=1, previous_producer_id=7)],
            True,
            "uses producer 9 now",
        ),
    ],
)  # fmt: skip
def test_from_the_disk(
    tmp_path: Path, records: list[tuple[bytes, bytes | None]], hanging: bool, reason: str
) -> None:
    log(tmp_path, "orders-3", [data_of(0, 7), data_of(1, 7)])
    states(tmp_path, *records)
    row = opened(tmp_path)
    assert reason in row["reason"]
    assert row["hanging"] is hanging
    chosen = LogDirectory(tmp_path).txn(states="hanging")
    assert chosen.num_rows == hanging


def test_age_alone_counts_when_somebody_says_what_time_it_was(tmp_path: Path) -> None:
    log(tmp_path, "orders-3", [data_of(0, 7)])
    row = opened(tmp_path)
    assert row["hanging"] is None, "a copy may be from long ago"
    assert LogDirectory(tmp_path).txn(states="hanging").num_rows == 1
    assert row["reason"].startswith("unknown whether it hangs: __transaction_state was not read; ")
    assert opened(tmp_path, now=TIME + 15 * MINUTE)["hanging"] is False
    assert opened(tmp_path, now=TIME + 15 * MINUTE + 1)["hanging"]
    assert opened(tmp_path, now=TIME + 2 * MINUTE, max_timeout_ms=MINUTE)["hanging"]
    states(tmp_path, state_of("tx", "ongoing", 7, [PLACE]))
    assert not opened(tmp_path)["hanging"]
    assert not opened(tmp_path, now=TIME + MINUTE)["hanging"]
    row = opened(tmp_path, now=TIME + MINUTE + 1)
    assert row["hanging"]
    assert "ongoing for more than 60000 ms" in row["reason"]
    states(tmp_path, state_of("tx", "prepare_abort", 7, [PLACE]))
    assert not opened(tmp_path, now=LATER)["hanging"], "it is decided, and the marker is on its way"


def test_a_part_of_the_coordinators_topic_proves_nothing(tmp_path: Path) -> None:
    """Another partition of it, which is not here, may know the producer."""
    log(tmp_path, "orders-3", [data_of(0, 7)])
    states(tmp_path, state_of("tx", "empty", 9), number=4)
    row = opened(tmp_path)
    assert row["hanging"] is None
    assert row["reason"].startswith(
        "unknown whether it hangs: the readable part of __transaction_state"
    )


def test_lost_bytes_may_have_had_the_marker(tmp_path: Path) -> None:
    lost = data_of(1, 8)
    lost = lost[:8] + b"\0\0\0\1" + lost[12:]
    log(tmp_path, "orders-3", [data_of(0, 7), lost, data_of(2, -1)[:-1]])
    states(tmp_path, state_of("tx", "empty", 7))
    told: list[str] = []
    assert opened(tmp_path, on_damage=told.append)["hanging"], "the lost bytes are at the end"
    assert len(told) == 1
    log(tmp_path, "orders-3", [data_of(0, 7), lost, marker_of(2, 9, "commit")])
    told.clear()
    row = opened(tmp_path, on_damage=told.append)
    assert (row["hanging"], "cannot be read" in row["reason"]) == (None, True)
    row = opened(tmp_path, on_damage=told.append, now=TIME + MINUTE)
    assert (row["hanging"], "not older than" in row["reason"]) == (False, True)
    assert len(told) == 2
    log(tmp_path, "orders-3", [data_of(0, 7), lost])
    log(tmp_path, "orders-3", [data_of(9, -1)], base=9)
    row = opened(tmp_path, on_damage=told.append)
    assert row["hanging"] is None, "the end of a segment is not that of the partition"


def test_a_lost_end_may_have_had_the_marker(tmp_path: Path) -> None:
    """It was written: the broker shut down cleanly after it."""
    states(tmp_path, state_of("tx", "complete_commit", 7))
    (path,) = log(tmp_path, "orders-3", [data_of(0, 7), marker_of(1, 7, "commit")]).glob("*.log")
    (tmp_path / CLEAN_SHUTDOWN).touch()
    assert LogDirectory(tmp_path).txn(states="open").num_rows == 0
    path.write_bytes(path.read_bytes()[:-1])
    told: list[str] = []
    row = opened(tmp_path, on_damage=told.append)
    assert (row["hanging"], LOST_MARKER in row["reason"]) == (None, True)
    assert len(told) == 1
    assert CLEAN_SHUTDOWN in told[0]
    (tmp_path / CLEAN_SHUTDOWN).unlink()
    assert opened(tmp_path)["hanging"], "recovery truncates it"


@pytest.mark.parametrize(("first", "hanging"), [(8, True), (2, None)])
def test_only_a_gap_behind_a_transaction_may_have_had_the_marker(
    first: int, hanging: bool | None, tmp_path: Path
) -> None:
    states(tmp_path, state_of("tx", "complete_commit", 7))
    copy = tmp_path / TIER / f"orders-3-{IDS[-1]}" / f"{0:020}-{IDS[0]}.log"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(data_of(0, -1) + data_of(2, 7 if first == 2 else -1))
    log(tmp_path, "orders-3", [data_of(8, 7 if first == 8 else -1)], base=8)
    told: list[str] = []
    row = opened(LogDirectory(tmp_path, include="remote"), on_damage=told.append)
    assert (row["first_offset"], row["hanging"]) == (first, hanging)
    assert "offsets 3 to 7 are lost" in "".join(told)


@pytest.mark.slow
@examples(150)
@given(byte=st.integers(0, len(marker_of(1, 7, "commit")) - 1), bit=st.integers(0, 7))
def test_a_damaged_marker_does_not_make_a_transaction_hang(
    byte: int, bit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whichever bit of it is wrong: in the kind, in the producer id, in the flag of control batches."""
    root = tmp_path_factory.mktemp("log")
    marker = bytearray(marker_of(1, 7, "commit"))
    marker[byte] ^= 1 << bit
    log(root, "orders-3", [data_of(0, 7), bytes(marker), data_of(2, -1)])
    states(root, state_of("tx", "complete_commit", 7))
    told: list[str] = []
    rows = LogDirectory(root).txn(states="open", on_damage=told.append).to_pylist()
    for row in rows:
        assert row["hanging"] is None
        assert LOST_MARKER in row["reason"]
    assert told or not rows


def test_damage_before_a_transaction_hides_no_marker_of_it(tmp_path: Path) -> None:
    damaged = bytearray(data_of(0, -1))
    damaged[-1] ^= 1
    states(tmp_path, state_of("tx", "empty", 7))
    log(tmp_path, "orders-3", [bytes(damaged)])
    log(tmp_path, "orders-3", [data_of(5, 7)], base=5)
    assert opened(tmp_path)["hanging"]


def test_a_damaged_coordinators_log_is_read_on_and_named(tmp_path: Path) -> None:
    log(tmp_path, "orders-3", [data_of(0, 7)])
    directory = states(
        tmp_path,
        state_of("other", "empty", 11),
        state_of("x", "empty", 12),
        state_of("tx", "ongoing", 7, [PLACE]),
    )
    path = next(directory.glob("*.log"))
    whole = path.read_bytes()
    at = whole.index(b"x", whole.index(b"other") + 100)
    path.write_bytes(whole[:at] + b"y" + whole[at + 1 :])
    told: list[str] = []
    row = opened(tmp_path, on_damage=told.append)
    assert (row["transactional_id"], row["hanging"]) == ("tx", False)
    assert len(told) == 1
    assert path.name in told[0]
    log(tmp_path, "orders-3", [data_of(0, 13)])
    row = opened(tmp_path, on_damage=told.append)
    assert row["hanging"] is None, "what is lost may have known the producer"


@pytest.mark.parametrize("lost", ["damaged", "torn"])
def test_a_state_that_may_be_old_makes_nothing_hang(lost: str, tmp_path: Path) -> None:
    """The newest state of its id may be among the lost records, whichever topics are selected."""
    log(tmp_path, "orders-3", [data_of(0, 7)])
    newest = state_of("tx", "ongoing", 7, [PLACE])
    directory = states(tmp_path, state_of("tx", "empty", 7), newest)
    (tmp_path / CLEAN_SHUTDOWN).touch()
    assert opened(tmp_path)["hanging"] is False
    path = next(directory.glob("*.log"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-3] if lost == "torn" else whole[:-1] + bytes([whole[-1] ^ 1]))
    told: list[str] = []
    found = LogDirectory(tmp_path, topics="orders").txn(on_damage=told.append)
    (row,) = found.to_pylist()
    assert (row["coordinator_state"], row["hanging"]) == ("Empty", None)
    assert "__transaction_state lost records" in row["reason"]
    assert len(told) == 1
    assert path.name in told[0]
    assert opened(tmp_path, on_damage=told.append, now=LATER)["hanging"], "it is old"


# ---------------------------------------------------------------- which partitions there are


def test_hashes_are_javas() -> None:
    many = 1 << 40
    assert transaction_state_partition("hello", many) == 99162322
    assert (
        transaction_state_partition("Aa", many) == transaction_state_partition("BB", many) == 2112
    )
    assert transaction_state_partition("", many) == 0
    assert transaction_state_partition("polygenelubricants", 7) == 0, (
        "the smallest number has no absolute value"
    )
    assert transaction_state_partition("\U0001f600", many) == 31 * 0xD83D + 0xDE00


@given(st.sets(st.text(max_size=12), min_size=12, max_size=40), st.integers(1, 60))
def test_all_partitions_are_whole_and_fewer_are_not(names: set[str], count: int) -> None:
    homes: dict[int, set[str]] = {number: set() for number in range(count)}
    for name in names:
        homes[transaction_state_partition(name, count)].add(name)
    fits_usual = all(
        transaction_state_partition(name, 50) == transaction_state_partition(name, count)
        for name in names
    )
    assert is_whole(homes) == (count >= 50 or not fits_usual)
    without = {number: of for number, of in homes.items() if number != count // 2}
    if count // 2 < count - 1:
        assert not is_whole(without)


@pytest.mark.parametrize("ahead", ["one", "two"])
def test_copies_of_the_coordinators_log_are_read_together(tmp_path: Path, ahead: str) -> None:
    """Two brokers: the copy that is behind does not count."""
    log(tmp_path / "one", "orders-3", [data_of(0, 7)])
    before = state_of("tx", "ongoing", 7, [PLACE])
    for name in ("one", "two"):
        after = [state_of("tx", "complete_commit")] if name == ahead else []
        states(tmp_path / name, before, *after)
    table = LogDirectory([tmp_path / "one", tmp_path / "two"]).txn()
    assert table.column("coordinator_state").to_pylist() == ["CompleteCommit"]
