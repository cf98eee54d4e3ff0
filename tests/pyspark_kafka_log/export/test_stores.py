"""Records as tables in a bucket of a real server that speaks S3: each record once, all or none, and nothing is left of what fails."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import fsspec
import pytest

pytest.importorskip("s3fs")
pytest.importorskip("moto")

from pyspark.sql import SparkSession

from kafka_log.cli import main
from kafka_log.read.plan import Split
from pyspark_kafka_log.export import ExportError, export, target_of
from pyspark_kafka_log.export.locations import Location, options_of_delta
from pyspark_kafka_log.export.writing import Job, TaskResult
from tests.paths import SAMPLES
from tests.support import s3
from tests.support.spark_exports import expected, plain
from tests.support.spark_logs import flipped, numbered, write
from tests.support.spark_tables import Table, here

LOGS = SAMPLES / "kafka-4.x"


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, Any]]:
    with s3.served() as options:
        yield options


@pytest.fixture(params=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, tmp_path: Path, server: dict[str, Any]) -> Table:
    """One that is not there yet, in a bucket of its own."""
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[request.param])
    bucket = f"s3://{uuid.uuid4()}"
    store, place = fsspec.core.url_to_fs(bucket, **server)
    store.mkdir(place)
    return Table(request.param, tmp_path, bucket=bucket, storage_options=dict(server))


@pytest.mark.slow
@pytest.mark.share(ci=2)
def test_what_brokers_wrote(table: Table) -> None:
    done = table.export(LOGS)
    assert plain(table.rows()) == plain(expected(LOGS))
    assert (done.rows, done.files) == (len(expected(LOGS)), len(table.files()))
    again = table.export(LOGS)
    assert (again.rows, again.files, again.ends) == (0, 0, done.ends)


@pytest.mark.soak
def test_a_log_that_grows(table: Table, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(5, 2))
    assert table.export(directory).rows == 10
    write(directory, "t", 0, 0, numbered(5, 3))
    write(directory, "u", 0, 0, numbered(3, 1))
    assert table.export(directory).rows == 8
    assert plain(table.rows()) == plain(expected(directory))


@pytest.mark.soak
def test_two_exports_at_once(table: Table, directory: Path) -> None:
    """The one that is done first is the one that counts, of the first two and of later ones; the files of the other one are removed."""
    for batches in (1, 2):
        write(directory, "t", 0, 0, numbered(5, batches))
        table.overtaken(directory, 5)
        assert plain(table.rows()) == plain(expected(directory))
        assert len(table.files()) == batches


@pytest.mark.soak
def test_what_fails_or_is_killed_adds_nothing(table: Table, directory: Path) -> None:
    write(directory, "a", 0, 0, numbered(5, 2))
    data = numbered(5, 2)
    write(directory, "b", 0, 0, flipped(data, len(data) - 3))
    with pytest.raises(Exception, match="stored checksum"):
        table.export(directory)
    assert table.files() == []
    write(directory, "b", 0, 0, data)

    def killed(tasks: Sequence[tuple[Split, ...]], job: Job) -> list[TaskResult]:
        here(tasks, job)
        # As by a kill: nobody removes anything.
        patch.setattr(Location, "files_of", lambda self, job_id: iter(()))
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        table.export(directory, killed)
    assert len(table.files()) == 2
    table.export(directory)
    assert plain(table.rows()) == plain(expected(directory))
    write(directory, "a", 0, 0, numbered(5, 3))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        table.export(directory, killed)
    table.export(directory)
    assert plain(table.rows()) == plain(expected(directory))


@pytest.mark.soak
def test_spark_writes_it(table: Table, session: SparkSession, directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(50, 4))
    write(directory, "u", 0, 0, numbered(50, 4))
    for rows in (400, 0):
        done = export(
            session,
            directory,
            table.place,
            "delta" if table.kind == "delta" else "iceberg",
            options={"minPartitions": "4"},
            catalog=table.catalog,
            storage_options=table.storage_options,
        )
        assert done.rows == rows
    assert plain(table.rows()) == plain(expected(directory))


@pytest.mark.soak
def test_the_command(table: Table, capsys: pytest.CaptureFixture[str]) -> None:
    if table.kind == "iceberg":
        pytest.skip("its catalog says where files lie")
    environment = os.environ | {
        "AWS_ENDPOINT_URL": table.storage_options["endpoint_url"],
        "AWS_ACCESS_KEY_ID": s3.KEY,
        "AWS_SECRET_ACCESS_KEY": s3.SECRET,
    }
    arguments = [
        "export",
        str(LOGS),
        "--topic",
        "codecs",
        "--format",
        "delta",
        "--out",
        table.place,
    ]
    command = [sys.executable, "-m", "kafka_log", *arguments, "--spark", "--master", "local[1]"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {row["topic"] for row in table.rows()} == {"codecs"}
    assert s3.SECRET not in done.stdout + done.stderr
    assert main([*arguments[:4], "--out", table.place]) == 2
    assert "without --spark files are written to local directories only" in capsys.readouterr().err


# ---------------------------------------------------------------- what is refused


def test_where_nothing_can_be_added_as_a_whole() -> None:
    with pytest.raises(ExportError, match="use the format delta or iceberg"):
        target_of("s3://bucket/table", "parquet")
    for kind in ("parquet", "delta"):
        with pytest.raises(ExportError, match="directories and to s3://, no other store"):
            target_of("gs://bucket/table", kind)


def test_options_that_the_other_package_does_not_have() -> None:
    place = Location(
        "s3://b/t", {"key": "k", "secret": s3.SECRET, "config_kwargs": {"x": s3.SECRET}}
    )
    assert s3.SECRET not in repr(place)
    with pytest.raises(ExportError, match="no option for config_kwargs") as caught:
        options_of_delta("t", place)
    assert s3.SECRET not in str(caught.value)
    assert options_of_delta("t", Location("/a/directory", {"key": "k"})) is None


@pytest.mark.soak
def test_no_secret_is_in_an_error(server: dict[str, Any], directory: Path) -> None:
    write(directory, "t", 0, 0, numbered(5, 1))
    pytest.importorskip("deltalake")
    url = "s3://no-such-bucket-at-all/t"
    table = Table("delta", directory.parent, bucket=url, storage_options=dict(server))
    with pytest.raises((ExportError, OSError)) as caught:
        table.export(directory)
    assert s3.SECRET not in str(caught.value)
