"""Layouts put together by hand: relations between fields, beyond what the shipped formats use."""

from __future__ import annotations

import pytest

from codecgen.runtime.construct import (
    Array,
    Bytes,
    Compressed,
    Enumeration,
    EnumField,
    Field,
    Integer,
    Layout,
    Rule,
    Varint,
)
from codecgen.runtime.errors import (
    BuildError,
    ChecksumError,
    LimitError,
    ParseError,
    TrailingError,
    ValueRefused,
)
from codecgen.runtime.located_bytes import Limits


class Kind(Enumeration):
    """How the rest is packed."""

    PLAIN = 0
    PACKED = 1


PACKABLE = Layout(
    "packable",
    Field("kind", EnumField(Integer(1), Kind)),
    Field("note", Integer(2), when=lambda this: this.kind == Kind.PACKED),
    Field(
        "numbers",
        Array(
            Varint(),
            compressed=Compressed(
                lambda this: this.kind, {Kind.PLAIN: None, Kind.PACKED: "gzip"}, limit=1000
            ),
        ),
    ),
)


@pytest.mark.parametrize("kind", ["packed", Kind.PACKED, 1])
def test_conditions_see_an_enum_value_however_it_is_given(kind: object) -> None:
    data = PACKABLE.build({"kind": kind, "note": 5, "numbers": [1, 2, 3]})
    parsed = PACKABLE.parse(data)
    assert (parsed.kind, parsed.note, list(parsed.numbers)) == (Kind.PACKED, 5, [1, 2, 3])
    assert PACKABLE.build({"kind": "plain", "numbers": [1, -1]}) == b"\0\2\1"


@pytest.mark.parametrize("number", [1, 9])
def test_what_an_enum_that_keeps_unknown_numbers_reads_is_built(number: int) -> None:
    kinds = EnumField(Integer(1), Kind, only=(Kind.PLAIN,), keep_unknown=True)
    layout = Layout("kept", Field("kind", kinds))
    data = bytes([number])
    assert layout.build(layout.parse(data)) == data


def test_two_checksums_of_which_one_covers_the_other() -> None:
    layout = Layout(
        "sealed",
        Field("outer", Integer(4, signed=False), checksum="crc32", covers=("inner", None)),
        Field("inner", Integer(4, signed=False), checksum="crc32c", covers=("body", "body")),
        Field("body", Bytes(Integer(1))),
        Field("tail", Integer(1)),
    )
    data = bytearray(layout.build({"body": b"abc", "tail": 7}))
    assert layout.parse(bytes(data)).tail == 7
    data[-1] ^= 1
    with pytest.raises(ChecksumError) as caught:
        layout.parse(bytes(data))
    assert caught.value.where.path == "outer"


def test_a_run_in_the_middle_is_measured() -> None:
    layout = Layout(
        "middle",
        Field("n", Varint(), measures=("a", "b")),
        Field("a", Integer(2)),
        Field("b", Bytes(None)),
        Field("c", Integer(1)),
    )
    data = layout.build({"a": 1, "b": b"xyz", "c": 9})
    assert data == b"\x0a\x00\x01xyz\x09"
    parsed = layout.parse(data)
    assert (parsed.n, parsed.b, parsed.c) == (5, b"xyz", 9)
    for n in (0, 1):
        with pytest.raises(ParseError) as caught:
            layout.parse(bytes([2 * n]) + data[1:])
        assert caught.value.where.path == "a"


def test_rules() -> None:
    layout = Layout(
        "ruled",
        Field("a", Integer(1), refuse=Rule("a < 0", lambda this: this.a < 0)),
        Field("b", Integer(1), valid=Rule("b > a", lambda this: this.b > this.a)),
    )
    assert layout.parse(b"\1\2").b == 2
    with pytest.raises(ValueRefused, match="-1 is not allowed, because a < 0"):
        layout.parse(b"\xff\2", strict=False)
    with pytest.raises(ValueRefused, match="1 is not valid: b > a"):
        layout.parse(b"\1\1")
    findings: list[ParseError] = []
    assert layout.parse(b"\1\1", strict=False, findings=findings).b == 1
    assert [f.where.path for f in findings] == ["b"]
    with pytest.raises(BuildError, match="b > a"):
        layout.build({"a": 5, "b": 5})


def test_layouts_in_layouts_have_a_limit() -> None:
    inner = Layout("leaf", Field("x", Integer(1)))
    for i in range(10):
        inner = Layout(f"level_{i}", Field("inside", inner))
    assert inner.parse(b"\7")
    with pytest.raises(LimitError, match="more than 5 deep"):
        inner.parse(b"\7", limits=Limits(depth=5))


def test_more_elements_than_the_limit() -> None:
    layout = Layout("many", Field("items", Array(Integer(1))))
    assert len(layout.parse(bytes(10), limits=Limits(elements=10))["items"]) == 10
    with pytest.raises(LimitError, match="more than 9 elements"):
        layout.parse(bytes(10), limits=Limits(elements=9))


def test_what_is_left_over() -> None:
    layout = Layout("short", Field("x", Integer(1)))
    with pytest.raises(TrailingError, match="2 bytes follow the short"):
        layout.parse(b"\1\2\3", strict=False)
    loose = Layout("short", Field("x", Integer(1)), trailing=True)
    findings: list[ParseError] = []
    assert loose.parse(b"\1\2\3", strict=False, findings=findings).x == 1
    assert len(findings) == 1
    with pytest.raises(TrailingError):
        loose.parse(b"\1\2\3")


def test_places_and_sizes() -> None:
    layout = Layout(
        "placed",
        Field("a", Integer(2)),
        Field("b", Integer(8)),
        Field("c", Varint()),
        Field("d", Integer(1)),
    )
    assert [layout.offset_of(name) for name in "abc"] == [0, 2, 10]
    assert layout.leading_size == 10
    assert layout.size_of("b") == 8
    with pytest.raises(KeyError, match="fixed place"):
        layout.offset_of("d")
    with pytest.raises(KeyError, match="fixed size"):
        layout.size_of("c")


def test_a_codec_that_nothing_names() -> None:
    compressed = Compressed(lambda this: this.kind, {0: None}, limit=1000)
    layout = Layout(
        "unnamed",
        Field("there", Integer(1)),
        Field("kind", EnumField(Integer(1), Kind), when=lambda this: this.there == 1),
        Field("numbers", Array(Varint(), compressed=compressed)),
    )
    with pytest.raises(ValueRefused, match="names the compression codec is missing") as caught:
        layout.parse(b"\0\2")
    assert caught.value.where.path == "numbers"
    with pytest.raises(BuildError, match="names the compression codec is missing"):
        layout.build({"there": 0, "numbers": [1]})
