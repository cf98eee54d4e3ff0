"""``salvage`` gives all that ``kafka`` gives, tells what is damaged, and gives nothing twice."""

from __future__ import annotations

import zlib
from collections import Counter
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_codecs import RECORD_BATCH
from kafka_log import Batch, SegmentReader, read_table
from kafka_log.segment.reader import batch_damage
from tests.brokers.mutant_bytes import put
from tests.paths import VECTORS
from tests.shares import examples
from tests.support import judged
from tests.support.batches import batch
from tests.support.damaged_files import CODECS, MADE, VECTOR_FILES, hurt
from tests.support.unreadable_files import bad
from tests.support.vector_segments import SEGMENTS

Row = tuple[int, bytes | None, bytes | None]


def batches(path: Path, policy: str, **options: Any) -> list[Batch]:
    return list(SegmentReader(path, policy=policy, **options))


def rows(found: list[Batch]) -> Counter[Row]:
    return Counter((r.offset, r.key, r.value) for b in found for r in b.records)


def sound(found: list[Batch]) -> Counter[Row]:
    """The rows that nothing is said to be wrong with."""
    return Counter(
        (r.offset, r.key, r.value)
        for b in found
        if not batch_damage(b)
        for r in b.records
        if r.crc_error is None
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / f"{0:020d}.log"


@pytest.mark.share(3, ci=6)
@pytest.mark.parametrize("file", sorted(SEGMENTS))
def test_every_vector_gives_what_kafka_gives(file: str) -> None:
    kafka, salvaged = (batches(VECTORS / file, policy) for policy in ("kafka", "salvage"))
    assert rows(kafka) <= rows(salvaged)


def hold(path: Path, data: bytes, changed: bytes) -> None:
    """The laws, of a file before and after it is damaged."""
    path.write_bytes(data)
    before = batches(path, "kafka")
    by_salvage = batches(path, "salvage")
    of_old = rows(before) | rows(by_salvage)
    old = [(b.position, b.position + b.size) for b in (*before, *by_salvage) if b.magic != 2]
    path.write_bytes(changed)
    # After damage, an entry is looked for that has a higher offset than the valid ones before it.
    ends = accumulate((b.last_offset for b in before), max, initial=-1)
    good = {
        b.position
        for b, end in zip(before, ends, strict=False)
        # One that only Kafka takes (a magic that no layout has) is not looked for after damage.
        if not (b.findings or b.problems)
        and (b.base_offset is None or b.base_offset > end)
        and changed[b.position :][: b.size] == data[b.position :][: b.size]
    }
    starts = {b.position for b in before}
    kafka, salvaged = (batches(path, policy) for policy in ("kafka", "salvage"))
    # Where a length lies, so that a batch takes in good ones or begins inside of another, nothing is promised.
    in_step = [
        b
        for b in kafka
        if b.position in starts and not any(b.position < g < b.position + b.size for g in good)
    ]
    assert rows(in_step) <= rows(salvaged)
    assert sound([b for b in before if b.position in good]) <= sound(salvaged)
    # Whole messages may lie plainly in the compressed bytes of a wrapper: where its own header is damaged they are found, with what lies before
    # them as their offset, which their checksum does not cover.
    apart = [b for b in salvaged if not any(at < b.position < end for at, end in old)]
    assert sound(apart) <= of_old
    assert all(count <= of_old[row] for row, count in rows(apart).items() if row in of_old)
    spans = sorted((b.position, b.position + b.size) for b in salvaged)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


@pytest.mark.parametrize("engine", ["construct", "arrow"])
@pytest.mark.parametrize(
    "odd",
    [
        {"last_offset_delta": 0},
        {"base_offset": (1 << 63) - 1},
        {"max_timestamp": 1},
        {"producer_id": 7, "producer_epoch": -1, "base_sequence": -1},
        {"attributes": {"is_transactional": True}},
    ],
    ids=str,
)
def test_a_batch_that_breaks_a_rule_for_producers_is_found_after_damage(
    path: Path, odd: dict[str, Any], engine: Any
) -> None:
    """What `kafka` reads of an undamaged file is not lost because of damage before it."""
    records = [
        {"timestamp_delta": i, "offset_delta": i, "key": b"k", "value": b"v"} for i in (0, 1)
    ]
    values = {"base_offset": 900, "base_timestamp": 5, "records": records, **odd}
    whole = RECORD_BATCH.build(values, strict=False)
    path.write_bytes(whole)
    assert batches(path, "salvage")[0].findings == ()
    path.write_bytes(b"damage" * 20 + whole)
    assert [(b.position, len(b.records)) for b in batches(path, "salvage")] == [(120, 2)]
    options: Any = {"on_damage": "drop", "engine": engine}
    assert read_table(path, ["key"], "salvage", **options).num_rows == 2


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize("size", [2, 24])
@given(st.data())
@examples(250)
def test_of_damaged_batches(path: Path, size: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(MADE) - size))
    parts = MADE[first : first + size]
    ends = list(accumulate(map(len, parts), initial=0))
    whole = b"".join(parts)
    hold(path, whole, data.draw(hurt(whole, list(pairwise(ends)))))


@pytest.mark.slow
@given(st.sampled_from(VECTOR_FILES), st.data())
@examples(250)
def test_of_damaged_vectors(path: Path, file: str, data: st.DataObject) -> None:
    whole = (VECTORS / file).read_bytes()
    path.write_bytes(whole)
    found = batches(path, "kafka") + batches(path, "salvage")
    entries = [(b.position, b.position + b.size) for b in found]
    if whole:
        hold(path, whole, data.draw(hurt(whole, entries)))


@pytest.mark.soak
@given(st.data())
@examples(60)
def test_the_kernels_give_the_same(path: Path, data: st.DataObject) -> None:
    ends = list(accumulate(map(len, MADE), initial=0))
    whole = b"".join(MADE)
    path.write_bytes(data.draw(hurt(whole, list(pairwise(ends)))))
    columns = ["damage", "offset", "key", "crc_ok", "value"]
    for choice in ("keep", "drop"):
        options: Any = {"on_damage": choice}
        slow, fast = (
            read_table(path, columns, "salvage", engine=engine, **options)
            for engine in ("construct", "arrow")
        )
        assert slow.equals(fast)
        told = fast.to_pylist()
        assert all(row["crc_ok"] for row in told if row["damage"] is None)
        assert choice == "keep" or all(row["damage"] is None for row in told)
    found = batches(path, "salvage", tail="active")
    expected = [(r.offset, bool(batch_damage(b))) for b in found for r in b.records]
    kept = read_table(path, ["offset", "damage"], "salvage").to_pylist()
    assert [(row["offset"], row["damage"] is not None) for row in kept] == expected


# ---------------------------------------------------------------- batches that are torn


def record_ends(data: bytes) -> list[int]:
    """The ends of the records of a batch without compression, by their lengths alone."""
    at, ends = 61, []
    while at < len(data):
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        at += number // 2  # zigzag, not negative
        ends.append(at)
    return ends


_VALUES = [{"offset_delta": i, "value": bytes([i + 1]) * 50} for i in range(12)]
TORN = RECORD_BATCH.build({"base_offset": 100, "records": _VALUES})


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("engine", ["construct", "arrow"])
def test_a_batch_that_is_cut_off_gives_its_whole_records(
    path: Path, engine: Any, every: int
) -> None:
    ends = record_ends(TORN)
    assert ends[-1] == len(TORN) and len(ends) == 12
    for cut in range(0, len(TORN), every):
        path.write_bytes(batch(0) + TORN[:cut])
        table = read_table(path, ["offset", "crc_ok", "damage"], "salvage", engine=engine)
        count = sum(end <= cut for end in ends)
        assert table["offset"].to_pylist() == [0, 1, 2, *range(100, 100 + count)]
        assert table["crc_ok"].to_pylist() == [True] * 3 + [None] * count
        assert table["damage"].null_count == 3
        left = read_table(path, ["offset"], "salvage", on_damage="drop", engine=engine)
        assert left["offset"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("engine", ["construct", "arrow"])
@given(start=st.integers(0, len(TORN) - 1), count=st.integers(1, 600))
@examples(40)
def test_bytes_that_cannot_be_read_cost_what_follows_in_the_batch(
    path: Path, engine: Any, start: int, count: int
) -> None:
    first, last = batch(0), batch(200)
    path.write_bytes(first + TORN + last)
    start += len(first)
    end = min(start + count, len(first) + len(TORN))
    with bad(path, [(start, end)]):
        found = read_table(path, ["offset"], "salvage", engine=engine)["offset"].to_pylist()
    # Sectors are read as a whole.
    readable = sum(len(first) + e <= start // 512 * 512 for e in record_ends(TORN))
    given_ = [offset for offset in found if 100 <= offset < 200]
    assert given_ == list(range(100, 100 + len(given_)))
    assert readable <= len(given_) <= sum(len(first) + e <= start for e in record_ends(TORN))


def test_one_wrong_bit_costs_no_record(path: Path) -> None:
    parts = [batch(0, records=20), batch(20, records=150), batch(170, records=21)]
    data = bytearray(b"".join(parts))
    data[len(parts[0]) + 72] ^= 1  # of the first value
    path.write_bytes(data)
    table = read_table(path, ["offset", "crc_ok"], "salvage")
    assert table["offset"].to_pylist() == list(range(191))
    assert table["crc_ok"].to_pylist() == [True] * 20 + [False] * 150 + [True] * 21


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("after", [b"", batch(50)])
def test_batches_inside_of_values_stay_there(path: Path, codec: str, after: bytes) -> None:
    inner = batch(30)
    values = [{"offset_delta": i, "value": v} for i, v in enumerate((b"a" * 30, inner, b"z"))]
    head = {"base_offset": 10, "attributes": {"compression": codec}}
    data = bytearray(batch(0) + RECORD_BATCH.build({**head, "records": values}))
    data[len(batch(0)) + 20] ^= 1  # of the checksum
    path.write_bytes(bytes(data) + after)
    found = read_table(path, ["offset", "value"], "salvage").to_pylist()[3:]
    assert [row["offset"] for row in found] == [10, 11, 12, *([50, 51, 52] if after else [])]
    assert found[1]["value"] == inner


def stored(codec: str, data: bytes) -> bytes:
    """Return a compressed section that holds the data as it is."""
    if codec == "gzip":
        compressor = zlib.compressobj(0, zlib.DEFLATED, 31)
        return compressor.compress(data) + compressor.flush()
    frame = bytes.fromhex("04224d18604082") + (len(data) | 0x80000000).to_bytes(4, "little")
    return frame + data + bytes(4)


def damaged_wrapper(data: st.DataObject) -> bytes:
    """Draw a wrapper that holds its messages as they are, with a wrong checksum, length or timestamp."""
    codec = data.draw(st.sampled_from(["gzip", "lz4"]))
    magic = data.draw(st.sampled_from([0, 1]))
    inner = st.sampled_from(
        [
            judged.message(0, magic),
            judged.message(1, magic, key=b"k" * 300),
            put(judged.message(2, magic), 16, 2, 1),
            judged.batch(60),
            judged.batch(61, value=bytes(3000)),
        ]
    )
    messages = data.draw(st.lists(inner, min_size=1, max_size=4))
    entry = judged.with_section(
        judged.wrapper(messages, 52, magic), codec, stored(codec, b"".join(messages))
    )
    at, size, change = data.draw(st.sampled_from([(12, 4, 1), (8, 4, 3), (8, 4, -3), (17, 1, 64)]))
    return put(entry, at, int.from_bytes(entry[at : at + size], "big") + change, size)


@pytest.mark.soak
@given(st.data())
@examples(300)
def test_wrappers_that_hold_entries_as_they_are(path: Path, data: st.DataObject) -> None:
    """Salvage gives at least the offsets that ``kafka`` gives, and all after the damage."""
    before = data.draw(st.sampled_from([b"", judged.batch(10)]))
    after = data.draw(
        st.sampled_from([b"", b"\1" * 30, judged.batch(900), b"\1" * 30 + judged.batch(900)])
    )
    path.write_bytes(before + damaged_wrapper(data) + after)
    by_kafka, found = (
        {record.offset for batch in SegmentReader(path, policy=policy) for record in batch.records}
        for policy in ("kafka", "salvage")
    )
    assert by_kafka <= found
    assert 900 in found or not after.endswith(judged.batch(900))
