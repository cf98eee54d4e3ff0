"""Defaults of definitions: what builders write for fields without a value."""

from __future__ import annotations

import importlib
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codecgen.cli import GOOD, main
from codecgen.importers import kafka_json
from tests.codecgen.importers.definitions import definitions, findings

NULLABLE = {"nullableVersions": "0+", "default": "null"}
FIELDS: list[tuple[str, dict[str, Any], Any]] = [
    ("bool", {"default": "true"}, True),
    ("bool", {"default": False}, False),
    ("int8", {"default": "-1"}, -1),
    ("int16", {"default": -1}, -1),
    ("uint16", {"default": "0xffff"}, 65535),
    ("int32", {"default": "0x7fffffff"}, 2147483647),
    ("uint32", {"default": "4294967295"}, 4294967295),
    ("int64", {"default": "-9223372036854775808"}, -(1 << 63)),
    ("float64", {"default": "0.0"}, 0.0),
    ("float64", {"default": "-2.0"}, -2.0),
    ("float64", {"default": "1e3"}, 1000.0),
    ("string", {"default": 'a "b" \\ c'}, 'a "b" \\ c'),
    ("string", {"default": ""}, ""),
    ("bytes", {"default": ""}, b""),
    ("string", NULLABLE, None),
    ("bytes", NULLABLE, None),
    ("[]int32", {}, []),
    ("[]string", NULLABLE, None),
    ("Inner", {**NULLABLE, "fields": [{"name": "X", "type": "int8", "versions": "0+"}]}, None),
]
TAGGED: list[tuple[str, dict[str, Any], Any]] = [
    ("int32", {}, 0),
    ("int64", {"default": "-1"}, -1),
    ("string", {}, ""),
    ("bytes", {}, b""),
    ("uuid", {}, uuid.UUID(int=0)),
    ("float64", {}, 0.0),
    ("float64", {"default": "3.0"}, 3.0),
    ("[]int8", {}, []),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """What is parsed of a message that was built without values, in versions 0 and 1."""
    root = tmp_path_factory.mktemp("defaults")
    fields = [
        {"name": f"Plain{i}", "type": type_, "versions": "0+", **keys}
        for i, (type_, keys, _) in enumerate(FIELDS)
    ]
    tag = {"versions": "1+", "taggedVersions": "1+"}
    fields += [
        {"name": f"Tagged{i}", "type": type_, "tag": i, **tag, **keys}
        for i, (type_, keys, _) in enumerate(TAGGED)
    ]
    message = {"validVersions": "0-1", "flexibleVersions": "1+", "fields": fields}
    schemas = str(root / "schemas")
    given = ["import", "kafka-json", str(definitions(root / "json", message)), "--out", schemas]
    assert main(given) == GOOD
    out = str(root / "out")
    assert main(["generate", schemas, "--out", out, "--targets", "construct"]) == GOOD
    sys.path.insert(0, out)
    try:
        parcel = importlib.import_module("kafka_messages").PARCEL
        yield [codec.parse(codec.build({})) for codec in parcel.values()]
    finally:
        sys.path.remove(out)
        for name in [n for n in sys.modules if n.partition(".")[0] == "kafka_messages"]:
            del sys.modules[name]


@pytest.mark.parametrize("version", [0, 1])
def test_fields_have_the_defaults_of_the_definition(built: Any, version: int) -> None:
    found = [built[version][f"plain{i}"] for i in range(len(FIELDS))]
    assert found == [expected for _, _, expected in FIELDS]


def test_tagged_fields_have_those_of_kafka(built: Any) -> None:
    found = [built[1][f"tagged{i}"] for i in range(len(TAGGED))]
    assert found == [expected for _, _, expected in TAGGED]


@pytest.mark.parametrize(
    ("type_", "default"),
    [("float64", "1.5"), ("float64", "1e300"), ("uuid", "AAAAAAAAAAAAAAAAAAAAAQ")],
)
def test_a_default_that_a_schema_cannot_say_is_counted(
    tmp_path: Path, type_: str, default: str
) -> None:
    field = {"name": "Weight", "type": type_, "versions": "0+", "default": default}
    found = kafka_json.find(definitions(tmp_path, {"fields": [field]}))
    imported = kafka_json.convert(found, "camel")
    assert imported.keys == {f"default of a {type_}": 1}
    assert "default" not in imported.files["parcel.yaml"]


@pytest.mark.parametrize("default", ["1.5.0", "one", "0x10"])
def test_a_default_that_is_no_float_is_a_finding(tmp_path: Path, default: str) -> None:
    field = {"name": "Weight", "type": "float64", "versions": "0+", "default": default}
    [found] = findings(tmp_path, {"fields": [field]})
    assert found.message == "the default is not a number"
