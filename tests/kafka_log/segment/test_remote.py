"""Logs in stores: what is said of them is what is said of the same files on this machine."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from time import tzset
from typing import Any

import pytest

from tests.support.remote_verbs import LOGS, VERBS, without_places

pytest.importorskip("fsspec")

from fsspec.registry import _registry, known_implementations

from kafka_log import LogDirectory, SegmentReader, discover, read_table, scan_batches
from kafka_log.cli import main
from kafka_log.segment.paths import local_path, make_path
from kafka_log.segment.remote_errors import as_os_error
from kafka_log.segment.remote_paths import RemotePath, _info
from tests.support.stores import Counted, counted, put


@pytest.fixture(params=["memory", "local", "counted"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The samples in a store. ``local`` is the disk, as fsspec reads it."""
    with counted():
        yield (
            f"local://{LOGS}"
            if request.param == "local"
            else put(LOGS, f"{request.param}://{tmp_path.name}/logs")
        )


@pytest.mark.slow
@pytest.mark.share(3)
def test_the_same_rows(url: str) -> None:
    assert read_table(url).equals(read_table(LOGS))
    assert scan_batches(url).read_all().equals(scan_batches(LOGS).read_all())
    for engine in ("construct", "arrow"):
        chosen: dict[str, Any] = {"engine": engine, "topics": "transactions"}
        chosen |= {"isolation": "read_committed", "offsets": (3, 40)}
        columns = ["topic", "partition", "offset", "value"]
        assert read_table(url, columns, **chosen).equals(read_table(LOGS, columns, **chosen))


def test_the_paths_are_urls(url: str) -> None:
    there = read_table(url, ["segment"])["segment"].unique().to_pylist()
    here = read_table(LOGS, ["segment"])["segment"].unique().to_pylist()
    assert [path.removeprefix(url) for path in there] == [p.removeprefix(str(LOGS)) for p in here]


@pytest.mark.share(12)
@pytest.mark.parametrize("verb", VERBS)
def test_the_same_answers(url: str, verb: str) -> None:
    options = {"now": 10**13} if verb in ("stat", "txn") else {}
    here, there = (getattr(LogDirectory(place), verb)(**options) for place in (LOGS, url))
    assert without_places(there).equals(without_places(here))


def test_the_same_findings_of_damage(tmp_path: Path) -> None:
    directory = tmp_path / "broker" / "orders-0"
    directory.mkdir(parents=True)
    for path in (LOGS / "idempotent-0").iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    (directory / "odd").write_bytes(b"123")
    (directory / "leader-epoch-checkpoint").write_bytes(b"x")
    log = next(directory.glob("*.log"))
    data = bytearray(log.read_bytes())
    data[80] ^= 1
    log.write_bytes(data[:-3])
    with counted():
        there = LogDirectory(put(directory.parent, "counted://b")).check()
    here = LogDirectory(directory.parent).check()
    assert here.num_rows >= 4
    names = [[Path(file).name for file in t["file"].to_pylist()] for t in (here, there)]
    assert names[0] == names[1]
    assert without_places(there).equals(without_places(here))


@pytest.mark.slow
@pytest.mark.share(12)
@pytest.mark.parametrize("arguments", [["dump"], ["dump", "--batches"], ["keys"], ["check"]])
def test_the_same_output(
    url: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for place in (str(LOGS), url):
        code = main([*arguments, place])
        shown.append((code, capsys.readouterr().out.replace(place, "PLACE")))
    assert shown[0] == shown[1]


def test_one_file_and_its_neighbours(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = "codecs-1/00000000000000000000.log"
    here, there = (list(SegmentReader(f"{place}/{name}")) for place in (LOGS, url))
    assert [batch.records for batch in there] == [batch.records for batch in here]
    for file in (name, name.replace(".log", ".timeindex"), "meta.properties"):
        shown = []
        for place in (str(LOGS), url):
            assert main(["hexdump", f"{place}/{file}"]) == 0
            shown.append(capsys.readouterr().out.replace(place, "PLACE"))
        assert shown[0] == shown[1]


@pytest.mark.slow
def test_salvage_reads_there_and_writes_here(url: str, tmp_path: Path) -> None:
    LogDirectory(url, topics="codecs").salvage(tmp_path / "out")
    columns = ["topic", "partition", "offset", "value"]
    assert read_table(tmp_path / "out", columns).equals(read_table(LOGS, columns, topics="codecs"))


def test_nothing_is_written_to_a_store(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="written to local directories only"):
        LogDirectory(LOGS).salvage(f"{url}/out")
    with pytest.raises(SystemExit):
        main(["cut", str(LOGS), "--out", f"{url}/out"])
    assert "written to local directories only" in capsys.readouterr().err
    assert main(["export", str(LOGS), "--out", f"{url}/out"]) == 2
    assert "without --spark files are written to local directories only" in capsys.readouterr().err


# ---------------------------------------------------------------- paths


def test_urls_of_files_are_paths_of_this_machine() -> None:
    assert make_path(f"file://{LOGS}/codecs-1") == LOGS / "codecs-1"
    assert make_path("C:/logs") == Path("C:/logs")
    assert local_path(f"file://{LOGS}") == LOGS


def test_names() -> None:
    path = RemotePath("s3://bucket/logs/a-0/00.x.log/")
    assert (str(path), path.name, path.stem) == (
        "s3://bucket/logs/a-0/00.x.log",
        "00.x.log",
        "00.x",
    )
    assert str(path.with_suffix(".index")) == "s3://bucket/logs/a-0/00.x.index"
    assert str(path.parent.parent / "b") == "s3://bucket/logs/b"
    top = RemotePath("s3://bucket")
    assert (top.parent, str(top / "a"), (top / "a").parent) == (top, "s3://bucket/a", top)
    chained = RemotePath("zip://logs/a-0::s3://bucket/all.zip")
    assert str(chained.parent / "b-1") == "zip://logs/b-1::s3://bucket/all.zip"
    assert RemotePath("s3://b", {"key": "1"}) != RemotePath("s3://b") == RemotePath("s3://b/")


def test_patterns() -> None:
    with counted():
        put(LOGS, "counted://a/one")
        put(LOGS, "counted://a/two")
        found = RemotePath("counted://a/*/codecs-[12]").matches()
        assert [str(path) for path in found] == [
            f"counted://a/{name}/codecs-{number}" for name in ("one", "two") for number in (1, 2)
        ]
        assert RemotePath("counted://a/*/nothing").matches() == []
        one_of = [str(p) for p in RemotePath("counted://a/one/codecs-{2,none,1}").matches()]
        assert one_of == ["counted://a/one/codecs-1", "counted://a/one/codecs-2"]
        with pytest.raises(ValueError, match="without its }"):
            RemotePath("counted://a/one/codecs-{2").matches()


def test_secrets_are_in_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    path = RemotePath("s3://bucket/logs", {"secret": "S3CRET", "client_kwargs": {"x": "HIDDEN"}})
    assert "S3CRET" not in f"{path!r} {path} {discover}"
    assert pickle.loads(pickle.dumps(path)).storage_options == path.storage_options
    with counted() as store:
        put(LOGS / "codecs-1", "counted://logs/codecs-1")

        def fails(self: Counted, place: str, **_: object) -> None:
            raise RuntimeError("the signature of S3CRET is wrong, HIDDEN too")

        monkeypatch.setattr(store, "info", fails)
        options = dict(path.storage_options)
        with pytest.raises(OSError, match="RuntimeError: the signature of ") as caught:
            discover(make_path("counted://logs", options))
        assert str(caught.value).startswith("counted://logs: ")
        assert "S3CRET" not in str(caught.value)
        assert "HIDDEN" not in str(caught.value)


def test_keys_of_accounts_are_secrets() -> None:
    options = {
        "account_name": "mine-and-known",
        "account_key": "K3Y==",
        "connection_string": "AccountName=mine-and-known;AccountKey=0THER==;BlobEndpoint=http://host",
    }
    for error in (ValueError, PermissionError):
        text = str(
            as_os_error(
                error("K3Y== of mine-and-known at http://host, 0THER=="), "abfss://x", options
            )
        )
        assert "mine-and-known at http://host" in text
        assert "K3Y==" not in text and "0THER==" not in text


@pytest.mark.parametrize(
    ("url", "module", "said"),
    [
        ("gs://bucket/logs", "gcsfs", "gcsfs is needed for it: pip install gcsfs"),
        (
            "abfss://c@a.dfs.core.windows.net/x",
            "adlfs",
            "adlfs is needed for it: pip install adlfs",
        ),
        ("hdfs://host/x", "hdfs_native", "hdfs-native is needed for it: pip install hdfs-native"),
        ("webhdfs://host:1/x", "requests", "requests is needed for it: pip install requests"),
        ("sftp://host/x", "paramiko", 'SFTPFileSystem requires "paramiko" to be installed'),
    ],
)
def test_a_package_that_is_missing(
    url: str,
    module: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scheme = url.partition(":")[0]
    for name in {module, *(name for name in sys.modules if name.startswith(f"{module}."))}:
        monkeypatch.setitem(sys.modules, name, None)
    # What was loaded before would not be looked for.
    monkeypatch.delitem(sys.modules, f"fsspec.implementations.{scheme}", raising=False)
    monkeypatch.delitem(_registry, scheme, raising=False)
    if module in ("adlfs", "hdfs_native"):  # they tell fsspec of themselves
        monkeypatch.delitem(known_implementations, scheme, raising=False)
    assert main(["stat", url]) == 2
    assert capsys.readouterr().err == f"kafka-log: {url}: {said}\n"


def test_milliseconds_of_hdfs() -> None:
    """The two clients of HDFS call its times in two ways."""
    for name in ("modificationTime", "modification_time"):
        entry = {"name": "/x", "size": 1, "type": "file", name: 1_700_000_000_123}
        assert _info(entry).st_mtime_ns == 1_700_000_000_123 * 10**6


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize(
    "time",
    [
        datetime(2026, 7, 1, 12),
        datetime(2026, 7, 1, 12, tzinfo=UTC),
        datetime(2026, 7, 1, 14, tzinfo=timezone(timedelta(hours=2))),
        "2026-07-01T12:00:00",
        "2026-07-01T12:00:00Z",
        "2026-07-01T14:00:00+02:00",
        1_782_907_200,
    ],
)
def test_times_without_a_zone_are_utc(
    monkeypatch: pytest.MonkeyPatch, time: object, zone: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    tzset()
    try:
        info = _info({"name": "/x", "size": 1, "type": "file", "LastModified": time})
    finally:
        monkeypatch.undo()
        tzset()
    assert info.st_mtime_ns == 1_782_907_200 * 10**9


def test_a_password_in_a_url_is_refused() -> None:
    with pytest.raises(OSError, match="a URL must not contain a password") as caught:
        make_path("sftp://me:secret@host/logs")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nothing://bucket", "nothing://bucket: ValueError: Protocol not known: nothing"),
        ("counted://nothing", "counted://nothing: there is no such file or directory"),
    ],
)
def test_what_is_not_there(url: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with counted():
        assert main(["stat", url]) == 2
    assert capsys.readouterr().err == f"kafka-log: {said}\n"
