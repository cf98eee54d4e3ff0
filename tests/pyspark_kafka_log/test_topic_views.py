"""Kafka's own topics as data frames: the same rows as ``kafka_log.scan(view=...)`` gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import kafka_log
from codecgen.runtime.sensitive import REDACTED
from kafka_log.read.internal_topics import VIEWS
from pyspark_kafka_log.options import OptionError, parse
from pyspark_kafka_log.schema import column_types
from tests.paths import SAMPLES
from tests.support.empty_views import EMPTY
from tests.support.made_topics import log, metadata
from tests.support.spark_queries import load, to_plain_value

NEW = SAMPLES / "kafka-4.x"
THERE = [view for view, topic in VIEWS.items() if any(NEW.glob(f"{topic}-*"))]


@pytest.mark.share(5, ci=4)
@pytest.mark.parametrize("view", THERE)
def test_rows_are_those_of_scan(spark: SparkSession, view: str) -> None:
    frame = load(spark, NEW, view=view)
    expected = kafka_log.read_table(NEW, view=view).to_pylist()
    assert [to_plain_value(row) for row in frame.collect()] == [
        to_plain_value(row) for row in expected
    ]
    assert bool(expected) == (view not in EMPTY)


def test_columns_and_where_rows_are_from(spark: SparkSession) -> None:
    frame = load(spark, NEW, view="offsets", includeMetadata=True)
    assert frame.columns[-4:] == [
        "record_offset",
        "record_timestamp",
        "record_partition",
        "record_segment",
    ]
    reader = spark.read.format(str(spark.conf.get("spark.tests.format"))).option("view", "offsets")
    some = reader.schema("group string, record_offset long").load(str(NEW)).collect()
    wanted = kafka_log.read_table(NEW, ["group", "record_offset"], view="offsets").to_pylist()
    assert [row.asDict() for row in some] == wanted


@pytest.mark.parametrize("view", VIEWS)
def test_every_column_has_a_type_of_spark(view: str) -> None:
    assert len(column_types(view)) > 4


def test_options() -> None:
    options = parse({"path": "x", "view": "offsets"})
    assert options.subscribe == ("__consumer_offsets",)
    assert options.selection.isolation is None
    both = {"path": "x", "view": "offsets", "isolationLevel": "read_committed"}
    assert parse(both).selection.isolation == "read_committed"
    assert (
        parse({"path": "x", "view": "topics", "assign": '{"__cluster_metadata":[0]}'}).subscribe
        is None
    )
    with pytest.raises(
        OptionError, match=r"one of acls, assignments, .*, offsets, .* is expected, not .ofsets."
    ):
        parse({"path": "x", "view": "ofsets"})
    with pytest.raises(OptionError, match="the rows of a view have no record headers"):
        parse({"path": "x", "view": "offsets", "includeHeaders": "true"})


def test_a_view_of_a_topic_that_is_not_there(spark: SparkSession, directory: Path) -> None:
    frame = load(spark, NEW, view="share_states")
    with pytest.raises(Exception, match="no topic __share_group_state in the path"):
        frame.collect()


def test_secrets(spark: SparkSession, tmp_path: Path) -> None:
    """Passwords are hidden unless an option asks for them, also where a query filters by them."""
    secrets: dict[str, Any] = {"salt": b"s", "stored_key": b"k", "server_key": b"v"}
    scram = metadata(
        0, "user_scram_credential_record", name="ana", mechanism="scram_sha_256", iterations=1, **secrets
    )  # fmt: skip
    setting: dict[str, Any] = {"resource_type": "broker", "resource_name": ""}
    settings = [
        metadata(1, "config_record", **setting, name="ssl.key.password", value="p"),
        metadata(2, "config_record", **setting, name="retention.ms", value="7"),
    ]
    log(tmp_path, "__cluster_metadata-0", scram, *settings)
    hidden, shown = REDACTED.encode(), b"s"
    reader = spark.read.format(str(spark.conf.get("spark.tests.format")))
    for show, salt, value in (("false", hidden, REDACTED), ("true", shown, "p")):
        options = {"view": "scram_credentials", "showSecrets": show}
        some = reader.options(**options).schema("user string, salt binary").load(str(tmp_path))
        assert [(row["user"], bytes(row["salt"])) for row in some.collect()] == [("ana", salt)]
        frame = load(spark, tmp_path, view="configs", showSecrets=show)
        assert [row["value"] for row in frame.collect()] == [value, "7"]
        assert frame.where("value = 'p'").count() == (show == "true")
        assert [row["value"] for row in frame.select("value").collect()] == [value, "7"]
