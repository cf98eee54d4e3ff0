"""The bytes of values, by the laws' own reading of the language: what builders must write."""

from __future__ import annotations

import re
import struct
import uuid
import zlib
from functools import partial
from itertools import pairwise
from typing import Any

import crc32c
import xxhash

from codecgen.runtime.compression import compress
from tests.laws.chosen import case_of
from tests.laws.meaning import Meaning, look_at, look_in, words_of
from tests.laws.world import (
    CHECK_WIDTHS,
    CHECKS,
    INTEGERS,
    VARINTS,
    Facts,
    Tree,
    bits_of,
    fields_of_run,
    free_bits,
    in_range,
    literal,
    parsed,
    reach,
    version_field,
)


class Unfit(Exception):
    """The values do not fit the layout: a builder refuses them."""


class Unruly(Unfit):
    """The values break a rule of the layout. ``data`` are the bytes that they are written as where nobody looks at rules."""

    def __init__(self, data: bytes) -> None:
        super().__init__("a rule")
        self.data = data


def built(facts: Facts, layout: str, version: int | None, values: Any) -> bytes:
    """The bytes of a layout. ``values`` has all fields but lengths and checksums. Raises Unfit."""
    try:
        data = _without_rules(facts, layout, version, values)
    except Unruly:
        raise Unfit("a rule of a layout inside") from None
    meaning = Meaning(look_in(values, version), words_of(facts, layout))
    for rule in facts.layouts[layout].get("rules", {}).values():
        if in_range(rule.get("versions"), version) and not keeps(rule, values, meaning):
            raise Unruly(data)
    return data


def _without_rules(facts: Facts, layout: str, version: int | None, values: Any) -> bytes:
    fields = facts.fields(layout, version)
    names = [name for name, _ in fields]
    endian = facts.layouts[layout].get("endian", "big")
    meaning = Meaning(look_in(values, version), words_of(facts, layout))
    there = {name: "when" not in spec or meaning.holds(spec["when"]) for name, spec in fields}
    parts: list[bytes] = []
    tags: dict[int, bytes] = {}
    for name, spec in fields:
        if "looks_up" in spec and not 0 <= values[name] <= len(values[spec["looks_up"]]):
            raise Unfit("no such element")
        if "tags" in spec:
            parts.append(_section(tags | {item["tag"]: item["data"] for item in values[name]}))
            continue
        if "padding" in spec:
            parts.append(bytes(-sum(map(len, parts)) % spec["padding"]) if there[name] else b"")
            continue
        data = _part(facts, layout, spec, name, values, endian, version) if there[name] else b""
        if "tag" in spec:
            default = {name: tag_default(facts, spec)}
            if data != _part(facts, layout, spec, name, default, endian, version):
                tags[spec["tag"]] = data
            data = b""
        parts.append(data)
    for i in reversed(range(len(fields))):
        name, spec = fields[i]
        if "measures" in spec and there[name]:
            size = sum(len(parts[j]) for j in fields_of_run(names, name, spec["measures"]))
            size += spec.get("excess", 0)
            parts[i] = number(spec["type"], size, spec.get("endian", endian))
    sums = [i for i, (name, spec) in enumerate(fields) if "checksum" in spec and there[name]]
    for i in _inner_first(sums, fields, names):
        name, spec = fields[i]
        data = b"".join(
            bytes(len(parts[j])) if zero else parts[j]
            for j, zero in covered(names, name, spec["covers"])
        )
        value = masked(check(spec["checksum"], data), spec)
        parts[i] = number(spec["type"], value, spec.get("endian", endian))
    return b"".join(parts)


def keeps(rule: Tree, values: Any, meaning: Meaning) -> bool:
    """Whether values meet a rule. One that asks for elements is met where there are none."""
    if "ascending" in rule:
        array, _, part = rule["ascending"].partition(".")
        numbers = [item[part] for item in values[array] or ()]
        return all(one < other for one, other in pairwise(numbers))
    ends = re.findall(r"\b(?:first|last|max|min)\((\w+)\)", rule["is"])
    return any(not values[array] for array in ends) or meaning.holds(rule["is"])


def covered(names: list[str], own: str, covers: Any) -> list[tuple[int, bool]]:
    """The indices of the fields that a checksum covers, and whether they count as zeros."""
    out = []
    for part in covers if isinstance(covers, list) else [covers]:
        zero = part.get("zero", ()) if isinstance(part, dict) else ()
        out += [(i, names[i] in zero) for i in fields_of_run(names, own, part)]
    return out


def _section(tags: dict[int, bytes]) -> bytes:
    """Tagged fields: how many, and tag, size and bytes of each."""
    out = [number("uvarint", len(tags), "big")]
    for tag in sorted(tags):
        out += [number("uvarint", n, "big") for n in (tag, len(tags[tag]))]
        out.append(tags[tag])
    return b"".join(out)


def tag_default(facts: Facts, spec: Tree) -> Any:
    """What a tagged field holds where it is left out."""
    if spec.get("default") == {}:
        last = facts.versions(spec["layout"])[-1]
        fields = facts.fields(spec["layout"], last)
        return {name: [] if "tags" in one else tag_default(facts, one) for name, one in fields}
    given = spec.get("absent", spec.get("default", 0))
    if given is None or given == "null" or "present" in spec:
        return None
    if "default" in spec or "absent" in spec:
        return literal(spec, given, facts.values(spec["enum"]) if "enum" in spec else {})
    if "bits" in spec:
        return {name: bit.get("default", 0) for name, bit in spec["members"].items()}
    if "array" in spec:
        return []
    for key, empty in (("string", ""), ("bytes", b"")):
        if key in spec:
            return empty
    others = {"bool": False, "uuid": uuid.UUID(int=0), "f32": 0.0, "f64": 0.0}
    return others.get(spec["type"], 0)


def check(name: str, data: bytes) -> int:
    """A checksum: one bit of the message after the other, or as a package of somebody else computes it."""
    if name in ("crc32", "crc32c"):
        return zlib.crc32(data) if name == "crc32" else crc32c.crc32c(data)
    if name in ("xxh64", "xxh3_64"):
        digest = xxhash.xxh64(data) if name == "xxh64" else xxhash.xxh3_64(data)
        return int.from_bytes(digest.digest(), "big")
    width, poly, init, turned, last = CHECKS[name]
    value = init
    for byte in data:
        for i in range(8) if turned else reversed(range(8)):
            top = value >> width - 1 ^ byte >> i & 1
            value = (value << 1 & (1 << width) - 1) ^ (poly if top else 0)
    return (int(f"{value:0{width}b}"[::-1], 2) if turned else value) ^ last


def masked(value: int, spec: Tree) -> int:
    """What is stored for a checksum: a turn to the right moves the lowest bits to the top."""
    mask, width = spec.get("mask", -1), CHECK_WIDTHS[spec["checksum"]]
    if isinstance(mask, int):
        return value & mask
    for _ in range(mask.get("rotate_right", 0)):
        value = value // 2 + (value % 2 << width - 1)
    return (value + mask.get("add", 0)) % (1 << width)


def _inner_first(sums: list[int], fields: list[tuple[str, Tree]], names: list[str]) -> list[int]:
    """A checksum that another one covers comes first."""
    out: list[int] = []
    while sums:
        for i in sums:
            run = [j for j, zero in covered(names, names[i], fields[i][1]["covers"]) if not zero]
            if not any(j in run for j in sums):
                out.append(i)
                sums = [j for j in sums if j != i]
                break
        else:
            raise AssertionError("checksums over each other")
    return out


def _part(
    facts: Facts, layout: str, spec: Tree, name: str, values: Any, endian: str, version: int | None
) -> bytes:
    if "measures" in spec or "checksum" in spec:
        return b"\0" * (INTEGERS[spec["type"]][0] if spec["type"] in INTEGERS else 0)
    value = values[name]
    endian = spec.get("endian", endian)
    if "outside" in spec:
        data = value.encode() if isinstance(value, str) else value
        if len(data) != values[spec["outside"]] + spec["more"]:
            raise Unfit("another number")
        if "array" not in spec:
            return bytes(data)
    if "type" in spec:
        return scalar(spec["type"], value, endian)
    if "bits" in spec:
        return number(spec["bits"], signed(spec["bits"], bits(spec, value, version)), endian)
    for key in ("bytes", "string"):
        if key in spec:
            return _text(spec, key, value, endian)
    if "choice" in spec:
        return _chosen(facts, layout, spec, value, values, endian, version)
    if "layout" in spec:
        if "present" in spec and value is None:
            return number(spec["present"], spec["null"], endian)
        if "version" in spec:
            held = _chosen(facts, layout, {**spec, "null": None}, value, values, endian, version)
        else:
            held = _held(facts, spec["layout"], version, value)
        return held if "present" not in spec else number(spec["present"], 1, endian) + held
    return _array(facts, layout, spec, value, values, endian, version)


def bits(spec: Tree, value: Any, version: int | None) -> int:
    """The number that bits are written as."""
    raw = 0
    for name, member in spec["members"].items():
        if in_range(member.get("versions"), version):
            low, high = bits_of(member["at"]) if "at" in member else free_bits(spec, version)
            if not 0 <= int(value[name]) < 1 << high - low + 1:
                raise Unfit(name)
            raw |= int(value[name]) << low
    return raw


def signed(type_: str, raw: int) -> int:
    """The number that a type makes of bits."""
    size, signed = INTEGERS.get(type_, (0, False))
    return raw - (1 << 8 * size) if signed and raw >> 8 * size - 1 else raw


def number(type_: str, value: int, endian: str) -> bytes:
    low, high = reach(type_)
    if not low <= value <= high:
        raise Unfit(f"{value} in {type_}")
    if type_ in INTEGERS:
        size, signed = INTEGERS[type_]
        return value.to_bytes(size, endian, signed=signed)
    _, signed = VARINTS[type_]
    raw = (2 * value if value >= 0 else -2 * value - 1) if signed else value
    if type_.startswith("bijective"):
        # The numbers of n bytes come after all numbers of fewer bytes.
        size = next(n for n in range(1, 11) if raw < sum(128**i for i in range(1, n + 1)))
        raw -= sum(128**i for i in range(1, size))
    else:
        size = next(n for n in range(1, 11) if raw < 128**n)
    groups = [raw // 128**i % 128 for i in range(size)]
    if "vlq" in type_:
        groups.reverse()
    return bytes([*(group + 128 for group in groups[:-1]), groups[-1]])


def scalar(type_: str, value: Any, endian: str) -> bytes:
    if type_ in ("f32", "f64"):
        order = ">" if endian == "big" else "<"
        return struct.pack(order + ("d" if type_ == "f64" else "f"), value)
    if type_ == "bool":
        return bytes([value])
    if type_ == "uuid":
        assert isinstance(value, uuid.UUID)
        return value.bytes
    return number(type_, int(value), endian)


def length(type_: str, value: int, endian: str) -> bytes:
    return (
        number("uvarint", value + 1, endian) if type_ == "compact" else number(type_, value, endian)
    )


def _text(spec: Tree, key: str, value: Any, endian: str) -> bytes:
    type_, null = spec[key], spec.get("null")
    if value is None:
        if null is None:
            raise Unfit("null")
        return number("uvarint" if type_ == "compact" else type_, null, endian)
    data = value.encode() if isinstance(value, str) else bytes(value)
    if type_ == "rest":
        return data
    if type_ == "zero_terminated":
        if b"\0" in data:
            raise Unfit("a zero inside")
        return data + b"\0"
    if spec.get("padded") and not data.endswith(b"\0"):
        data += bytes(type_ - len(data))
    if isinstance(type_, int):
        if len(data) != type_:
            raise Unfit("another length")
        return data
    head = length(type_, len(data), endian)
    if null is not None and head == _text(spec, key, None, endian):
        raise Unfit("as long as null")
    return head + data


def _chosen(
    facts: Facts, layout: str, spec: Tree, value: Any, values: Any, endian: str, version: int | None
) -> bytes:
    """One of several layouts, or the bytes that stand for one."""
    if value is None:
        if spec.get("null") is None:
            raise Unfit("null")
        return number(spec["length"], spec["null"], endian)
    if isinstance(value, bytes):
        data = value
    else:
        case = case_of(facts, layout, spec, values, version, value)
        if case is None:
            raise Unfit("no case")
        data = built(facts, *case, value)
    if "length" not in spec:
        return data
    if len(data) == spec.get("null"):
        raise Unfit("as long as null")
    return number(spec["length"], len(data), endian) + data


def _held(facts: Facts, reference: str, holder: int | None, value: Any) -> bytes:
    name, _, _ = reference.partition("@")
    return built(facts, name, version_of(facts, reference, holder, value), value)


def version_of(facts: Facts, reference: str, holder: int | None, value: Any) -> int | None:
    """The version that a value of a held layout is in."""
    name = reference.partition("@")[0]
    own = version_field(facts.layouts[name])
    if own is not None and "@" not in reference:
        return int(value[own])
    return facts.held(reference, holder)[0]


def _array(
    facts: Facts, layout: str, spec: Tree, items: Any, values: Any, endian: str, version: int | None
) -> bytes:
    element = spec["array"]
    null = _null(spec, endian)
    if items is None:
        return null
    if len(items) < spec.get("at_least", 0):
        raise Unfit("too few")
    if spec.get("until", "end") != "end":
        ends = [Meaning(partial(look_at, item), {}).holds(spec["until"]) for item in items]
        if ends != [False] * (len(items) - 1) + [True]:
            raise Unfit("another last element")
    always = isinstance(spec.get("count"), int)
    if always and len(items) != spec["count"]:
        raise Unfit("another number")
    if isinstance(element, dict) and "choice" in element:
        data = b"".join(
            _chosen(facts, layout, element, item, values, endian, version) for item in items
        )
    elif isinstance(element, dict):
        key = "string" if "string" in element else "bytes"
        data = b"".join(_text(element, key, item, endian) for item in items)
    elif element.partition("@")[0] in facts.layouts:
        data = b"".join(_held(facts, element, version, item) for item in items)
    else:
        data = b"".join(scalar(element, item, endian) for item in items)
    if "compressed" in spec and not (counted(spec) and not items):
        codec = codec_of(facts, layout, spec["compressed"], values, version)
        if codec is not None:
            data = compress(codec[0], data, variant=codec[1])
    head = b""
    if "length" in spec:
        head = number(spec["length"], len(data), endian)
    if "count" in spec and not always:
        head = length(spec["count"], len(items), endian)
    if "null" in spec and (head == null if head else len(items) == spec["null"]):
        raise Unfit("as many as null")
    return head + data


def _null(spec: Tree, endian: str) -> bytes:
    """The bytes of an array that is null: none where another field counts it."""
    type_ = spec.get("count", spec.get("length"))
    if type_ is None or "null" not in spec:
        return b""
    return number("uvarint" if type_ == "compact" else type_, spec["null"], endian)


def counted(spec: Tree) -> bool:
    """Whether a number says how many elements there are."""
    return "count" in spec or not {"length", "until"} & set(spec)


def codec_of(
    facts: Facts, layout: str, compressed: Tree, values: Any, version: int | None
) -> tuple[str, str | None] | None:
    """The codec that values name, and its variant for writing; None for none. Raises Unfit."""
    path = parsed(compressed["by"]).names
    number = look_in(values, version)(path)
    known = words_of(facts, layout)[path]
    name = next((n for n, v in known.items() if v == number), None)
    if name is None or name in compressed.get("except", ()):
        raise Unfit("a codec that is refused")
    variant = compressed.get("variants", {}).get(name)
    if variant is not None and not in_range(variant.get("versions"), version):
        variant = None
    return None if name == "none" else (name, None if variant is None else variant["write"])
