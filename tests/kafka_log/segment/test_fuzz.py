"""Mutated segments: an error of ours or a result, never another exception, and never more than the limits."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from codecgen.runtime.checksums import checksum
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits, Session, Source
from kafka_codecs import LOG_ENTRY, RECORD_BATCH
from kafka_log import SegmentReader
from kafka_log.cli.damage import batch_lines, end_lines
from kafka_log.inspect.dump.json_objects import segment_objects
from tests.paths import VECTORS
from tests.shares import draw_seeds

pytestmark = pytest.mark.slow

SEEDS = sorted(
    p for p in VECTORS.glob("*/*.log") if p.stat().st_size < 12_000 and p.parent.name != "large"
)
LIMITS = Limits(decompressed=1 << 20, elements=20_000)
CASES = 4000


def mutated(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at = rng.randrange(len(out)) if out else 0
        kind = rng.randrange(6)
        if kind == 0 and out:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and out:
            out[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 2:
            out[at : at + rng.choice((1, 4, 8))] = rng.randbytes(rng.choice((1, 4, 8)))
        elif kind == 3:
            del out[at : at + rng.randrange(1, 40)]
        elif kind == 4:
            out[at:at] = rng.randbytes(rng.randrange(1, 20))
        else:
            other = rng.choice(SEEDS).read_bytes()
            start = rng.randrange(len(other))
            out[at : at + 30] = other[start : start + 30]
    return bytes(out)


def sealed(data: bytes) -> bytes:
    """The bytes with right checksums, as far as entries can be found: damage after the checksum."""
    out = bytearray(data)
    at = 0
    while len(out) - at > 17:
        try:
            size = LOG_ENTRY.frame(Source(bytes(out), Session(strict=False), pos=at))
        except CodecError:
            break
        if size is None or size > len(out) - at:
            break
        name, crc, covered = ("crc32", 12, 16) if out[at + 16] < 2 else ("crc32c", 17, 21)
        value = checksum(name)(bytes(out[at + covered : at + size]))
        out[at + crc : at + crc + 4] = value.to_bytes(4, "big")
        at += size
    return bytes(out)


def said(reader: SegmentReader) -> Iterator[str]:
    """The lines about what is wrong."""
    try:
        for batch in reader:
            yield from batch_lines(batch)
    except CodecError:
        pass
    assert reader.end is not None
    yield from end_lines(reader.end, reader.path)


@pytest.mark.share(ci=8)
@pytest.mark.parametrize("seed", draw_seeds(8))
def test_mutated_segments(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    path = tmp_path / "00000000000000000000.log"
    for _ in range(CASES // 8):
        data = mutated(rng.choice(SEEDS).read_bytes(), rng)
        if rng.random() < 0.6:
            data = sealed(data)
        path.write_bytes(data)
        for policy in ("strict", "kafka", "salvage"):
            reader = SegmentReader(path, policy=policy, limits=LIMITS)
            for item in segment_objects(reader):
                json.dumps(item)
            end = reader.end
            assert end is not None
            assert 0 <= end.valid_bytes <= end.iterated_bytes <= len(data)
            assert end.iterated_bytes + end.trailing_bytes == len(data)
            for line in said(SegmentReader(path, policy=policy, limits=LIMITS)):
                assert line.isprintable() or "\t" in line


@pytest.mark.parametrize("seed", draw_seeds(4, first=100))
def test_what_a_strict_parser_takes_can_be_built_again(seed: int) -> None:
    rng = random.Random(seed)
    taken = 0
    for _ in range(CASES // 8):
        data = sealed(mutated(rng.choice(SEEDS).read_bytes(), rng))
        try:
            size = LOG_ENTRY.frame(Source(data, Session()))
            entry = data[:size]
            parsed = LOG_ENTRY.parse(entry)
        except CodecError:
            continue
        taken += 1
        built = LOG_ENTRY.build(parsed)
        if parsed.attributes.compression == 0:
            assert built == entry
        else:
            assert len(LOG_ENTRY.parse(built)) == len(parsed)
    assert taken > 20


@pytest.mark.parametrize("seed", draw_seeds(1, first=7))
def test_random_payloads_behind_a_right_header(seed: int) -> None:
    rng = random.Random(seed)
    head = bytearray(RECORD_BATCH.build({"last_offset_delta": 0, "records": []}))
    for _ in range(CASES):
        data = bytearray(head)
        data[22] = rng.randrange(8)
        data[57:61] = rng.choice((0, 1, 2, 100, 2**31 - 1)).to_bytes(4, "big")
        data += rng.randbytes(rng.randrange(80))
        data[8:12] = (len(data) - 12).to_bytes(4, "big")
        for strict in (True, False):
            try:
                RECORD_BATCH.parse(sealed(bytes(data)), strict=strict, limits=LIMITS)
            except CodecError as error:
                assert error.where.path
