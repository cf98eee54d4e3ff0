"""``refuse`` and ``valid`` of an array that ends a layout ask for its first and last elements."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.runtime.errors import BuildError, CodecError, ValueRefused
from codecgen.runtime.located_bytes import Session, Source
from tests.codecgen.generated import package_of

SCHEMA = """
layout: some
fields:
  top: u8
  parts: {array: item, until: end, at_least: 1, RULE: RELATION}
---
layout: item
fields: {n: u8}
"""


@pytest.mark.parametrize(
    ("rule", "relation"), [("refuse", "top < last(parts).n"), ("valid", "top >= last(parts).n")]
)
def test_a_rule_on_the_last_element(rule: str, relation: str, tmp_path: Path) -> None:
    text = SCHEMA.replace("RULE", rule).replace("RELATION", relation)
    layout = package_of(text, tmp_path, f"rules_of_arrays_{rule}").SOME
    assert [item.n for item in layout.parse(b"\5\7\5").parts] == [7, 5]
    with pytest.raises(ValueRefused, match="an array of 2 is"):
        layout.parse(b"\5\5\7")
    with pytest.raises(BuildError, match="an array of 1 is"):
        layout.build({"top": 1, "parts": [{"n": 2}]})
    assert [item.n for item in layout.open(Source(b"\5\7\5", Session())).items] == [7, 5]
    with pytest.raises(CodecError):
        list(layout.open(Source(b"\5\5\7", Session())).items)
    session = Session(strict=False)
    opened = layout.open(Source(b"\5\5\7", session))
    if rule == "refuse":
        with pytest.raises(CodecError):
            list(opened.items)
    else:
        assert len(list(opened.items)) == 2
        assert [finding.where.path for finding in session.findings] == ["parts"]
