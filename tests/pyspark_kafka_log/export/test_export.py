"""Records as tables of other formats: each once, all or none, whatever ends an export."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kafka_log import discover
from kafka_log.cli import main, parser
from kafka_log.cli.interruption import Interrupted
from kafka_log.read.parquet import Compression
from kafka_log.read.plan import Split
from kafka_log.read.selection import Selection
from kafka_log.segment.positioned_reads import UnreadableError
from kafka_log.write.output_lock import staged_path
from kafka_log.write.staged_output import OutputError
from pyspark_kafka_log.export import (
    DataLossError,
    ExportError,
    TaskError,
    command,
    export,
    target_of,
)
from pyspark_kafka_log.export.command import export_by_spark
from pyspark_kafka_log.export.state import State
from pyspark_kafka_log.export.writing import Job, TaskResult
from pyspark_kafka_log.options import Options
from pyspark_kafka_log.splits.logs import Log
from pyspark_kafka_log.splits.query_logs import QueryLogs
from tests.paths import ROOT
from tests.support.power_loss import PowerLoss, power_loss
from tests.support.spark_exports import expected, plain
from tests.support.spark_logs import TIME, batch, build, flipped, numbered, write
from tests.support.spark_tables import KINDS, Table, here

SAMPLES = ROOT / "samples" / "kafka-4.x"


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """One of each format, which is not there yet."""
    if request.param != "parquet":
        pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[request.param])
    return Table(request.param, tmp_path)


@pytest.mark.slow
@pytest.mark.share(3)
def test_what_brokers_wrote(table: Table) -> None:
    done = table.export(SAMPLES)
    assert plain(table.rows()) == plain(expected(SAMPLES))
    assert done.rows == len(expected(SAMPLES)) and done.files == len(table.files())
    again = table.export(SAMPLES)
    assert (again.rows, again.files, again.ends) == (0, 0, done.ends)


@pytest.mark.share(3)
def test_a_log_that_grows(table: Table, directory: Path) -> None:
    """The rest of a partition, new segments, new partitions and new topics come; nothing comes twice."""
    write(directory, "t", 0, 0, numbered(5, 2))
    assert table.export(directory).rows == 10
    write(directory, "t", 0, 0, numbered(5, 3))
    write(directory, "t", 0, 15, build(batch(15, [b"15", b"16"])))
    write(directory, "t", 1, 0, numbered(3, 1))
    write(directory, "u", 0, 0, numbered(2, 1))
    done = table.export(directory)
    assert (done.rows, done.first) == (12, {("t", 0): 10})
    assert done.ends == {("t", 0): 17, ("t", 1): 3, ("u", 0): 2}
    assert plain(table.rows()) == plain(expected(directory))


def test_topics_whose_directories_are_escaped(table: Table, directory: Path) -> None:
    """Names of directories are escaped, paths in Delta's log once more: the files are those of the table."""
    for topic in ("a b", "50%", "\u00fc"):
        write(directory, topic, 0, 0, numbered(5, 1))
    assert table.export(directory).rows == 15
    assert plain(table.rows()) == plain(expected(directory))
    assert len(table.files()) == 3


@pytest.mark.parametrize(
    ("codec", "told"),
    [("zstd", "ZSTD"), ("lz4", "LZ4"), ("snappy", "SNAPPY"), ("none", "UNCOMPRESSED")],
)
def test_compression(tmp_path: Path, directory: Path, codec: Compression, told: str) -> None:
    """It may change from one export to the next."""
    table = Table("parquet", tmp_path)
    write(directory, "t", 0, 0, numbered(50, 2))
    table.export(directory)
    write(directory, "t", 0, 0, numbered(50, 4))
    table.export(directory, codec=codec)
    assert plain(table.rows()) == plain(expected(directory))
    found = {pq.read_metadata(path).row_group(0).column(1).compression for path in table.files()}
    assert found == {"ZSTD", told}


@pytest.mark.share(3)
def test_what_is_gone_before_it_is_exported(table: Table, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(5, 2))
    write(directory, "u", 0, 0, numbered(5, 2))
    table.export(directory)
    shutil.rmtree(directory / "t-0")
    write(directory, "t", 0, 15, build(batch(15, [b"15"])))
    write(directory, "u", 0, 0, numbered(5, 1))
    losses = (
        "t-0 begins at offset 15: 10 to 14 are gone",
        "u-0 ends before offset 5, and was exported up to 9",
    )
    with pytest.raises(DataLossError) as caught:
        table.export(directory)
    assert caught.value.losses == losses and len(table.rows()) == 20
    done = table.export(directory, ignore=True)
    assert (done.rows, done.missed, len(table.rows())) == (1, losses, 21)


def test_a_log_that_begins_where_the_last_export_ended(tmp_path: Path, directory: Path) -> None:
    table = Table("parquet", tmp_path)
    write(directory, "t", 0, 0, numbered(5, 2))
    table.export(directory)
    shutil.rmtree(directory / "t-0")
    write(directory, "t", 0, 10, build(batch(10, [b"10"])))
    done = table.export(directory)
    assert (done.rows, done.missed) == (1, ())


def test_a_segment_that_is_deleted_before_its_log_is_looked_at(
    tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log's end is unknown then, and the task finds the records under the new name."""
    table = Table("parquet", tmp_path)
    write(directory, "t", 0, 0, numbered(5, 2))
    table.export(directory)
    last = write(directory, "t", 0, 10, build(batch(10, [b"10"])))
    select = QueryLogs.select

    def select_before(seen: QueryLogs, options: Options) -> Sequence[Log]:
        found = select(seen, options)
        if last.exists():  # the plan selects again
            last.rename(last.with_name(f"{last.name}.deleted"))
        return found

    monkeypatch.setattr(QueryLogs, "select", select_before)
    done = table.export(directory)
    assert (done.rows, done.ends, done.missed) == (1, {("t", 0): 11}, ())


def test_a_log_whose_end_cannot_be_read(tmp_path: Path, directory: Path) -> None:
    """It may end before what was exported: an export that needs none of the unreadable bytes fails too."""
    table = Table("parquet", tmp_path)
    write(directory, "t", 0, 0, numbered(5, 2))
    wanted = {"endingOffsets": '{"t": {"0": 10}}'}
    assert table.export(directory, **wanted).rows == 10
    (directory / "t-0" / f"{10:020}.log").mkdir()
    with pytest.raises(UnreadableError, match="it cannot be read"):
        table.export(directory, **wanted)


def test_an_end_for_each_partition(tmp_path: Path, directory: Path) -> None:
    """It is one of the filters, which stay the same."""
    write(directory, "t", 0, 0, numbered(5, 2))
    write(directory, "t", 1, 0, numbered(5, 2))
    table = Table("parquet", tmp_path)
    for rows in (10, 0):
        assert table.export(directory, endingOffsets='{"t": {"0": 7, "1": 3}}').rows == rows
    with pytest.raises(ExportError, match="earlier exports had other filters"):
        table.export(directory, endingOffsets='{"t": {"0": 7, "1": 4}}')


def test_of_several_copies_the_newest_is_exported_once(tmp_path: Path) -> None:
    """One next offset of a partition cannot say where two copies end: the shorter copy would seem truncated."""
    for name, batches in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        write(tmp_path / name, "t", 0, 0, numbered(5, batches))
    table = Table("parquet", tmp_path)
    for rows in (10, 0):
        done = table.export(tmp_path / "[ab]", replicas="newest")
        assert (done.rows, done.missed) == (rows, ())
    for ignore in (False, True):
        with pytest.raises(ExportError, match="set replicas to newest"):
            table.export(tmp_path / "[ab]", ignore=ignore, replicas="keep")
    assert sorted(row["offset"] for row in table.rows()) == list(range(10))


def test_an_unknown_partition_column_is_refused(tmp_path: Path, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(5, 1))
    table = Table("parquet", tmp_path)
    with pytest.raises(ExportError) as caught:
        table.export(directory, by=("topic", "offset"))
    reason = "unknown partition column 'offset'; known: topic, partition, date"
    assert (caught.value.target, caught.value.reason) == (table.place, reason)


@pytest.mark.slow
def test_iceberg_keeps_the_state_in_a_property(tmp_path: Path, directory: Path) -> None:
    """Tables of users have this name: later versions must find the state by it."""
    pyiceberg = pytest.importorskip("pyiceberg.catalog")
    write(directory, "t", 0, 0, numbered(5, 2))
    table = Table("iceberg", tmp_path)
    table.export(directory)
    found = pyiceberg.load_catalog("default", **table.catalog).load_table(table.place)
    state = State.from_json("table", found.properties["kafka-log.export.state"])
    assert (state.number, state.ends) == (1, {("t", 0): 10})
    assert found.current_snapshot().summary["kafka-log.export.number"] == "1"


def test_iceberg_makes_a_table_with_its_partitions_or_none(tmp_path: Path, directory: Path) -> None:
    """An export that ends before its commit leaves an empty table, which only the same export fills."""
    pyiceberg = pytest.importorskip("pyiceberg.catalog")
    write(directory, "t", 0, 0, numbered(5, 2))
    table = Table("iceberg", tmp_path)
    schema = pa.schema([("topic", pa.string())])
    with pytest.raises(ValueError, match="Could not find field"):
        table.target().begin("0" * 12, schema, ("topic", "partition"))
    catalog = pyiceberg.load_catalog("default", **table.catalog)
    assert not catalog.table_exists(table.place)

    def ended(tasks: Sequence[tuple[Split, ...]], job: Job) -> list[TaskResult]:
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            table.export(directory, ended)
    with pytest.raises(ExportError, match="is empty, and has other columns or partitions"):
        table.export(directory, by=("topic",))
    with pytest.raises(ExportError, match="is empty, and has other columns or partitions"):
        table.export(directory, includeHeaders="true")
    assert table.export(directory).rows == 10
    found = catalog.load_table(table.place).spec()
    assert [(one.name, str(one.transform)) for one in found.fields] == [
        ("topic", "identity"),
        ("date", "day"),
    ]


def test_an_export_that_asks_for_something_else(table: Table, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(5, 2))
    table.export(directory)
    before = table.rows()
    others: list[tuple[tuple[str, ...], dict[str, str], str]] = [
        (("topic",), {}, "partitions"),
        (("topic", "date"), {"includeHeaders": "true"}, "columns"),
        (("topic", "date"), {"isolationLevel": "read_committed"}, "filters"),
        (("topic",), {"isolationLevel": "read_committed"}, "filters and partitions"),
    ]
    for by, options, word in others:
        with pytest.raises(
            ExportError, match=f"earlier exports had other {word}: choose another table"
        ):
            table.export(directory, here, by, ignore=False, **options)
    assert table.rows() == before


@pytest.mark.spark
def test_inside_of_what_is_read(session: SparkSession, directory: Path, tmp_path: Path) -> None:
    """No broker starts with a directory that it does not know."""
    write(directory, "t", 0, 0, numbered(5, 2))
    before = sorted(directory.rglob("*"))
    for kind in ("parquet", "delta"):
        for place in (directory, directory / "out", directory / "t-0", f"file:{directory}/out"):
            with pytest.raises(OutputError, match=r"it lies inside .*, which is read"):
                export(session, directory, place, kind)
    assert sorted(directory.rglob("*")) == before
    assert export(session, directory, tmp_path / "beside").rows == 10


class _Here:
    """Runs the tasks of the command in this process, in the place of a SparkRunner."""

    parallelism = 1

    def __call__(self, tasks: Sequence[tuple[Split, ...]], job: Job) -> list[TaskResult]:
        return here(tasks, job)


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command starts no Spark."""
    monkeypatch.setattr(command, "_session", lambda *arguments: None)
    monkeypatch.setattr(command, "SparkRunner", lambda *arguments: _Here())


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_the_command_writes_nothing_inside_of_what_it_reads(
    kind: str, directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(directory, "t", 0, 0, numbered(5, 2))
    before = sorted(directory.rglob("*"))
    words = ["export", str(directory), "--spark", "--format", kind, "--out"]
    for place in (directory, directory / "out", directory / "t-0", f"file:{directory}/out"):
        assert main([*words, str(place)]) == 2
        assert "which is read: choose a directory outside" in capsys.readouterr().err
    assert sorted(directory.rglob("*")) == before
    assert main([*words, str(tmp_path / "beside")]) == 0
    assert "added 10 rows" in capsys.readouterr().err


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--offsets", "-5:"], "with --spark give offsets from 0 on"),
        (["--offsets", ":-5"], "with --spark give offsets from 0 on"),
        (["--columns", "nope"], "there is no column 'nope'; known: key, value"),
        (["--columns", "key,key"], "key is named twice"),
        (["--columns", ""], "a name is empty in"),
        (["--partition-by", "offset"], "unknown partition column 'offset'"),
        (["--format", "iceberg", "--out", "table"], "an Iceberg table needs a namespace"),
        (
            ["--format", "iceberg", "--out", "a.b", "--catalog", "nope"],
            "the catalog is not in PyIceberg's configuration",
        ),
        (["--view", "offsets"], "--view does not go with --spark"),
    ],
)
def test_options_that_the_command_cannot_take(
    arguments: list[str],
    message: str,
    directory: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(directory, "t", 0, 0, numbered(5, 2))
    out = tmp_path / "table"
    assert main(["export", str(directory), "--spark", "--out", str(out), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_a_task_that_fails_adds_nothing(table: Table, directory: Path) -> None:
    write(directory, "a", 0, 0, numbered(5, 2))
    data = numbered(5, 2)
    write(directory, "b", 0, 0, flipped(data, len(data) - 3))
    with pytest.raises(Exception, match="stored checksum"):
        table.export(directory)
    assert table.files() == []
    write(directory, "b", 0, 0, data)
    table.export(directory)
    assert plain(table.rows()) == plain(expected(directory))


@pytest.mark.slow
def test_two_exports_at_once(table: Table, directory: Path) -> None:
    """The one that is done first is the one that counts; of Parquet files, where nothing tells which one that is, the one that began first."""
    write(directory, "t", 0, 0, numbered(5, 1))
    table.export(directory)
    write(directory, "t", 0, 0, numbered(5, 2))
    if table.kind == "parquet":
        table.refused(directory)
        table.export(directory)
    else:
        table.overtaken(directory, 5)
    assert plain(table.rows()) == plain(expected(directory))
    assert len(table.files()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["commit", "clean"])
def test_an_interruption_says_whether_rows_were_added(
    name: str, table: Table, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C just after the commit, or before it. The next export has each row once."""
    write(directory, "t", 0, 0, numbered(5, 1))

    def ended(tasks: Sequence[tuple[Split, ...]], job: Job) -> list[TaskResult]:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=r"^nothing was added$"):
        table.export(directory, ended)
    target = table.target()
    plain_call = getattr(type(target), name)

    def call(*given: object) -> None:
        plain_call(*given)
        raise KeyboardInterrupt

    with (
        monkeypatch.context() as patched,
        pytest.raises(Interrupted, match="rows may have been added"),
    ):
        patched.setattr(type(target), name, call)
        table.export(directory)
    assert table.export(directory).rows == 0
    assert plain(table.rows()) == plain(expected(directory))


def test_iceberg_keeps_files_of_a_commit_without_an_answer(
    tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog has added them, and its answer is lost."""
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    table = Table("iceberg", tmp_path)
    write(directory, "t", 0, 0, numbered(5, 1))
    table.export(directory)
    write(directory, "t", 0, 0, numbered(5, 2))
    plain_call = sql.SqlCatalog.commit_table

    def commit(*given: object) -> None:
        plain_call(*given)
        raise RuntimeError("no answer")

    with monkeypatch.context() as patched, pytest.raises(ExportError, match="no answer"):
        patched.setattr(sql.SqlCatalog, "commit_table", commit)
        table.export(directory)
    assert table.export(directory).rows == 0
    assert plain(table.rows()) == plain(expected(directory))


def test_damaged_batches_are_counted(table: Table, directory: Path) -> None:
    data = numbered(5, 3)
    write(directory, "t", 0, 0, flipped(data, len(numbered(5, 2)) - 2))
    done = table.export(directory, mode="PERMISSIVE")
    assert (done.rows, done.damaged) == (15, 5)
    assert len(table.rows()) == 15


def test_a_place_that_is_something_else(table: Table, tmp_path: Path, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(5, 1))
    if table.kind == "iceberg":
        from pyiceberg.catalog import load_catalog

        catalog = load_catalog("default", **table.catalog)
        catalog.create_namespace("logs")
        rows = pa.table({"a": [1]})
        catalog.create_table("logs.records", rows.schema).append(rows)
    else:
        (tmp_path / "table").mkdir()
        (tmp_path / "table" / "mine.txt").write_text("mine")
    with pytest.raises(
        ExportError, match=r"not made by an export|no export wrote|is not a Delta table"
    ):
        table.export(directory)


@pytest.mark.slow
@pytest.mark.parametrize("steps", range(6))
def test_parquet_that_is_ended_while_files_take_their_places(
    tmp_path: Path, directory: Path, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a kill after so many renames: the next export finishes it."""
    table = Table("parquet", tmp_path)
    write(directory, "t", 0, 0, numbered(5, 1))
    write(directory, "u", 0, 0, numbered(5, 1))
    table.export(directory)
    for topic in "tu":
        write(directory, topic, 0, 0, numbered(5, 2))
    left = steps
    real = Path.replace

    def replace(path: Path, to: Path) -> Path:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        return real(path, to)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "replace", replace)
        table.export(directory)
        raise KeyboardInterrupt  # more steps than there are
    table.export(directory)
    assert plain(table.rows()) == plain(expected(directory))
    assert {child.name for child in (tmp_path / "table").iterdir()} == {
        "_kafka_log_export",
        "topic=t",
        "topic=u",
    }
    assert [child.name for child in (tmp_path / "table/_kafka_log_export").iterdir()] == [
        "state.json"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("steps", range(1, 7))
def test_parquet_after_a_power_loss(tmp_path: Path, directory: Path, steps: int) -> None:
    """As by a power loss after so many changes of directories, which had not all reached the disk: no row is lost or twice."""
    table = Table("parquet", tmp_path)
    write(directory, "t", 0, 0, numbered(5, 1))
    table.export(directory)
    write(directory, "t", 0, 0, numbered(5, 2))
    write(directory, "u", 0, 0, numbered(5, 1))
    with suppress(PowerLoss), power_loss(steps):
        table.export(directory)
        raise PowerLoss  # more steps than there are
    table.export(directory)
    assert plain(table.rows()) == plain(expected(directory))


def test_a_file_that_is_missing_in_an_interrupted_export(tmp_path: Path, directory: Path) -> None:
    table = Table("parquet", tmp_path)
    write(directory, "t", 0, 0, numbered(5, 1))
    with pytest.raises(PowerLoss), power_loss(2):
        table.export(directory)
    (file,) = table.files()
    assert file.parent.parent.parent == tmp_path / "table"
    file.unlink()
    for _ in range(2):
        with pytest.raises(ExportError, match=rf"of an interrupted export is gone: {file};"):
            table.export(directory)


def test_what_was_left_by_one_that_was_killed_is_removed(tmp_path: Path, directory: Path) -> None:
    table = Table("parquet", tmp_path)
    write(directory, "t", 0, 0, numbered(5, 1))
    table.export(directory)
    own = tmp_path / "table" / "_kafka_log_export"
    (own / "abc" / "topic=t").mkdir(parents=True)
    (own / "abc" / "topic=t" / "part-0.parquet").write_bytes(b"")
    staged_path(own / "commit.json").write_bytes(b"{")
    table.export(directory)
    assert [path.name for path in own.iterdir()] == ["state.json"]


@pytest.mark.parametrize("name", ["state.json", "commit.json"])
@pytest.mark.parametrize("data", [b"", b"{", b"{}", b"[]", b"\xff"])
def test_damaged_state_or_journal_is_refused(
    name: str, data: bytes, tmp_path: Path, directory: Path
) -> None:
    table = Table("parquet", tmp_path)
    write(directory, "t", 0, 0, numbered(5, 1))
    table.export(directory)
    path = tmp_path / "table" / "_kafka_log_export" / name
    path.write_bytes(data)
    with pytest.raises(ExportError, match=r"cannot be read: .* export to another"):
        table.export(directory)
    assert path.read_bytes() == data


def test_days(tmp_path: Path, directory: Path) -> None:
    """Files go by the day of the timestamp in UTC; records without a day that calendars have lie together."""
    day = 86_400_000
    first = -62_135_596_800_000  # 0001-01-01
    times = [0, day - 1, day, -2, first, first - 1, 253_402_300_799_999, 253_402_300_800_000]
    entries = [
        batch(i, [b"%d" % i], base_timestamp=time, max_timestamp=time)
        for i, time in enumerate(times)
    ]
    write(directory, "t", 0, 0, build(*entries))
    table = Table("parquet", tmp_path)
    table.export(directory, by=("date",))
    names = sorted(path.parent.name for path in table.files())
    assert names == [
        "date=0001-01-01",
        "date=1969-12-31",
        "date=1970-01-01",
        "date=1970-01-02",
        "date=9999-12-31",
        "date=__HIVE_DEFAULT_PARTITION__",
    ]


@pytest.mark.slow
def test_spark_runs_it(session: SparkSession, tmp_path: Path, directory: Path) -> None:
    """Tasks of Spark write what tasks of this process do, tell how far they are, and say what is wrong with a log."""
    write(directory, "t", 0, 0, numbered(50, 4))
    write(directory, "u", 0, 0, numbered(50, 4))
    seen: list[tuple[int, int]] = []
    out = tmp_path / "table"
    options = {"minPartitions": "4"}
    done = export(
        session, directory, out, options=options, progress=lambda *told: seen.append(told)
    )
    assert (done.rows, seen[-1][0]) == (400, seen[-1][1])
    frame = session.read.parquet(str(out))
    assert frame.where("topic = 'u'").count() == 200
    assert frame.selectExpr("min(timestamp)").first()[0].timestamp() * 1000 == TIME  # type: ignore[index]
    for codec in get_args(Compression):
        place = tmp_path / codec
        export(session, directory, place, compression=codec)
        assert session.read.parquet(str(place)).agg({"offset": "sum"}).first()[0] == 199 * 200  # type: ignore[index]
    data = numbered(50, 5)
    write(directory, "t", 0, 0, flipped(data, len(data) - 3))
    with pytest.raises(TaskError, match=r"^stored checksum \d+, computed .*t-0/0+\.log"):
        export(session, directory, out, options=options)
    shutil.rmtree(directory / "t-0")
    assert export(session, directory, out, options=options).rows == 0


@pytest.mark.spark
def test_the_command_tells_who_it_is_once(
    session: SparkSession, tmp_path: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here of a partition that goes between the command's look and Spark's."""
    write(directory, "t", 0, 0, numbered(1, 1))
    write(directory, "u", 0, 0, numbered(1, 1))
    found = discover(directory)
    shutil.rmtree(directory / "t-0")
    words = ["export", str(directory), "--spark", "--master", "local[2]", "--out"]
    options = parser("export").parse_args([*words, str(tmp_path / "table")])
    assert export_by_spark(options, Selection(), found) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("kafka-log: option assign: no partition t-0 in the path")


def test_a_directory_by_its_url(tmp_path: Path) -> None:
    for url in (f"file://{tmp_path}/a%20b", f"file:{tmp_path}/a%20b", str(tmp_path / "a b")):
        assert target_of(url, "parquet").name == str(tmp_path / "a b")


def test_damage_without_records_is_no_file(tmp_path: Path, directory: Path) -> None:
    path = write(directory, "t", 0, 0, numbered(5, 2))
    with path.open("ab") as file:
        file.write(b"\xff" * 300)
    table = Table("parquet", tmp_path)
    assert table.export(directory, by=("topic",), mode="PERMISSIVE").rows == 10
    done = table.export(directory, by=("topic",), mode="PERMISSIVE")
    assert (done.rows, done.files) == (0, 0)
