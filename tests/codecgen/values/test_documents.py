"""Values as YAML and JSON: what is printed is read back, whatever it is; examples of the schemas build to their bytes."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from codecgen.plan import make_plan
from codecgen.runtime.enums import Enumeration
from codecgen.schema import forms, yaml_tree
from codecgen.schema.model import Example, Layout
from codecgen.targets.live_codecs import Codecs, load_codecs
from codecgen.values.documents import build_all, format_json, format_yaml
from codecgen.values.named_codec import NamedCodec, find_codec
from codecgen.values.reading import Input, read_one
from tests.codecgen.schemas import our_model


class Colour(Enumeration):
    RED = 0
    NULL = 1
    TRUE = 2


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats()
    | TEXT
    | st.binary(max_size=12)
    | st.uuids()
    | st.sampled_from(Colour),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "null", "of", "y"]), inner, max_size=3)
    ),
    max_leaves=12,
)


def meant(value: Any) -> Any:
    """What the forms of examples have for a value."""
    if isinstance(value, Colour):
        return value.name.lower()
    if isinstance(value, dict):
        return {name: meant(item) for name, item in value.items()}
    if isinstance(value, list):
        return [meant(item) for item in value]
    return (
        repr(value)
        if isinstance(value, float)
        else str(value)
        if isinstance(value, uuid.UUID)
        else value
    )


def same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(same(found[n], wanted[n]) for n in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, bytes) and isinstance(found, str):
        return found.encode() == wanted  # text where it is text
    if isinstance(wanted, str) and isinstance(found, str) and found != wanted:
        return bool(float(found) == float(wanted))
    return bool(found == wanted) and type(found) is type(wanted)


@given(VALUES)
def test_what_is_printed_is_read_back(value: Any) -> None:
    for text in (
        format_yaml({"v": value}),
        format_json({"v": value}),
        format_json({"v": value}, indent=None),
    ):
        documents, found = yaml_tree.load("law", text)
        assert not found, text
        read = forms.to_python(documents[0])
        assert isinstance(read, dict) and same(read["v"], meant(value)), text


@given(VALUES)
def test_it_is_json_and_yaml_for_others_too(value: Any) -> None:
    text = format_json({"v": value})
    assert yaml.safe_load(format_yaml({"v": value})).keys() == json.loads(text).keys()
    assert json.loads(text) == json.loads(format_json({"v": value}, indent=None))


def test_words() -> None:
    assert format_yaml({"a": Colour.RED, "b": Colour.NULL, "c": [], "d": {}, "e": b"\xff"}) == (
        'a: red\nb: "null"\nc: []\nd: {}\ne: {hex: "ff"}\n'
    )


# ---------------------------------------------------------------- examples of the schemas


MODEL = our_model()
PLAN = make_plan(MODEL)
EXAMPLES = [
    (layout, example)
    for layout in MODEL.layouts.values()
    for example in layout.examples
    if example.data is not None
]


@pytest.fixture(scope="module")
def codecs() -> Codecs:
    found, refused = load_codecs(PLAN)
    assert found is not None and not refused
    return found


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize(("layout", "example"), EXAMPLES, ids=lambda thing: thing.name)
def test_examples_are_built_again(codecs: Codecs, layout: Layout, example: Example) -> None:
    at = "" if example.version is None else f"@{example.version}"
    what = find_codec(PLAN, codecs, f"{layout.name}{at}", None)
    assert example.data is not None
    value, compressed = parsed(what, example.data)
    for text in (format_yaml(value), format_json(value)):
        data = build_all(what, "law", text)
        assert data == example.data if not compressed else parsed(what, data)[1]


def parsed(what: NamedCodec, data: bytes) -> tuple[Any, bool]:
    reading = read_one(what, Input("law", data), 0, len(data), strict=True)
    assert reading.error is None and reading.end == len(data)
    return reading.value, any(inner for _, _, _, inner in reading.trace)
