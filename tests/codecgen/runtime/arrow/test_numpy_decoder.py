"""Without a compiler: the readers by NumPy give what the reference codecs give, and refuse what the kernels refuse."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given

from codecgen.runtime.arrow import (
    numpy_chains,
    numpy_decoder,
    numpy_elements,
    numpy_fields,
    numpy_index,
    numpy_memory,
)
from codecgen.runtime.arrow.decoder import Chunk, Decoder, Rejected, Rows, choose, load_numpy_reader
from codecgen.runtime.arrow.numpy_fields import StructureReader
from codecgen.runtime.arrow.numpy_memory import Fields, Memory
from codecgen.runtime.compression import compress
from codecgen.runtime.errors import CodecError
from codecgen.runtime.located_bytes import Limits, Session, Source
from codecgen.runtime.primitives import Varint
from kafka_codecs import MESSAGE_V1, RECORD_BATCH, Compression
from kafka_codecs.arrow import batches_numpy, records_numpy
from kafka_codecs.arrow.batches import BATCHES
from kafka_codecs.arrow.records import RECORDS
from kafka_log.segment.scanner import Scanner, header_scanner
from tests.paths import VECTORS
from tests.shares import draw_seeds
from tests.support.mutated_bytes import mutants
from tests.support.random_segments import segments
from tests.support.scanned_rows import ALL, Read, reference, scanned, unpacked
from tests.support.vector_files import FILES, POLICIES, WELL_FORMED, name


def by_numpy(path: Path, policy: str, **more: Any) -> Read:
    return scanned(path, policy, kernels=records_numpy, **more)


def test_the_views_have_them() -> None:
    assert load_numpy_reader(RECORDS) is records_numpy
    assert load_numpy_reader(BATCHES) is batches_numpy


@pytest.mark.share(18, ci=9)
@pytest.mark.parametrize("path", FILES, ids=name)
def test_agrees_under_every_policy(path: Path) -> None:
    for policy in POLICIES if path.stat().st_size < 100_000 else ("kafka",):
        read = by_numpy(path, policy)
        assert read == reference(path, policy)
        assert read.fallbacks == scanned(path, policy, columns=("offset",)).fallbacks


@pytest.mark.share(9)
@pytest.mark.parametrize("path", FILES[::4], ids=name)
def test_agrees_in_small_chunks(path: Path) -> None:
    for policy in POLICIES if path.stat().st_size < 100_000 else ("salvage",):
        assert by_numpy(path, policy, chunk_bytes=300) == reference(path, policy)


@pytest.mark.share(3)
@pytest.mark.parametrize("path", WELL_FORMED[::8], ids=name)
@pytest.mark.parametrize("column", ALL)
def test_a_column_alone_is_the_same(path: Path, column: str) -> None:
    expected = [{column: row[column]} for row in reference(path, "kafka").rows]
    assert by_numpy(path, "kafka", columns=(column,)).rows == expected


WAYS: list[tuple[ModuleType, str, object]] = [
    (numpy_decoder, "PART_ROWS", 3),
    (numpy_decoder, "PART_BYTES", 50),
    (numpy_decoder, "SCRATCH", 100),
    (numpy_elements, "STEP", 2),
    (numpy_chains, "FEW", 0),
    (numpy_chains, "FEW", 1 << 40),
    (numpy_chains, "MOST", 2),
    (numpy_index, "FIRST", 1),
    (numpy_memory, "PIECES", 2),
    (numpy_memory, "SHORT", 0),
    (numpy_fields, "BLOCK", 8),
    (numpy_fields, "ROUNDS", 1),
    (numpy_memory, "MAX_BYTES", -1),
]


@pytest.mark.slow
@pytest.mark.share(16, ci=2)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way[1]}={way[2]}"[:25])
def test_it_is_the_same_in_other_parts_and_by_other_ways(
    way: tuple[ModuleType, str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*way)
    for i, path in enumerate(path for path in FILES[::3] if path.stat().st_size < 20_000):
        policy = POLICIES[i % 3]
        assert by_numpy(path, policy) == reference(path, policy), path


@pytest.mark.parametrize("number", [1, 63, 64, 65, 66, 128, 300])
@pytest.mark.parametrize("cut", [0, 1, 70])
def test_nothing_is_said_about_where_entries_end(number: int, cut: int) -> None:
    entry = (VECTORS / "matrix" / "v2-none-create.log").read_bytes()
    entry = entry[: 12 + int.from_bytes(entry[8:12], "big")]
    data = entry * number + entry[:cut]
    chunk = Chunk(0)
    chunk.array = np.frombuffer(data + bytes(64), np.uint8)
    chunk.size = len(data)
    items = list(
        Decoder(RECORDS, choose(RECORDS, ("offset",)), kernels=records_numpy).decode(chunk, 0)
    )
    assert all(isinstance(item, Rows) for item in items), items
    assert items[-1].end == number * len(entry)


@pytest.fixture
def guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains are followed from guessed places in small segments, too."""
    for which, value in (("FEW", 2), ("EACH", 1), ("SAMPLE", 2), ("NEAR", 1)):
        monkeypatch.setattr(numpy_chains, which, value)
    monkeypatch.setattr(numpy_index, "FIRST", 1)


@pytest.mark.share(6, ci=9)
@pytest.mark.usefixtures("guesses")
@pytest.mark.parametrize("path", FILES, ids=name)
def test_guesses_agree(path: Path) -> None:
    assert by_numpy(path, "salvage") == reference(path, "salvage")


@pytest.mark.slow
@pytest.mark.usefixtures("guesses")
def test_guesses_agree_on_mutated_segments(tmp_path: Path) -> None:
    path = tmp_path / "mutated.log"
    for data in mutants(100, 206):
        path.write_bytes(data)
        assert by_numpy(path, "salvage") == reference(path, "salvage"), data.hex()


@pytest.mark.slow
@given(data=segments)
def test_generated_segments(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "vectors.log"
    path.write_bytes(data)
    expected = reference(path, "strict")
    assert expected.error is None
    read = by_numpy(path, "strict")
    assert read == expected
    assert read.fallbacks == 0


@pytest.mark.slow
@pytest.mark.share(6, ci=3)
@pytest.mark.parametrize("seed", draw_seeds(6, first=200))
def test_mutated_segments(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "mutated.log"
    for i, data in enumerate(mutants(100, seed)):
        path.write_bytes(data)
        policy = POLICIES[i % 3]
        read = by_numpy(path, policy)
        assert read == reference(path, policy), (policy, data.hex())
        assert read.fallbacks == scanned(path, policy).fallbacks, (policy, data.hex())


@pytest.mark.slow
@pytest.mark.share(ci=20)
@pytest.mark.parametrize("seed", draw_seeds(40, first=300))
def test_many_mutated_segments(seed: int, tmp_path: Path) -> None:
    test_mutated_segments(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.share(6)
@pytest.mark.parametrize("path", FILES, ids=name)
def test_heads_are_those_that_the_kernels_read(path: Path) -> None:
    columns = [column.name for column in BATCHES.columns]
    for policy in POLICIES:
        found = []
        for readers in (None, batches_numpy):
            scanner = header_scanner(path, columns, policy, engine="arrow", on_damage="keep")
            scanner.kernels = readers or scanner.kernels
            error = None
            rows: list[dict[str, Any]] = []
            try:
                for batch in scanner:
                    rows += unpacked(batch)
            except CodecError as raised:
                error = str(raised)
            found.append(Read(rows, error, scanner.end, scanner.fallbacks))
        assert found[0] == found[1]
        assert found[0].fallbacks == found[1].fallbacks


# ---------------------------------------------------------------- what is large


def records(count: int, headers: int = 0) -> dict[str, Any]:
    r = random.Random(count)
    items = [
        {
            "offset_delta": i,
            "key": None if r.random() < 0.1 else r.randbytes(r.randrange(30)),
            "value": r.randbytes(r.choice((3, 80, 9000))) if i % 1000 == 7 else b"v",
            "headers": [{"key": f"k{k}", "value": None} for k in range(headers)],
        }
        for i in range(count)
    ]
    return {"base_offset": 5, "attributes": {"compression": Compression.NONE}, "records": items}


def write(tmp_path: Path, *parts: bytes) -> Path:
    path = tmp_path / "large.log"
    path.write_bytes(b"".join(parts))
    return path


def columns_of(path: Path, readers: ModuleType | None) -> tuple[dict[str, list[Any]], int]:
    scanner = Scanner(path, ALL, engine="arrow")
    scanner.kernels = readers or scanner.kernels
    batches = list(scanner)
    for batch in batches:
        batch.validate(full=True)
    found = {n: [v for b in batches for v in b.column(n).to_pylist()] for n in ALL}
    return found, scanner.fallbacks


def test_an_entry_with_more_rows_than_are_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy_decoder, "PART_ROWS", 1000)
    count = 2345
    good = RECORD_BATCH.build(records(count))
    gzip = good[:21] + b"\x00\x01" + good[23:61] + compress("gzip", good[61:])
    gzip = gzip[:8] + (len(gzip) - 12).to_bytes(4, "big") + gzip[12:]
    gzip = gzip[:17] + crc32c(gzip[21:]).to_bytes(4, "big") + gzip[21:]
    attributes = {"compression": Compression.NONE}
    inner = [
        {
            "offset": i,
            "magic": 1,
            "attributes": attributes,
            "timestamp": i,
            "key": None,
            "value": b"",
        }
        for i in range(2_500)
    ]
    wrapper = {"offset": 5_000, "magic": 1, "attributes": {"compression": Compression.GZIP}, "timestamp": 2_499}  # fmt: skip
    old = MESSAGE_V1.build(wrapper | {"key": None, "messages": inner})
    path = write(tmp_path, good, gzip, old)
    found, rejected = columns_of(path, records_numpy)
    assert rejected == 0
    assert len(found["offset"]) == 2 * count + 2_500
    assert found == columns_of(path, None)[0]
    bad = bytearray(good)
    bad[-3] = 0x7F  # the length of the last value
    bad[17:21] = crc32c(bytes(bad[21:])).to_bytes(4, "big")
    items = decoded(good + bytes(bad) + good)
    assert [type(item) for item in items] == [Rows, Rejected, Rows]
    assert (items[1].start, items[1].end) == (len(good), 2 * len(good))


@pytest.mark.parametrize(
    "length",
    [b"\xff" * 9 + b"\x7f", b"\xfe" * 9 + b"\x01", b"\x80" * 9 + b"\x00", b"\xff" * 12],
    ids=["70 bits", "64 bits", "overlong", "without end"],
)
@pytest.mark.parametrize(("count", "at"), [(1, 0), (3, 0), (3, 2), (400, 0), (400, 399)])
def test_a_length_of_ten_bytes_is_left_to_the_reference_codecs(
    tmp_path: Path, length: bytes, count: int, at: int
) -> None:
    record = RECORD_BATCH.build(records(1))[61:]
    good = RECORD_BATCH.build(records(3))
    items = [length + record[1:] if i == at else record for i in range(count)]
    bad = bytearray(good[:61] + b"".join(items))
    bad[8:12] = (len(bad) - 12).to_bytes(4, "big")
    bad[57:61] = count.to_bytes(4, "big")
    bad[17:21] = crc32c(bytes(bad[21:])).to_bytes(4, "big")
    found = decoded(good + bytes(bad) + good)
    assert [type(item) for item in found] == [Rows, Rejected, Rows]
    assert (found[1].start, found[1].end) == (len(good), len(good) + len(bad))
    path = write(tmp_path, good, bytes(bad), good)
    assert by_numpy(path, "salvage") == reference(path, "salvage")


def decoded(data: bytes) -> list[Rows | Rejected]:
    decoder = Decoder(RECORDS, choose(RECORDS, ["value"]), kernels=records_numpy)
    chunk = Chunk(len(data))
    chunk.view()[: len(data)] = data
    chunk.size = len(data)
    return list(decoder.decode(chunk, 0))


def test_a_row_with_very_many_elements_is_left_to_the_reference_codecs(tmp_path: Path) -> None:
    few, many = numpy_fields.ROUNDS, numpy_fields.ROUNDS + 1
    parts = [RECORD_BATCH.build(records(2, headers)) for headers in (few, many, 3)]
    path = write(tmp_path, *parts)
    read = by_numpy(path, "strict")
    assert read.fallbacks == 1
    assert read == reference(path, "strict")


def test_limits_hold() -> None:
    scanner = Scanner(VECTORS / "matrix" / "v2-none-create.log", limits=Limits(elements=1))
    scanner.kernels = records_numpy
    with pytest.raises(CodecError):
        list(scanner)


# ---------------------------------------------------------------- numbers of many structures at once


@pytest.mark.parametrize(
    ("method", "codec"),
    [
        ("varint", Varint(32)),
        ("varlong", Varint(64)),
        ("uvarint", Varint(32, signed=False)),
    ],
)
@pytest.mark.parametrize("seed", draw_seeds(1, first=4))
def test_varints_are_those_of_the_reference(method: str, codec: Varint, seed: int) -> None:
    r = random.Random(seed)
    seen = {True: 0, False: 0}
    for most in (0, 1, 2, 10):
        found = []
        for _ in range(3000):
            head = [
                r.choice((0x80, 0xFF, 0x80 | r.getrandbits(7))) for _ in range(r.randint(0, most))
            ]
            found.append(bytes([*head, r.choice((0, 1, 2, 15, 16, 127, r.getrandbits(7)))]))
        ends = np.cumsum([len(data) for data in found])
        starts = ends - [len(data) for data in found]
        memory = Memory(np.frombuffer(b"".join(found) + bytes(64), np.uint8))
        reader = StructureReader(memory, starts, ends, 100)
        values = getattr(reader, method)()
        for i, data in enumerate(found):
            source = Source(data, Session())
            try:
                expected: tuple[int, int] | None = (codec.read(source, None), source.pos)
            except CodecError:
                expected = None
            got = None if reader.bad[i] else (int(values[i]), int(reader.p[i] - starts[i]))
            assert got == expected, data.hex()
            seen[expected is None] += 1
    assert min(seen.values()) > 500


STEPS: list[Callable[[StructureReader], object]] = [
    lambda reader: reader.varint(),
    lambda reader: reader.varlong(),
    lambda reader: reader.fixed(">i8"),
    lambda reader: reader.fixed("u1"),
    lambda reader: reader.bytes(reader.varint(), null=-1).array().validate(full=True),
    lambda reader: reader.bytes(reader.compact(), null=-1, text=True),
    lambda reader: reader.numbers(reader.uvarint(), 8),
    lambda reader: reader.open(reader.varint()),
    lambda reader: reader.checksum("crc32", reader.zero(), reader.p, reader.end),
    lambda reader: reader.elements(reader.varint(), lambda w: Fields(a=w.bytes(w.varint()))),
    lambda reader: reader.when(reader.fixed("u1") > 99, lambda w: w.bytes(w.varint(), text=True)),
]


@pytest.mark.parametrize("size", [0, 1, 7, 63, 64, 65, 300])
def test_nothing_is_read_outside_the_memory(size: int) -> None:
    """Whatever the bytes are, and up to their very end: loads stay inside, and places only grow."""
    r = random.Random(size)
    for _ in range(20):
        memory = Memory(np.frombuffer(r.randbytes(size), np.uint8))
        ends = np.full(50, size)
        reader = StructureReader(
            memory, np.array([r.randint(0, size) for _ in range(50)]), ends, 100
        )
        for _ in range(20):
            before = reader.p
            r.choice(STEPS)(reader)
            assert (reader.p >= before).all()
            assert (reader.bad | (reader.end <= size)).all()
