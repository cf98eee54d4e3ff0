"""Jobs of several tasks: what is committed, and what a job leaves that ends in the middle."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import kafka_log
from kafka_log import DirectoryError, LogDirectory, SinkError
from kafka_log.write.output_lock import OutputLockedError
from kafka_log.write.sink import commit_journal as moves
from kafka_log.write.sink import staging
from kafka_log.write.sink.commit import Micro, abort, commit, make_batch_job, new_job
from kafka_log.write.sink.log_format import LogFormat, WriteJob
from kafka_log.write.sink.staging import Staged, to_json, write_task
from tests.support.power_loss import PowerLoss, power_loss
from tests.support.written import CODECS, files, records, rows


class Killed(BaseException):
    """Stands for the end of a process: nobody cleans up."""


def job_of(target: Path, **to: object) -> WriteJob:
    overwrite = bool(to.pop("overwrite", False))
    return new_job(target, LogFormat("t", **to), overwrite=overwrite)  # type: ignore[arg-type]


def staged_of(job: WriteJob, tasks: int, count: int = 60) -> list[list[Staged]]:
    out = []
    for task in range(tasks):
        found = write_task(job, task, records(count, task, headers=False, times=False).to_batches())
        out.append(Staged.many_from_json(to_json(found)))
    return out


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize(("magic", "codec"), CODECS)
def test_tasks_follow_each_other(magic: int, codec: str, tmp_path: Path) -> None:
    to = LogFormat("t", 2, codec, magic=magic, batch_bytes=500, segment_bytes=1500)

    def job(target: Path) -> WriteJob:
        return replace(new_job(target, to), created_ms=1_700_000_000_000)

    together, apart = tmp_path / "together", tmp_path / "apart"
    one = job(together)
    commit(one, staged_of(one, 3))
    for task in range(3):
        given = records(60, task, headers=False, times=False)
        each = job(apart)
        commit(each, [write_task(each, task, given.to_batches())])
    assert rows(together) == rows(apart)
    ours, theirs = files(together), files(apart)
    assert {n for n in ours if n.endswith(".log")} == {n for n in theirs if n.endswith(".log")}
    assert {n: d for n, d in ours.items() if "metadata" not in n} == {
        n: d for n, d in theirs.items() if "metadata" not in n
    }
    assert LogDirectory(together).check().num_rows == 0


@pytest.mark.share(4)
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_job_that_is_killed_anywhere(
    overwrite: bool, is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each rename of a commit: before the decision all is as it was, after it the next job makes it whole, or an abort of this one."""
    start = tmp_path / "start"
    start.mkdir()
    if is_there:
        kafka_log.write_log(start, records(40, 9), topic="t", partitions=2)
    before = rows(start) if is_there else []
    real = Path.replace
    cut = 0
    outcomes = set()
    while True:
        target = tmp_path / f"{cut}"
        shutil.copytree(start, target)
        job = job_of(target, partitions=2, overwrite=overwrite, segment_bytes=1000, batch_bytes=300)
        staged = staged_of(job, 2)
        left = cut

        def limited(self: Path, goal: Path) -> Path:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return real(self, goal)

        monkeypatch.setattr(Path, "replace", limited)
        try:
            commit(job, staged)
            killed = False
        except Killed:
            killed = True
        monkeypatch.setattr(Path, "replace", real)
        decided = any(target.glob(".kafka-log-*/commit.json"))
        if killed and not decided:
            assert (rows(target) if is_there else []) == before
        outcomes.add((killed, decided))
        if decided and cut % 2:
            with moves.lock_target(target):
                moves.recover(target)
        else:
            abort(job)  # what Spark does, where it still can
        assert list(target.glob(".kafka-log*")) == []
        if killed and not decided:
            assert files(target) == files(start)
        else:
            found = rows(target)
            kept = 0 if overwrite else len(before)
            assert len(found) == kept + 120
            assert LogDirectory(target).check().num_rows == 0
        if not killed:
            break
        cut += 1
    assert outcomes == {(True, False), (True, True), (False, False)}


@pytest.mark.slow
def test_a_reader_never_sees_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While segments are added, each moment shows a log that is whole, and every segment with its indexes."""
    kafka_log.write_log(tmp_path, records(40, 9), topic="t")
    job = job_of(tmp_path, segment_bytes=1000, batch_bytes=300)
    staged = staged_of(job, 3)
    real = Path.replace
    seen = []

    def watched(self: Path, goal: Path) -> Path:
        done = real(self, goal)
        offsets = [row["offset"] for row in rows(tmp_path, "offset")]
        assert offsets == list(range(len(offsets)))
        for path in (tmp_path / "t-0").glob("*.log"):
            assert path.with_suffix(".index").exists()
        seen.append(len(offsets))
        return done

    monkeypatch.setattr(Path, "replace", watched)
    commit(job, staged)
    assert seen == sorted(seen)
    assert seen[0] == 40
    assert seen[-1] == 220
    assert len(set(seen)) > 5


def test_nothing_is_seen_before(tmp_path: Path) -> None:
    job = job_of(tmp_path, partitions=2)
    staged_of(job, 2)
    with pytest.raises(DirectoryError):
        kafka_log.discover(tmp_path)
    kafka_log.write_log(tmp_path, records(5), topic="u")
    assert {p.topic for p in kafka_log.discover(tmp_path)} == {"u"}
    assert len(list(tmp_path.glob(".kafka-log-*"))) == 1  # another job may be at work
    old = job_of(tmp_path)
    (place,) = tmp_path.glob(".kafka-log-*")
    for path in (place, *place.rglob("*")):
        os.utime(path, (1, 1))
    commit(old, staged_of(old, 1))
    assert list(tmp_path.glob(".kafka-log-*")) == []
    abort(job)


@pytest.mark.parametrize("days", [-3, 3])
def test_a_clock_of_the_file_system_that_differs(
    days: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the caller's own job is removed, nor one that lives, whichever clock is behind."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + days * 86_400)
    living = job_of(tmp_path)
    staged = staged_of(living, 1)
    kafka_log.write_log(tmp_path, records(5), topic="u")
    commit(living, staged)
    assert len(rows(tmp_path / "t-0")) == 60
    own = job_of(tmp_path)
    staged = staged_of(own, 1)
    (place,) = tmp_path.glob(".kafka-log-*")
    for path in (place, *place.rglob("*")):  # as written when the file system's clock was wrong
        os.utime(path, (1, 1))
    commit(own, staged)
    assert len(rows(tmp_path / "t-0")) == 120
    assert list(tmp_path.glob(".kafka-log-*")) == []


def test_a_task_that_waits_for_days_marks_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_of(tmp_path, segment_bytes=1_000_000)
    clock = iter(range(0, 10**9, 86_400))

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(3):
            (place,) = tmp_path.glob(".kafka-log-*")
            for path in (place, *place.rglob("*")):
                os.utime(path, (1, 1))
            yield from records(5).to_batches()
            kafka_log.write_log(tmp_path, records(5), topic="u")

    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    commit(job, [write_task(job, 0, batches())])
    assert len(rows(tmp_path / "t-0")) == 15


def test_a_task_that_goes_on_after_its_job_was_removed(tmp_path: Path) -> None:
    """It leaves nothing either."""
    job = job_of(tmp_path, segment_bytes=1_000_000)

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(4):
            yield pa.record_batch({"value": [b"x" * 100_000] * 50})
            if number == 1:
                assert any(tmp_path.glob(".kafka-log-*/*/t-0/*.log"))
                abort(job)

    with pytest.raises(FileNotFoundError):
        write_task(job, 0, batches())
    assert list(tmp_path.iterdir()) == []


def test_given_offsets_of_several_tasks(tmp_path: Path) -> None:
    job = job_of(tmp_path)

    def task(number: int, *offsets: int) -> list[Staged]:
        table = pa.table({"value": [b"%d" % o for o in offsets], "offset": offsets})
        return write_task(job, number, table.to_batches())

    commit(job, [task(0, 10, 12), task(1, 3, 4, 7)])
    assert [row["offset"] for row in rows(tmp_path)] == [3, 4, 7, 10, 12]
    job = job_of(tmp_path)
    before = files(tmp_path)
    with pytest.raises(SinkError, match="19 in t-0 is not after 20, the last offset there"):
        commit(job, [task(0, 13, 20), task(1, 19)])
    abort(job)
    assert files(tmp_path) == before
    assert list(tmp_path.glob(".kafka-log*")) == []


@pytest.mark.parametrize("tail", [b"\0" * 100, b"\0" * 4 + b"abc", None])
def test_a_log_that_does_not_end_with_a_batch(tail: bytes | None, tmp_path: Path) -> None:
    kafka_log.write_log(tmp_path, records(40), topic="t", batch_bytes=300)
    path = tmp_path / "t-0" / f"{0:020d}.log"
    data = path.read_bytes()
    path.write_bytes(data[:-7] if tail is None else data + tail)
    before = files(tmp_path)
    with pytest.raises(DirectoryError, match="salvage the log before"):
        kafka_log.write_log(tmp_path, records(40), topic="t")
    assert files(tmp_path) == before
    kafka_log.write_log(tmp_path, records(4), topic="t", mode="overwrite")
    assert len(rows(tmp_path)) == 4


def test_a_log_start_is_kept(tmp_path: Path) -> None:
    """A broker deletes a log that ends before its start."""
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 1000\n")
    kafka_log.write_log(tmp_path, records(5), topic="t")
    assert [row["offset"] for row in rows(tmp_path)] == list(range(1000, 1005))
    kafka_log.write_log(tmp_path, records(5), topic="t", mode="overwrite")
    assert [row["offset"] for row in rows(tmp_path)] == list(range(1000, 1005))


@pytest.mark.parametrize("moved", [0, 1])
def test_moves_are_on_the_disk_before_their_journal_goes(moved: int, tmp_path: Path) -> None:
    """Also those that a killed process has made. At the last step the power goes."""
    place = tmp_path / "job"
    place.mkdir()
    both = [moves.Move(f"job/{topic}", f"{topic}-0/log") for topic in "tu"]
    for move in both:
        (tmp_path / move.source).write_bytes(b"")
        (tmp_path / move.target).parent.mkdir()
    moves.write_journal(tmp_path, place, both)
    with pytest.raises(PowerLoss), power_loss(3):
        for move in both[:moved]:
            (tmp_path / move.source).replace(tmp_path / move.target)
        moves.make_moves(tmp_path, place)
    assert not (place / moves.DECIDED).exists()
    assert all((tmp_path / move.target).exists() for move in both)


def test_micro_batches_come_once(tmp_path: Path) -> None:
    whole = new_job(tmp_path, LogFormat("t", 2))
    for query, batch, added in (("a", 0, 60), ("a", 1, 60), ("a", 1, 0), ("b", 0, 60), ("a", 0, 0)):
        before = len(rows(tmp_path)) if any(tmp_path.glob("t-*")) else 0
        job = make_batch_job(replace(whole, id=f"{query}{batch}"), batch)
        commit(job, staged_of(job, 1), Micro(query, batch))
        assert len(rows(tmp_path)) == before + added
        assert list(tmp_path.glob(".kafka-log-*.writing")) == []


@pytest.mark.parametrize("journal", [b"", b"[[", b"{}", b'["a"]', b"[[1, 2]]", b"\xff"])
def test_damaged_journal_is_refused(journal: bytes, tmp_path: Path) -> None:
    kafka_log.write_log(tmp_path, records(4), topic="t")
    place = tmp_path / f"{staging.PREFIX}a{staging.SUFFIX}"
    place.mkdir()
    (place / moves.DECIDED).write_bytes(journal)
    before = files(tmp_path)
    with pytest.raises(DirectoryError, match="move its directory away") as caught:
        kafka_log.write_log(tmp_path, records(4), topic="t")
    assert caught.value.path == place / moves.DECIDED
    assert files(tmp_path) == before
    assert (place / moves.DECIDED).read_bytes() == journal


RUN = """
    import resource, sys
    import kafka_log
    from tests.support.written import records
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    try:
        kafka_log.write_log(sys.argv[1], records(4000), topic="t", partitions=1)
    except OSError as error:
        print("error:", error)
"""


@pytest.mark.slow
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    kafka_log.write_log(tmp_path, records(40), topic="t")
    before = files(tmp_path)
    done = subprocess.run(
        # -B: Python itself would leave half a file of bytecode, for all who come after.
        [sys.executable, "-B", "-c", textwrap.dedent(RUN), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "error:" in done.stdout, done.stderr
    assert files(tmp_path) == before
    assert list(tmp_path.glob(".kafka-log*")) == []


HOLD = """
    import fcntl, sys
    file = open(sys.argv[1], "ab")
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_directory_in_which_a_broker_runs(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLD), str(tmp_path / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as broker:
        assert broker.stdout is not None
        broker.stdout.readline()
        with pytest.raises(
            DirectoryError, match=rf"a broker is running in it \(process {broker.pid}\)"
        ):
            kafka_log.write_log(tmp_path, records(4), topic="t")
        broker.communicate()
    assert list(tmp_path.iterdir()) == [tmp_path / ".lock"]


@pytest.mark.slow
def test_another_job_is_waited_for(tmp_path: Path) -> None:
    """Threads of one process too; each has its rows."""
    with ThreadPoolExecutor(8) as threads:
        jobs = [
            threads.submit(kafka_log.write_log, tmp_path, records(5, seed), topic=f"t{seed % 3}")
            for seed in range(24)
        ]
        for job in jobs:
            job.result()
    assert len(rows(tmp_path)) == 24 * 5
    assert LogDirectory(tmp_path).check().num_rows == 0
    assert list(tmp_path.glob(".kafka-log*")) == []


def test_nobody_has_the_lock_twice(tmp_path: Path) -> None:
    inside = []

    def work(i: int) -> None:
        with moves.lock_target(tmp_path):
            inside.append(i)
            time.sleep(0.005)
            assert inside.pop() == i and not inside

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(30)))


def test_the_wait_ends(tmp_path: Path) -> None:
    held = threading.Event()
    over = threading.Event()

    def hold() -> None:
        with moves.lock_target(tmp_path):
            held.set()
            over.wait(60)

    with ThreadPoolExecutor(1) as threads:
        job = threads.submit(hold)
        assert held.wait(60)
        too_long = pytest.raises(
            OutputLockedError, match=rf"process {os.getpid()} on \S+ .* writes into it: wait"
        )
        with too_long, moves.lock_target(tmp_path, 0.2):
            pass
        over.set()
        job.result()
    with moves.lock_target(tmp_path, 0):
        pass


def test_places_that_are_no_log_directories(tmp_path: Path) -> None:
    kafka_log.write_log(tmp_path, records(4), topic="t")
    for path in (tmp_path / "t-0", tmp_path / "t-0" / f"{0:020d}.log"):
        with pytest.raises(DirectoryError, match="a log directory is needed"):
            kafka_log.write_log(path, records(4), topic="t")


@pytest.mark.slow
def test_more_partitions_than_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each goes on with its segment when its file was closed meanwhile."""
    monkeypatch.setattr(staging, "OPEN_FILES", 2)
    monkeypatch.setattr(staging, "BATCH_ROWS", 100)
    monkeypatch.setattr(staging, "FLUSH_BYTES", 300)
    kafka_log.write_log(tmp_path, records(3000), topic="t", partitions=7)
    assert len(rows(tmp_path)) == 3000
    assert [len(p.segments) for p in kafka_log.discover(tmp_path)] == [1] * 7
    assert LogDirectory(tmp_path).check().num_rows == 0
