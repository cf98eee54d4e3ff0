"""The kernel of Avro values beside fastavro: the same columns and reasons for random schemas, values and damaged bytes."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.schema_values import AVRO, avro_values
from kafka_log.read.schemas import avro, avro_kernel
from kafka_log.read.schemas.avro import AvroSchema
from kafka_log.read.schemas.avro_columns import run_program
from kafka_log.read.schemas.decoding import PartDecoder
from kafka_log.read.schemas.registry import SchemaError
from tests.shares import examples
from tests.support.avro_engines import compare, decode, framed, registry_of

pytestmark = pytest.mark.skipif(not avro_kernel.JIT, reason="numba compiles the kernel")

LOGICAL = [
    ("int", "date", {}),
    ("int", "time-millis", {}),
    ("long", "time-micros", {}),
    ("long", "timestamp-millis", {}),
    ("long", "timestamp-micros", {}),
    ("long", "timestamp-nanos", {}),
    ("long", "local-timestamp-millis", {}),
    ("string", "uuid", {}),
    ("bytes", "decimal", {"precision": 2, "scale": 1}),
    ("bytes", "decimal", {"precision": 19}),
    ("bytes", "decimal", {"precision": 38, "scale": 38}),
    ("bytes", "decimal", {"precision": 40}),
]
PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]


@st.composite
def schemas(draw: Any, name: str = "N", depth: int = 0, in_union: bool = False) -> Any:
    """A schema. Its named types begin with ``name``."""
    kinds = ["primitive"] * 3 + ["logical", "enum", "fixed", "decimal"]
    kinds += [] if in_union else ["nullable", "nullable", "single", "union"]
    kinds += ["record", "record", "array", "map"] if depth < 3 else []
    kind = draw(st.sampled_from(kinds))
    if kind == "primitive":
        return draw(st.sampled_from(PRIMITIVES[1:] if in_union else PRIMITIVES))
    if kind == "logical":
        base, logical, more = draw(st.sampled_from(LOGICAL))
        return {"type": base, "logicalType": logical, **more}
    if kind == "enum":
        symbols = draw(st.sampled_from([["A"], ["A", "Bb", "C"], ["x" * 200, "y"]]))
        return {"type": "enum", "name": name, "symbols": symbols}
    if kind == "fixed":
        return {"type": "fixed", "name": name, "size": draw(st.sampled_from([1, 2, 16, 1 << 40]))}
    if kind == "decimal":
        size = draw(st.sampled_from([1, 8, 16, 17]))
        more = {"logicalType": "decimal", "precision": draw(st.sampled_from([1, 18, 38]))}
        return {"type": "fixed", "name": name, "size": size, **more}
    if kind in ("nullable", "single", "union"):
        first = draw(schemas(name, depth, True))
        if kind == "union":
            return ["null", "boolean", {"type": "enum", "name": f"{name}e", "symbols": ["A"]}]
        return [first] if kind == "single" else draw(st.permutations(["null", first]))
    if kind == "record":
        count = draw(st.integers(1, 4))
        types = [draw(schemas(f"{name}{i}", depth + 1)) for i in range(count)]
        if draw(st.booleans()) and isinstance(types[0], dict) and "name" in types[0]:
            types.append(types[0]["name"])  # a type that is named again
        fields = [{"name": f"f{i}", "type": t} for i, t in enumerate(types)]
        return {"type": "record", "name": name, "fields": fields}
    item = draw(schemas(f"{name}0", depth + 1))
    return {"type": kind, "items" if kind == "array" else "values": item}


def zigzag(number: int) -> bytes:
    """A number in its shortest form, also beyond 64 bits."""
    number = number << 1 if number >= 0 else (-number << 1) - 1
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


EDGES = [0, 1, -1, 63, 64, 1 << 31, -(1 << 31) - 1, 1 << 53, (1 << 53) + 1, 86_400_000, 1 << 62, (1 << 63) - 1, -(1 << 63)]  # fmt: skip
FLOATS = [0.0, -0.0, 1.5, float("inf"), float("nan")]


class Encoder:
    """Writer of random values. ``faults``: some bytes are no value, or not as fastavro would write it."""

    def __init__(self, draw: Any, faults: bool) -> None:
        self._draw = draw
        self._faults = faults
        self._named: dict[str, Any] = {}

    def pick(self, *good: Any, bad: tuple[Any, ...] = ()) -> Any:
        return self._draw(st.sampled_from(good + bad if self._faults else good))

    def encode(self, schema: Any) -> bytes:
        if isinstance(schema, list):
            branch = self.pick(*range(len(schema)))
            prefix = self.pick(zigzag(branch), bad=(b"\x09", b"\x01", b"\x80\0"))
            return bytes(prefix) + self.encode(schema[branch])
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind in self._named:
            return self.encode(self._named[kind])
        if isinstance(schema, dict) and "name" in schema:
            self._named[schema["name"]] = schema
        if kind == "record":
            return b"".join(self.encode(f["type"]) for f in schema["fields"])
        if kind in ("array", "map"):
            return self.blocks(schema, kind == "map")
        if kind == "enum":
            return zigzag(
                self.pick(*range(len(schema["symbols"])), bad=(-1, len(schema["symbols"])))
            )
        if kind == "fixed":
            size = min(schema["size"], 17)
            return bytes(self._draw(st.binary(min_size=size, max_size=size)))
        return self.primitive(kind)

    def primitive(self, kind: str) -> bytes:
        if kind == "null":
            return b""
        if kind == "boolean":
            return bytes(self.pick(b"\0", b"\1", bad=(b"\2", b"\xff")))
        if kind in ("int", "long"):
            bits = 31 if kind == "int" else 63
            edges = [n for n in EDGES if self._faults or -(1 << bits) <= n < 1 << bits]
            number = zigzag(self.pick(*edges))
            longer = number[:-1] + bytes([number[-1] | 128, 0])
            return bytes(self.pick(number, bad=(number, number, longer, b"\xff" * 10 + b"\1")))
        if kind == "float":
            bits = self.pick(*FLOATS)
            return bytes(self.pick(struct.pack("<f", bits), b"\1\0\xc0\x7f", b"\1\0\x80\x7f"))
        if kind == "double":
            return bytes(self.pick(struct.pack("<d", self.pick(*FLOATS)), b"\1\0\0\0\0\0\xf0\xff"))
        text = self.pick(b"", b"a", "ü€\U0001f600".encode(), b"y" * 70)
        if kind == "bytes":
            text = self._draw(st.binary(max_size=20))
        elif self._faults:
            text = self.pick(text, text, b"\xff", b"\xed\xa0\x80", b"abcdefgh\xc3")
        sizes = [len(text)] * 3 + ([len(text) + 1, -1, 1 << 60, -(1 << 63)] if self._faults else [])
        return zigzag(self.pick(*sizes)) + bytes(text)

    def blocks(self, schema: Any, is_map: bool) -> bytes:
        count = self.pick(0, 1, 2, 3)
        out = b""
        for i in range(count):
            if is_map:
                key = self.pick(f"k{i}", bad=("k0",)).encode()
                out += zigzag(len(key)) + key
            out += self.encode(schema["values" if is_map else "items"])
        plain = (zigzag(count) + out if count else b"") + b"\0"
        if not self._faults:
            return plain
        sized = zigzag(-count) + zigzag(len(out)) + out + b"\0"
        split = zigzag(count) + out + zigzag(count) + out + b"\0"
        huge = zigzag(self.pick(1 << 60, -(1 << 60), -(1 << 63))) + out
        return bytes(self.pick(plain, plain, plain, sized, split, huge, plain[:-1] + b"\2"))


# ---------------------------------------------------------------- laws


@pytest.mark.slow
@examples(300)
@given(st.data())
def test_columns_and_reasons_are_those_of_fastavro(data: Any) -> None:
    """Two versions, damaged values and tombstones among valid ones."""
    versions = [data.draw(schemas()) for _ in range(data.draw(st.integers(1, 2)))]
    registry = registry_of(*versions)
    values: list[bytes | None] = []
    for _ in range(data.draw(st.integers(1, 6))):
        number = data.draw(st.integers(1, len(versions)))
        raw = Encoder(data.draw, data.draw(st.booleans())).encode(versions[number - 1])
        cut = data.draw(st.sampled_from([raw, raw, raw, raw + b"\0", raw[:-1]]))
        values += [framed(number, cut)] + ([None] if data.draw(st.booleans()) else [])
    compare(registry, values)


@pytest.mark.slow
@examples(200)
@given(st.data())
def test_the_kernel_takes_valid_values(data: Any) -> None:
    """Each value that fastavro decodes, if there is a program for the schema."""
    schema = data.draw(schemas())
    registry = registry_of(schema)
    values = [Encoder(data.draw, False).encode(schema) for _ in range(4)]
    try:
        compiled = AvroSchema(registry.versions[0], registry)
    except SchemaError:
        return
    program = compiled.compile(compiled.shape)
    if program is not None:
        *_, problems = decode(registry, [framed(1, v) for v in values], False)
        found = run_program(program, pa.array(values, pa.binary()), np.zeros(4, np.bool_))
        assert found.rejected.tolist() == problems.is_valid().to_pylist()


@st.composite
def evolved(draw: Any, schema: Any) -> Any:
    """A reader's schema for values of a writer's: wider numbers, unions, fields that came and went."""
    if isinstance(schema, str):
        wider = {"int": ["long", "float", "double"], "long": ["double"], "float": ["double"], "string": ["bytes"]}  # fmt: skip
        other = draw(st.sampled_from([schema, schema, *wider.get(schema, [])]))
        return ["null", other] if other != "null" and draw(st.booleans()) else other
    if isinstance(schema, list):
        return [b if b == "null" or not isinstance(b, dict) else draw(evolved(b)) for b in schema]
    found = dict(schema)
    if schema["type"] == "record":
        fields = [{**f, "type": draw(evolved(f["type"]))} for f in schema["fields"]]
        fields = draw(st.permutations(fields))[draw(st.integers(0, 1)) :]
        added = draw(st.sampled_from([("int", 7), ("string", "é"), (["null", "long"], None), ("double", 1.5), ("bytes", "x"), ({"type": "array", "items": "int"}, [1]), ("boolean", True), ("string", "x" * 200)]))  # fmt: skip
        new = {"name": draw(st.sampled_from(["added", "f0", "f1"])), "type": added[0], "default": added[1]}  # fmt: skip
        if all(f["name"] != new["name"] for f in fields):
            fields.append(new)
        found["fields"] = fields
    for name in ("items", "values"):
        if name in schema:
            found[name] = draw(evolved(schema[name]))
    return found


@pytest.mark.slow
@examples(300)
@given(st.data())
def test_resolved_values_are_those_of_fastavro(data: Any) -> None:
    schema = data.draw(schemas())
    registry = registry_of(schema, data.draw(evolved(schema)))
    values = []
    for _ in range(data.draw(st.integers(1, 4))):
        values.append(framed(1, Encoder(data.draw, data.draw(st.booleans())).encode(schema)))
    try:
        PartDecoder(registry, "t", "value", [], schema_version=2)
    except SchemaError:
        return
    compare(registry, [*values, None], schema_version=2)


# ---------------------------------------------------------------- cases


def test_values_of_the_benchmark() -> None:
    values, _ = avro_values(1_000)
    *columns, problems = compare(registry_of(AVRO), [framed(1, v) for v in values])
    assert problems.null_count == 1_000
    registry = registry_of(AVRO)
    schema = AvroSchema(registry.versions[0], registry)
    program = schema.compile(schema.shape)
    assert program is not None
    found = run_program(program, pa.array(values, pa.binary()), np.zeros(1_000, np.bool_))
    assert not found.rejected.any()
    assert found.array.equals(columns[0])


@pytest.mark.parametrize("precision", [1, 18, 19, 20, 37, 38])
def test_decimals(precision: int) -> None:
    """The largest ones and those beyond, with any number of bytes for the sign."""
    schema = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 1}
    end = 10**precision
    raw = [
        b"",
        b"\0",
        b"\xff",
        b"\0" + b"\xff" * 16,
        b"\xff" + b"\0" * 16,
        b"\xff\x7f" + b"\xff" * 15,
    ]
    raw += [b"\0\x80" + b"\0" * 15, b"\x80" + b"\0" * 15, b"\0" * 40 + b"\1", b"\1" + b"\0" * 40]
    for number in (0, 1, -1, 1 << 63, -(1 << 64), end - 1, end, 1 - end, -end, end << 64):
        least = (number.bit_length() + 8) // 8
        raw += [number.to_bytes(size, "big", signed=True) for size in (least, least + 1, 40)]
    found = compare(registry_of(schema), [framed(1, zigzag(len(n)) + n) for n in raw])
    numbers = [int.from_bytes(n, "big", signed=True) for n in raw]
    assert found[0].is_valid().to_pylist() == [-end < n < end for n in numbers]


def maps(counts: list[int]) -> Iterator[bytes]:
    for count in counts:
        entries = (zigzag(len(k)) + k + b"\2" for k in (f"k{i}".encode() for i in range(count)))
        yield framed(1, zigzag(count) + b"".join(entries) + b"\0")


def test_maps_of_many_keys() -> None:
    """Those with more keys than the kernel compares are decoded by fastavro."""
    registry = registry_of({"type": "map", "values": "int"})
    counts = [1, avro_kernel.MAX_KEYS, avro_kernel.MAX_KEYS + 1, 500]
    found = compare(registry, list(maps(counts)))
    assert [len(v) for v in found[0].to_pylist()] == counts


@pytest.mark.parametrize("first", [0, 3])
def test_slices_of_arrays(first: int) -> None:
    """Offsets that do not begin at 0, and bytes at the end of their memory."""
    registry = registry_of("string")
    schema = AvroSchema(registry.versions[0], registry)
    program = schema.compile(schema.shape)
    assert program is not None
    texts = [f"text {i}" * i for i in range(9)]
    values = pa.array([zigzag(len(t)) + t.encode() for t in texts], pa.binary()).slice(first)
    found = run_program(program, values, np.zeros(len(values), np.bool_))
    assert found.array.to_pylist() == texts[first:]
    skipped = np.arange(len(values)) % 2 == 0
    found = run_program(program, values, skipped)
    assert found.rejected.tolist() == skipped.tolist()
    assert found.array.to_pylist()[1::2] == texts[first + 1 :: 2]
    assert found.array.null_count == skipped.sum()


def test_deep_lists() -> None:
    schema: Any = "int"
    value = b"\2"
    for _ in range(58):
        schema = {"type": "array", "items": schema}
        value = b"\2" + value + b"\0"
    registry = registry_of(schema)
    found = compare(registry, [framed(1, value)] * 3)
    assert found[3].null_count == 3
    compiled = AvroSchema(registry.versions[0], registry)
    program = compiled.compile(compiled.shape)
    assert program is not None
    raw = pa.array([value], pa.binary())
    assert not run_program(program, raw, np.zeros(1, np.bool_)).rejected.any()


def test_many_schemas_and_damaged_rows() -> None:
    """Values of three versions, others and null, in any order, each in its row."""
    versions = [{"type": "record", "name": "R", "fields": [{"name": f"f{i}", "type": "int"}]} for i in range(3)]  # fmt: skip
    values = []
    for i in range(600):
        values += [framed(1 + i % 3, zigzag(i)), framed(1, b"\x80"), None, b"text"][: 1 + i % 4]
    found = compare(registry_of(*versions), values)
    numbers = [v[f"f{row % 3}"] for row, v in enumerate(filter(None, found[0].to_pylist()))]
    assert numbers == list(range(600))


def test_hostile_values_take_no_time_and_no_memory() -> None:
    """Numbers of elements and bytes that no value has."""
    schema = {"type": "array", "items": {"type": "map", "values": "bytes"}}
    registry = registry_of(
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": schema}]}
    )
    numbers = [zigzag(n) for n in (1 << 20, 1 << 31, 1 << 60, (1 << 63) - 1, -1, -(1 << 63))]
    values = [prefix + n + b"\2a" for n in numbers for prefix in (b"", b"\2", b"\2\2\2k")]
    found = compare(registry, [framed(1, v) for v in values])
    assert found[3].null_count == 0


# ---------------------------------------------------------------- when it is used


@pytest.mark.slow
def test_few_values_load_nothing() -> None:
    code = (
        "import sys; from kafka_log.read.schemas.avro import *; from kafka_log.read.schemas import avro;"
        "assert not avro.use_kernel(avro.MIN_VALUES_TO_LOAD_KERNEL);"
        "assert not {'numba', 'kafka_log.read.schemas.avro_kernel'} & {*sys.modules};"
        "assert avro.use_kernel(avro.MIN_VALUES_TO_COMPILE_KERNEL)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


def test_the_kernel_is_used_once_there_were_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOAD_KERNEL", "LOAD_NUMBA", "COMPILE_KERNEL"):
        monkeypatch.setattr(avro, f"MIN_VALUES_TO_{name}", 250)
    calls = []

    def spy(program: Any, values: Any, skipped: Any) -> Any:
        calls.append(len(values))
        return run_program(program, values, skipped)

    monkeypatch.setattr("kafka_log.read.schemas.avro_columns.run_program", spy)
    decoder = PartDecoder(registry_of("int"), "t", "value", [])
    values = pa.array([framed(1, b"\2")] * 100, pa.binary())
    for _ in range(4):
        decoder.decode_columns(values, None)
    assert calls == [100, 100]
    decoder.decode_columns(values.slice(0, avro.MIN_VALUES_FOR_KERNEL - 1), None)
    assert calls == [100, 100]
