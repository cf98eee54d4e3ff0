"""Comparisons of whole directories and odd ones, on the command line too, and the offsets that brokers would truncate to."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import LEADER_EPOCH_CHECKPOINT, Compression
from kafka_log import LogDirectory
from kafka_log.cli import main
from kafka_log.inspect.diff.table import CommonEpoch, find_last_common
from kafka_log.logs.partitions import NotFoundError
from tests.paths import SAMPLES
from tests.support.replicas import Entry, Log, Made, count, rebatched, write

LOG: Log = [Entry(i, i, i // 2, (Made(i, b"%d" % i, b"v"),)) for i in range(6)]


def verdicts(a: Path, b: Path) -> dict[str, list[str]]:
    table = LogDirectory(a).diff(b)
    names = (f"{row['topic']}-{row['partition']}" for row in table.to_pylist())
    return dict(zip(names, table.column("findings").to_pylist(), strict=True))


def test_two_brokers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each partition has its own verdict; those of one broker are no difference."""
    other = [*LOG[:4], Entry(4, 4, 7, (Made(4, b"x", b"y"),))]
    for name, a, b in (
        ("same-0", LOG, LOG),
        ("same-1", LOG, rebatched(LOG, Compression.GZIP)),
        ("behind-0", LOG, LOG[:3]),
        ("parted-0", LOG, other),
        ("mine-0", LOG, None),
        ("yours-0", None, LOG),
    ):
        if a is not None:
            write(tmp_path / "a" / name, a)
        if b is not None:
            write(tmp_path / "b" / name, b)
    assert verdicts(tmp_path / "a", tmp_path / "b") == {
        "same-0": [],
        "same-1": ["batches"],
        "behind-0": ["behind_b"],
        "parted-0": ["parted"],
        "mine-0": ["only_in_a"],
        "yours-0": ["only_in_b"],
    }
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main(["diff", *paths]) == 1
    text = capsys.readouterr().out
    assert text.endswith(
        "6 partitions: 1 parted, 2 on one side only, 1 behind, 1 same in other batches, 1 same\n"
    )
    assert "same-0" not in text and "A and B have different records from offset 4 on" in text
    assert main(["diff", *paths, "--topic", "behind", "--topic", "same"]) == 0
    assert main(["diff", *paths, "--topic", "mine", "--format", "jsonl"]) == 0
    (line,) = capsys.readouterr().out.splitlines()[-1:]
    assert json.loads(line)["verdict"] == "only_in"
    assert main(["diff", *paths, "--topic", "same", "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("topic,partition,verdict,findings,")
    with pytest.raises(NotFoundError):
        LogDirectory(tmp_path / "a", topics="none").diff(tmp_path / "b")
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "nowhere")]) == 2


def test_paths_of_one_partition_are_a_pair(tmp_path: Path) -> None:
    a, b = write(tmp_path / "t-0", LOG), write(tmp_path / "copy", LOG)
    assert verdicts(a, b) == {"t-0": []}
    (one,), (other,) = a.glob("*.log"), b.glob("*.log")
    assert verdicts(one, other) == {"t-0": []}


def test_a_name_that_is_no_utf_8(tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff\xfe-0")
    a, b = write(tmp_path / "a" / name, LOG), write(tmp_path / "b" / name, LOG[:2])
    (row,) = LogDirectory(a.parent).diff(b.parent).to_pylist()
    assert (row["findings"], row["topic"]) == (["behind_b"], "\\udcff\\udcfe")
    assert main(["diff", str(a), str(b)]) == 0


def test_nothing_beside_something(tmp_path: Path) -> None:
    a = write(tmp_path / "a", LOG)
    empty = tmp_path / "empty-0"
    empty.mkdir()
    (row,) = LogDirectory(a).diff(empty).to_pylist()
    assert (row["findings"], row["behind_b"]) == (["behind_b"], count(LOG))
    (empty / f"{0:020d}.log").write_bytes(b"")
    (row,) = LogDirectory(a).diff(empty).to_pylist()
    assert (row["findings"], row["first_offset"]) == (["behind_b"], 0)
    assert verdicts(empty, empty) == {"empty-0": []}


def test_an_empty_last_segment_is_no_difference(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", LOG), write(tmp_path / "b", LOG)
    (b / f"{6:020d}.log").write_bytes(b"")
    assert list(verdicts(a, b).values()) == [[]]


def test_a_torn_tail_is_a_shorter_log(tmp_path: Path) -> None:
    """As a broker that was killed leaves it; the same bytes in a segment that was rolled are damage."""
    for rolls, expected in (([], ["behind_b"]), ([3], ["damaged_b"])):
        a = write(tmp_path / f"a{len(rolls)}", LOG, rolls)
        b = write(tmp_path / f"b{len(rolls)}", LOG, rolls)
        path = sorted(b.glob("*.log"))[0]
        path.write_bytes(path.read_bytes()[:-5])
        (row,) = LogDirectory(a).diff(b).to_pylist()
        assert row["findings"] == expected, rolls
        assert max(row["behind_b"], row["damaged_b"]) == 1


def test_zeros_at_the_end_are_a_shorter_log(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", LOG), write(tmp_path / "b", LOG[:4])
    (path,) = b.glob("*.log")
    path.write_bytes(path.read_bytes() + bytes(5000))
    assert list(verdicts(a, b).values()) == [["behind_b"]]


def test_damage_on_both_sides_is_told(tmp_path: Path) -> None:
    a = write(tmp_path / "a", LOG)
    (path,) = a.glob("*.log")
    data = bytearray(path.read_bytes())
    data[len(LOG[0].built()) + 65] ^= 1
    path.write_bytes(data)
    shutil.copytree(a, tmp_path / "b")
    (row,) = LogDirectory(a).diff(tmp_path / "b").to_pylist()
    assert row["findings"] == ["damaged_a", "damaged_b"]
    assert (row["same"], row["first_offset"]) == (5, 1)


def test_what_a_partial_answer_would_hide(tmp_path: Path) -> None:
    """Two things at once are both told."""
    a = write(tmp_path / "a", LOG)
    b = write(tmp_path / "b", rebatched([*LOG[2:3], *LOG[4:5]], Compression.NONE))
    (row,) = LogDirectory(a).diff(b).to_pylist()
    assert row["findings"] == ["missing_b", "behind_b", "trimmed_b"]
    assert (row["missing_b"], row["behind_b"], row["trimmed_b"]) == (1, 1, 2)


def test_two_brokers_that_got_the_same_records() -> None:
    """A 2.8 and a 4.x broker got the same from producers; epochs, times of the append and producer ids are their own."""
    rows = LogDirectory(SAMPLES / "kafka-2.8").diff(SAMPLES / "kafka-4.x").to_pylist()
    by_name = {f"{row['topic']}-{row['partition']}": row for row in rows}
    said = {
        name: (by_name[name]["findings"], by_name[name]["first_offset"], by_name[name]["columns"])
        for name in ("codecs-0", "codecs-1", "codecs-2", "append-time-0", "transactions-0")
    }
    assert said == {
        "codecs-0": (["parted"], 64, ["leader_epoch"]),  # after the restart
        "codecs-1": ([], None, []),
        "codecs-2": (["batches"], None, []),
        "append-time-0": (["parted"], 0, ["timestamp"]),
        "transactions-0": (["parted"], 2, ["producer_id"]),
    }
    assert by_name["v0-0"]["findings"] == ["only_in_a"]
    assert by_name["features-0"]["findings"] == ["only_in_b"]


# ------------------------------------------------------------ leader epochs


def _with_checkpoint(directory: Path, epochs: Sequence[tuple[int, int]]) -> None:
    entries = [{"epoch": epoch, "start_offset": start} for epoch, start in epochs]
    (directory / "leader-epoch-checkpoint").write_bytes(
        LEADER_EPOCH_CHECKPOINT.build({"epochs": entries})
    )


def test_checkpoints_come_before_batches(tmp_path: Path) -> None:
    """A leader that has written nothing yet has an epoch in the file alone."""
    a, b = write(tmp_path / "a", LOG), write(tmp_path / "b", LOG[:4])
    (row,) = LogDirectory(a).diff(b).to_pylist()
    assert (row["common_epoch"], row["common_offset"]) == (1, 4)
    _with_checkpoint(a, [(0, 0), (1, 2), (2, 4)])
    _with_checkpoint(b, [(0, 0), (3, 3)])
    (row,) = LogDirectory(a).diff(b).to_pylist()
    assert (row["common_epoch"], row["common_offset"]) == (0, 2)


EPOCHS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 30)),
    max_size=5,
    unique_by=(lambda e: e[0], lambda e: e[1]),
).map(lambda found: list(zip(*map(sorted, zip(*found, strict=True)), strict=True)))
"""Both rise, as in the file of a broker: an epoch that has no record is forgotten when the next one begins."""


class Replica:
    """The epochs of a log as Kafka's LeaderEpochFileCache has them, in its own words."""

    def __init__(self, epochs: Sequence[tuple[int, int]], end: int) -> None:
        self.epochs, self.end = list(epochs), end

    def end_offset_for(self, epoch: int) -> tuple[int, int] | None:
        if not self.epochs or epoch > self.epochs[-1][0]:
            return None
        if epoch == self.epochs[-1][0]:
            return epoch, self.end
        higher = next(start for e, start in self.epochs if e > epoch)
        floor = [e for e, _ in self.epochs if e <= epoch]
        return (floor[-1] if floor else epoch), higher

    def truncate(self, offset: int) -> None:
        self.epochs = [(e, start) for e, start in self.epochs if start < offset]
        self.end = min(self.end, offset)


def truncated(leader: Replica, follower: Replica) -> int | None:
    """AbstractFetcherThread: ask for the latest epoch, truncate, and again until it is the leader's. None: no answer."""
    while follower.epochs:
        answer = leader.end_offset_for(follower.epochs[-1][0])
        if answer is None:
            return None
        epoch, leader_end = answer
        own = follower.end_offset_for(epoch)
        if own is None or not any(e == own[0] for e, _ in follower.epochs):
            return None
        if own[0] == epoch:
            return min(own[1], leader_end, follower.end)
        follower.truncate(min(own[1], follower.end))
    return None


@given(EPOCHS, EPOCHS, st.integers(0, 12), st.integers(0, 12))
def test_where_a_broker_would_truncate(
    a: list[tuple[int, int]], b: list[tuple[int, int]], more_a: int, more_b: int
) -> None:
    """The leader is the one with the latest epoch; its answers lead to the last common epoch. Without one a broker drops what the
    leader does not have any more."""
    end_a, end_b = ((e[-1][1] if e else 0) + more for e, more in ((a, more_a), (b, more_b)))
    if (a[-1][0] if a else -1) < (b[-1][0] if b else -1):
        a, end_a, b, end_b = b, end_b, a, end_a
    expected = truncated(Replica(a, end_a), Replica(b, end_b))
    found = find_last_common(a, end_a, b, end_b)
    assert found == find_last_common(b, end_b, a, end_a)
    both = {e for e, _ in a} & {e for e, _ in b}
    assert (found is None) == (not both)
    if found is not None:
        assert found == CommonEpoch(max(both), expected)


def test_no_epoch_in_common() -> None:
    assert find_last_common([(1, 0)], 5, [(2, 0)], 5) is None
    assert find_last_common([], 5, [(2, 0)], 5) is None
    assert find_last_common([(1, 0), (2, 3)], 5, [(1, 0)], 4) == CommonEpoch(1, 3)


STATES = ("deleted", "delete", "future", "stray", "remote")
ID = "00112233445566778899aabbccddeeff"


def moved(source: Path, state: str, base: int) -> None:
    """Give a segment of a partition another state, as a broker or a tier would leave it."""
    path = source / f"{base:020d}.log"
    if state == "deleted":
        path.rename(path.with_name(path.name + ".deleted"))
        return
    uuid = "A" * 22
    if state == "remote":
        target = source.parent / "kafka-tiered-storage" / f"{source.name}-{uuid}"
        name = f"{base:020d}-{uuid}.log"
    else:
        target, name = source.parent / f"{source.name}.{ID}-{state}", path.name
    target.mkdir(parents=True, exist_ok=True)
    path.rename(target / name)


@pytest.mark.parametrize("state", STATES)
def test_what_is_not_live_makes_a_log_longer(
    state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first segments of B are in another state: without them it begins later, with them it is the same."""
    write(tmp_path / "a" / "t-0", LOG, [2, 4])
    b = write(tmp_path / "b" / "t-0", LOG, [2, 4])
    for base in (0, 2):
        moved(b, state, base)
    paths = [str(tmp_path / "a"), str(tmp_path / "b"), "--format", "jsonl"]
    assert main(["diff", *paths]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["findings"] == ["trimmed_b"]
    assert f"kafka-log: segments that are not live were skipped: 2 {state} " in err
    assert main(["diff", *paths, "--include", state]) == 0
    out, err = capsys.readouterr()
    row = json.loads(out)
    assert (row["findings"], row["same"], err) == ([], 6, "")
    assert main(["diff", *paths, "--include", "all"]) == 0


@pytest.mark.parametrize("state", STATES)
def test_what_is_not_live_alone_is_a_log(state: str, tmp_path: Path) -> None:
    """A partition of which nothing is live any more, beside one that is."""
    write(tmp_path / "a" / "t-0", LOG, [2, 4])
    b = write(tmp_path / "b" / "t-0", LOG, [2, 4])
    for base in (0, 2, 4):
        moved(b, state, base)
    other = LogDirectory(tmp_path / "b", include=[state])
    (row,) = LogDirectory(tmp_path / "a").diff(other).to_pylist()
    assert (row["findings"], row["same"]) == ([], 6)


@pytest.mark.parametrize("state", STATES)
def test_what_is_not_live_never_stands_in_for_what_is(state: str, tmp_path: Path) -> None:
    """Other records at offsets that live segments have: these count, as a broker reads them."""
    write(tmp_path / "a" / "t-0", LOG, [2, 4])
    b = write(tmp_path / "b" / "t-0", LOG, [2, 4])
    other = write(tmp_path / "c" / "t-0", [replace(e, epoch=9) for e in LOG], [3])
    for base in (0, 3):
        moved(other, state, base)
    for path in (tmp_path / "c").rglob("*.log*"):
        target = tmp_path / "b" / path.relative_to(tmp_path / "c")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    assert len(list((tmp_path / "b").rglob("*.log*"))) == 5
    row = LogDirectory(tmp_path / "a").diff(LogDirectory(b.parent, include=[state])).to_pylist()[0]
    assert (row["findings"], row["same"]) == ([], 6)


def test_snapshots_of_the_metadata_are_no_part_of_its_log() -> None:
    four = SAMPLES / "kafka-4.x" / "__cluster_metadata-0"
    log = LogDirectory(four, include=["snapshot"])
    assert log.diff(log).column("verdict").to_pylist() == ["same"]


def test_segments_that_are_not_live_do_not_count(tmp_path: Path) -> None:
    a, b = write(tmp_path / "t-0", LOG), write(tmp_path / "b" / "t-0", LOG)
    shutil.copyfile(next(b.glob("*.log")), b / f"{0:020d}.log.deleted")
    table = LogDirectory(a, include=("deleted",)).diff(LogDirectory(b, include=("deleted",)))
    assert table.column("verdict").to_pylist() == ["same"]


def test_topics_with_the_same_name_are_no_replicas(tmp_path: Path) -> None:
    """No election parted them, and no broker would truncate one of them."""
    other = [*LOG[:4], Entry(4, 4, 7, (Made(4, b"x", b"y"),))]
    for name, entries in (("a", LOG), ("b", other)):
        write(tmp_path / name / "t-0", entries)
    (parted,) = LogDirectory(tmp_path / "a").diff(tmp_path / "b").to_pylist()
    assert "unclean election" in parted["meaning"] and "truncates" in parted["remedy"]
    for name in "ab":
        stated = tmp_path / name / "t-0" / "partition.metadata"
        stated.write_text(f"version: 0\ntopic_id: {name * 21}A\n")
    (row,) = LogDirectory(tmp_path / "a").diff(tmp_path / "b").to_pylist()
    assert row["meaning"].startswith("A and B are different topics, because")
    assert row["remedy"].startswith("Nothing to do if they have different names")
    assert {**row, "meaning": "", "remedy": ""} == {**parted, "meaning": "", "remedy": ""}
    (tmp_path / "a" / "t-0" / "partition.metadata").write_text("version: 0\n")
    (row,) = LogDirectory(tmp_path / "a").diff(tmp_path / "b").to_pylist()
    assert row["meaning"].startswith(
        "A and B may be different topics, because a topic id is not known"
    )
    assert row["meaning"].endswith(parted["meaning"]) and row["remedy"] == parted["remedy"]
