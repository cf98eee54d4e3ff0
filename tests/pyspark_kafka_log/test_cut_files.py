"""Files that lose bytes after a query was planned, or while a task reads them: no row is missed in silence."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from codecgen.runtime.errors import CodecError
from kafka_log.read.plan import Split
from kafka_log.segment.kernels import Engine
from kafka_log.segment.positioned_reads import UnreadableError
from pyspark_kafka_log.export import TaskError, export
from pyspark_kafka_log.losses import Losses
from pyspark_kafka_log.options import Options, parse
from pyspark_kafka_log.reader import KafkaLogReader, Task
from pyspark_kafka_log.splits import plan as planning
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.totals import OFFSET, totals_of
from tests.shares import draw_seeds
from tests.support.growing_logs import Growing
from tests.support.paused_queries import Query, paused, until_paused
from tests.support.spark_logs import numbered, write
from tests.support.spark_queries import load
from tests.support.stream_laws import grow, stream, told

pytestmark = pytest.mark.spark
ENGINES: tuple[Engine, ...] = ("arrow", "construct")
FEW = 60
MANY = int(os.environ.get("KAFKA_LOG_CUT_FILES", "490"))
MODES = ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")

SAID = "bytes when it was found, and has"

Row = tuple[str, int, int]


def got(
    tasks: Sequence[tuple[Split, ...]], options: Options
) -> tuple[list[Row], Losses, CodecError | None]:
    """The rows of tasks, what is said to be lost, and how the first task failed that did."""
    reader = KafkaLogReader(options, ("topic", "partition", "offset"))
    rows: list[Row] = []
    losses = Losses()
    try:
        for task in tasks:
            for part in reader.read_rows(Task(task), losses):
                names = part.schema.names
                rows += zip(*(part[name].to_pylist() for name in names), strict=True)
    except CodecError as error:
        return rows, losses, error
    return rows, losses, None


def shortened(root: Path, r: random.Random, logs: Sequence[Growing]) -> str:
    """One file has fewer bytes than before: what was done."""
    log = r.choice(logs)
    file = r.choice(log.files)
    path = log.directory / f"{file.base:020}.log"
    data = path.read_bytes()
    ends = [0]
    for one in file.batches:
        ends.append(ends[-1] + len(one.data))
    how = r.choice(["anywhere", "batches", "unwritten"])
    size = {
        "anywhere": r.randrange(len(data) + 1),
        "batches": r.choice(ends),
        "unwritten": ends[-1],
    }[how]
    os.truncate(path, size)
    return how


def of_batch(root: Path, r: random.Random, engine: Engine, mode: str) -> tuple[Any, Options]:
    given: dict[str, Any] = {"path": str(root), "engine": engine, "mode": mode}
    given["isolationLevel"] = r.choice(["read_committed", "read_uncommitted"])
    if r.random() < 0.5:
        partitions = [path.name.removeprefix("t-") for path in root.iterdir()]
        ends = ",".join(f'"{i}": {r.randrange(1, 60)}' for i in partitions)
        given |= {"endingOffsets": f'{{"t": {{{ends}}}}}', "failOnDataLoss": "false"}
    options = parse(given | {"splitBytes": r.choice([200, 1 << 20])})
    return plan(options), options


def of_stream(root: Path, r: random.Random, engine: Engine, mode: str) -> tuple[Any, Options]:
    isolation = r.choice(["read_committed", "read_uncommitted"])
    now = stream(root, engine=engine, mode=mode, isolationLevel=isolation)
    start = told(now.initial())
    end = told(now.latest(start, limited=False))
    return now.tasks(start, end), now._reading


def keeps(root: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """One history, and one file that is cut."""
    r = random.Random(seed)
    monkeypatch.setattr(planning, "MIN_TASK_BYTES", r.choice([1, 4 << 20]))
    logs = [Growing(root / f"t-{i}", r) for i in range(2)]
    for _ in range(r.randrange(3, 30)):
        grow(logs, r, root, transactions=True)
    for log in logs:
        if r.random() < 0.5:
            log.tear()
    engine, mode = r.choice(ENGINES), r.choice(MODES)
    ask = r.choice([of_batch, of_stream])
    tasks, options = ask(root, r, engine, mode)
    wanted, _, failed = got(tasks, options)
    assert failed is None
    how = shortened(root, r, logs)
    rows, losses, error = got(tasks, options)
    assert not Counter(rows) - Counter(wanted), "rows that were not there"
    if error is not None:
        assert isinstance(error, UnreadableError) and mode == "FAILFAST"
        assert SAID in str(error)
        assert str(root) in str(error.where.file)
    elif Counter(rows) != Counter(wanted):
        assert mode != "FAILFAST"
        assert any(SAID in place for place in losses.first), losses
    if mode == "FAILFAST":
        scan = KafkaLogReader(options, ("offset",)).scan
        counted = 0
        try:
            for task in tasks:
                counted += sum(one.rows for one in totals_of(task, scan, [OFFSET]).values())
        except CodecError:
            assert error is not None
        else:
            assert error is None and counted == len(wanted)
    if error is None and Counter(rows) == Counter(wanted):
        return f"{how} nothing"
    if ask is of_stream:
        assert how != "unwritten", "a stream ends where batches do"
    return f"{how} told"


@pytest.mark.slow
def test_no_row_is_missed_in_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Counter(keeps(tmp_path / str(seed), seed, monkeypatch) for seed in range(FEW))
    assert {"anywhere told", "batches told", "unwritten nothing"} <= set(seen), seen


@pytest.mark.soak
def test_many_histories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in draw_seeds(MANY, first=FEW):
        keeps(tmp_path / str(seed), seed, monkeypatch)


# ---------------------------------------------------------------- while a task reads

BATCHES, MORE, LEFT, RECORDS, PAD = 80, 240, 60, 10, 100_000
EVERY = list(range(BATCHES * RECORDS))


@pytest.fixture(scope="module")
def large() -> bytes:
    """More bytes than a scan reads ahead."""
    return numbered(RECORDS, BATCHES, pad=PAD)


def cuts(data: bytes) -> dict[str, int]:
    """Where the file is cut: after three quarters of its batches, and in the middle of the next one."""
    border = len(numbered(RECORDS, LEFT, pad=PAD))
    return {"batches": border, "half of one": border + len(data) // BATCHES // 2}


@pytest.mark.slow
@pytest.mark.share(ci=2)
@pytest.mark.parametrize("kept", ["batches", "half of one"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", MODES)
def test_a_file_that_is_cut_while_it_is_read(
    directory: Path, large: bytes, kept: str, engine: Engine, mode: str
) -> None:
    path = write(directory, "t", 0, 0, large)
    given = {"path": str(directory), "engine": engine, "mode": mode, "batchRows": "10"}
    options = parse(given)
    reader = KafkaLogReader(options, ("offset", "value"))
    reader.scan = replace(reader.scan, batch_bytes=1 << 20)
    losses = Losses()
    (task,) = plan(options, parallelism=1)
    batches = reader.read_rows(Task(task), losses)
    rows = next(batches)["offset"].to_pylist()
    size = cuts(large)[kept]
    os.truncate(path, size)
    if mode == "FAILFAST":
        with pytest.raises(UnreadableError, match="became shorter") as caught:
            for part in batches:
                rows += part["offset"].to_pylist()
        assert caught.value.where.file == str(path)
        assert rows == EVERY[: LEFT * RECORDS]
        return
    for part in batches:
        rows += part["offset"].to_pylist()
    assert rows == EVERY[: len(rows)] and LEFT * RECORDS <= len(rows) < (LEFT + 1) * RECORDS
    assert len(large) - size <= losses.byte_count <= len(large) - cuts(large)["batches"]
    assert any("became shorter" in place for place in losses.first)


@pytest.mark.slow
@pytest.mark.share(ci=3)
@pytest.mark.parametrize("mode", MODES)
def test_a_query_whose_file_is_cut(
    spark: SparkSession, directory: Path, tmp_path: Path, mode: str
) -> None:
    """One of its two tasks has the file open, and waits for its answer to be taken; so has the other one, or it opens the file afterwards. Each has
    more to read than sockets hold on their way."""
    path = write(directory, "t", 0, 0, numbered(RECORDS, MORE, pad=PAD))
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    frame = load(spark, directory, columns="offset,value", batchRows=10, mode=mode)
    query = Query(paused(frame, tmp_path))
    query.start()
    until_paused(query, tmp_path)
    os.truncate(path, len(numbered(RECORDS, LEFT, pad=PAD)))
    (tmp_path / "go").touch()
    query.join(60)
    assert not query.is_alive()
    if mode == "FAILFAST":
        assert query.rows == -1, query.rows
        assert str(path) in query.error
        assert "became shorter" in query.error or SAID in query.error
    else:
        assert not query.error and LEFT * RECORDS <= query.rows < MORE * RECORDS, query.rows
    path.write_bytes(numbered(2, 5))
    assert load(spark, directory).count() == 10


@pytest.mark.slow
def test_an_export_whose_file_is_cut(
    session: SparkSession, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it was planned: nothing is exported, and the next one has every row."""
    from pyspark_kafka_log.export import job

    data = numbered(2, 10)
    path = write(directory, "t", 0, 0, data)
    out = tmp_path / "out"

    def planned(*given: Any) -> Any:
        tasks = plan(*given)
        os.truncate(path, len(numbered(2, 5)))
        return tasks

    monkeypatch.setattr(job, "plan", planned)
    with pytest.raises(TaskError, match=SAID):
        export(session, directory, out)
    monkeypatch.undo()
    assert not list(out.rglob("*.parquet"))
    path.write_bytes(data)
    assert export(session, directory, out).rows == 20
