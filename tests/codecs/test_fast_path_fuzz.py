"""Random values of every layout of Kafka's schemas: fast parsers and builders give what the field-by-field codecs give."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

import kafka_codecs
from codecgen.runtime.errors import CodecError
from codecgen.runtime.layout import Layout
from codecgen.runtime.located_bytes import Limits, Session, Source
from kafka_codecs import RECORD_BATCH
from kafka_codecs.drafts import kip_98
from tests.laws.codec_laws import symbol_of
from tests.laws.fast_laws import built_either_way, same_either_way, same_in_windows
from tests.laws.mutations import mutated, mutated_values
from tests.laws.values import NoValue, Values, given
from tests.laws.world import Facts, World
from tests.shares import draw_seeds

SCHEMAS = Path(__file__).parents[2] / "schemas"
LIMITS = Limits(decompressed=1 << 16, elements=2000, findings=200)
WITHOUT_VALUES = {"record_batch", "message"}
"""Layouts of which the laws know no values; tests/codecs/test_fast_path.py has some."""


@cache
def facts() -> Facts:
    """Return what the YAML of Kafka's schemas says."""
    paths = SCHEMAS.rglob("*.yaml")
    texts = {path.relative_to(SCHEMAS).as_posix(): path.read_text("utf-8") for path in paths}
    return Facts(World.read(texts))


def layouts() -> Iterator[tuple[str, int | None]]:
    """Yield each layout with each of its versions. Layouts that are given values, or have the versions of their holder, are
    tried where they are held.
    """
    for name, tree in facts().layouts.items():
        if "given" not in tree and name not in WITHOUT_VALUES:
            for version in facts().versions(name):
                if isinstance(codec_of(name, version), Layout):
                    yield name, version


def codec_of(name: str, version: int | None) -> Any:
    """Return the codec of a layout in one version."""
    home = kip_98 if name.startswith("kip_98") else kafka_codecs
    codec: Any = getattr(home, symbol_of(name))
    return codec if version is None else codec[version]


def samples(
    name: str, version: int | None, r: random.Random, number: int
) -> Iterator[tuple[Any, bytes]]:
    """Yield values of a layout, and the bytes that its codec builds from them."""
    for _ in range(number):
        try:
            value = given(Values(facts(), r).layout(name, version))
            yield value, codec_of(name, version).build(value)
        except (NoValue, CodecError):
            continue


def compare(name: str, version: int | None, seed: object, values: int, mutants: int) -> None:
    """Parse and build values, their bytes and mutants of both with fast paths and without. Raises Broken if results differ."""
    r, codec = random.Random(f"{name}@{version} {seed}"), codec_of(name, version)
    for value, data in samples(name, version, r, values):
        same_either_way(codec, data, LIMITS)
        for bad in mutated(data, r, mutants):
            same_either_way(codec, bad, LIMITS)
        same_in_windows(codec, data, LIMITS, r, mutants)
        parsed = codec.parse(data, limits=LIMITS)
        built_either_way(codec, value)
        for other in mutated_values(parsed, r, mutants // 2):
            built_either_way(codec, other)


@pytest.mark.slow
@pytest.mark.share(4)
@pytest.mark.parametrize("seed", draw_seeds(1, first=1))
@pytest.mark.parametrize("part", range(8))
def test_both_ways_give_the_same(part: int, seed: int) -> None:
    for name, version in list(layouts())[part::8]:
        compare(name, version, seed, values=1, mutants=4)


@pytest.mark.share(ci=3)
@pytest.mark.slow
@pytest.mark.parametrize("seed", draw_seeds(1, first=2))
@pytest.mark.parametrize("part", range(8))
def test_both_ways_give_the_same_of_many_values(part: int, seed: int) -> None:
    for name, version in list(layouts())[part::8]:
        compare(name, version, seed, values=4, mutants=12)


RECORDS: list[dict[str, Any]] = [
    {
        "key": b"k",
        "value": b"v",
        "headers": [{"key": "h", "value": None}, {"key": "", "value": b""}],
    },
    {"key": None, "value": b"x" * 200, "timestamp_delta": 7000},
    {"key": bytes(70), "value": None, "offset_delta": 200, "timestamp_delta": -5},
]


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3])
def test_batches_whose_records_were_changed_before_the_checksum(number: int) -> None:
    """Damage that no checksum tells: what a fast parser reads has to be noticed by itself."""
    r, data = random.Random(number), RECORD_BATCH.build({"records": RECORDS[:number]})
    start, crc = RECORD_BATCH.offset_of("attributes"), RECORD_BATCH.offset_of("crc")
    for tail in mutated(data[start:], r, 150):
        head = bytearray(data[:start])
        head[8:12] = (len(head) + len(tail) - 12).to_bytes(4, "big")
        head[crc : crc + 4] = crc32c(tail).to_bytes(4, "big")
        same_either_way(RECORD_BATCH, bytes(head) + tail, LIMITS)
        same_either_way(RECORD_BATCH, bytes(head) + tail + data, LIMITS)


def test_fast_parsers_read_nearly_all_values_themselves() -> None:
    """A fast parser that gives up on regular bytes would be right, but slow."""
    taken = number = 0
    for name, version in layouts():
        path = codec_of(name, version).fast_path
        for _, data in samples(name, version, random.Random(f"{name}@{version}"), 2):
            number += path is not None
            taken += path is not None and path.read(Source(data, Session())) is not None
    assert taken > 0.9 * number
