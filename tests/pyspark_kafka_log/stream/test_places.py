"""Streams over logs that lie in stores and in tiered storage: what is new, grown, moved and gone there, without Spark; then in Spark."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pytest
from pyspark.sql import SparkSession

from kafka_log import discover, read_table
from kafka_log.logs import discovery
from kafka_log.read.plan import Split
from kafka_log.segment.positioned_reads import UnreadableError
from pyspark_kafka_log.moved_files import locate_splits
from pyspark_kafka_log.options import OptionError, parse
from pyspark_kafka_log.scan import Scan
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.stream import polling
from pyspark_kafka_log.stream.options import parse_stream
from pyspark_kafka_log.stream.polling import DataLossError
from pyspark_kafka_log.task_reader import MAX_LOOKUPS, read_splits
from tests.shares import draw_seeds
from tests.support.growing_logs import Growing
from tests.support.spark_logs import batch, build, numbered, write
from tests.support.spark_streams import offsets as written
from tests.support.spark_streams import ran
from tests.support.stores import counted
from tests.support.stream_laws import Row, expected, grow, rows, stream, told
from tests.support.tiers import IDS, TIER, local, remote
from tests.support.tiers import write as write_copy

# ---------------------------------------------------------------- tiers


def tiered(log: Growing, root: Path) -> None:
    """The broker copies what it has done with into the tier, as it lies, and local retention deletes some of that."""
    tier = root / TIER / f"{log.name}-{IDS[-1]}"
    tier.mkdir(parents=True, exist_ok=True)
    for path in sorted(log.directory.glob("*.log"))[:-1]:
        if not list(tier.glob(f"{path.stem}-*")):
            for one in path.parent.glob(f"{path.stem}.*"):
                if one.suffix != ".snapshot":  # that of a copy is of its end
                    # Names end as ids do: a letter of 64, and one of four.
                    name = f"{path.stem}-{int(path.stem):021d}A{one.suffix}"
                    shutil.copy(one, tier / name)
    for _ in range(log.r.randrange(3)):
        if len(list(log.directory.glob("*.log"))) > 1:
            first = min(log.directory.glob("*.log"))
            for one in log.directory.glob(f"{first.stem}.*"):
                one.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.share(12, ci=6)
@pytest.mark.parametrize("seed", draw_seeds(6))
def test_each_record_once_wherever_it_lies(tmp_path: Path, seed: int, isolation: str) -> None:
    """The first segments move into the tier while a stream reads, and restarts; what it reads is what was written."""
    r = random.Random(seed)
    logs = [Growing(tmp_path / f"t-{i}", r) for i in range(2)]
    options = {
        "include": "remote",
        "isolationLevel": isolation,
        "maxOffsetsPerTrigger": 9,
    }
    now = stream(tmp_path, **options)
    at = told(now.initial())
    got: list[Row] = []
    for step in range(40):
        for log in logs:
            # What is local only in the tier is out of the hands of who grows the log: it does not write there again.
            for _ in range(r.randrange(5)):
                r.choices([log.append, log.roll], [10, 3])[0]()
            tiered(log, tmp_path)
        if r.random() < 0.3:
            now = stream(tmp_path, **options)
        end = told(now.latest(at, limited=step < 30))
        got += rows(now, at, end)
        at = end
    assert sorted(got) == expected(logs, isolation)
    assert len(list(tmp_path.rglob("*A.log"))) > 10
    late = stream(tmp_path, **options)
    again = told(late.latest(told(late.initial()), limited=False))
    assert sorted(rows(late, told(late.initial()), again)) == expected(logs, isolation)
    with pytest.raises(DataLossError, match="are gone"):
        stream(tmp_path).tasks(told(late.initial()), again)


@pytest.mark.slow
def test_copies_that_go_on_behind_others(tmp_path: Path) -> None:
    """After a leader change a segment begins within the one before: each offset comes of one of them."""
    remote(tmp_path, 0, 0, 70)
    remote(tmp_path, 1, 40, 90)
    local(tmp_path, 80, 100)
    now = stream(tmp_path, include="remote")
    start = {"t": {"0": 0}}
    whole = [row[1] for row in rows(now, start, now.latest(start, limited=False))]
    assert whole == list(range(100))
    for first in range(0, 100, 7):
        for end in range(first, 101, 9):
            found = rows(now, {"t": {"0": first}}, {"t": {"0": end}})
            assert [row[1] for row in found] == list(range(first, end))


@pytest.mark.slow
def test_a_log_that_lies_in_the_tier_alone_begins_where_its_copies_do(tmp_path: Path) -> None:
    """The names of copies say it, although they are not those of segments."""
    remote(tmp_path, 0, 40, 70)
    now = stream(tmp_path, include="remote")
    start = told(now.initial())
    assert start == {"t": {"0": 40}}
    found = rows(now, start, now.latest(start, limited=False))
    assert [offset for _, offset, _ in found] == list(range(40, 70))


def moved(root: Path) -> None:
    """The broker deletes its first segment, which the tier has."""
    remote(root, 0, 0, 40)
    (root / "t-0" / f"{0:020d}.log").unlink()


def test_what_leaves_the_disk_before_its_task_is_read_from_the_tier(tmp_path: Path) -> None:
    local(tmp_path, 0, 40)
    local(tmp_path, 40, 50)
    now = stream(tmp_path, include="remote")
    start = told(now.initial())
    tasks = now.tasks({"t": {"0": 7}}, now.latest(start, limited=False))
    moved(tmp_path)
    for fails in (True, False):
        there = [locate_splits(task, now._reading, fails=fails) for task in tasks]
        assert [o for task in there for o in offsets_of(task)] == list(range(7, 50))
    alone = stream(tmp_path)
    gone = [locate_splits(task, alone._reading, fails=True) for task in tasks]
    with pytest.raises(UnreadableError, match="No such file"):
        list(offsets_of(gone[0]))


def test_each_segment_is_read_from_its_own_copy(tmp_path: Path) -> None:
    """Not from a larger one of another segment, or of another partition."""
    local(tmp_path, 0, 50)
    local(tmp_path, 50, 80)
    local(tmp_path, 80, 90)
    options = parse({"path": str(tmp_path), "include": "remote"})
    (task,) = plan(options)
    remote(tmp_path, 0, 0, 50)
    remote(tmp_path, 1, 50, 80)
    for base in (0, 50):
        copy = tmp_path / TIER / f"a-0-{IDS[6]}" / f"{base:020d}-{IDS[2]}.log"
        write_copy(copy, base, base + 60)
        (tmp_path / "t-0" / f"{base:020d}.log").unlink()
    there = locate_splits(task, options, fails=True)
    assert list(offsets_of(there)) == list(range(90))
    assert {part.segment.path.parent.name for part in there} == {"t-0", f"t-0-{IDS[7]}"}


def test_a_copy_that_a_later_leader_truncated_does_not_stand_for_a_segment(tmp_path: Path) -> None:
    """It begins where the segment does, and is larger."""
    local(tmp_path, 0, 40, epoch=2)
    local(tmp_path, 40, 50, epoch=2)
    options = parse({"path": str(tmp_path), "include": "remote"})
    (task,) = plan(options)
    remote(tmp_path, 0, 0, 60, epoch=1)
    remote(tmp_path, 1, 0, 40, epoch=2)
    (tmp_path / "t-0" / f"{0:020d}.log").unlink()
    there = locate_splits(task, options, fails=True)
    values = [v for b in read_splits(there, Scan(("value",))) for v in b.column(0).to_pylist()]
    assert values == [b"%d of 2" % n for n in range(50)]


@pytest.mark.parametrize("after", [0, 1])
def test_what_leaves_the_disk_while_its_task_reads(tmp_path: Path, after: int) -> None:
    """Before the turn of its file, or between the look at it and the reading."""
    local(tmp_path, 0, 40)
    local(tmp_path, 40, 50)
    options = parse({"path": str(tmp_path), "include": "remote"})
    (task,) = plan(options)
    looks: list[Split] = []

    def located(part: Split) -> Split:
        if len(looks) == 0 == after:
            moved(tmp_path)
        (found,) = locate_splits((part,), options, fails=True)
        looks.append(part)
        if len(looks) == 1 == after:
            moved(tmp_path)
        return found

    batches = read_splits(task, Scan(("offset",)), located=located)
    assert [o for b in batches for o in b.column("offset").to_pylist()] == list(range(50))
    assert len(looks) == 2 + after


def test_what_is_gone_is_looked_for_some_times(tmp_path: Path) -> None:
    local(tmp_path, 0, 40)
    local(tmp_path, 40, 50)
    (task,) = plan(parse({"path": str(tmp_path)}))
    task[0].segment.path.unlink()
    looks: list[Split] = []

    def located(part: Split) -> Split:
        looks.append(part)
        return part

    with pytest.raises(UnreadableError, match="No such file"):
        list(read_splits(task, Scan(("offset",)), located=located))
    assert len(looks) == MAX_LOOKUPS
    assert [
        o
        for b in read_splits(task, Scan(("offset",)), located=lambda p: p if p == task[1] else None)
        for o in b.column("offset").to_pylist()
    ] == list(range(40, 50))


def test_what_cannot_be_looked_at_is_left_to_who_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that may not be read is not gone: it is no loss, and no error but the reader's."""
    local(tmp_path, 0, 40)
    options = parse({"path": str(tmp_path)})
    (task,) = plan(options)
    stat = Path.stat

    def refused(path: Path, **given: Any) -> os.stat_result:
        if path.suffix == ".log":
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **given)

    monkeypatch.setattr(Path, "stat", refused)
    for fails in (True, False):
        assert locate_splits(task, options, fails=fails) == task


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_what_leaves_the_disk_while_it_is_planned_is_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    """Right after directories were listed, which no clock can be set to."""
    local(tmp_path, 0, 40)
    local(tmp_path, 40, 40)  # just rolled: where the log ends is to be seen in the segment before
    now = stream(tmp_path, include="remote", isolationLevel=isolation)
    listed = polling.find_logs

    def then_moved(options: Any) -> Any:
        monkeypatch.setattr(polling, "find_logs", listed)
        found = listed(options)
        moved(tmp_path)
        return found

    monkeypatch.setattr(polling, "find_logs", then_moved)
    end = told(now.latest({"t": {"0": 0}}, limited=False))
    assert polling.find_logs is listed
    assert end["t"] == {"0": 40}
    assert [row[1] for row in rows(now, {"t": {"0": 0}}, end)] == list(range(40))


def test_tiers_are_listed_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment that leaves the disk between the two would be in neither."""
    local(tmp_path / "broker", 40, 50)
    remote(tmp_path / "a tier", 0, 0, 40)
    seen: list[str] = []
    files = discovery.list_directory

    def noted(path: Path) -> Any:
        seen.append(path.parent.name)
        return files(path)

    monkeypatch.setattr(discovery, "list_directory", noted)
    discover([tmp_path / "a tier", tmp_path / "broker"], ["remote"])
    assert seen == [TIER, "broker", TIER]  # the look before asks only whether it is a tier


def test_aborted_transactions_of_copies_that_go_on_behind_others(tmp_path: Path) -> None:
    """A transaction that was aborted lies in the first copy, behind where the second one begins."""
    of_producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    transactional = {"is_transactional": True, "is_control": False}
    control = {"is_transactional": True, "is_control": True}
    first = [
        batch(0, [b"0", b"1"]),
        batch(2, [b"2", b"3"], **of_producer, attributes=transactional),
    ]
    abort = batch(4, [b"\0\0\0\0\0\1"], **of_producer, attributes=control)
    abort["records"][0]["key"] = b"\0\0\0\0"
    after = batch(5, [b"5"])
    tier = tmp_path / TIER / f"t-0-{IDS[-1]}"
    tier.mkdir(parents=True)
    (tier / f"{0:020d}-{IDS[0]}.log").write_bytes(build(*first, abort))
    (tier / f"{2:020d}-{IDS[1]}.log").write_bytes(build(first[1], abort, after))
    found = read_table(tmp_path, ["offset"], include="remote", isolation="read_committed")
    assert found["offset"].to_pylist() == [0, 1, 5]
    given = {"path": str(tmp_path), "include": "remote", "isolationLevel": "read_committed"}
    assert [o for task in plan(parse(given)) for o in offsets_of(task)] == [0, 1, 5]
    now = stream(tmp_path, include="remote", isolationLevel="read_committed")
    start = {"t": {"0": 0}}
    assert [row[1] for row in rows(now, start, now.latest(start, limited=False))] == [0, 1, 5]


def offsets_of(task: Any) -> Iterator[int]:
    for one in read_splits(task, Scan(("offset",))):
        yield from one["offset"].to_pylist()


# ---------------------------------------------------------------- stores

BUCKET = "counted://b/broker"


def uploaded(root: Path) -> None:
    """What grew is put there anew, whole; what is gone here is deleted there."""
    store, place = fsspec.core.url_to_fs(BUCKET)
    for path in sorted(root.rglob("*.*")):
        name = f"{place}/{path.relative_to(root).as_posix()}"
        if not store.exists(name) or store.cat_file(name) != path.read_bytes():
            store.pipe_file(name, path.read_bytes())
    for name in store.find(place):
        if not (root / name.removeprefix(place + "/")).exists():
            store.rm_file(name)


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.share(8, ci=3)
@pytest.mark.parametrize("seed", draw_seeds(4))
def test_each_record_once_of_objects(tmp_path: Path, seed: int, isolation: str) -> None:
    """Objects are replaced by longer ones, and others come; what was deleted was read before."""
    r = random.Random(seed)
    logs = [Growing(tmp_path / f"t-{i}", r) for i in range(3)]
    with counted() as store:
        uploaded(tmp_path)
        options = {"isolationLevel": isolation, "maxOffsetsPerTrigger": 15}
        now = stream(BUCKET, **options)
        at = told(now.initial())
        got: list[Row] = []
        for step in range(40):
            grow(logs, r, tmp_path, transactions=True)
            uploaded(tmp_path)
            if r.random() < 0.3:
                now = stream(BUCKET, **options)
            end = told(now.latest(at, limited=step < 30))
            got += rows(now, at, end)
            at = end
        assert sorted(got) == expected(logs, isolation)
        assert len(got) > 20
        store.no_requests()
        assert told(now.latest(at, limited=True)) == at
        # A poll lists each directory once, and reads nothing of what did not change.
        assert sorted(store.listed) == ["/b/broker", *(f"/b/broker/{log.name}" for log in logs)]
        assert (store.asked, store.read) == (["/b/broker"], [])
        logs[0].append()
        uploaded(tmp_path)
        store.no_requests()
        now.latest(at, limited=True)
        assert {name.split("/")[3] for name, _, _ in store.read} == {logs[0].name}


def test_an_object_that_is_gone(directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(2, 2))
    write(directory, "t", 0, 4, numbered(0, 0))
    with counted():
        uploaded(directory)
        now = stream(BUCKET)
        start = now.initial()
        end = now.latest(start, limited=True)
        (task,) = now.tasks(start, end)
        task = pickle.loads(pickle.dumps(task))
        assert locate_splits(task, now._reading, fails=False) == task
        (directory / "t-0" / f"{0:020d}.log").unlink()
        uploaded(directory)
        with pytest.warns(UserWarning, match=r"counted://b/broker/t-0/0+\.log is gone"):
            assert locate_splits(task, now._reading, fails=False) == ()
        with pytest.raises(UnreadableError, match="No such file"):
            list(offsets_of(locate_splits(task, now._reading, fails=True)))
        with pytest.raises(DataLossError, match="begins at offset 4, offsets 0 to 3 are gone"):
            now.tasks(start, end)


@pytest.mark.slow
@pytest.mark.parametrize("begun", [True, False])
def test_an_object_that_goes_while_its_task_reads_comes_once(directory: Path, begun: bool) -> None:
    """After its first rows, the task fails: Spark runs it again as a whole, and no row comes twice."""
    batches = [build(batch(n, [b"v" * 1_500_000])) for n in range(12)]
    path = write(directory, "t", 0, 0, b"".join(batches))
    with counted() as store:
        uploaded(directory)
        store.wrong = FileNotFoundError
        ((part,),) = plan(parse({"path": BUCKET}), parallelism=1)
        there = replace(part, segment=replace(part.segment, path=path))
        looks: list[Split] = []

        def delete() -> None:
            store.bad[store._strip_protocol(str(part.segment.path))] = [(0, part.segment.size)]

        def located(split: Split) -> Split:
            looks.append(split)
            if len(looks) > 1:
                return there
            if not begun:
                delete()
            return split

        found = read_splits((part,), Scan(("offset",), batch_rows=1), located=located)
        if begun:
            assert next(found).column(0).to_pylist() == [0]
            delete()
            with pytest.raises(UnreadableError, match="No such file"):
                list(found)
        else:
            assert [o for b in found for o in b.column(0).to_pylist()] == list(range(12))
        assert len(looks) == 2 - begun


@pytest.mark.slow
def test_a_bucket_in_spark(spark: SparkSession, directory: Path, tmp_path: Path) -> None:
    """A real server: an object grows, one comes, one is deleted; restarts go on."""
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    from tests.support import s3

    url = "s3://logs/broker-1"
    with s3.served() as server:
        given = {f"storage.{name}": str(value) for name, value in server.items()}
        write(directory, "t", 0, 0, numbered(3, 4))
        s3.put(directory, url, server)
        progress = ran(spark, url, tmp_path, maxOffsetsPerTrigger=5, **given)
        assert [one["numInputRows"] for one in progress if one["numInputRows"]] == [5, 5, 2]
        write(directory, "t", 0, 0, numbered(3, 5))
        write(directory, "t", 0, 15, build(batch(15, [b"15", b"16"])))
        write(directory, "u", 0, 0, numbered(2, 1))
        s3.put(directory, url, server)
        ran(spark, url, tmp_path, **given)
        assert written(spark, tmp_path) == list(range(17))
        assert written(spark, tmp_path, "u") == [0, 1]
        store, place = fsspec.core.url_to_fs(url, **server)
        store.rm_file(f"{place}/t-0/{0:020d}.log")
        ran(spark, url, tmp_path, **given)
        assert written(spark, tmp_path) == list(range(17))
        assert s3.SECRET not in json.dumps(progress)
        kept = [path for path in (tmp_path / "checkpoint").rglob("*") if path.is_file()]
        assert kept and not [
            path for path in kept if s3.SECRET in path.read_text("utf-8", "replace")
        ]


@pytest.mark.soak
def test_a_tier_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    local(logs, 0, 50)
    local(logs, 50, 80)
    ran(spark, logs, tmp_path, include="remote")
    remote(logs, 0, 0, 50)
    remote(logs, 1, 50, 80)
    for path in (logs / "t-0").glob("*.log"):
        path.unlink()
    local(logs, 80, 90)
    ran(spark, logs, tmp_path, include="remote", maxOffsetsPerTrigger=4)
    assert written(spark, tmp_path) == list(range(90))
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.rmtree(tmp_path / "out")
    ran(spark, logs, tmp_path, include="remote", maxOffsetsPerTrigger=30)
    assert written(spark, tmp_path) == list(range(90))


def test_the_tier_is_the_only_one_beside_the_log(tmp_path: Path) -> None:
    for include in ("deleted", "remote,deleted", "all"):
        with pytest.raises(OptionError, match="with remote those in tiered storage"):
            parse_stream({"path": str(tmp_path), "include": include})
