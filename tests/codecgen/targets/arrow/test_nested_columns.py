"""Columns of structs, of lists in lists, of uuids and of all numbers: kernels show what the reference codecs parse."""

from __future__ import annotations

import importlib
import math
import random
import struct
import sys
import uuid
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from codecgen.runtime.arrow import decoder as decoding
from codecgen.runtime.arrow.decoder import Decoder, Rejected, choose
from codecgen.runtime.arrow.view import View
from codecgen.runtime.located_bytes import Session, Source
from codecgen.runtime.rows import Place
from tests.codecgen.generated import package_of
from tests.paths import ROOT
from tests.shares import draw_seeds
from tests.support import plain_kernels

PACKAGE = "nested_columns_codecs"
CASE = ROOT / "tests" / "codecgen" / "targets" / "arrow" / "nested.yaml"
NAN = float("nan")
NUMBERS = (0.0, -0.0, 1.5, math.inf, -math.inf, 5e-324)


@pytest.fixture(scope="module")
def codecs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    root = tmp_path_factory.mktemp("nested_columns")
    package_of(CASE.read_text("utf-8"), root, PACKAGE, "construct,arrow")
    sys.path.insert(0, str(root / "out"))
    try:
        yield importlib.import_module(f"{PACKAGE}.case")
    finally:
        sys.path.remove(str(root / "out"))


class Maker:
    """Values of the layouts, at random."""

    def __init__(self, codecs: ModuleType, r: random.Random) -> None:
        self.codecs = codecs
        self.r = r

    def many(self, count: int) -> bytes:
        value = {"big": self.r.choice((0, 1 << 63, (1 << 64) - 1)), "score": self.number()}
        items = [self.item() for _ in range(count)]
        return bytes(self.codecs.MANY.build(value | {"things": items}))

    def number(self) -> float:
        return self.r.choice(NUMBERS)

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self.r.randbytes(16))

    def some(self, make: Any, most: int = 3) -> list[Any]:
        return [make() for _ in range(self.r.choice((0, 0, 1, most)))]

    def text(self) -> str:
        return self.r.choice(("", "a", "ä" * 9))

    def item(self) -> dict[str, Any]:
        r = self.r
        place, more = r.random() < 0.6, r.random() < 0.5
        return {
            "flags": {"has_place": place, "has_more": more},
            "id": self.uuid(),
            "number": r.choice((0, -1, 1 << 30)),
            "ratio": struct.unpack("<f", struct.pack("<f", self.number()))[0],
            "sure": r.random() < 0.5,
            "numbers": self.some(lambda: r.choice((0, -5, (1 << 31) - 1)), 40),
            "names": None if r.random() < 0.3 else self.some(self.text),
            "ids": self.some(self.uuid),
            "sums": self.some(lambda: r.choice((0, -1, (1 << 63) - 1, -(1 << 63)))),
            "place": self.place() if place else None,
            "groups": None if r.random() < 0.3 else self.some(self.group),
            "more": self.point() if more and r.random() < 0.5 else None,
        }

    def place(self) -> dict[str, Any]:
        name = None if self.r.random() < 0.3 else self.text()
        return {"name": name, "at": self.point(), "tags": self.some(self.tag)}

    def point(self) -> dict[str, Any]:
        return {
            "x": self.r.choice((0, (1 << 64) - 1)),
            "y": self.number(),
            "bits": {"a": self.r.randrange(16)},
        }

    def tag(self) -> dict[str, Any]:
        return {
            "key": self.text(),
            "contents": self.some(lambda: self.r.randbytes(self.r.choice((0, 3, 200)))),
        }

    def group(self) -> dict[str, Any]:
        part = lambda: {"index": 7, "replicas": self.some(lambda: self.r.randrange(-9, 9), 70), "ok": self.r.random() < 0.5}  # fmt: skip # noqa: E731
        topic = {"id": self.uuid(), "kind": self.codecs.Hue(self.r.choice((0, 2)))}
        return {"topic": topic, "parts": self.some(part, 5)}

    def entry(self) -> bytes:
        match self.r.randrange(6):
            case 0:
                place = self.place() if self.r.random() < 0.6 else None
                return bytes(self.codecs.ONE.build({"id": self.uuid(), "place": place}))
            case 1:
                return bytes(self.codecs.LATER_V3.build({"where": {"x": 5, "z": [1, 255]}}))
            case 2:
                return bytes(self.codecs.LATER_V4.build({"where": {"x": -5, "y": 3}}))
        return self.many(self.r.choice((0, 1, 2, 9)))


def decoded(
    data: bytes, names: list[str] | None = None, **options: Any
) -> tuple[list[pa.RecordBatch], list[Rejected]]:
    rows, rejected = plain_kernels.decoded(view(), data, names, **options)
    return plain_kernels.batches_of(rows), rejected


def view() -> View:
    return plain_kernels.view_of(PACKAGE, "things")


def rows_of(batches: list[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    return [tuple(map(plain, row.values())) for batch in batches for row in batch.to_pylist()]


def plain(value: Any) -> Any:
    """A value as the functions of rows give it, floats by their bits."""
    if isinstance(value, dict):
        return tuple(map(plain, value.values()))
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    return struct.pack("<d", value) if isinstance(value, float) else value


def reference(
    codecs: ModuleType, data: bytes, columns: list[str] | None = None
) -> list[tuple[Any, ...]]:
    """The rows by the codecs."""
    own = importlib.import_module(f"{PACKAGE}.rows.things").THINGS
    out: list[tuple[Any, ...]] = []
    at = 0
    while at < len(data):
        source = Source(data, Session(), pos=at)
        layout = codecs.ENTRY.case(source)
        size = layout.frame(source)
        opened = layout.open(Source(data[at : at + size], Session()))
        out += own.rows(layout, opened, Place(at, size), columns)
        at += size
    return [plain(row) for row in out]


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("seed", draw_seeds(4))
def test_all_columns(codecs: ModuleType, seed: int) -> None:
    r = random.Random(seed)
    make = Maker(codecs, r)
    data = b"".join(make.entry() for _ in range(30))
    batches, rejected = decoded(data)
    assert not rejected
    expected = reference(codecs, data)
    assert rows_of(batches) == expected and len(expected) > 20
    names = r.sample([c.name for c in view().columns], 4)
    assert rows_of(decoded(data, names)[0]) == reference(codecs, data, names)


@pytest.mark.slow
def test_what_does_not_fit_comes_with_the_next_rows(
    codecs: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("ENTRIES", 4), ("SPARE", 0), ("PROBE", 16), ("MARGIN", 1.0)):
        monkeypatch.setattr(decoding, name, value)
    make = Maker(codecs, random.Random(5))
    data = b"".join(make.entry() for _ in range(40))
    batches, rejected = decoded(data, max_rows=7)
    assert not rejected and len(batches) > 10
    assert rows_of(batches) == reference(codecs, data)


def test_types(codecs: ModuleType) -> None:
    schema = decoded(b"")[0] or Decoder(view(), choose(view(), None)).schema
    assert isinstance(schema, pa.Schema)
    assert schema.field("big").type == pa.uint64() and schema.field("ratio").type == pa.float32()
    assert schema.field("ids").type == pa.list_(pa.field("element", pa.binary(16), False))
    point = pa.struct([pa.field("x", pa.uint64(), False), pa.field("y", pa.float64(), False),
                       pa.field("bits", pa.uint16(), False)])  # fmt: skip
    assert schema.field("place").type.field("at").type == point
    assert schema.field("place").nullable and not schema.field("place").type.field("at").nullable


def test_not_a_number_keeps_its_bits(codecs: ModuleType) -> None:
    data = bytearray(Maker(codecs, random.Random(1)).many(1))
    data[13:21] = bytes.fromhex("7ff8000000000abc")
    (batch,), _ = decoded(bytes(data), ["score"])
    assert batch.column(0).buffers()[1].to_pybytes()[:8] == bytes.fromhex("bc0a00000000f87f")


def test_a_struct_that_is_null_has_nothing_inside(codecs: ModuleType) -> None:
    absent = bytes(codecs.ONE.build({"id": uuid.UUID(int=1), "place": None}))
    there = {"name": None, "at": {"x": 9, "y": 2.0, "bits": {"a": 1}}, "tags": []}
    present = bytes(codecs.ONE.build({"id": uuid.UUID(int=2), "place": there}))
    later = bytes(codecs.LATER_V3.build({"where": {"x": 1, "z": []}}))
    (batch, *more), _ = decoded(absent + present + absent)
    assert not more
    place = batch.column("place")
    assert place.null_count == 2 and len(place.field("at")) == 3
    assert place.field("at").field("x").to_pylist() == [0, 9, 0]
    assert place.field("tags").offsets.to_pylist() == [0, 0, 0, 0]
    (batch, *more), _ = decoded(later + later)
    assert batch.column("place").null_count == 2
    assert batch.column("place").field("at").field("x").to_pylist() == [0, 0]
    assert batch.column("where").to_pylist() == [{"x": 1, "y": None, "z": []}] * 2


@pytest.mark.slow
@pytest.mark.share(3)
@pytest.mark.parametrize("byte", range(6))
def test_what_is_cut_off_or_wrong_is_rejected(codecs: ModuleType, byte: int) -> None:
    make = Maker(codecs, random.Random(byte))
    good = make.many(3)
    r = random.Random(byte)
    for _ in range(30):
        bad = bytearray(good)
        for _ in range(r.choice((1, 1, 3))):
            bad[r.randrange(21, len(bad))] = r.choice((0, 1, 0x7F, 0x80, 0xFF))
        batches, rejected = decoded(bytes(bad) + good)
        try:
            expected = reference(codecs, bytes(bad))
        except Exception:
            assert [item.start for item in rejected] == [0], bytes(bad).hex()
            expected = []
        assert rows_of(batches) == expected + moved(codecs, good, len(bad))


def moved(codecs: ModuleType, data: bytes, by: int) -> list[tuple[Any, ...]]:
    """The rows of an entry that lies further back."""
    return [(row[0] + by, *row[1:]) for row in reference(codecs, data)]


def test_one_huge_list_among_many_rows(codecs: ModuleType) -> None:
    make = Maker(codecs, random.Random(3))
    small = [make.item() | {"numbers": [i]} for i in range(50)]
    huge = make.item() | {"numbers": list(range(7000))}
    head = {"big": 1, "score": 0.0}
    parts = [
        bytes(codecs.MANY.build(head | {"things": things})) for things in (small, [huge], small)
    ]
    batches, rejected = decoded(b"".join(parts), ["numbers"])
    assert not rejected
    assert [len(row) for (row,) in rows_of(batches)] == [1] * 50 + [7000] + [1] * 50


def test_more_elements_than_offsets_count(
    codecs: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "MAX_BYTES", 1000)
    make = Maker(codecs, random.Random(3))
    head = {"big": 1, "score": 0.0}
    things = [make.item() | {"numbers": [0] * 400, "groups": []} for _ in range(3)]
    large = bytes(codecs.MANY.build(head | {"things": things}))
    small = bytes(codecs.MANY.build(head | {"things": things[:1]}))
    batches, rejected = decoded(small + large + small, ["position", "numbers"])
    assert [(item.start, item.place) for item in rejected] == [(len(small), None)]
    assert [row[0] for row in rows_of(batches)] == [0, len(small) + len(large)]


@pytest.mark.slow
@pytest.mark.soak
def test_compiled_kernels(codecs: ModuleType) -> None:
    make = Maker(codecs, random.Random(11))
    data = b"".join(make.entry() for _ in range(3000))
    batches, rejected = decoded(data, engine="compiled")
    assert not rejected and rows_of(batches) == reference(codecs, data)
    big = make.item() | {"numbers": list(range(200_000))}
    many = bytes(codecs.MANY.build({"big": 1, "score": 0.0, "things": [make.item(), big]}))
    batches, rejected = decoded(data + many, ["numbers", "groups"], engine="compiled", max_rows=500)
    assert rows_of(batches) == reference(codecs, data + many, ["numbers", "groups"])
