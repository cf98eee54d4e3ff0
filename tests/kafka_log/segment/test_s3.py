"""Logs in a bucket of a real server that speaks S3."""

from __future__ import annotations

import json
import random
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("s3fs")
pytest.importorskip("moto")

from kafka_log import LogDirectory, discover, read_table, scan_batches
from kafka_log.cli import main
from kafka_log.logs.transaction_files import MAX_SCANNED_BYTES
from kafka_log.logs.transactions import read_transactions
from kafka_log.read.isolation import Known, PartitionFilters
from kafka_log.read.selection import Selection
from kafka_log.segment.paths import make_path
from kafka_log.segment.positioned_reads import UnreadableError
from tests.support import s3
from tests.support.growing_logs import Growing
from tests.support.remote_verbs import LOGS, VERBS, without_places

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, Any]]:
    with s3.served() as options:
        for name in ("logs", "logs-of-others"):
            s3.put(LOGS, f"s3://{name}/broker-1", options)
        yield options


@pytest.fixture
def bucket(options: dict[str, Any]) -> Path:
    return make_path("s3a://logs/broker-1", options)


def test_the_same_rows(bucket: Path) -> None:
    assert read_table(bucket).equals(read_table(LOGS))
    assert scan_batches(bucket).read_all().equals(scan_batches(LOGS).read_all())


@pytest.mark.share(ci=3)
@pytest.mark.parametrize("verb", VERBS)
def test_the_same_answers(bucket: Path, verb: str) -> None:
    given = {"now": 10**13} if verb in ("stat", "txn") else {}
    here, there = (getattr(LogDirectory(place), verb)(**given) for place in (LOGS, bucket))
    assert without_places(there).equals(without_places(here))


def test_the_command_takes_credentials_from_its_environment(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", options["endpoint_url"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert main(["stat", "s3://logs/broker-1", "--format", "jsonl"]) == 0
    there = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main(["stat", str(LOGS), "--format", "jsonl"]) == 0
    here = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for row in (*here, *there):
        row.pop("directory", None)
    assert there == here


def test_what_is_not_there(options: dict[str, Any]) -> None:
    for url in ("s3://nothing/broker-1", "s3://logs/broker-2", "s3://logs/broker"):
        with pytest.raises(Exception, match=f"{url}: there is no such file or directory"):
            discover(make_path(url, options))


def test_an_object_that_is_put_anew_is_not_mixed_with_the_old_one(
    options: dict[str, Any], bucket: Path
) -> None:
    import fsspec

    store, _ = fsspec.core.url_to_fs("s3://logs", **options)
    segment = discover(bucket / "codecs-1")[0].segments[0]
    with segment.path.open("rb", buffering=0) as file:
        store.pipe_file("logs/broker-1/codecs-1/" + segment.path.name, bytes(segment.size))
        try:
            with pytest.raises(OSError, match=r"FileExpired: .* no longer exists"):
                file.read(100)
        finally:
            data = (LOGS / "codecs-1" / segment.path.name).read_bytes()
            store.pipe_file("logs/broker-1/codecs-1/" + segment.path.name, data)


def test_an_object_that_is_gone_is_lost(options: dict[str, Any]) -> None:
    import fsspec

    store, _ = fsspec.core.url_to_fs("s3://logs", **options)
    found = discover(make_path("s3://logs-of-others/broker-1/codecs-1", options))
    store.rm("logs-of-others/broker-1/codecs-1/" + found[0].segments[0].path.name)
    with pytest.raises(UnreadableError, match="s3://logs-of-others/broker-1/codecs-1/"):
        read_table(found)
    lost = []
    assert not read_table(found, None, "salvage", on_lost=lambda _, r: lost.append(r)).num_rows
    assert [(r.start, r.end) for r in lost] == [(0, found[0].segments[0].size)]


def test_no_server(options: dict[str, Any]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        quick = {"retries": {"max_attempts": 1}, "connect_timeout": 1}
        there = {**options, "endpoint_url": url, "config_kwargs": quick}
        with pytest.raises(OSError, match=r"s3://logs/broker-1: .*[Cc]onnect") as caught:
            discover(make_path("s3://logs/broker-1", there))
    assert s3.SECRET not in str(caught.value)


def test_a_read_of_committed_records_asks_once_for_each_segment(tmp_path: Path) -> None:
    """The server counts: an index for each segment, all of a small one at the end, and a snapshot."""
    growing = Growing(tmp_path / "t-0", random.Random(1), pad=20_000)
    sizes = 5, 2, 6, 1
    for mib in sizes:
        if growing.end:
            growing.roll()
        file = growing.files[-1]
        is_last = len(growing.files) == len(sizes)
        while sum(len(batch.data) for batch in file.batches) < mib << 20 or not (
            file.aborted or is_last
        ):
            growing.append()
    [here] = discover(tmp_path)
    large = [segment.size > MAX_SCANNED_BYTES for segment in here.segments]
    assert large[0] and large[2] and not large[-1]
    log = tmp_path / "requests"
    with s3.served(log) as options:
        place = make_path(s3.put(tmp_path / "t-0", "s3://grown/t-0", options), options)
        [there] = discover(place)
        assert s3.reads(log) == []
        known: Known = {}
        PartitionFilters(Selection(isolation="read_committed"), known=known).filter_for(there)
        read = s3.reads(log)
    assert list(known.values()) == [read_transactions(here.segments)]
    assert len(read) == len(sizes) + 1
    kinds = Counter(path.rpartition(".")[2] for path in read)
    assert kinds["txnindex"] == 3 and read.count(f"/grown/t-0/{here.segments[-1].path.name}") == 1


def test_committed_records_of_a_log_without_aborts_take_the_newest_snapshot(tmp_path: Path) -> None:
    """The server counts. Readers read on to the marker of a transaction that is open at the end of a chunk."""
    growing = Growing(tmp_path / "t-0", random.Random(1), pad=20_000)
    growing.kinds = ("commit",)
    for _ in range(2):
        file = growing.files[-1]
        while growing.started or sum(len(batch.data) for batch in file.batches) <= 5 << 20:
            growing.append()
        growing.roll()
    for path in growing.directory.glob("*.log"):
        path.with_suffix(".timeindex").touch()
    log = tmp_path / "requests"
    with s3.served(log) as options:
        place = make_path(s3.put(tmp_path / "t-0", "s3://grown/t-0", options), options)
        [there] = discover(place)
        PartitionFilters(Selection(isolation="read_committed")).filter_for(there)
        assert [path.rpartition(".")[2] for path in s3.reads(log)] == ["snapshot"]
        found = read_table(place, ["offset"], isolation="read_committed")["offset"].to_pylist()
    assert found == [offset for offset, _ in growing.committed()]
