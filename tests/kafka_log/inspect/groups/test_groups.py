"""``kafka-log groups``: committed offsets, against a coordinator that loads the topic record by record."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import kafka_log
from kafka_log.cli import main
from kafka_log.log_directory import LogDirectory
from kafka_log.logs.names import CLEAN_SHUTDOWN, HIGH_WATERMARK
from tests.paths import SAMPLES
from tests.shares import draw_seeds
from tests.support.made_topics import TIME, commit, log, marker, within

Key = tuple[str, int]
Step = tuple[str, int, Key, int]
"""What is written: the kind of it, the producer (0: none), the group and partition, and the milliseconds since the last one."""


def steps_of(seed: int) -> list[Step]:
    """What is written of few things, so that much of it meets."""
    r = random.Random(seed)
    kinds = ["commit"] * 5 + ["delete"] + ["end"] * 2 + ["abort"]
    return [
        (
            r.choice(kinds),
            r.randrange(3),
            (r.choice(["a", "\N{FISH}"]), r.randrange(2)),
            r.randrange(3),
        )
        for _ in range(r.randrange(40))
    ]


def written(steps: list[Step]) -> tuple[list[bytes], list[int]]:
    """Batches, and their times."""
    batches, times, time = [], [], TIME
    for offset, (kind, producer, (group, partition), later) in enumerate(steps):
        time += later
        times.append(time)
        if kind in ("end", "abort"):
            batches.append(
                marker(offset, max(producer, 1), "commit" if kind == "end" else kind, time)
            )
            continue
        batch = within(producer) if producer and kind == "commit" else {}
        value = offset * 10 if kind == "commit" else None
        batches.append(commit(offset, group, value, partition=partition, time=time, **batch))
    return batches, times


def loaded(steps: list[Step], times: list[int], at: int) -> dict[Key, int]:
    """What a coordinator has that has loaded what was there at a time: what is in a transaction waits for its end, a deletion
    is also one of what waits, and of two commits the one that was written later counts."""
    now: dict[Key, int] = {}
    waiting: dict[int, dict[Key, int]] = {}
    for offset, ((kind, producer, key, _), time) in enumerate(zip(steps, times, strict=True)):
        if time > at:
            break
        if kind == "commit" and producer:
            waiting.setdefault(producer, {})[key] = offset * 10
        elif kind == "commit":
            now[key] = offset * 10
        elif kind == "delete":
            now.pop(key, None)
            for pending in waiting.values():
                pending.pop(key, None)
        else:
            ended = waiting.pop(max(producer, 1), {})
            for name, value in ended.items():
                if kind == "end" and value > now.get(name, -1):
                    now[name] = value
    return now


@pytest.mark.slow
@pytest.mark.share(12)
@pytest.mark.parametrize("seed", draw_seeds(40))
def test_what_a_coordinator_has_that_loads_the_topic(tmp_path: Path, seed: int) -> None:
    steps = steps_of(seed)
    batches, times = written(steps)
    size = len(batches) // (1 + seed % 4) + 1
    path = log(tmp_path, "__consumer_offsets-0")
    for base in range(0, len(batches), size):
        log(tmp_path, "__consumer_offsets-0", *batches[base : base + size], base=base)
    for at in (None, TIME - 1, *sorted(set(times))):
        found = LogDirectory(path).groups(at=at).to_pylist()
        got = {(row["group"], row["partition"]): row["committed_offset"] for row in found}
        assert got == loaded(steps, times, TIME + 10**6 if at is None else at)
        assert all(row["record_offset"] * 10 == row["committed_offset"] for row in found)


def rows(path: Path | list[Path], **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = LogDirectory(path).groups(**options).to_pylist()
    return found


def test_lag_goes_to_the_end_of_the_log(tmp_path: Path) -> None:
    log(tmp_path, "t-0", *(commit(i, "g", 1) for i in range(10)))
    log(tmp_path, "__consumer_offsets-3", commit(0, "g", 4), commit(1, "g", 12, partition=1))
    log(tmp_path, "t-1", *(commit(i, "g", 1) for i in range(10)))
    log(tmp_path, "__consumer_offsets-4", commit(0, "h", 7, partition=2))
    assert [(row["partition"], row["log_end_offset"], row["lag"]) for row in rows(tmp_path)] == [
        (0, 10, 6),
        (1, 10, -2),
        (2, None, None),
    ]


def test_a_log_whose_end_is_not_known(tmp_path: Path) -> None:
    log(tmp_path, "t-0", commit(0, "g", 1), b"\xff" * 200)
    log(tmp_path, "__consumer_offsets-0", commit(0, "g", 4), commit(1, "h", -(1 << 63)))
    assert [row["lag"] for row in rows(tmp_path)] == [None, None]


@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize(
    ("name", "text"),
    [(CLEAN_SHUTDOWN, "{}"), (HIGH_WATERMARK, "0\n1\nt 0 3\n")],
)
def test_a_log_that_lost_records_at_its_end(
    name: str, text: str, states: bool, tmp_path: Path
) -> None:
    """An incomplete batch hides the end if the broker had written it, as for check."""
    log(tmp_path, "t-0", commit(0, "g", 1), commit(1, "g", 1)[:-10])
    log(tmp_path, "__consumer_offsets-0", commit(0, "g", 1))
    assert [row["lag"] for row in rows(tmp_path)] == [0]
    (tmp_path / name).write_text(text)
    with pytest.warns(UserWarning, match=r"t-0.* are lost: .*lag of its partition are null"):
        found = rows(tmp_path, states=states)
    assert [row["lag"] for row in found] == [None]
    assert [row["code"] for row in LogDirectory(tmp_path).check().to_pylist()].count("torn_tail")


@pytest.mark.slow
@pytest.mark.parametrize("states", [False, True])
def test_offsets_that_lost_commits_at_their_end(
    states: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Newer commits may be in an incomplete batch that the broker had written; else no consumer was told that they are kept."""
    log(tmp_path, "t-0", commit(0, "g", 1))
    path = log(tmp_path, "__consumer_offsets-0", commit(0, "g", 1), commit(1, "g", 2)[:-3])
    command = ["groups", str(tmp_path), *(["--states"] if states else [])]
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    (tmp_path / CLEAN_SHUTDOWN).write_text("{}")
    assert main(command) == 1
    out, err = capsys.readouterr()
    assert "g  " in out
    assert err.count("kafka-log: ") == 1
    assert str(path / f"{0:020}.log") in err and "newer commits may be missing" in err
    with pytest.warns(UserWarning, match="newer commits may be missing"):
        assert len(rows(tmp_path, states=states)) == 1
    log(
        tmp_path,
        "__consumer_offsets-0",
        commit(0, "g", 1, topic="__consumer_offsets", partition=0),
        commit(1, "g", 2)[:-3],
    )
    with pytest.warns(UserWarning) as told:
        assert [row["lag"] for row in rows(tmp_path, states=states)] == [None]
    assert len(told) == 1


def test_a_topic_that_was_made_anew(tmp_path: Path) -> None:
    """Its log says nothing of what was committed before."""
    for name in ("__consumer_offsets-0", "codecs-0", "codecs-1"):
        shutil.copytree(SAMPLES / "kafka-4.x" / name, tmp_path / name)
    other = SAMPLES / "kafka-4.x" / "features-0" / "partition.metadata"
    shutil.copy(other, tmp_path / "codecs-1" / other.name)
    found = LogDirectory(tmp_path, partitions=[0, 1]).groups(names="group-classic").to_pylist()
    assert [(row["log_end_offset"], row["lag"]) for row in found] == [(67, 3), (None, None)]
    (tmp_path / "codecs-1" / other.name).write_bytes(b"\xff")
    found = LogDirectory(tmp_path, partitions=1).groups(names="group-classic").to_pylist()
    assert [row["lag"] for row in found] == [None]
    (tmp_path / "codecs-1" / other.name).unlink()
    found = LogDirectory(tmp_path, partitions=1).groups(names="group-classic").to_pylist()
    assert [row["lag"] for row in found] == [0]


def test_choosing(tmp_path: Path) -> None:
    log(
        tmp_path,
        "__consumer_offsets-0",
        *(commit(i, f"g{i % 2}", i, topic=f"t{i % 3}", partition=i) for i in range(6)),
    )
    assert {row["group"] for row in rows(tmp_path, names="g1")} == {"g1"}
    chosen = LogDirectory(tmp_path, topics=["t1", "other"], partitions=4).groups()
    assert [(row["group"], row["partition"]) for row in chosen.to_pylist()] == [("g0", 4)]
    assert rows(tmp_path, names=[]) == []


def test_replicas_of_several_brokers(tmp_path: Path) -> None:
    log(tmp_path / "a", "__consumer_offsets-0", commit(0, "g", 1))
    log(tmp_path / "b", "__consumer_offsets-0", commit(0, "g", 1), commit(1, "g", 2))
    log(tmp_path / "a", "t-0", *(commit(i, "g", 1) for i in range(3)))
    log(tmp_path / "b", "t-0", *(commit(i, "g", 1) for i in range(2)))
    [row] = rows([tmp_path / "a", tmp_path / "b"])
    assert (row["committed_offset"], row["log_end_offset"], row["lag"]) == (2, 3, 1)


def test_one_segment_of_several(tmp_path: Path) -> None:
    path = log(tmp_path, "__consumer_offsets-0", commit(0, "g", 1))
    log(tmp_path, "__consumer_offsets-0", commit(1, "g", 2), base=1)
    [row] = rows(path / f"{0:020}.log")
    assert row["committed_offset"] == 1


def test_directories_without_records(tmp_path: Path) -> None:
    (tmp_path / "__consumer_offsets-0").mkdir()
    log(tmp_path, "__consumer_offsets-1")
    for states in (False, True):
        table = LogDirectory(tmp_path).groups(states=states)
        assert table.num_rows == 0
        assert table.schema.names[0] == "group"


def test_a_tail_that_is_cut_off_is_not_there(tmp_path: Path) -> None:
    path = log(tmp_path, "__consumer_offsets-0", commit(0, "g", 1), commit(1, "g", 2)[:-3])
    assert [row["committed_offset"] for row in rows(path)] == [1]


def test_both_samples_say_what_was_committed() -> None:
    for broker, expected in (("kafka-2.8", 1), ("kafka-4.x", 2)):
        found = rows(SAMPLES / broker)
        ends = {row["partition"]: row["lag"] for row in found if row["group"] == "group-classic"}
        assert ends == {0: 3, 1: 0, 2: 0, 3: 0, 4: 0}, "three records came after the restart"
        assert len(found) == 1 + 5 * expected


# ---------------------------------------------------------------- groups


def states(path: Path, **options: Any) -> dict[str, dict[str, Any]]:
    return {row["group"]: row for row in rows(path, states=True, **options)}


def test_what_groups_are() -> None:
    found = states(SAMPLES / "kafka-4.x")
    kinds = {name: (row["group_type"], row["epoch"], row["members"]) for name, row in found.items()}
    assert kinds == {
        "group-classic": ("classic", 2, 0),
        "group-consumer": ("consumer", 3, 0),
        "tx-group": (None, None, 0),
    }
    assert found["group-classic"]["protocol_type"] == "consumer"
    assert [found[name]["lag"] for name in sorted(found)] == [3, 3, 6]
    assert set(states(SAMPLES / "kafka-4.x", names="tx-group")) == {"tx-group"}


def test_members_come_and_go(tmp_path: Path) -> None:
    """Each group had one member, until it left."""
    copy = shutil.copytree(SAMPLES / "kafka-4.x" / "__consumer_offsets-0", tmp_path / "__consumer_offsets-0")  # fmt: skip
    times = kafka_log.read_table(copy, ["record_timestamp"], view="group_epochs")
    moments = sorted({t.as_py().timestamp() for t in times.column(0)})
    most: dict[str, int] = {}
    for moment in moments:
        for name, row in states(copy, at=round(moment * 1000)).items():
            most[name] = max(most.get(name, 0), row["members"])
    assert most["group-classic"] == most["group-consumer"] == 1
