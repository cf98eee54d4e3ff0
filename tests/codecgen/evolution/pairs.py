"""For each rule of `codecgen breaking` the smallest schema, a change that breaks it, and a neighbor that is allowed."""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """``path`` is what the break is reported about; ``certain`` whether the bytes must differ."""

    rule: str
    old: str
    broken: str
    allowed: str
    path: str
    certain: bool = True


def _fields(*lines: str, head: str = "") -> str:
    body = "\n".join(f"  {line}" for line in lines)
    return f"layout: reading\n{head}fields:\n{body}\n"


def _given(value: str, doc: str = "") -> str:
    part = "layout: part\ngiven: {is_long: bool}\nfields: {b: {type: u8, when: is_long}}\n"
    return (
        _fields("a: u8", f"part: {{{doc}layout: part, given: {{is_long: {value}}}}}")
        + "---\n"
        + part
    )


_SKY = "enums: {{sky: {{doc: Sky., {}values: {{{}}}}}}}\n---\n"
_CLEAR = _SKY.format("", "clear: 0, fog: 1")
_OF_SKY = _fields("sky: {type: u8, enum: sky}")
_FLEXIBLE = "versions: 0-1\nflexible: 1+\n"
_CODECS = "enums: {codec: {doc: Codecs., values: {none: 0, gzip: 1, zstd: 2}}}\n---\n"
_PACKED = _fields(
    "codec: {type: u8, enum: codec}",
    "data: {array: u8, until: end, compressed: {by: codec, limit: 1000}}",
)


def _choice(cases: str, *layouts: str, by: str = "by: kind") -> str:
    documents = [f"choice: entry\ndoc: Entries.\n{by}\ncases: {{{cases}}}\n"]
    for number, name in enumerate(layouts):
        documents.append(
            f"layout: {name}\nfields: {{kind: {{type: u8, const: {number}}}, other: u8, a: u{8 << number}}}\n"
        )
    return "---\n".join(documents)


def message_schema(keys: str) -> str:
    head = "layout: head\nmessage: {role: header}\nfields: {id: u32}\n"
    other = head.replace("layout: head", "layout: other")
    hello = f"layout: hello\nversions: 0-1\nmessage: {{role: response, {keys}}}\nfields: {{a: u8, b: {{type: u8, versions: 1}}}}\n"
    return "---\n".join([head, other, hello])


PAIRS = (
    Pair(
        "B001",
        _fields("a: u8") + "---\nlayout: other\nfields: {b: u8}\n",
        _fields("a: u8"),
        _fields("a: u8")
        + "---\nlayout: other\nfields: {b: u8}\n---\nlayout: third\nfields: {c: u8}\n",
        "other",
    ),
    Pair(
        "B002",
        _fields("a: u8", head="versions: 0-1\n"),
        _fields("a: u8", head="versions: 1\n"),
        _fields("a: u8", "b: {type: u8, versions: 2}", head="versions: 0-2\n"),
        "reading",
    ),
    Pair(
        "B003",
        _fields("a: u8", "b: u16", "c: u8"),
        _fields("a: u8", "c: u8"),
        _fields("a: u8", "renamed: u16", "c: u8"),
        "reading.b",
    ),
    Pair(
        "B004",
        _fields("a: u8", head="versions: 0\n"),
        _fields("a: u8", "b: u8", head="versions: 0\n"),
        _fields("a: u8", "b: {type: u8, versions: 1}", head="versions: 0-1\n"),
        "reading.b",
    ),
    Pair(
        "B005",
        _fields("a: u8", "b: u8"),
        _fields("b: u8", "a: u8"),
        _fields("a: {type: u8, doc: The first one.}", "b: u8"),
        "reading.a",
    ),
    Pair(
        "B006",
        _fields("a: i16", head="versions: 0\n"),
        _fields("a: u16", head="versions: 0\n"),
        _fields("a: {type: {0: i16, 1: u16}}", head="versions: 0-1\n"),
        "reading.a",
    ),
    Pair(
        "B007",
        _fields("a: i16"),
        _fields("a: {type: i16, endian: little}"),
        _fields("a: {type: i16, endian: big}"),
        "reading.a",
    ),
    Pair(
        "B008",
        _fields("a: {string: u8}"),
        _fields("a: {string: u16}"),
        _fields('a: {string: u8, default: "none"}'),
        "reading.a",
    ),
    Pair(
        "B009",
        _fields("a: u8", head=_FLEXIBLE) + "tagged: {b: {tag: 0, type: u8, versions: 1+}}\n",
        _fields("a: u8", head=_FLEXIBLE) + "tagged: {b: {tag: 1, type: u8, versions: 1+}}\n",
        _fields("a: u8", head=_FLEXIBLE)
        + "tagged: {b: {tag: 0, type: u8, versions: 1+}, c: {tag: 1, type: u8, versions: 1+}}\n",
        "reading.b",
    ),
    Pair(
        "B010",
        _fields("a: {type: u8, const: 1}"),
        _fields("a: {type: u8, const: 2}"),
        _fields("a: {type: u8, const: 0x01}"),
        "reading.a",
    ),
    Pair(
        "B011",
        _fields("a: u8", "b: {type: u8, when: a == 1}"),
        _fields("a: u8", "b: {type: u8, when: a > 1}"),
        _fields("kind: u8", "b: {type: u8, when: kind == 1}"),
        "reading.b",
        certain=False,
    ),
    Pair(
        "B012",
        _fields("a: {type: u8, valid: a < 10}"),
        _fields("a: {type: u8, valid: a < 9}"),
        _fields("a: {type: u8, refuse: a >= 100}"),
        "reading.a",
    ),
    Pair(
        "B013",
        _fields("a: {string: i16, none: -1}"),
        _fields("a: {string: i16}"),
        _fields("a: {string: i16, none: -1, default: null}"),
        "reading.a",
    ),
    Pair(
        "B014",
        _fields("crc: {type: u32, checksum: crc32, covers: rest}", "a: u8", "b: u8"),
        _fields("crc: {type: u32, checksum: crc32c, covers: rest}", "a: u8", "b: u8"),
        _fields("crc: {type: u32, checksum: crc32, covers: {from: a, to: b}}", "a: u8", "b: u8"),
        "reading.crc",
    ),
    Pair(
        "B015",
        _fields("f: {bits: u8, members: {a: {at: 0}, unused: {reserved: keep}}}"),
        _fields("f: {bits: u8, members: {a: {at: 7}, unused: {reserved: keep}}}"),
        _fields("f: {bits: u8, members: {a: {at: 0}, b: {at: 1}, unused: {reserved: keep}}}"),
        "reading.f",
    ),
    Pair(
        "B016",
        _CLEAR + _OF_SKY,
        _SKY.format("", "clear: 0") + _OF_SKY,
        _SKY.format("", "clear: 0, fog: 1, rain: 2") + _OF_SKY,
        "sky.fog",
    ),
    Pair(
        "B017",
        _CLEAR + _OF_SKY,
        _SKY.format("", "clear: 1, fog: 0") + _OF_SKY,
        _SKY.format("", "blue: 0, fog: 1") + _OF_SKY,
        "sky.clear",
    ),
    Pair(
        "B018",
        _SKY.format("unknown: keep, ", "clear: 0") + _OF_SKY,
        _SKY.format("", "clear: 0") + _OF_SKY,
        _SKY.format("unknown: keep, ", "clear: 0, fog: 1") + _OF_SKY,
        "sky",
    ),
    Pair(
        "B019",
        _choice("0: one, 1: two", "one", "two"),
        _choice("0: one, 1: two", "one", "two", by="by: other"),
        _choice("0: one, 1: two, 2: three", "one", "two", "three"),
        "entry",
    ),
    Pair(
        "B019",
        _given("a > 1"),
        _given("a > 2"),
        _given("a > 1", doc="doc: One., "),
        "reading.part",
        certain=False,
    ),
    Pair(
        "B020",
        _choice("0: one, 1: two", "one", "two"),
        _choice("0: one", "one", "two"),
        _choice("1: two, 0: one", "one", "two"),
        "entry",
    ),
    Pair(
        "B021",
        _CODECS + _PACKED,
        _CODECS + _PACKED.replace("limit: 1000", "limit: 999"),
        _CODECS.replace("zstd: 2", "zstd: 2, lz4: 3") + _PACKED,
        "reading.data",
    ),
    Pair(
        "B022",
        _fields("a: u8", head=_FLEXIBLE) + "tagged: {b: {tag: 0, type: u8, versions: 1+}}\n",
        _fields("a: u8", head=_FLEXIBLE)
        + "tagged: {b: {tag: 0, type: u8, versions: 1+, default: 1}}\n",
        _fields("a: {type: u8, default: 1}", head=_FLEXIBLE)
        + "tagged: {b: {tag: 0, type: u8, versions: 1+, default: 0}}\n",
        "reading.b",
    ),
    Pair(
        "B023",
        _fields("a: uvarint", head="accepts: [trailing_bytes]\n"),
        _fields("a: uvarint"),
        _fields("a: uvarint", head="accepts: [trailing_bytes, overlong_varints]\n"),
        "reading",
    ),
    Pair(
        "B024",
        _fields("a: u8", "b: u8"),
        _fields("a: u8", "b: u8") + "rules: {order: {about: b, is: a <= b}}\n",
        _fields("a: u8", "b: {type: u8, doc: At least a.}"),
        "reading.order",
    ),
    Pair(
        "B025",
        "text: settings\nproperties: {a: {decimal: i32}}\n",
        "text: settings\nproperties: {a: {decimal: i64}}\n",
        "text: settings\nproperties: {a: {decimal: i32}, b: {decimal: i32, default: 0}}\n",
        "settings.a",
    ),
    Pair(
        "B027",
        message_schema("key: 3, header: head"),
        message_schema("key: 4, header: head"),
        message_schema("key: 3, header: head, unstable: 1, facts: {port: [public]}"),
        "hello",
    ),
)
