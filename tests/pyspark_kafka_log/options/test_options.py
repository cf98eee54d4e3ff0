"""The options of the data source: what they give, and what is refused. No Java is needed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.read.selection import Selection
from pyspark_kafka_log import options
from pyspark_kafka_log.columns import COLUMNS
from pyspark_kafka_log.options import (
    EARLIEST,
    IGNORED,
    KAFKA_COLUMNS,
    KNOWN,
    LATEST,
    OptionError,
    Options,
    default_columns,
    parse,
    parse_paths,
)
from pyspark_kafka_log.options.table import MAX_DELAY, READING
from tests.paths import ROOT, SCHEMAS


def test_nothing_given() -> None:
    assert parse({}) == Options()
    assert default_columns(Options()) == KAFKA_COLUMNS


def test_names_are_taken_in_any_case() -> None:
    assert parse({"includeheaders": "TRUE"}) == parse({"includeHeaders": "true"})
    assert parse({"INCLUDEHEADERS": "true"}).include_headers


@pytest.mark.parametrize(
    ("given_options", "wanted"),
    [
        ({"path": "/a"}, {"paths": ("/a",)}),
        ({"paths": '["/a", "/b"]'}, {"paths": ("/a", "/b")}),
        ({"subscribe": "a, b"}, {"subscribe": ("a", "b")}),
        ({"subscribePattern": "a.*"}, {"subscribe_pattern": "a.*"}),
        ({"assign": '{"a":[0,2],"b":[1]}'}, {"assign": frozenset({("a", 0), ("a", 2), ("b", 1)})}),
        ({"startingOffsets": "earliest"}, {"starting_offsets": EARLIEST}),
        (
            {"startingOffsets": '{"a":{"0":23,"1":-2}}'},
            {"starting_offsets": {("a", 0): 23, ("a", 1): EARLIEST}},
        ),
        ({"pathGlobFilter": "*.log"}, {"files": options.Files(pattern="*.log")}),
        ({"recursiveFileLookup": "true"}, {"files": options.Files(recursive=True)}),
        ({"ignoreMissingFiles": "true"}, {"files": options.Files(ignore_missing=True)}),
        ({"ignoreCorruptFiles": "true"}, {"files": options.Files(ignore_corrupt=True)}),
        ({"modifiedAfter": "1970-01-01T00:00:01Z"}, {"files": options.Files(after=10**9)}),
        ({"modifiedBefore": "1970-01-01T01:00:01+01:00"}, {"files": options.Files(before=10**9)}),
        ({"startingTimestamp": "5"}, {"starting_times": 5}),
        ({"startingTimestamp": "5", "startingOffsets": "latest"}, {"starting_times": 5}),
        ({"endingTimestamp": "5"}, {"ending_times": 5}),
        ({"startingOffsetsByTimestamp": '{"a":{"0":5}}'}, {"starting_times": {("a", 0): 5}}),
        ({"endingOffsetsByTimestamp": '{"a":{"0":5}}'}, {"ending_times": {("a", 0): 5}}),
        ({"startingOffsetsByTimestampStrategy": "Latest"}, {"latest_if_none": True}),
        ({"endingOffsets": "Latest"}, {"ending_offsets": LATEST}),
        (
            {"endingOffsets": '{"a":{"0":50,"1":-1}}'},
            {"ending_offsets": {("a", 0): 50, ("a", 1): LATEST}},
        ),
        (
            {"isolationLevel": "read_committed"},
            {"selection": Selection(on_damage="raise", isolation="read_committed")},
        ),
        (
            {"kafka.isolation.level": "read_committed"},
            {"selection": Selection(on_damage="raise", isolation="read_committed")},
        ),
        (
            {"isolationLevel": "read_uncommitted"},
            {"selection": Selection(on_damage="raise", isolation="read_uncommitted")},
        ),
        ({"columns": "offset,magic"}, {"columns": ("offset", "magic")}),
        ({"engine": "Construct"}, {"engine": "construct"}),
        (
            {"includeControlRecords": "true"},
            {"selection": Selection(on_damage="raise", control_records=True)},
        ),
        ({"mode": "failfast"}, {"selection": Selection(on_damage="raise", policy="kafka")}),
        ({"mode": "PERMISSIVE"}, {"selection": Selection(on_damage="keep", policy="salvage")}),
        ({"mode": "DropMalformed"}, {"selection": Selection(on_damage="drop", policy="salvage")}),
        (
            {"mode": "PERMISSIVE", "policy": "kafka"},
            {"selection": Selection(on_damage="keep", policy="kafka")},
        ),
        ({"policy": "strict"}, {"selection": Selection(on_damage="raise", policy="strict")}),
        ({"replicas": "keep"}, {"selection": Selection(on_damage="raise", replicas="keep")}),
        (
            {"include": "remote, deleted"},
            {"selection": Selection(on_damage="raise", include=("deleted", "remote"))},
        ),
        ({"showSecrets": "true"}, {"show_secrets": True}),
        ({"splitBytes": "1000"}, {"split_bytes": 1000}),
        ({"batchRows": "10"}, {"batch_rows": 10}),
        ({"maxDecompressedBytes": "10"}, {"max_decompressed": 10}),
        ({"failOnDataLoss": "false"}, {"fail_on_data_loss": False}),
        ({"failOnDataLoss": "true"}, {}),
        ({"subscribe": ",a, a,b,"}, {"subscribe": ("a", "b")}),
        ({"subscribePattern": " a.* "}, {"subscribe_pattern": "a.*"}),
        ({"maxRecordsPerPartition": "7"}, {"max_records": 7}),
        ({"minPartitions": "7"}, {"min_partitions": 7}),
        ({"kafka.bootstrap.servers": "h:1"}, {"ignored": ("kafka.bootstrap.servers",)}),
        *[({name: "1"}, {"ignored": (name,)}) for name in IGNORED],
    ],
)
def test_what_they_give(given_options: dict[str, str], wanted: dict[str, Any]) -> None:
    assert parse({name.lower(): value for name, value in given_options.items()}) == Options(
        **wanted
    )


@pytest.mark.parametrize(
    ("given_options", "message"),
    [
        ({"subscrbe": "a"}, "option subscrbe: there is no such option; did you mean subscribe?"),
        ({"includeHeaders": "yes"}, "includeHeaders: true or false is expected, not 'yes'"),
        ({"subscribe": " ,"}, "subscribe: no topic is named in"),
        ({"subscribePattern": " "}, "subscribePattern: it is empty"),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "assign: only one of"),
        ({"subscribePattern": "("}, "subscribePattern: '(' is not a regular expression"),
        ({"assign": "a"}, "assign: JSON such as"),
        ({"assign": "{}"}, "assign: expected e.g."),
        ({"assign": '{"a":0}'}, "assign: expected e.g."),
        ({"assign": '{"a":[-1]}'}, "assign: expected e.g."),
        ({"assign": '{"a":[true]}'}, "assign: expected e.g."),
        ({"startingOffsets": "latest"}, "startingOffsets: a batch query cannot start at latest"),
        ({"endingOffsets": "earliest"}, "endingOffsets: a batch query cannot end at earliest"),
        (
            {"startingOffsets": '{"a":{"0":-1}}'},
            "startingOffsets: a batch query cannot start at latest (-1)",
        ),
        (
            {"endingOffsets": '{"a":{"0":-2}}'},
            "endingOffsets: a batch query cannot end at earliest (-2)",
        ),
        ({"startingOffsets": '{"a":{"0":-3}}'}, "startingOffsets: expected e.g."),
        ({"startingOffsets": '{"a":{"x":1}}'}, "startingOffsets: expected e.g."),
        ({"startingOffsets": '{"a":{"0":1.5}}'}, "startingOffsets: expected e.g."),
        ({"startingOffsets": '{"a":{"0":1,"0":2}}'}, "startingOffsets: a key occurs twice"),
        ({"startingOffsets": "[" * 100_000}, "startingOffsets: JSON such as"),
        ({"startingTimestamp": "now"}, "startingTimestamp: milliseconds since 1970"),
        ({"endingOffsetsByTimestamp": '{"a":{"0":-1}}'}, "endingOffsetsByTimestamp: expected e.g."),
        ({"startingOffsets": "5"}, "startingOffsets: expected e.g."),
        ({"isolationLevel": "serializable"}, "isolationLevel: one of read_uncommitted"),
        (
            {"isolationLevel": "read_committed", "kafka.isolation.level": "read_uncommitted"},
            "but kafka.isolation.level is",
        ),
        (
            {"columns": "offset", "includeHeaders": "true"},
            "columns: the schema already names the columns",
        ),
        ({"mode": "lenient"}, "mode: one of FAILFAST, PERMISSIVE, DROPMALFORMED"),
        ({"policy": "loose"}, "policy: one of strict, kafka, salvage"),
        ({"policy": "strict", "mode": "PERMISSIVE"}, "policy: strict stops at the first"),
        ({"policy": "salvage"}, "policy: salvage goes on after damage"),
        ({"splitBytes": "0"}, "splitBytes: a number from 1 on"),
        ({"batchRows": "-1"}, "batchRows: a number from 1 on"),
        ({"maxDecompressedBytes": "1e6"}, "maxDecompressedBytes: a number from 1 on"),
        ({"batchRows": "9" * 5000}, "batchRows: a number from 1 on"),
        ({"replicas": "both"}, "replicas: one of error, newest, keep"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss: true or false is expected"),
        ({"minPartitions": "0"}, "minPartitions: a number from 1 on"),
        ({"paths": '["/a", 1]'}, "paths: a JSON list of paths"),
        ({"path": ""}, "path: it is empty"),
        ({"paths": '["/a", ""]'}, "paths: it is empty"),
        ({"ignoreCorruptFiles": "1"}, "ignoreCorruptFiles: true or false is expected"),
        ({"maxOffsetsPerTrigger": "x"}, "maxOffsetsPerTrigger: a number from 1 on"),
        ({"minOffsetsPerTrigger": "0"}, "minOffsetsPerTrigger: a number from 1 on"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay: a duration such as 15m is expected"),
        (
            {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
            "minOffsetsPerTrigger: it is larger than maxOffsetsPerTrigger",
        ),
        (
            {"path": ""},
            "path: it is empty; say what to read: a log directory, a partition directory",
        ),
        ({"paths": '["/a", ""]'}, "paths: it is empty; say what to read"),
    ],
)
def test_what_is_refused(given_options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse({name.lower(): value for name, value in given_options.items()})
    text = str(caught.value).lower()
    assert text.startswith("kafka-log: option ")
    assert message.lower() in text


@pytest.mark.parametrize("name", ["startingOffsets", "startingOffsetsByTimestamp"])
def test_an_example_in_a_message_is_accepted(name: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse({"path": "/logs", name: "5"})
    found = re.search(r"expected e\.g\. (.*), got", str(caught.value))
    assert found is not None
    parse({"path": "/logs", name: found[1]})


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("startingOffset", "startingOffset"),
        ("numpartitions", "numPartitions"),
        ("COMPRESSION", "compression"),
    ],
)
def test_an_option_that_there_is_not_has_its_name(name: str, shown: str) -> None:
    """As it was given, or as it is documented for writing."""
    with pytest.raises(OptionError, match=f"^kafka-log: option {shown}: there is no such option"):
        parse({name: "1"})


def test_several_paths_are_checked_as_one_is() -> None:
    assert parse_paths(["/a", Path("/b")]).paths == ("/a", "/b")
    assert parse_paths(Path("/a"), {"startingOffsets": "earliest"}).paths == ("/a",)
    for path in ("", ["/a", ""]):
        with pytest.raises(OptionError, match=r"paths?: it is empty"):
            parse_paths(path)
    with pytest.raises(OptionError, match="paths: a URL must not contain a password"):
        parse_paths(["/a", "s3://user:word@bucket/x"])


@pytest.mark.slow
@given(
    name=st.sampled_from(KNOWN),
    value=st.text()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("0"), inner),
    ).map(json.dumps),
)
@pytest.mark.filterwarnings(
    "ignore:Possible (nested set|set difference|set union|set inter|set symm)"
)
def test_any_value_is_taken_or_refused_by_name(name: str, value: str) -> None:
    try:
        assert isinstance(parse({name: value}), Options)
    except OptionError as error:
        assert error.option.split(".")[-1].lower() in (name.lower(), "level", "isolationlevel")


@pytest.mark.parametrize("name", [*KNOWN, *COLUMNS])
def test_every_option_and_column_is_described(name: str) -> None:
    pages = [ROOT / "docs" / "spark.md", *(ROOT / "docs" / "spark").glob("*.md")]
    assert any(f"`{name}`" in page.read_text(encoding="utf-8") for page in pages)
    if name in KNOWN:
        assert f"``{name}``" in (options.__doc__ or "")


def test_the_page_has_the_defaults() -> None:
    """Giving an option what the page calls its default changes nothing."""
    pages = ROOT / "docs" / "spark"
    batch = (pages / "options.md").read_text(encoding="utf-8")
    stream = (pages / "streams.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| `(\w+)` \|.*\| `?(\w+)`? \|$", re.MULTILINE)
    given = {name: text for name, text in row.findall(batch) if name in KNOWN}
    assert len(given) >= 19
    assert {"splitBytes", "batchRows", "maxDecompressedBytes", "failOnDataLoss"} <= given.keys()
    for option in READING:
        if option.name in given and option.default is not None:
            assert option.read(option.name, given[option.name]) == option.default
    unset = {option.name for option in READING if option.name in given and option.default is None}
    meant = {
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
        "isolationLevel": "read_uncommitted",
        "pathGlobFilter": "all",
        "maxDecompressedBytes": "268435456",
    }
    assert {name: given[name] for name in unset} == meant
    limits = (SCHEMAS / "records" / "record_batch.yaml").read_text(encoding="utf-8")
    assert f"limit: {given['maxDecompressedBytes']}\n" in limits
    delay = dict(row.findall(stream))[MAX_DELAY.name]
    assert MAX_DELAY.read(MAX_DELAY.name, delay) == MAX_DELAY.default
