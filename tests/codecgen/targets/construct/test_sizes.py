"""Bytes whose number is a field plus or minus a number, or a value from outside, in the generated codecs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

import pytest

from codecgen.runtime.errors import BuildError, LengthError
from codecgen.runtime.fast_path import without_fast_paths
from tests.codecgen.generated import package_of
from tests.codecgen.schemas import model_of, unread_by_kernels

TEXT = """
layout: packet
fields:
  size: u8
  head: u8
  data: {bytes: size - 4}
  small: varint
  name: {string: small + 1}
  after: u8
---
layout: outer
fields:
  n: u8
  parts: {array: part, count: u8, given: {n: n, m: n}}
  one: {layout: part, given: {n: 1, m: n + 1}}
---
layout: part
given: {n: u8, m: i32}
fields:
  id: u8
  data: {bytes: n}
  text: {string: m - 1}
---
view: rows
of: packet
columns: {data: {type: binary}}
rows: [{of: packet, columns: {data: data}}]
---
view: outers
of: outer
columns: {n: {type: int16}}
rows: [{of: outer, columns: {n: n}}]
"""
PACKET = bytes.fromhex("06 07 6162 04 686969 09")
OUTER = bytes.fromhex("02 02 01 7879 7a 02 7071 72 03 75 7677")
VALUES: dict[str, Any] = {"head": 7, "data": b"ab", "name": "hii", "after": 9}


@pytest.fixture(scope="module")
def codecs(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return package_of(TEXT, tmp_path_factory.mktemp("sizes"), "size_codecs")


@pytest.fixture(params=["fast", "field by field"], autouse=True)
def path(request: pytest.FixtureRequest) -> Any:
    ways: dict[str, AbstractContextManager[Any]] = {"fast": nullcontext()}
    with ways.get(request.param, without_fast_paths()):
        yield


def test_builders_work_the_field_out(codecs: ModuleType) -> None:
    assert codecs.PACKET.build(VALUES) == PACKET
    packet = codecs.PACKET.parse(PACKET)
    assert (packet.size, packet.small) == (6, 2)
    assert codecs.PACKET.build(packet) == PACKET
    packet.data, packet.name = b"", ""
    assert codecs.PACKET.build(packet).hex(" ") == "04 07 01 09"
    assert codecs.PACKET.parse(codecs.PACKET.build(packet)).name == ""


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("03 07 04 686969 09", "size is 3, but must be at least 4"),
        ("00 07 04 686969 09", "size is 0, but must be at least 4"),
        ("ff 07 04 686969 09", "size is 251, but 5 bytes are left"),
        ("04 07 03 09", "small is -2, but must be at least -1"),
        ("04 07 08 09", "small is 5, but 1 byte is left"),
    ],
)
def test_readers_refuse_impossible_numbers(codecs: ModuleType, data: str, reason: str) -> None:
    for strict in (True, False):
        with pytest.raises(LengthError) as error:
            codecs.PACKET.parse(bytes.fromhex(data), strict=strict)
        assert error.value.reason == reason
        assert error.value.where.path in ("size", "small")


def test_builders_refuse_what_the_field_cannot_hold(codecs: ModuleType) -> None:
    assert codecs.PACKET.build({**VALUES, "data": bytes(251)})[0] == 255
    with pytest.raises(BuildError) as error:
        codecs.PACKET.build({**VALUES, "data": bytes(252)})
    assert error.value.where.path == "size"


def test_a_value_from_outside(codecs: ModuleType) -> None:
    parts = [{"id": 1, "data": b"xy", "text": "z"}, {"id": 2, "data": b"pq", "text": "r"}]
    values = {"n": 2, "parts": parts, "one": {"id": 3, "data": b"u", "text": "vw"}}
    assert codecs.OUTER.build(values) == OUTER
    outer = codecs.OUTER.parse(OUTER)
    assert outer.parts[1].data == b"pq" and outer.one.text == "vw"
    assert codecs.OUTER.build(outer) == OUTER
    parts[1]["text"] = "rs"
    with pytest.raises(BuildError) as error:
        codecs.OUTER.build(values)
    assert (error.value.reason, error.value.where.path) == (
        "the number of bytes does not fit: m is 2, and would have to be 3",
        "parts[1].text",
    )
    with pytest.raises(LengthError) as wrong:
        codecs.OUTER.parse(bytes.fromhex("00 01 05"))
    assert (wrong.value.reason, wrong.value.where.path) == (
        "length is -1: it cannot be negative",
        "parts[0].text",
    )
    with pytest.raises(LengthError):
        codecs.OUTER.parse(OUTER[:-1])


def test_kernels_leave_the_views() -> None:
    notes = [note.message for note in unread_by_kernels(model_of(TEXT))]
    assert any('"size" is a length that is more or less' in note for note in notes)
    assert any('"data" is of a length from outside' in note for note in notes)
