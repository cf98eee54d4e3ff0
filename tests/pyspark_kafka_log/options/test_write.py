"""The options for writing."""

from __future__ import annotations

import pytest

from kafka_log.write.sink.log_format import LogFormat
from pyspark_kafka_log.options import OptionError, write
from pyspark_kafka_log.options.table import WRITING
from pyspark_kafka_log.options.write import parse_write
from tests.paths import ROOT


def test_all_options() -> None:
    given = {
        "PATH": "/data",
        "topic": "orders",
        "numpartitions": "12",
        "compression": "ZSTD",
        "compressionLevel": "-3",
        "batchBytes": "100000",
        "batchRecords": "50",
        "segmentBytes": "1000000",
        "formatVersion": "2",
        "messageTimestampType": "logappendtime",
        "topicId": "R6DRRlsMTMm9xlZG6ZpBNA",
        "kafka.bootstrap.servers": "b:9092",
        "includeHeaders": "true",
        "checkpointLocation": "/c",
        "fs.s3a.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    }
    found = parse_write(given)
    assert found.path == "/data"
    assert found.format == LogFormat(
        "orders", 12, "zstd", -3, 100000, 50, 1000000, 2, "LogAppendTime", "R6DRRlsMTMm9xlZG6ZpBNA"
    )
    assert set(found.ignored) == {"kafka.bootstrap.servers", "includeHeaders"}
    for path in (
        "file:///data/a%20b",
        "file:/data/a%20b",
        "FILE://localhost/data/a%20b",
        "/data/a b",
    ):
        assert parse_write({"path": path}).path == "/data/a b"
    assert parse_write({"path": "/d"}).format == LogFormat()


@pytest.mark.parametrize(
    ("given", "option", "told"),
    [
        ({}, "path", "a path to write to is required"),
        ({"path": "s3a://b/x"}, "path", "rows are written to local directories only"),
        ({"path": "file:x"}, "path", "begins with file:///"),
        ({"path": "file://x/y"}, "path", "begins with file:///"),
        ({"path": "/d", "compresion": "lz4"}, "compresion", "did you mean compression?"),
        ({"path": "/d", "subscribe": "a"}, "subscribe", "no such option for writing"),
        ({"path": "/d", "compression": "brotli"}, "compression", "one of none, gzip"),
        (
            {"path": "/d", "compressionLevel": "3"},
            "compressionLevel",
            "3 was given, but the codec is none",
        ),
        (
            {"path": "/d", "compression": "gzip", "compressionLevel": "99"},
            "compressionLevel",
            "levels 1 to 9",
        ),
        ({"path": "/d", "formatVersion": "3"}, "formatVersion", "known: 0, 1, 2"),
        ({"path": "/d", "numPartitions": "0"}, "numPartitions", "0 is not in 1.."),
        ({"path": "/d", "numPartitions": "x"}, "numPartitions", "a number is expected"),
        ({"path": "/d", "segmentBytes": str(1 << 31)}, "segmentBytes", "is not in 1..2147483647"),
        ({"path": "/d", "topic": "a/b"}, "topic", "is not a topic name"),
        ({"path": "/d", "topicId": "R6DRRlsMTMm9xlZG6ZpBNA"}, "topicId", "it needs a topic"),
        ({"path": "/d", "topic": "t", "topicId": "x"}, "topicId", "is not a topic id"),
        (
            {"path": "/d", "formatVersion": "0", "messageTimestampType": "CreateTime"},
            "messageTimestampType",
            "has no timestamps: leave it out",
        ),
    ],
)
def test_options_that_cannot_be_taken(given: dict[str, str], option: str, told: str) -> None:
    with pytest.raises(OptionError, match=told) as caught:
        parse_write(given)
    assert caught.value.option.lower() == option.lower()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("includemetadata", "includeMetadata"),
        ("maxoffsetspertrigger", "maxOffsetsPerTrigger"),
        ("Compresion", "Compresion"),
    ],
)
def test_an_option_that_there_is_not_has_its_name(name: str, shown: str) -> None:
    with pytest.raises(OptionError, match=f"option {shown}: there is no such option for writing"):
        parse_write({"path": "/d", name: "1"})


def test_the_pages_name_all() -> None:
    page = (ROOT / "docs" / "spark" / "writing.md").read_text(encoding="utf-8")
    for name in (option.name for option in WRITING):
        assert f"`{name}`" in page
        assert f"``{name}``" in (write.__doc__ or "")
