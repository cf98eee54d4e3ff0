"""Sources of schemas: topics, directories, exports, and a registry that answers on loopback."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_log import DirectoryError, discover
from kafka_log.read.schemas.decoding import PartDecoder
from kafka_log.read.schemas.registry import SchemaError, SchemaRegistry
from kafka_log.read.schemas.sources import read_registry
from tests.support.make_schema_registry_sample import SAMPLE, from_hex, read_file

VERSIONS = [
    {"subject": "a", "version": 1, "id": 1, "schema": '"int"'},
    {"subject": "a", "version": 2, "id": 2, "schemaType": "JSON", "schema": "{}"},
]


def names(registry: SchemaRegistry) -> list[tuple[str, int, int, str, str]]:
    return [(v.subject, v.version, v.id, v.type, v.state) for v in registry.versions]


TOPIC = [
    ("address", 1, 3, "AVRO", "registered"),
    ("clicks-value", 1, 5, "JSON", "registered"),
    ("customers-value", 1, 4, "AVRO", "registered"),
    ("events-value", 1, 7, "AVRO", "registered"),
    ("gone-value", 1, 10, "AVRO", "removed"),
    ("old-value", 1, 8, "AVRO", "deleted"),
    ("old-value", 2, 9, "AVRO", "registered"),
    ("orders-value", 1, 1, "AVRO", "registered"),
    ("orders-value", 2, 2, "AVRO", "registered"),
    ("payments-value", 1, 6, "PROTOBUF", "registered"),
]


def test_the_topic_among_partitions() -> None:
    registry = read_registry(discover(SAMPLE))
    assert names(registry) == TOPIC and registry.problems == ()
    assert names(read_registry([])) == []


@pytest.mark.parametrize("path", [SAMPLE, SAMPLE / "_schemas-0"])
def test_the_topic_of_another_directory(path: Path) -> None:
    assert names(read_registry([], path)) == TOPIC


def test_a_topic_with_another_name(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE / "_schemas-0", tmp_path / "registry-0")
    assert names(read_registry([], tmp_path / "registry-0")) == TOPIC


def test_a_damaged_topic(tmp_path: Path) -> None:
    """What can be read counts, and the rest is said."""
    shutil.copytree(SAMPLE / "_schemas-0", tmp_path / "_schemas-0")
    log = tmp_path / "_schemas-0" / "00000000000000000000.log"
    data = log.read_bytes()
    log.write_bytes(data[:-40])
    registry = read_registry(discover(tmp_path))
    assert registry.problems
    good = bytearray(data)
    good[-1] ^= 1
    log.write_bytes(good)
    registry = read_registry(discover(tmp_path))
    assert registry.problems and "_schemas-0, offset 0" in registry.problems[0]


def test_records_of_a_consumer(tmp_path: Path) -> None:
    """As kafka-console-consumer prints them with ``print.key=true``."""
    path = tmp_path / "export.txt"
    lines = []
    for line in read_file():
        if line["topic"] == "_schemas":
            pair = [from_hex(line[part]) or b"null" for part in ("key", "value")]
            lines.append(b"\t".join(pair))
    path.write_bytes(b"\n".join(lines))
    assert names(read_registry([], path)) == TOPIC


EXPORT = [("a", 1, 1, "AVRO", "registered"), ("a", 2, 2, "JSON", "registered")]


@pytest.mark.parametrize(
    "text", [json.dumps(VERSIONS), "\n".join(map(json.dumps, VERSIONS)) + "\n"]
)
def test_exports(tmp_path: Path, text: str) -> None:
    path = tmp_path / "schemas.json"
    path.write_text(text, "utf-8")
    assert names(read_registry([], path)) == EXPORT


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("has_keys", [False, True])
def test_text_of_schemas_has_unicode_line_ends(tmp_path: Path, end: str, has_keys: bool) -> None:
    """JSON has them as they are, within a line."""
    doc = "a\u2028b\u2029c\x85d"
    schema = json.dumps({"type": "string", "doc": doc}, ensure_ascii=False)
    version = {"subject": "s", "version": 1, "id": 7, "schema": schema}
    line = json.dumps(version, ensure_ascii=False)
    key = '{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}\t' if has_keys else ""
    path = tmp_path / "schemas.json"
    path.write_bytes(f"{key}{line}{end}".encode() * 2)
    registry = read_registry([], path)
    assert not registry.problems
    assert registry.find_by_id(7, "s").text == schema


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_fifo_among_files_of_schemas(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.7.avsc")
    with pytest.raises(OSError, match="this is a FIFO"):
        read_registry([], tmp_path)


@pytest.mark.parametrize("text", ["[", "[1]", "[{}]", "{}", "text", "[" * 100_000])
def test_wrong_exports(tmp_path: Path, text: str) -> None:
    path = tmp_path / "schemas.json"
    path.write_text(text, "utf-8")
    with pytest.raises(SchemaError, match=r"schemas\.json"):
        read_registry([], path)


def test_files(tmp_path: Path) -> None:
    for name in ("orders-value.7.avsc", "8.proto", "a.b.9.json", "README.md"):
        (tmp_path / name).write_text('"int"', "utf-8")
    found = read_registry([], tmp_path)
    assert names(found) == [
        ("", 8, 8, "PROTOBUF", "registered"),
        ("a.b", 9, 9, "JSON", "registered"),
        ("orders-value", 7, 7, "AVRO", "registered"),
    ]


def test_files_without_an_id(tmp_path: Path) -> None:
    (tmp_path / "orders-value.avsc").write_text('"int"', "utf-8")
    with pytest.raises(SchemaError, match=r"orders-value\.7\.avsc"):
        read_registry([], tmp_path)


def test_a_path_without_schemas(tmp_path: Path) -> None:
    with pytest.raises(DirectoryError):
        read_registry([], tmp_path)
    with pytest.raises(DirectoryError, match="neither a topic _schemas nor files"):
        read_registry([], SAMPLE.parent / "kafka-2.8")
    with pytest.raises(DirectoryError):
        read_registry([], tmp_path / "missing")


# ---------------------------------------------------------------- a running registry


class Registry(BaseHTTPRequestHandler):
    """Answers as the path says, and notes what was asked."""

    asked: list[tuple[str, str | None]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["Authorization"]))
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", "/schemas")
            self.end_headers()
            return
        status = 401 if self.path.startswith("/closed") else 200
        body = b"\xff[" if self.path.startswith("/wrong") else json.dumps(VERSIONS).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Registry.asked.clear()
    with HTTPServer(("127.0.0.1", 0), Registry) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


def test_a_running_registry(server: str) -> None:
    assert names(read_registry([], f"http://{server}/")) == EXPORT
    assert names(read_registry([], f"http://me:s%40cret@{server}/api")) == EXPORT
    assert Registry.asked == [
        ("/schemas?deleted=true", None),
        ("/api/schemas?deleted=true", "Basic bWU6c0BjcmV0"),
    ]


@pytest.mark.parametrize("path", ["closed", "wrong", "moved"])
def test_a_registry_that_does_not_answer_so(server: str, path: str) -> None:
    """Nothing tells the password, and a redirect is not followed."""
    with pytest.raises((OSError, SchemaError)) as caught:
        read_registry([], f"http://me:cret@{server}/{path}?token=cret")
    assert "cret" not in str(caught.value) and server in str(caught.value)
    assert len(Registry.asked) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://me:cret@[x/",
        "http://me:cret@a\u2100b/",
        "http://me:cret@127.0.0.1:9/\u00fc",
        "http://me:cret@/",
    ],
)
def test_urls_that_cannot_be_opened(url: str) -> None:
    with pytest.raises(OSError, match="schema registry") as error:
        read_registry([], url)
    assert "cret" not in str(error.value)


def test_no_registry() -> None:
    with pytest.raises(OSError, match="does not answer") as caught:
        read_registry([], "http://me:cret@127.0.0.1:9/")
    assert "cret" not in str(caught.value)


def test_files_that_others_import(tmp_path: Path) -> None:
    """A file without an id has no values of its own."""
    (tmp_path / "t-value.6.proto").write_text(
        'syntax = "proto3"; import "common.proto"; message A { Name name = 1; }'
    )
    (tmp_path / "common.proto").write_text('syntax = "proto3"; message Name { string s = 1; }')
    (tmp_path / "u-value.7.json").write_text('{"$ref": "common.json"}')
    (tmp_path / "common.json").write_text('{"type": "integer"}')
    registry = read_registry([], tmp_path)
    for topic, data, value in (
        ("t", b"\0\0\0\0\6\0\x0a\3\x0a\1x", {"name": {"s": "x"}}),
        ("u", b"\0\0\0\0\7" + b"5", 5),
    ):
        decoder = PartDecoder(registry, topic, "value", [])
        columns = decoder.decode_columns(pa.array([data], pa.binary()), None)
        assert columns[0].to_pylist() == [value]
    (tmp_path / "common.avsc").write_text('"int"')
    with pytest.raises(SchemaError, match="the name has no schema id"):
        read_registry([], tmp_path)
