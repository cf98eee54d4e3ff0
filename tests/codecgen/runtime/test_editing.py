"""Edited entries are those that the builder makes of the same values, whatever the layout; damage never becomes valid."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.plan import make_plan
from codecgen.runtime.checksums import CHECKSUMS
from codecgen.runtime.construct import (
    Array,
    Bit,
    Bits,
    Bytes,
    Compressed,
    Enumeration,
    Field,
    Integer,
    Layout,
    Rule,
    Varint,
)
from codecgen.runtime.editing import edit
from codecgen.runtime.errors import BuildError, ChecksumError, CodecError, CompressionError
from codecgen.runtime.located_bytes import Session, Source
from tests.codecgen.schemas import codecs_of, model_of
from tests.shares import examples


class Codec(Enumeration):
    """How elements are compressed."""

    NONE = 0
    GZIP = 1
    ZSTD = 4


ITEM = Layout("item", Field("value", Bytes(Varint())))


@st.composite
def layouts(draw: Any) -> Layout:
    """Draw a layout with a length, a checksum, a count and a codec in any order, and elements at its end."""
    wide = st.sampled_from([1, 2, 3, 4, 8])
    kind = draw(st.sampled_from(sorted(CHECKSUMS)))
    names = draw(st.permutations(["crc", "codec", "count", "number", "text"]))
    made = {
        "codec": Field(
            "codec",
            Bits(Integer(2), Bit("by", 0, 2, enum=Codec), Bit("rest", 3, 15, reserved=True)),
        ),
        "count": Field(
            "count",
            draw(st.sampled_from([Integer(2), Integer(4), Varint()])),
            counts="items",
        ),
        "number": Field("number", Integer(draw(wide))),
        "text": Field("text", Bytes(Varint())),
    }
    after = names[names.index("crc") + 1 :] or ["items"]
    made["crc"] = Field(
        "crc",
        Integer(CHECKSUMS[kind].width // 8, signed=False),
        checksum=kind,
        covers=draw(st.sampled_from([(after[0], None), [("length", "length"), (after[-1], None)]])),
    )
    items = Array(
        ITEM,
        counted_by="count",
        compressed=Compressed(
            lambda this: this.codec.by,
            {c: None if not c else c.label for c in Codec},
            limit=1 << 20,
        ),
    )
    fields = [made[name] for name in names]
    at = draw(st.integers(0, len(fields)))
    before = [fields[:at], fields[at:]]
    first = before[1][0].name if before[1] else "items"
    length = Field("length", Integer(4), measures=(first, None))
    return Layout("entry", *before[0], length, *before[1], Field("items", items))


def source(data: bytes, **options: Any) -> Source:
    return Source(data, Session(strict=False, file="f", **options))


VALUES = st.fixed_dictionaries(
    {
        "codec": st.sampled_from([{"by": codec, "rest": 0} for codec in Codec]),
        "number": st.integers(-128, 127),
        "text": st.binary(max_size=5),
        "items": st.lists(st.builds(dict, value=st.binary(max_size=20)), max_size=4),
    }
)


@given(layouts(), VALUES, st.sampled_from(Codec), st.integers(-128, 127))
@examples(60)
def test_an_edited_entry_is_the_one_that_is_built(
    layout: Layout, values: dict[str, Any], codec: Codec, number: int
) -> None:
    built = layout.build(values)
    assert edit(layout, source(built), {}) == built
    changes = {"codec.by": codec, "number": number}
    found = edit(layout, source(built), changes, recompress=True)
    assert found == layout.build(values | {"codec": {"by": codec}, "number": number})


@given(layouts(), VALUES, st.data())
@examples(60)
def test_damage_never_gets_a_right_checksum(
    layout: Layout, values: dict[str, Any], data: st.DataObject
) -> None:
    damaged = bytearray(layout.build(values))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        layout.parse(bytes(damaged))
    except ChecksumError:
        with pytest.raises(CodecError):
            edit(layout, source(bytes(damaged)), {"number": 1})
    except CodecError:
        pass  # the next one may notice it or not


PLAIN = Layout(
    "plain",
    Field("length", Integer(1), measures=("kind", None)),
    Field("kind", Integer(1), refuse=Rule("kind > 8", lambda this: this.kind > 8)),
    Field("flags", Bits(Integer(1), Bit("one", 0), Bit("rest", 1, 7, reserved=True))),
    Field("more", Integer(2), when=lambda this: this.kind == 1),
    Field("extra", Integer(1), when=lambda this: this.flags.one),
    Field("items", Array(ITEM, closes=True)),
)


def test_bits_that_are_reserved_stay() -> None:
    data = bytes([6, 0, 0b1011, 7, 2, 65, 66])
    assert edit(PLAIN, source(data), {"kind": 2}) == bytes([6, 2, 0b1011, 7, 2, 65, 66])


@pytest.mark.parametrize(
    ("changes", "options", "path"),
    [
        ({"kind": 1}, {}, "more"),  # it would be there then
        ({"kind": 9}, {}, "kind"),
        ({"kind": 300}, {}, "kind"),
        ({"flags.one": True}, {}, "extra"),
        ({"flags": {"one": True, "rest": 0}}, {}, "extra"),
        ({"flags": 1}, {}, "flags"),
        ({}, {"recompress": True}, "items"),
    ],
)
def test_what_cannot_be_changed(
    changes: dict[str, Any], options: dict[str, Any], path: str
) -> None:
    data = bytes([5, 0, 0, 2, 65, 66])
    with pytest.raises(BuildError) as caught:
        edit(PLAIN, source(data), changes, **options)
    assert caught.value.where.path == path


@pytest.mark.parametrize("path", ["kinds", "flags.two", "kind.one", "items.0"])
def test_what_is_not_there(path: str) -> None:
    data = bytes([5, 0, 0, 2, 65, 66])
    with pytest.raises(KeyError, match=path):
        edit(PLAIN, source(data), {path: 1})


@pytest.mark.parametrize("data", [b"\x05\0\0\x02AB?", b"\x05\0\0\x02A", b"\x05\0"])
def test_what_is_no_whole_entry(data: bytes) -> None:
    with pytest.raises(CodecError):
        edit(PLAIN, source(data), {})


def test_parsed_elements_beside_a_field_of_a_held_layout_are_built_again() -> None:
    text = """
layout: head
fields: {base: i64}
---
layout: element
fields: {n: i32}
---
layout: outer
fields: {head: {layout: head}, parts: {array: element, count: u8}}
derived: {parts: {sum: {type: i64, is: "item.n + first(parts).n + head.base"}}}
"""
    codec = codecs_of(make_plan(model_of(text))).OUTER
    data = codec.build({"head": {"base": 5}, "parts": [{"n": 1}, {"n": 2}]})
    parsed = codec.parse(data)
    assert [part.sum for part in parsed.parts] == [7, 8]
    assert codec.build(parsed) == data
    assert codec.build({"head": {"base": 6}, "parts": parsed.parts}) != data
    with pytest.raises(BuildError, match="sum was 8 when the element was parsed, and is 9"):
        codec.build({"head": parsed.head, "parts": parsed.parts[1:]})


def test_a_compressed_section_that_is_damaged() -> None:
    layout = Layout(
        "entry",
        Field("codec", Integer(1)),
        Field("count", Integer(1), counts="items"),
        Field(
            "items",
            Array(
                ITEM,
                counted_by="count",
                compressed=Compressed(lambda this: this.codec, {0: None, 1: "gzip"}, limit=1 << 20),
            ),
        ),
    )
    built = layout.build({"codec": 1, "items": [{"value": b"abc"}]})
    with pytest.raises(CompressionError):
        edit(layout, source(built[:-4]), {"codec": 0}, recompress=True)
    with pytest.raises(BuildError, match="not the number of a compression codec"):
        edit(layout, source(built), {"codec": 7}, recompress=True)
