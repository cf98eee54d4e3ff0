"""Places of tables, and the options with which Delta's and Iceberg's packages open the same stores as fsspec."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest

from pyspark_kafka_log.export import ExportError
from pyspark_kafka_log.export.locations import (
    Location,
    options_of_delta,
    options_of_iceberg,
    table_location,
)
from tests.support.permissions import bound_by_modes


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


def test_stores_that_tables_are_written_to() -> None:
    for url in ("s3://bucket/table/", "s3a://bucket/table", "S3://bucket/table"):
        place = table_location("table", url, {"key": "k"})
        assert place == Location(url.rstrip("/"), {"key": "k"}) and place.is_store
    for url in ("gs://bucket/table", "http://host/table", "gs://[x/table"):
        with pytest.raises(ExportError, match=r"^table: tables are written to directories and to"):
            table_location("table", url)


def test_a_file_url_of_another_host_is_refused() -> None:
    with pytest.raises(ExportError, match=r"^table: .*host"):
        table_location("table", "file://host/table")


def test_delta_gets_the_options_of_fsspec() -> None:
    given = {
        "key": "k",
        "secret": "s",
        "token": "t",
        "endpoint_url": "http://127.0.0.1:1",
        "client_kwargs": {"region_name": "eu-west-1"},
    }
    assert options_of_delta("table", Location("s3://bucket/table", given)) == {
        "aws_access_key_id": "k",
        "aws_secret_access_key": "s",
        "aws_session_token": "t",
        "aws_endpoint_url": "http://127.0.0.1:1",
        "aws_region": "eu-west-1",
        "aws_allow_http": "true",
    }
    assert options_of_delta("table", Location("/table")) is None


@pytest.mark.parametrize(
    "option",
    [{"anon": True}, {"client_kwargs": {"verify": "secret"}}, {"client_kwargs": "secret"}],
)
def test_an_option_that_delta_does_not_have_is_refused(option: dict[str, object]) -> None:
    place = Location("s3://bucket/table", {"key": "secret"} | option)
    (name,) = option
    with pytest.raises(
        ExportError, match=rf"^table: .* no option for {name}; known: key"
    ) as caught:
        options_of_delta("table", place)
    assert "=secret" not in str(caught.value) and "'secret'" not in str(caught.value)


def test_delta_has_a_region_and_http_as_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Location("s3://bucket/table")
    assert options_of_delta("table", place) == {"aws_region": "us-east-1"}
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert options_of_delta("table", place) == {}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert options_of_delta("table", place) == {"aws_allow_http": "true"}
    secure = Location("s3://bucket/table", {"endpoint_url": "https://127.0.0.1:1"})
    assert options_of_delta("table", secure) == {"aws_endpoint_url": "https://127.0.0.1:1"}


def test_fsspec_gets_the_properties_of_iceberg() -> None:
    given = {
        "s3.access-key-id": "k",
        "s3.secret-access-key": "s",
        "s3.session-token": "t",
        "s3.endpoint": "http://127.0.0.1:1",
        "s3.region": "eu-west-1",
        "type": "sql",
    }
    assert options_of_iceberg(given) == {
        "key": "k",
        "secret": "s",
        "token": "t",
        "endpoint_url": "http://127.0.0.1:1",
        "client_kwargs": {"region_name": "eu-west-1"},
    }
    assert options_of_iceberg({"s3.region": "", "s3.endpoint": None}) == {}


def test_files_of_a_job_are_those_with_its_name_at_any_depth(tmp_path: Path) -> None:
    place = Location(str(tmp_path))
    mine, other = "0123456789ab", "ba9876543210"
    names = [f"part-{job}-00000-01234567-{n}.parquet" for job in (mine, other) for n in (0, 10)]
    for name in names:
        with place.create(f"topic=t/{name}") as file:
            file.write(b"x")
    assert place.is_free()
    assert sorted(place.files_of(mine)) == [f"topic=t/{name}" for name in names[:2]]
    (tmp_path / f"part-{mine}-x.txt").touch()
    assert len(list(place.files_of(mine))) == 2 and not place.is_free()


def test_files_of_a_directory_are_new_complete_or_gone(tmp_path: Path) -> None:
    place = Location(str(tmp_path / "new"))
    file = place.create("a/whole")
    file.write(b"12345")
    assert place.finish(file) == 5 and file.closed
    assert (tmp_path / "new/a/whole").read_bytes() == b"12345"
    with pytest.raises(FileExistsError):
        place.create("a/whole")
    unfinished = place.create("a/unfinished")
    place.discard(unfinished, "a/unfinished")
    assert unfinished.closed and not (tmp_path / "new/a/unfinished").exists()
    place.remove("a/unfinished")
    place.remove("a/whole")
    assert list(place.files_of("")) == [] and not (tmp_path / "new/a/whole").exists()


def test_a_file_is_on_the_disk_when_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of its bytes are: a power loss after the commit loses none."""
    synced: list[tuple[int, int]] = []

    def note(number: int) -> None:
        found = os.fstat(number)
        synced.append((found.st_ino, found.st_size))

    monkeypatch.setattr(os, "fsync", note)
    place = Location(str(tmp_path))
    file = place.create("whole")
    file.write(b"12345")
    assert synced == [] and place.finish(file) == 5
    assert synced == [((tmp_path / "whole").stat().st_ino, 5)]


def test_files_of_a_store_are_found_and_removed() -> None:
    place = Location(f"memory://{uuid.uuid4().hex}/table")
    name = f"part-{'0' * 12}-00000-{'0' * 8}-0.parquet"
    assert place.is_store and place.is_free() and list(place.files_of("0" * 12)) == []
    file = place.create(f"a/{name}")
    file.write(b"12345")
    assert place.finish(file) == 5
    assert list(place.files_of("0" * 12)) == [f"a/{name}"] and place.is_free()
    place.remove_unlisted("0" * 12, [f"memory://x/a%2520b/{name}"])
    place.remove_unlisted("1" * 12, [])
    assert list(place.files_of("0" * 12)) == [f"a/{name}"]
    place.remove_unlisted("0" * 12, [f"a/1{name}"])
    assert list(place.files_of("0" * 12)) == []
    place.remove(f"a/{name}")


def test_a_directory_that_may_not_be_listed_is_not_free(tmp_path: Path) -> None:
    place = Location(str(tmp_path / "table"))
    assert place.is_free() and list(place.files_of("0" * 12)) == []
    closed = tmp_path / "table" / "closed"
    closed.mkdir(parents=True)
    assert place.is_free()
    (closed / "other").touch()
    assert not place.is_free()
    closed.chmod(0o300)
    try:
        with bound_by_modes():
            for ask in (place.is_free, lambda: list(place.files_of("0" * 12))):
                with pytest.raises(PermissionError, match="closed"):
                    ask()
    finally:
        closed.chmod(0o700)
