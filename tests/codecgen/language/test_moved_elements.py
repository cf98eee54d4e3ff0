"""Elements that were parsed, in another place: what is derived for them from the elements beside them is kept, or they are refused."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from codecgen.plan import make_plan
from codecgen.runtime.errors import BuildError
from codecgen.targets.live_codecs import load_codecs
from tests.codecgen.schemas import checked

MANIFEST = "language: 1\npackage: moved\ntitle: Elements that move\n"
STOP = "layout: stop\nfields: {n: u8}\n"
JOURNEY = """
layout: LAYOUT
fields:
  FIELDS
  stops: {array: stop, count: u8}
derived:
  stops:
    left: {type: i64, is: VALUE}
"""


def journey(layout: str, fields: str, value: str) -> str:
    words = {"LAYOUT": layout, "FIELDS": fields, "VALUE": value}
    text = JOURNEY
    for word, instead in words.items():
        text = text.replace(word, instead)
    return text


@cache
def codecs() -> Any:
    files = {
        "codecgen.yaml": MANIFEST,
        "stop.yaml": STOP,
        "a.yaml": journey("a", "base: u8", "base + last(stops).n - item.n"),
        "b.yaml": journey("b", "other: u8", "other + last(stops).n - item.n"),
        "c.yaml": journey("c", "base: u8", "100 + last(stops).n - item.n"),
        "d.yaml": journey("d", "size: {type: u8, measures: rest}", "size + last(stops).n - item.n"),
    }
    found, refused = load_codecs(make_plan(checked(files)))
    assert found is not None and not refused
    return found


def codec(name: str) -> Any:
    return getattr(codecs().module(f"{name}.yaml"), name.upper())


def parsed(name: str, **fields: int) -> Any:
    stops = [{"n": n} for n in (1, 2, 5)]
    return codec(name).parse(codec(name).build({**fields, "stops": stops}))


@pytest.mark.parametrize(
    ("name", "fields"), [("b", {"other": 9}), ("c", {"base": 9}), ("d", {})], ids="bcd"
)
def test_elements_of_another_layout_are_taken(name: str, fields: dict[str, int]) -> None:
    stops = parsed("a", base=9).stops[:2]
    data = codec(name).build({**fields, "stops": stops})
    assert codec(name).parse(data).stops == [{"n": 1}, {"n": 2}]
    stops = parsed(name, **fields).stops[:2]
    assert codec("a").build({"base": 9, "stops": stops}) == b"\x09\2\1\2"


def test_what_can_be_set_is_named() -> None:
    with pytest.raises(BuildError, match=r"left was 13 .*: set base of the a for them, or give"):
        codec("a").build({"base": 9, "stops": parsed("a", base=9).stops[:2]})
    with pytest.raises(BuildError, match="that are there now: give elements that are no parsed"):
        codec("c").build({"base": 9, "stops": parsed("c", base=9).stops[:2]})


def test_what_is_worked_out_is_no_choice_of_the_caller() -> None:
    with pytest.raises(BuildError, match="that are there now: give elements that are no parsed"):
        codec("d").build({"stops": parsed("d").stops[:2]})
