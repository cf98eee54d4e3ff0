"""The modules of fast parsers and builders: what they are called, and what they print."""

from __future__ import annotations

import inspect
import math
import struct
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from codecgen.cli import main
from codecgen.runtime.errors import BuildError, ParseError
from codecgen.runtime.fast_path import without_fast_paths
from kafka_codecs.records import header_fast
from tests.codecgen.generated import package_of

LAYOUT = "layout: {}\ndoc: A layout.\nfields: {{x: u8}}\n"


@pytest.mark.parametrize(
    ("other", "suffix"),
    [("b", "_fast"), ("a_fast", "_fast_"), ("a_fast/c", "_fast_"), ("a-fast", "_fast_")],
)
def test_no_module_of_a_schema_has_the_name(tmp_path: Path, other: str, suffix: str) -> None:
    schemas = tmp_path / "schemas"
    (schemas / other).parent.mkdir(parents=True)
    (schemas / "codecgen.yaml").write_text("language: 1\npackage: p\ntitle: A case\n", "utf-8")
    (schemas / "a.yaml").write_text(LAYOUT.format("one"), "utf-8")
    (schemas / f"{other}.yaml").write_text(LAYOUT.format("two"), "utf-8")
    out = tmp_path / "out"
    assert main(["generate", str(schemas), "--out", str(out), "--targets", "construct"]) == 0
    module = other.replace("-", "_")
    assert (out / f"p/a{suffix}.py").is_file()
    assert "FAST_PATHS" in (out / f"p/{module}{suffix}.py").read_text("utf-8")
    assert "TWO" in (out / f"p/{module}.py").read_text("utf-8")


def test_the_function_of_a_record() -> None:
    """One straight run: single bytes of varints in place, no call for each field."""
    body = inspect.getsource(header_fast.parse_header)
    assert "unpack" not in body
    assert body.count("raw = data[pos]") == 2  # the lengths of the key and the value
    assert body.count("(data, pos") == 2  # longer varints


def test_the_builder_of_a_header() -> None:
    """One straight run: lengths in place, and a call only for what is longer than one byte."""
    body = inspect.getsource(header_fast.build_header)
    assert body.count("write_varint(") == 2  # the lengths of the key and the value
    assert body.count("out += ") == 2
    assert "for " not in body


@pytest.mark.parametrize(
    ("rule", "is_accepted"),
    [("valid: x >= 1", False), ("refuse: x < 1", True), ("valid: x != 1", True)],
)
def test_each_comparison_with_nan_is_false(rule: str, is_accepted: bool, tmp_path: Path) -> None:
    name = f"nan_{rule.partition(':')[0]}_{'ne' if '!=' in rule else 'order'}"
    package: Any = package_of(
        f"layout: one\nfields: {{x: {{type: f64, {rule}}}}}\n", tmp_path, name
    )
    data = struct.pack(">d", math.nan)
    for ways in (nullcontext(), without_fast_paths()):
        with ways:
            if is_accepted:
                assert math.isnan(package.ONE.parse(data).x)
                assert package.ONE.build({"x": math.nan}) == data
            else:
                with pytest.raises(ParseError):
                    package.ONE.parse(data)
                with pytest.raises(BuildError):
                    package.ONE.build({"x": math.nan})
