"""Logs in stores, read by Spark: the same rows as from this machine, and no secret is shown."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark_stores import load, rows

pytest.importorskip("s3fs")
pytest.importorskip("moto")

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka_codecs import TRANSACTION_INDEX
from kafka_log.logs.transaction_files import MAX_SCANNED_BYTES
from pyspark_kafka_log.options import OptionError, parse
from pyspark_kafka_log.options.write import parse_write
from pyspark_kafka_log.splits.logs import find_logs
from pyspark_kafka_log.splits.plan import plan
from pyspark_kafka_log.splits.stores import hadoop_options, storage_options
from tests.paths import SAMPLES
from tests.support import s3
from tests.support.growing_logs import Growing

LOGS = SAMPLES / "kafka-4.x"
BUCKET = "s3a://logs/broker-1"


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, Any]]:
    with s3.served() as options:
        s3.put(LOGS, BUCKET, options)
        yield options


def of_storage(server: Mapping[str, Any]) -> dict[str, str]:
    names = ("key", "secret", "endpoint_url")
    return {f"storage__{name}": server[name] for name in names}


def of_hadoop(server: Mapping[str, Any]) -> dict[str, str]:
    return {
        "fs.s3a.access.key": server["key"],
        "fs.s3a.secret.key": server["secret"],
        "fs.s3a.endpoint": server["endpoint_url"].removeprefix("http://"),
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.path.style.access": "true",
    }


def test_a_url_that_fsspec_reads(spark: SparkSession) -> None:
    assert rows(load(spark, f"local://{LOGS}")) == rows(load(spark, str(LOGS)))
    chosen = load(spark, f"local://{LOGS}/codecs-[12]").select("topic", "partition").distinct()
    assert sorted(map(tuple, chosen.collect())) == [("codecs", 1), ("codecs", 2)]
    with pytest.raises(
        PySparkException, match=r"option path: .*/nothing-.*: no file or directory matches"
    ):
        load(spark, f"local://{LOGS}/nothing-*").count()


@pytest.mark.slow
def test_a_bucket(spark: SparkSession, server: dict[str, Any]) -> None:
    here = rows(load(spark, str(LOGS)))
    given = of_storage(server)
    assert rows(load(spark, BUCKET, **given)) == here
    assert rows(load(spark, BUCKET, **given, splitBytes="100000")) == here
    assert rows(load(spark, BUCKET.replace("s3a", "s3") + "/*-[0-9]", **given)) == here
    committed = {"isolationLevel": "read_committed", "subscribe": "transactions"}
    there = load(spark, BUCKET, **given, **committed)
    assert rows(there) == rows(load(spark, str(LOGS), **committed))
    of_hadoop_options = {k.replace(".", "__"): v for k, v in of_hadoop(server).items()}
    assert rows(load(spark, BUCKET, **of_hadoop_options)) == here


@pytest.mark.soak
def test_a_transaction_index_that_lies_fails_the_query(
    spark: SparkSession, server: dict[str, Any], tmp_path: Path
) -> None:
    """The planner reads the index of a large segment and none of its batches; tasks read those, also for a count."""
    growing = Growing(tmp_path / "t-0", random.Random(1), pad=200_000)
    while sum(len(batch.data) for batch in growing.files[0].batches) <= MAX_SCANNED_BYTES:
        growing.append()
    while growing.started or not growing.files[0].aborted:
        growing.append()
    growing.roll()
    [path] = growing.directory.glob("*.txnindex")
    options = {**of_storage(server), "isolationLevel": "read_committed"}
    s3.put(growing.directory, "s3a://logs/right/t-0", server)
    right = [offset for offset, _ in growing.committed()]
    found = load(spark, "s3a://logs/right", **options).select("offset").collect()
    assert [row[0] for row in found] == right
    assert load(spark, "s3a://logs/right", **options).count() == len(right)
    entries = TRANSACTION_INDEX.parse(path.read_bytes()).entries
    entries[-1].producer_id += 100
    path.write_bytes(TRANSACTION_INDEX.build({"entries": entries}))
    s3.put(growing.directory, "s3a://logs/wrong/t-0", server)
    frame = load(spark, "s3a://logs/wrong", **options)
    for query in (frame.collect, frame.count):
        with pytest.raises(PySparkException, match="the transaction index says that producer 10"):
            query()
    path.unlink()
    for segment in growing.directory.glob("*.log"):
        segment.with_suffix(".timeindex").touch()
    s3.put(growing.directory, "s3a://logs/lost/t-0", server)
    frame = load(spark, "s3a://logs/lost", **options)
    cut = load(spark, "s3a://logs/lost", **options, splitBytes="1000000")
    for query in (frame.collect, frame.count, cut.collect, cut.count):
        with pytest.raises(PySparkException, match="has no transaction index"):
            query()


@pytest.mark.slow
def test_no_secret_is_shown(
    spark: SparkSession, server: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    frame = load(spark, BUCKET, **of_storage(server)).where("offset > 3")
    shown = [str(frame._jdf.queryExecution()), str(frame), repr(frame.schema)]
    frame.explain("extended")
    frame.createOrReplaceTempView("of_bucket")
    shown.append(str(spark.sql("select count(*) from of_bucket")._jdf.queryExecution()))
    for wrong in ({"storage__key": "other"}, {"storage__endpoint_url": "http://127.0.0.1:9"}):
        quick = '{"retries": {"max_attempts": 1}, "connect_timeout": 1}'
        given = {**of_storage(server), "storage__config_kwargs": quick, **wrong}
        try:
            load(spark, BUCKET + "/nothing", **given).count()
        except PySparkException as error:
            shown.append(str(error))
    assert len(shown) == 6
    shown += capfd.readouterr()
    assert "kafka-log" in shown[0]
    assert not [text for text in shown if s3.SECRET in text]


@pytest.mark.soak
def test_credentials_of_hadoop(session: SparkSession, server: dict[str, Any]) -> None:
    """The connector sees what Hadoop's own s3a would be opened with."""
    configuration = session.sparkContext._jsc.hadoopConfiguration()
    here = rows(session.read.format("kafka-log").load(str(LOGS)))
    try:
        for name, value in of_hadoop(server).items():
            configuration.set(name, value)
        assert rows(session.read.format("kafka-log").load(BUCKET)) == here
    finally:
        for name in of_hadoop(server):
            configuration.unset(name)
    try:
        for name, value in of_hadoop(server).items():
            session.conf.set(name, value)
        assert rows(session.read.format("kafka-log").load(BUCKET)) == here
    finally:
        for name in of_hadoop(server):
            session.conf.unset(name)


# ---------------------------------------------------------------- without Spark


def test_options_of_stores() -> None:
    given = {
        "storage.anon": "True",
        "storage.client_kwargs": '{"region_name": "eu-1"}',
        "storage.key": "0123",
        "fs.s3a.access.key": "x",
    }
    own = {"anon": True, "client_kwargs": {"region_name": "eu-1"}, "key": "0123"}
    assert storage_options("gs://b/c", given) == storage_options("s3://b/c", given) == own
    with pytest.raises(OptionError) as caught:
        storage_options("gs://b", {"storage.token": "{secret"})
    assert caught.value.option == "storage.token" and "secret" not in str(caught.value)


def test_options_of_hadoop() -> None:
    given = {
        "fs.s3a.access.key": "one",
        "fs.s3a.bucket.mine.access.key": "two",
        "fs.s3a.endpoint": "host:9000",
        "fs.s3a.endpoint.region": "eu-1",
        "fs.s3a.path.style.access": "TRUE",
        "fs.s3a.aws.credentials.provider": "a.B, org.apache.x.AnonymousAWSCredentialsProvider",
    }
    found = storage_options("s3a://mine/logs", given)
    assert found == {
        "key": "two",
        "endpoint_url": "https://host:9000",
        "client_kwargs": {"region_name": "eu-1"},
        "config_kwargs": {"s3": {"addressing_style": "path"}},
        "anon": True,
    }
    assert storage_options("s3://other", given)["key"] == "one"
    assert storage_options("gs://mine", given) == {}
    assert storage_options("s3://b", {"fs.s3a.endpoint": "s3.amazonaws.com"}) == {}


def test_options_of_hadoop_for_azure() -> None:
    host = "mine.dfs.core.windows.net"
    url = f"abfss://logs@{host}/broker-1"
    given = {
        f"fs.azure.account.key.{host}": "one",
        "fs.azure.account.key.other.dfs.core.windows.net": "two",
    }
    assert storage_options(url, given) == {"account_key": "one"}
    assert storage_options(url.replace("mine", "third"), given) == {}
    assert storage_options(url, given | {"storage.account_key": "x"}) == {"account_key": "x"}
    assert storage_options("abfss://logs/broker-1", given) == {}
    of_blobs = {"fs.azure.sas.logs.mine.blob.core.windows.net": "?sig=1"}
    assert storage_options(url, of_blobs) == {"sas_token": "sig=1"}
    told = given | {
        f"fs.azure.sas.fixed.token.{host}": "sig=2",
        "fs.azure.account.oauth2.client.id": "id",
        "fs.azure.account.oauth2.client.secret": "hush",
        "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/abc/oauth2/token",
    }
    for kind, expected in (
        ("SharedKey", {"account_key": "one"}),
        ("SAS", {"sas_token": "sig=2"}),
        ("OAuth", {"client_id": "id", "client_secret": "hush", "tenant_id": "abc"}),
        ("Custom", {}),
    ):
        assert storage_options(url, told | {"fs.azure.account.auth.type": kind}) == expected
    elsewhere = url.replace("core.windows.net", "core.chinacloudapi.cn")
    assert storage_options(elsewhere, {"fs.azure.account.key": "k"}) == {
        "account_name": "mine",
        "account_host": "mine.blob.core.chinacloudapi.cn",
        "account_key": "k",
    }
    emulator = given | {
        "fs.azure.abfs.endpoint": "127.0.0.1:1",
        "fs.azure.always.use.https": "false",
    }
    for scheme, tls in (("abfs", ""), ("abfss", "s")):
        assert storage_options(url.replace("abfss", scheme), emulator) == {
            "connection_string": f"AccountName=mine;BlobEndpoint=http{tls}://127.0.0.1:1/mine;AccountKey=one"
        }


def test_options_of_hadoop_for_google(tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    key.write_text('{"type": "service_account"}')
    for name in (
        "fs.gs.auth.service.account.json.keyfile",
        "google.cloud.auth.service.account.json.keyfile",
    ):
        found = storage_options("gs://b/c", {name: str(key), "fs.gs.project.id": "p"})
        assert found == {"token": {"type": "service_account"}, "project": "p"}
        assert storage_options("s3://b/c", {name: str(key)}) == {}
        with pytest.raises(
            OptionError, match=rf"{name}: .*nothing.json cannot be read: No such file"
        ):
            storage_options("gs://b", {name: str(tmp_path / "nothing.json")})
        (tmp_path / "odd").write_text("secret")
        with pytest.raises(OptionError, match="is not JSON") as caught:
            storage_options("gs://b", {name: str(tmp_path / "odd")})
        assert "secret" not in str(caught.value)
    for text, token in (
        ("UNAUTHENTICATED", "anon"),
        ("APPLICATION_DEFAULT", "google_default"),
        ("COMPUTE_ENGINE", "cloud"),
    ):
        assert storage_options("gs://b", {"fs.gs.auth.type": text}) == {"token": token}
    assert storage_options("gs://b", {"google.cloud.auth.null.enable": "true"}) == {"token": "anon"}
    given = {"fs.gs.storage.root.url": "http://127.0.0.1:1/"}
    assert storage_options("gs://b", given) == {"endpoint_url": "http://127.0.0.1:1"}


def test_settings_of_stores_are_no_options_of_writes(tmp_path: Path) -> None:
    for name in ("fs.s3a.x", "fs.azure.x", "fs.gs.x", "google.cloud.auth.x"):
        assert parse_write({"path": str(tmp_path), name: "y"}).ignored == ()
        assert parse({"path": str(tmp_path), name: "y"}).storage == {name: "y"}


def test_secrets_are_not_in_texts_of_options_or_plans() -> None:
    options = parse({"path": f"local://{LOGS}/codecs-1", "storage.secret": s3.SECRET})
    assert options.storage == {"storage.secret": s3.SECRET}
    assert s3.SECRET not in repr(options)
    with pytest.raises(OptionError, match="no such option") as caught:
        parse({"storag.secret": s3.SECRET})
    assert s3.SECRET not in str(caught.value)
    assert find_logs(parse({"path": f"local://{LOGS}/codecs-1"}))[0].key == ("codecs", 1)
    splits = plan(parse({"path": f"local://{LOGS}/codecs-1", "storage.auto_mkdir": "true"}))
    assert splits
    assert "auto_mkdir" not in repr(splits)


def test_a_password_in_a_url_is_refused() -> None:
    for given in ({"path": "sftp://me:hidden@host/x"}, {"paths": '["sftp://me:hidden@host/x"]'}):
        with pytest.raises(OptionError, match="a URL must not contain a password") as caught:
            parse(given)
        assert "hidden" not in str(caught.value)


def test_urls_that_cannot_be_split_are_refused() -> None:
    endpoint = {
        "fs.azure.account.oauth2.client.id": "a",
        "fs.azure.account.oauth2.client.endpoint": "https://[x/t/",
    }
    for url, given in (
        ("s3://me:cret@[x/logs", {}),
        ("abfss://c@a.dfs.core.windows.net/", endpoint),
    ):
        with pytest.raises(OptionError, match="it is not a valid URL") as caught:
            hadoop_options(url, given)
        assert "cret" not in str(caught.value)
