"""Requests, responses and headers: what the importer keeps of Kafka's protocol, and the table that comes of it."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from codecgen.cli import GOOD, main
from codecgen.importers import kafka_json
from tests.codecgen.importers.definitions import WEIGHT, definitions
from tests.paths import ROOT

HEADER_FIELDS = [
    {"name": "RequestApiKey", "type": "int16", "versions": "0+"},
    {"name": "RequestApiVersion", "type": "int16", "versions": "0+"},
    {"name": "CorrelationId", "type": "int32", "versions": "0+"},
    {
        "name": "ClientId",
        "type": "string",
        "versions": "1+",
        "nullableVersions": "1+",
        "flexibleVersions": "none",
    },
]
REQUEST_HEADER = {
    "type": "header",
    "name": "RequestHeader",
    "validVersions": "0-2",
    "flexibleVersions": "2+",
    "fields": HEADER_FIELDS,
}
RESPONSE_HEADER = {
    "type": "header",
    "name": "ResponseHeader",
    "validVersions": "0-1",
    "flexibleVersions": "1+",
    "fields": [HEADER_FIELDS[2]],
}


def request(key: int, name: str, **keys: Any) -> dict[str, Any]:
    return {"type": "request", "apiKey": key, "name": f"{name}Request", "fields": [WEIGHT], **keys}


def response(key: int, name: str, **keys: Any) -> dict[str, Any]:
    return {**request(key, name, **keys), "type": "response", "name": f"{name}Response"}


def imported(tmp_path: Path, *messages: dict[str, Any]) -> dict[str, Any]:
    """The key ``message`` of each layout, by file."""
    found = kafka_json.find(definitions(tmp_path, *messages))
    assert not found.findings
    files = kafka_json.convert(found, "camel").files
    return {
        name.removesuffix(".yaml"): next(yaml.safe_load_all(text)).get("message")
        for name, text in files.items()
    }


def test_what_the_definitions_say_is_kept(tmp_path: Path) -> None:
    one = request(3, "Ship", listeners=["broker", "controller"], latestVersionUnstable=True)
    found = imported(tmp_path, one, response(3, "Ship"), REQUEST_HEADER, RESPONSE_HEADER)
    assert found["ship_request"] == {
        "role": "request",
        "key": 3,
        "header": {"0-1": "request_header@1", "2+": "request_header@2"},
        "unstable": 3,
        "facts": {"listeners": ["broker", "controller"]},
    }
    assert found["ship_response"]["header"] == {
        "0-1": "response_header@0",
        "2+": "response_header@1",
    }
    assert found["request_header"] == {
        "role": "header",
        "key_field": "request_api_key",
        "version_field": "request_api_version",
    }
    assert found["response_header"] == {"role": "header"}


def test_two_messages_have_other_headers(tmp_path: Path) -> None:
    """ControlledShutdown in version 0, and the response of ApiVersions in all of them."""
    messages = [request(7, "Stop"), response(7, "Stop"), request(18, "Ask"), response(18, "Ask")]
    found = imported(tmp_path, *messages, REQUEST_HEADER, RESPONSE_HEADER)
    headers = {name: one["header"] for name, one in found.items() if "header" in (one or {})}
    assert headers == {
        "stop_request": {0: "request_header@0", 1: "request_header@1", "2+": "request_header@2"},
        "stop_response": {"0-1": "response_header@0", "2+": "response_header@1"},
        "ask_request": {"0-1": "request_header@1", "2+": "request_header@2"},
        "ask_response": "response_header@0",
    }


@pytest.mark.parametrize(
    "header",
    [
        [],
        [{**REQUEST_HEADER, "name": "OtherHeader"}],
        [{**REQUEST_HEADER, "validVersions": "0-1", "flexibleVersions": "none"}],
        [{**REQUEST_HEADER, "fields": HEADER_FIELDS[1:]}],
        [{**REQUEST_HEADER, "fields": [{**HEADER_FIELDS[0], "versions": "1+"}, HEADER_FIELDS[1]]}],
        [{**REQUEST_HEADER, "fields": [{**HEADER_FIELDS[0], "type": "uuid"}, HEADER_FIELDS[1]]}],
    ],
)
def test_without_a_fitting_header_a_request_names_none(
    tmp_path: Path, header: list[dict[str, Any]]
) -> None:
    found = imported(tmp_path, request(3, "Ship"), *header)
    assert found["ship_request"] == {"role": "request", "key": 3}


def test_data_and_a_second_request_of_a_key_are_no_messages(tmp_path: Path) -> None:
    definitions(tmp_path / "a", request(3, "Ship"))
    definitions(tmp_path / "b", request(3, "Boat"), {"name": "Crate"})
    found = imported(tmp_path)
    assert found["a/ship_request"] == {"role": "request", "key": 3}
    assert (found["b/boat_request"], found["b/crate"]) == (None, None)


SOFTWARE = [
    {"name": f"ClientSoftware{word}", "type": "string", "versions": "3+"}
    for word in ("Name", "Version")
]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    root = tmp_path_factory.mktemp("protocol")
    ask = request(18, "Ask", fields=[WEIGHT, *SOFTWARE], listeners=["broker", "controller"])
    ask["fields"][0] = {**WEIGHT, "versions": "0-2"}
    messages = [ask, response(18, "Ask"), request(3, "Api"), {"name": "Api"}]
    definitions(root / "json", *messages, REQUEST_HEADER, RESPONSE_HEADER)
    out = str(root / "schemas")
    assert main(["import", "kafka-json", str(root / "json"), "--out", out]) == GOOD
    assert main(["check", out]) == GOOD
    given = ["generate", out, "--out", str(root / "out"), "--targets", "construct"]
    assert main(given) == GOOD
    sys.path.insert(0, str(root / "out"))
    try:
        yield importlib.import_module("kafka_messages")
    finally:
        sys.path.remove(str(root / "out"))
        for name in [n for n in sys.modules if n.partition(".")[0] == "kafka_messages"]:
            del sys.modules[name]


def test_bytes_of_kafka_are_parsed_by_the_table(package: Any) -> None:
    """The bytes are those of the protocol guide: header 2 has old lengths for the client and a section of tags."""
    found = package.parse_request(bytes.fromhex("0012 0003 00000007 0002 6d65 00 0261 0262 00"))
    assert (found.key, found.version, found.header.client_id) == (18, 3, "me")
    assert found.header.correlation_id == 7
    assert (found.body.client_software_name, found.body.client_software_version) == ("a", "b")
    found = package.parse_response(18, 3, bytes.fromhex("00000007 0000002a 00"))
    assert (found.header.correlation_id, found.body.weight) == (7, 42)


def test_the_page_is_true(package: Any) -> None:
    page = (ROOT / "docs" / "import-kafka-json.md").read_text("utf-8")
    [code] = [c for c in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "API.facts" in c]
    exec(code, {})


def test_a_layout_does_not_take_the_name_of_the_table(package: Any) -> None:
    assert package.API.versions(3) == (0, 1, 2, 3)
    assert package.API_MESSAGE.versions == (0, 1, 2, 3)
