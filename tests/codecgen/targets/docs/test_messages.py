"""Requests, responses and headers in the documents."""

from __future__ import annotations

from codecgen.plan import make_plan
from codecgen.targets import docs
from tests.codecgen.schemas import model_of

SCHEMA = """\
layout: front
versions: 1-2
message: {role: header, key_field: key, version_field: version}
fields: {key: u8, version: u8}
---
layout: get
versions: 0-3
message: {role: request, key: 3, header: {0-1: front@1, 2+: front@2}, unstable: 3, facts: {port: ["a|b", c]}}
fields: {x: u8}
---
layout: got
versions: 0
message: {role: response, key: 3, header: front@1}
fields: {x: u8}
"""


def test_the_page_says_what_a_layout_is() -> None:
    found = docs.emit(make_plan(model_of(SCHEMA))).files
    [text] = [text for path, text in found.items() if path.endswith("case.md")]
    assert "A header." in text
    assert "`key` and `version` name the message that follows." in text
    first = (
        "A request with the key 3 after [`front@1`](#front) in versions 0-1 and [`front@2`](#front)"
    )
    assert f"{first} in versions 2+." in text
    assert "Versions that may still change: 3." in text
    assert "`port`: <code>a&#124;b</code>, `c`." in text
    assert "A response with the key 3 after [`front@1`](#front)." in text
