"""The table of a protocol's messages: exchanges by key and version, and requests and responses with their headers."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from codecgen.plan import make_plan
from codecgen.runtime.errors import ParseError, TrailingError
from codecgen.runtime.messages import UnknownMessage
from codecgen.targets import construct
from tests.codecgen.generated import package_of
from tests.codecgen.schemas import model_of

SCHEMA = """\
layout: front
versions: 1-2
message: {role: header, key_field: key, version_field: version}
fields: {id: u8, key: i16, version: u8, client: {string: u8, versions: 2}}
---
layout: back
versions: 0-1
message: {role: header}
fields: {id: u8, more: {type: u8, versions: 1}}
---
layout: get_request
versions: 0-3
message: {role: request, key: 3, header: {0-1: front@1, 2+: front@2}, unstable: 3, facts: {port: [a, b], cost: low}}
fields: {x: u8, y: {type: u8, versions: 2+}}
---
layout: get_response
versions: 0-2
message: {role: response, key: 3, header: {0-1: back@0, 2: back@1}}
fields: {x: u8}
---
layout: ask_response
versions: 5
message: {role: response, key: -1, header: back@0, unstable: 5+}
fields: {x: u8}
---
layout: put_request
versions: 0
message: {role: request, key: 9, header: front@1}
fields: {x: u8}
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return package_of(SCHEMA, tmp_path_factory.mktemp("messages"), "message_codecs")


def test_a_key_and_a_version_have_four_layouts(package: Any) -> None:
    found = package.API[3, 2]
    assert (found.key, found.version, found.is_unstable) == (3, 2, False)
    assert (found.request, found.request_header) == (package.GET_REQUEST_V2, package.FRONT_V2)
    assert (found.response, found.response_header) == (package.GET_RESPONSE_V2, package.BACK_V1)
    assert package.API[3, 1].request_header is package.FRONT_V1
    assert package.API[3, 2] is found


def test_layouts_that_the_schemas_do_not_have_are_none(package: Any) -> None:
    assert (package.API[3, 3].response, package.API[3, 3].response_header) == (None, None)
    assert (package.API[-1, 5].request, package.API[-1, 5].request_header) == (None, None)
    assert package.API[9, 0].response is None


def test_the_table_is_a_mapping(package: Any) -> None:
    keys = [(-1, 5), (3, 0), (3, 1), (3, 2), (3, 3), (9, 0)]
    assert list(package.API) == list(package.API.keys()) == keys
    assert len(package.API) == 6
    assert package.API.get((4, 0)) is None and (3, 4) not in package.API
    assert repr(package.API) == "<MessageTable of keys -1, 3, 9>"


def test_versions_facts_and_what_may_change(package: Any) -> None:
    assert package.API.versions(3) == (0, 1, 2, 3)
    assert package.API.facts(3) == {"port": ["a", "b"], "cost": ["low"]}
    assert package.API.facts(9) == {}
    assert [item for item, found in package.API.items() if found.is_unstable] == [(-1, 5), (3, 3)]


def test_a_layout_leads_back(package: Any) -> None:
    assert package.API.find(package.GET_REQUEST_V1) is package.API[3, 1]
    assert package.API.find(package.GET_RESPONSE_V1) is package.API[3, 1]
    with pytest.raises(KeyError, match="front@1 is not a message of this table"):
        package.API.find(package.FRONT_V1)


def test_a_request_says_what_it_is(package: Any) -> None:
    found = package.parse_request(bytes([7, 0, 3, 2, 2, 104, 105, 5, 6]))
    assert (found.key, found.version) == (3, 2)
    assert (found.header.id, found.header.client) == (7, "hi")
    assert found.body == {"x": 5, "y": 6}


def test_the_caller_says_what_a_response_is(package: Any) -> None:
    found = package.parse_response(3, 2, memoryview(bytes([7, 8, 9])))
    assert (found.header.more, found.body.x) == (8, 9)
    assert package.parse_response(3, 1, bytes([7, 9])).body.x == 9


@pytest.mark.parametrize(
    ("data", "key", "version", "known", "message"),
    [
        ([7, 0, 4, 2], 4, 2, (), "no message has the key 4 (version 2); the known keys: -1, 3, 9"),
        (
            [7, 0, 3, 9],
            3,
            9,
            (0, 1, 2, 3),
            "key 3 (get_request, get_response) has no version 9; its versions: 0-3",
        ),
        ([7, 255, 255, 5], -1, 5, (), "key -1 has no request of version 5"),
    ],
)
def test_an_unknown_request_is_refused_by_name(
    package: Any, data: list[int], key: int, version: int, known: tuple[int, ...], message: str
) -> None:
    with pytest.raises(UnknownMessage) as refused:
        package.parse_request(bytes(data))
    error = refused.value
    assert (error.key, error.version, error.known) == (key, version, known)
    assert str(error) == message
    assert isinstance(error, KeyError) and isinstance(error, ParseError)


@pytest.mark.parametrize("size", range(9))
def test_a_request_that_ends_early_is_refused(package: Any, size: int) -> None:
    with pytest.raises(ParseError) as refused:
        package.parse_request(bytes([7, 0, 3, 2, 2, 104, 105, 5, 6])[:size])
    assert refused.value.where.position is not None


def test_errors_in_the_body_have_their_place_in_the_whole(package: Any) -> None:
    with pytest.raises(TrailingError) as refused:
        package.parse_response(3, 2, bytes([7, 8, 9, 10]))
    assert refused.value.where.position == 3


def test_the_table_and_its_functions_are_pickled(package: Any) -> None:
    assert pickle.loads(pickle.dumps(package.API)) is package.API
    assert pickle.loads(pickle.dumps(package.parse_request)) == package.parse_request


def test_modules_of_messages_are_imported_on_first_use(tmp_path: Path) -> None:
    package = package_of(SCHEMA, tmp_path, "lazy_messages")
    del sys.modules["lazy_messages.case"]
    assert package.API.versions(9) == (0,)
    assert "lazy_messages.case" not in sys.modules


def test_a_directory_without_messages_has_no_table() -> None:
    emitted = construct.emit(make_plan(model_of("layout: a\nfields: {x: u8}")))
    assert not any("message_table" in name for name in emitted.files)
    assert "API" not in emitted.files["example_codecs/_exports.py"]


def test_without_a_header_of_requests_there_is_no_function_to_parse_one() -> None:
    text = "layout: a\nversions: 0\nmessage: {role: request, key: 1}\nfields: {x: u8}"
    emitted = construct.emit(make_plan(model_of(text)))
    assert "API" in emitted.files["example_codecs/_exports.py"]
    assert not any("parse_request" in text for text in emitted.files.values())
