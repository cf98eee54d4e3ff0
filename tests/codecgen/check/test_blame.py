"""What a finding names is what is to blame."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecgen.cli import main

MANIFEST = "language: 1\npackage: blame_codecs\ntitle: A case\n"
VIEW = """
---
choice: c
by: kind
cases: {1: e}
---
view: es
of: c
columns: {column: {type: TYPE}}
rows:
  - of: e
    columns: {column: VALUE}
"""
ENTRY = """
layout: e
fields:
  kind: {type: u8, const: 1}
  size: {type: u16, measures: rest}
  flag: u8
  inner: {layout: p}
  one: {string: u8}
  two: {string: u8}
---
layout: p
fields: {x: i32}
"""


@pytest.mark.parametrize(
    ("type_", "value", "said"),
    [
        # an i32 fits an int32, wherever it lies: what is in the way is where it lies
        (
            "int32",
            "inner.x",
            '[C023]: "inner" is a layout with a field that a column or condition uses',
        ),
        ("int16", "inner.x", "can be from -2147483648 to 2147483647"),
        ("int16", "inner.x - inner.x", "can be from -4294967295 to 4294967295"),
        ("int8", "flag", "can be from 0 to 255"),
        ("string", "if flag == 1 then one else two", '[C023]: "one" is one of several fields'),
    ],
)
def test_a_view(
    type_: str, value: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    (schemas / "codecgen.yaml").write_text(MANIFEST, encoding="utf-8")
    text = ENTRY + VIEW.replace("TYPE", type_).replace("VALUE", value)
    (schemas / "case.yaml").write_text(text, encoding="utf-8")
    left_to_codecs = "C023" in said
    assert main(["generate", str(schemas), "--out", str(tmp_path / "out")]) != left_to_codecs
    assert said in capsys.readouterr().err
