"""What is written is read back as it was: all columns, versions and codecs, however the rows come."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.arrow.casts import RowRefused
from codecgen.runtime.arrow.encoder import Encoder
from codecgen.runtime.located_bytes import Limits
from kafka_codecs import LOG_ENTRY, MESSAGE_V0, MESSAGE_V1, RECORD_BATCH, Compression
from kafka_codecs.arrow.records_writer import RECORDS_WRITER
from kafka_log import SegmentReader
from kafka_log.write.encoding import CODECS, encode, write_segment
from tests.paths import ROOT
from tests.support.encoded_values import EVERY, PLAIN, SOME
from tests.support.random_segments import entries
from tests.support.record_tables import (
    DEFAULT,
    I64,
    ON_REQUEST,
    UNKNOWN_CONTROL,
    decoded,
    rows_of,
    segment,
    table,
    written,
)

OF_PRODUCERS = {"producer_id", "producer_epoch", "sequence", "is_transactional", "is_control"}


@pytest.mark.slow
@given(data=st.data(), magic=st.integers(0, 2), batch_bytes=st.sampled_from((1, 40, 300, 1 << 20)))
def test_every_column_is_read_back(data: st.DataObject, magic: int, batch_bytes: int) -> None:
    rows = data.draw(rows_of(magic))
    given_ = data.draw(st.sets(st.sampled_from(ON_REQUEST)))
    if given_ & OF_PRODUCERS:
        given_ |= OF_PRODUCERS  # rules ask for them together
    if magic < 2 and (batch_bytes < 1 << 20 or "codec" not in given_):
        given_ -= {"base_offset"}  # a wrapper says where it begins by its first message alone
    columns = [name for name in EVERY if name not in ON_REQUEST or name in given_]
    whole = table(rows, columns)
    options = {} if "magic" in given_ else {"magic": magic}
    again = decoded(written(whole, batch_bytes=batch_bytes, **options), columns)
    assert again.equals(whole)


@pytest.mark.slow
@given(data=st.data(), magic=st.integers(0, 2))
def test_it_does_not_matter_how_the_rows_come(data: st.DataObject, magic: int) -> None:
    columns = [name for name in EVERY if magic == 2 or name != "base_offset"]
    whole = table(data.draw(rows_of(magic)), columns)
    batch_bytes = data.draw(st.sampled_from((1, 60, 500)))
    expected = written(whole, batch_bytes=batch_bytes)
    pieces = []
    at = 0
    while at < whole.num_rows:
        size = data.draw(st.integers(0, 9))
        pieces.append(whole.slice(at, size))
        at += size
    chunked = pa.concat_tables([whole.slice(0, 0), *pieces])
    assert written(chunked, batch_bytes=batch_bytes) == expected
    reader = pa.RecordBatchReader.from_batches(whole.schema, chunked.to_batches())
    assert written(reader, batch_bytes=batch_bytes) == expected


@pytest.mark.slow
@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", CODECS)
def test_versions_and_codecs(magic: int, codec: str) -> None:
    rows = table(PLAIN if magic < 2 else SOME)
    if magic == 0:
        rows = rows.drop_columns(["timestamp", "timestamp_type"])
    if magic < 2 and codec == "zstd":
        with pytest.raises(Exception, match="4 has no place in message of version"):
            written(rows, magic=magic, codec=codec)
        return
    data = written(rows, magic=magic, codec=codec, batch_bytes=1000)
    assert decoded(data, rows.schema.names).equals(rows)
    found = decoded(data, ["codec", "magic"]).to_pylist()
    assert found == [{"codec": CODECS.index(codec), "magic": magic}] * len(SOME)


def test_the_level_is_that_of_the_codec() -> None:
    rows = table(SOME)
    sizes = [len(written(rows, codec="gzip", level=level)) for level in (1, 9)]
    assert sizes[1] < sizes[0]
    with pytest.raises(Exception, match="levels 1 to 9, not 12"):
        written(rows, codec="gzip", level=12)


def record_batch(rows: list[dict[str, Any]], **fields: Any) -> bytes:
    first = rows[0]
    return bytes(
        RECORD_BATCH.build(
            {
                "base_offset": first["offset"],
                "base_timestamp": first["timestamp"],
                "max_timestamp": max(row["timestamp"] for row in rows),
                "records": [
                    {
                        "offset_delta": row["offset"] - first["offset"],
                        "timestamp_delta": row["timestamp"] - first["timestamp"],
                        "key": row["key"],
                        "value": row["value"],
                        "headers": row["headers"],
                    }
                    for row in rows
                ],
            }
            | fields
        )
    )


def test_a_record_batch_is_that_of_the_reference_codecs() -> None:
    producer = {"producer_id": 4001, "producer_epoch": 3}
    expected = record_batch(
        SOME,
        **producer,
        base_sequence=(1 << 31) - 5,
        partition_leader_epoch=7,
        attributes={"is_transactional": True},
    )
    sequences = [((1 << 31) - 5 + i) % (1 << 31) for i in range(len(SOME))]
    rows = table(
        [row | {"sequence": s} for row, s in zip(SOME, sequences, strict=True)],
        (*DEFAULT, "sequence"),
    )
    found = written(rows, batch_bytes=1 << 20, **producer, leader_epoch=7, is_transactional=True)
    assert found == expected


@pytest.mark.parametrize("batch_bytes", [1, 100, 1000, 5000])
def test_a_batch_has_as_many_records_as_there_is_room_for(batch_bytes: int) -> None:
    data = written(table(SOME), batch_bytes=batch_bytes)
    at = 0
    sizes = []
    for start, end in entries(data):
        batch = RECORD_BATCH.parse(data[start:end])
        rows = SOME[at : at + len(batch.records)]
        assert data[start:end] == record_batch(rows)
        sizes.append(end - start - 61)
        at += len(rows)
        if at < len(SOME):
            more = len(record_batch(SOME[at - len(rows) : at + 1])) - 61
            assert more > batch_bytes
        assert sizes[-1] <= batch_bytes or len(rows) == 1
    assert at == len(SOME)


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_are_those_of_the_reference_codecs(magic: int) -> None:
    layout = (MESSAGE_V0, MESSAGE_V1)[magic]

    def message(row: dict[str, Any], offset: int) -> dict[str, Any]:
        out = {"offset": offset, "magic": magic, "key": row["key"], "value": row["value"]}
        return out | ({"timestamp": row["timestamp"]} if magic else {})

    rows = table(PLAIN)
    if not magic:
        rows = rows.drop_columns(["timestamp", "timestamp_type"])
    expected = b"".join(layout.build(message(row, row["offset"])) for row in PLAIN)
    assert written(rows, magic=magic) == expected
    first = PLAIN[0]["offset"]
    wrapper = {
        "offset": PLAIN[-1]["offset"],
        "magic": magic,
        "attributes": {"compression": Compression.GZIP},
        "key": None,
        "messages": [message(row, row["offset"] - (first if magic else 0)) for row in PLAIN],
    }
    if magic:
        wrapper["timestamp"] = max(row["timestamp"] for row in PLAIN)
    assert written(rows, magic=magic, codec="gzip", batch_bytes=1 << 20) == layout.build(wrapper)


def test_log_append_time_is_one_timestamp_for_a_batch() -> None:
    stamps = [5, 5, 7, 7, 6, 6]
    rows = [
        row | {"timestamp": t, "timestamp_type": 1} for row, t in zip(SOME, stamps, strict=False)
    ]
    for magic, codec in ((2, None), (2, "zstd"), (1, None), (1, "lz4")):
        plain = table([row | {"headers": []} for row in rows])
        data = written(plain, magic=magic, codec=codec)
        assert decoded(data).equals(plain)
        if (magic, codec) != (1, None):
            assert len(list(entries(data))) == 3


def test_a_delete_horizon_is_what_timestamps_are_counted_from() -> None:
    columns = (*DEFAULT, "delete_horizon")
    rows = table([row | {"delete_horizon": 1_700_000_500_000} for row in SOME], columns)
    data = written(rows, batch_bytes=1 << 20)
    batch = RECORD_BATCH.parse(data)
    assert batch.attributes.has_delete_horizon
    assert batch.base_timestamp == 1_700_000_500_000
    assert batch.records[0].timestamp_delta == -500_000
    assert decoded(data, columns).equals(rows)


def test_columns_that_are_left_out_have_their_defaults() -> None:
    rows = pa.table({"offset": pa.array([3, 4, 9], pa.int64())})
    (entry,) = [RECORD_BATCH.parse(written(rows))]
    assert (entry.base_offset, entry.last_offset_delta, entry.base_timestamp) == (3, 6, -1)
    assert (entry.producer_id, entry.producer_epoch, entry.base_sequence) == (-1, -1, -1)
    assert entry.partition_leader_epoch == -1
    assert [(r.key, r.value, r.headers) for r in entry.records] == [(None, None, [])] * 3


def test_a_compacted_batch_keeps_where_it_began() -> None:
    columns = (*DEFAULT, "base_offset", "sequence")
    rows = [
        row | {"base_offset": 90, "sequence": (row["offset"] - 90 + (1 << 31) - 12) % (1 << 31)}
        for row in SOME[::3]
    ]
    whole = table(rows, columns)
    data = written(whole, batch_bytes=1 << 20)
    batch = RECORD_BATCH.parse(data)
    assert (batch.base_offset, batch.base_sequence) == (90, (1 << 31) - 12)
    assert decoded(data, columns).equals(whole)


def test_a_change_of_the_batch_begins_a_new_one() -> None:
    changes = {
        "producer_id": (1, 2),
        "producer_epoch": (1, 2),
        "leader_epoch": (1, 2),
        "is_transactional": (False, True),
        "is_control": (False, True),
        "codec": (0, 3),
        "delete_horizon": (None, 4),
        "sequence": (3, 3),
    }
    producer = {"producer_id": 1, "producer_epoch": 0, "sequence": 3}
    for name, values in changes.items():
        needed = producer if name in OF_PRODUCERS else {}
        if name == "is_control":
            needed = needed | {"key": UNKNOWN_CONTROL}
        rows = [row | needed | {name: value} for row, value in zip(SOME, values, strict=False)]
        whole = table(rows, tuple(dict.fromkeys((*DEFAULT, *needed, name))))
        data = written(whole)
        assert len(list(entries(data))) == 2, name
        assert decoded(data, whole.schema.names).equals(whole)


def test_no_batch_that_is_written_breaks_a_rule() -> None:
    """Rows that break a rule together are in batches of their own."""
    for offsets in ([5, 5], [5, 3, 4], [(1 << 63) - 1, -(1 << 63)]):
        data = written(pa.table({"offset": pa.array(offsets, pa.int64())}))
        batches = [RECORD_BATCH.parse(data[start:end]) for start, end in entries(data)]
        assert [r.offset for batch in batches for r in batch.records] == offsets
        assert len(batches) == 2
    producer = {"producer_id": 7, "producer_epoch": 0, "sequence": -1}
    keys = pa.array([UNKNOWN_CONTROL] * 2, pa.binary())
    markers = pa.table({"offset": pa.array([1, 2], pa.int64()), "key": keys})
    data = written(markers, is_control=True, is_transactional=True, **producer)
    batches = [RECORD_BATCH.parse(data[start:end]) for start, end in entries(data)]
    assert [batch.record_count for batch in batches] == [1, 1]


@pytest.mark.parametrize("offsets", [[5, 5], [3, 4, 2], [5, 6, 5]])
@pytest.mark.parametrize("size", [1, 9])
def test_offsets_that_do_not_ascend_are_no_segment(
    offsets: list[int], size: int, tmp_path: Path
) -> None:
    rows = pa.table({"offset": pa.array(offsets, pa.int32())})
    whole = pa.Table.from_batches(rows.to_batches(max_chunksize=size))
    with pytest.raises(RowRefused, match=r"is not above .* so sort the rows by offset") as refused:
        write_segment(tmp_path / "0.log", whole)
    assert (refused.value.row, refused.value.column) == (len(offsets) - 1, "offset")
    assert list(tmp_path.iterdir()) == []
    write_segment(tmp_path / "0.log", whole.sort_by("offset").slice(len(offsets) - 1))


@pytest.mark.parametrize(
    ("column", "given", "rule"),
    [
        ("producer_id", {"is_transactional": True}, "producer_of_transaction"),
        ("producer_epoch", {"producer_id": 7, "sequence": 0}, "epoch_of_producer"),
        ("sequence", {"producer_id": 7, "producer_epoch": 0}, "sequence_of_producer"),
        ("offset", {"base_offset": 8}, "last_offset_from_base"),
    ],
)
def test_a_row_that_breaks_a_rule_alone_is_refused(
    column: str, given: dict[str, Any], rule: str
) -> None:
    rows = pa.table({"offset": pa.array([7, 8], pa.int64())})
    with pytest.raises(RowRefused) as refused:
        written(rows, **given)
    assert (refused.value.row, refused.value.column) == (0, column)
    assert f"has no place in record_batch (rule {rule}, records/record_batch.yaml:" in str(
        refused.value
    )


def test_numbers_that_are_far_apart_are_in_batches_of_their_own() -> None:
    offsets = [0, 1 << 31, (1 << 31) + 5, -(1 << 63), (1 << 63) - 1]
    rows = table([row | {"offset": o} for row, o in zip(SOME, offsets, strict=False)])
    data = written(rows)
    assert [end - start > 0 for start, end in entries(data)] == [True] * 4
    assert decoded(data).equals(rows)


@given(offsets=st.lists(I64 | st.integers(-3, 3), max_size=8), magic=st.integers(0, 2))
def test_offsets_of_any_kind_are_read_back(offsets: list[int], magic: int) -> None:
    """Also those around 0, which mean something of their own in the wrappers of version 1."""
    whole = pa.table({"offset": pa.array(offsets, pa.int64())})
    for codec in ("none", "gzip"):
        try:
            data = written(whole, magic=magic, codec=codec)
        except RowRefused as error:
            # There is no wrapper whose first offset is negative.
            assert (magic, codec) == (1, "gzip") and min(offsets) < 0
            assert "has no place" in str(error)
            continue
        assert decoded(data, ["offset"]).column("offset").to_pylist() == offsets


def test_versions_of_rows_stand_one_behind_the_other() -> None:
    rows = [row | {"magic": (1, 1, 2, 2, 1)[i]} for i, row in enumerate(PLAIN[:5])]
    whole = table(rows, (*DEFAULT, "magic"))
    data = written(whole)
    assert [data[start + 16] for start, _ in entries(data)] == [1, 1, 2, 1]
    assert decoded_mixed(data) == [row["offset"] for row in rows]
    data = written(whole, magic=2)
    assert [data[start + 16] for start, _ in entries(data)] == [2]


def decoded_mixed(data: bytes) -> list[int]:
    return [row["offset"] for row in decoded(data, ["offset"]).to_pylist()]


def test_the_reference_codecs_read_all_of_it(tmp_path: Any) -> None:
    for magic in (0, 1, 2):
        for codec in CODECS[: 5 if magic == 2 else 4]:
            rows = table(SOME if magic == 2 else PLAIN)
            if not magic:
                rows = rows.drop_columns(["timestamp", "timestamp_type"])
            path = segment(tmp_path, written(rows, magic=magic, codec=codec, batch_bytes=700))
            found = [r for batch in SegmentReader(path, policy="strict") for r in batch.records]
            assert [r.offset for r in found] == [row["offset"] for row in SOME]
            assert [(r.key, r.value) for r in found] == [(r["key"], r["value"]) for r in SOME]


def test_pieces_are_whole_entries_of_bounded_size() -> None:
    count = 60_000
    rows = pa.table(
        {
            "offset": pa.array(range(count), pa.int64()),
            "value": pa.array([b"x" * 100] * count, pa.binary()),
        }
    )
    for options in ({}, {"codec": "lz4"}, {"magic": 1, "codec": "snappy"}, {"magic": 0}):
        total = 0
        for piece in encode(rows, **options):
            assert len(piece) <= (1 << 20) + (1 << 16)
            assert next(entries(bytes(piece)))[0] == 0
            assert list(entries(bytes(piece)))[-1][1] == len(piece)
            LOG_ENTRY.parse(bytes(piece)[: next(entries(bytes(piece)))[1]])
            total += len(piece)
        assert total > 100_000


GUARDED = """
import ctypes, mmap
import pyarrow as pa
from tests.support.encoded_values import EVERY, SOME
from tests.support.record_tables import decoded, table, written

PAGE = mmap.PAGESIZE
kept = []

def guarded(buffer):
    # The same bytes, after which lies a page that nobody may read.
    if buffer is None:
        return None
    size = -(-buffer.size // PAGE) * PAGE
    pages = mmap.mmap(-1, size + PAGE)
    kept.append(pages)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + size), PAGE, 0) == 0
    at = start + size - buffer.size
    ctypes.memmove(at, buffer.address, buffer.size)
    return pa.foreign_buffer(at, buffer.size, pages)

def exact(array):
    kind = array.type
    if pa.types.is_list(kind):
        structs = array.values
        inner = pa.StructArray.from_arrays([exact(structs.field(i)) for i in range(2)], fields=list(kind.value_type))
        offsets = guarded(array.buffers()[1].slice(0, 4 * len(array) + 4))
        return pa.Array.from_buffers(kind, len(array), [None, offsets], children=[inner])
    validity, *buffers = array.buffers()
    if validity is not None:
        validity = validity.slice(0, -(-len(array) // 8))
    if len(buffers) == 2:
        offsets = buffers[0].slice(0, 4 * len(array) + 4)
        end = int.from_bytes(bytes(offsets)[-4:], "little")
        buffers = [offsets, buffers[1].slice(0, end)]
    else:
        buffers = [buffers[0].slice(0, -(-len(array) * kind.bit_width // 8))]
    return pa.Array.from_buffers(kind, len(array), [guarded(b) for b in (validity, *buffers)])

for count in (1, 2, 7, 8, 9, 33, 200):
    rows = [
        row | {"base_offset": 100, "magic": 2, "codec": 0, "producer_id": 1, "producer_epoch": 2, "sequence": 5 + i,
               "leader_epoch": 3, "is_transactional": True, "is_control": False, "delete_horizon": None}
        for i, row in enumerate(SOME[:count])
    ]
    whole = table(rows, EVERY)
    arrays = [exact(column.combine_chunks()) for column in whole.columns]
    tight = pa.RecordBatch.from_arrays(arrays, schema=whole.schema)
    assert decoded(written(tight), EVERY).equals(whole)
    for codec in ("none", "zstd"):
        assert written(tight, codec=codec) == written(whole, codec=codec)
print("read", len(kept))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
def test_nothing_is_read_beyond_the_end_of_a_buffer() -> None:
    """Behind every buffer of Arrow lies a page that nobody may read."""
    done = program(GUARDED)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("read ")


PROGRAM = """
from kafka_codecs.arrow import records_encoders
assert records_encoders.JIT is False
from tests.codecgen.runtime.arrow import test_encoder as t
for magic in (0, 1, 2):
    for codec in ("none", "lz4"):
        t.test_versions_and_codecs(magic, codec)
t.test_a_record_batch_is_that_of_the_reference_codecs()
t.test_messages_are_those_of_the_reference_codecs(1)
t.test_log_append_time_is_one_timestamp_for_a_batch()
t.test_a_change_of_the_batch_begins_a_new_one()
t.test_numbers_that_are_far_apart_are_in_batches_of_their_own()
t.test_a_compacted_batch_keeps_where_it_began()
"""


@pytest.mark.slow
@pytest.mark.parametrize("without", ["NUMBA_DISABLE_JIT", "numba"])
def test_without_a_compiler_the_kernels_are_plain_python(without: str) -> None:
    text = PROGRAM
    variables = {"NUMBA_DISABLE_JIT": "1"}
    if without == "numba":
        text = 'import sys\nsys.modules["numba"] = None\n' + PROGRAM
        variables = {}
    done = program(text, **variables)
    assert done.returncode == 0, done.stderr


def program(text: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    roots = [ROOT / name for name in ("generator", "generated", "pipeline")] + [ROOT]
    path = os.pathsep.join(map(str, roots))
    environment = dict(os.environ, PYTHONPATH=path, **variables)
    command = [sys.executable, "-c", text]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


FAR = (-(1 << 63), -5, -1, 0, 1, (1 << 63) - 1)


@pytest.mark.parametrize("offsets", [(a, b) for a in FAR for b in FAR])
def test_differences_that_wrap_around(offsets: tuple[int, int]) -> None:
    """A wrapper is written where its readers take it, also where offsets relative to its first one have no place in 64 bits."""
    whole = pa.table({"offset": pa.array(offsets, pa.int64())})
    try:
        data = written(whole, magic=1, codec="gzip")
    except RowRefused:
        assert min(offsets) < 0
    else:
        assert decoded(data, ["offset"]).column("offset").to_pylist() == list(offsets)


def pieces_of(rows: pa.Table, size: int, **options: Any) -> tuple[bytes, str]:
    """Encode rows that come ``size`` at a time. Return the bytes, and the error that ended them."""
    encoder = Encoder(RECORDS_WRITER, 2, **options)
    data = b""
    try:
        for piece in encoder.encode(rows.combine_chunks().to_batches(max_chunksize=size)):
            data += piece
    except RowRefused as error:
        return data, str(error)
    return data, ""


CUTS = (1, 2, 3, 5, 7, 8, 11, 14, 15, 59)


@pytest.mark.parametrize("batch_bytes", [1, 300, 1 << 20])
@pytest.mark.parametrize("piece_bytes", [1, 500, 1 << 20])
def test_a_batch_has_no_more_rows_than_may_be_read_however_they_come(
    batch_bytes: int, piece_bytes: int
) -> None:
    rows, most = table(SOME[:60]), 7
    options = {
        "batch_bytes": batch_bytes,
        "piece_bytes": piece_bytes,
        "limits": Limits(elements=most),
    }
    data, error = pieces_of(rows, 60, **options)
    assert error == "" and decoded(data).equals(rows)
    counts = [int.from_bytes(data[start + 57 : start + 61], "big") for start, _ in entries(data)]
    if batch_bytes == 1 << 20:
        assert counts == [7] * 8 + [4]
    assert max(counts) <= most and sum(counts) == 60
    for size in CUTS:
        assert pieces_of(rows, size, **options) == (data, "")


@pytest.mark.parametrize("wrong", [0, 1, 6, 7, 13, 59])
def test_the_same_row_is_refused_however_the_rows_come(wrong: int) -> None:
    some = [row if i != wrong else row | {"timestamp_type": 2} for i, row in enumerate(SOME[:60])]
    rows = table(some)
    options = {"batch_bytes": 300, "limits": Limits(elements=7)}
    data, error = pieces_of(rows, 60, **options)
    assert f"row {wrong}" in error
    assert decoded(data).equals(table(some[:wrong]))
    for size in CUTS:
        assert pieces_of(rows, size, **options) == (data, error)
