"""What cannot be written is refused, with the row and the column; what only looks different is taken."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecgen.runtime.arrow.casts import RowRefused, cast_plain
from codecgen.runtime.arrow.encoder import Encoder
from codecgen.runtime.arrow.view import Codec
from codecgen.runtime.errors import BuildError, CodecError
from kafka_codecs import (
    CONTROL_RECORD_KEY,
    CONTROL_RECORD_VALUE,
    RECORD_BATCH,
    Compression,
    ControlRecordType,
)
from kafka_codecs.arrow.records_writer import RECORDS_WRITER
from kafka_log import encode, write_segment
from kafka_log.write import encoding
from tests.support.encoded_values import PLAIN, SOME
from tests.support.record_tables import DEFAULT, decoded, table, written

ROWS = PLAIN[:20]


def changed(at: int, **values: Any) -> pa.Table:
    rows = [dict(row) for row in ROWS]
    rows[at].update(values)
    return table(rows, (*DEFAULT, *(name for name in values if name not in DEFAULT)))


def spread(name: str, value: Any, other: Any) -> pa.Table:
    """One row with another value in a column."""
    rows = [row | {name: other if i == 7 else value} for i, row in enumerate(ROWS)]
    return table(rows, (*DEFAULT, name) if name not in DEFAULT else DEFAULT)


HEADER = [{"key": "h", "value": None}]


@pytest.mark.parametrize(
    ("name", "value", "other", "magic"),
    [
        ("headers", [], HEADER, 1),
        ("headers", [], HEADER, 0),
        ("timestamp_type", 0, 2, 2),
        ("timestamp_type", 0, -1, 2),
        ("timestamp_type", 0, -1, 1),
        ("codec", 1, 5, 2),
        ("codec", 0, -1, 2),
        ("codec", 2, 4, 1),
        ("sequence", -1, -2, 2),
        ("producer_id", -1, 5, 1),
        ("producer_epoch", -1, 5, 1),
        ("sequence", -1, 5, 1),
        ("leader_epoch", -1, 5, 1),
        ("is_transactional", False, True, 1),
        ("is_control", False, True, 1),
        ("delete_horizon", None, 7, 1),
    ],
)
def test_a_row_that_has_no_place(name: str, value: Any, other: Any, magic: int) -> None:
    rows = spread(name, value, other)
    if not magic:
        rows = rows.drop_columns(["timestamp", "timestamp_type"])
    for codec in (None, "gzip"):
        options = {} if name == "codec" else {"codec": codec}
        with pytest.raises(RowRefused) as found:
            written(rows, magic=magic, **options)
        assert (found.value.row, found.value.column) == (7, name)
        assert f"row 7, column {name}" in str(found.value)
        assert isinstance(found.value, BuildError)


def test_version_0_has_no_timestamps() -> None:
    with pytest.raises(RowRefused, match=r"row 0, column timestamp\)") as found:
        written(table(ROWS), magic=0)
    assert found.value.column == "timestamp"


def test_a_wrapper_begins_at_its_first_message() -> None:
    with pytest.raises(RowRefused, match="row 0, column base_offset"):
        written(
            table([row | {"base_offset": 90} for row in ROWS], (*DEFAULT, "base_offset")), magic=1
        )


def test_the_number_of_a_row_counts_all_rows() -> None:
    many = table([row | {"offset": i} for i, row in enumerate(PLAIN * 20)])
    bad = table([ROWS[0] | {"timestamp_type": 3}])
    chunks = pa.concat_tables([many, bad, many])
    with pytest.raises(RowRefused) as found:
        written(chunks)
    assert found.value.row == many.num_rows
    both = pa.concat_tables(
        [
            t.append_column("magic", pa.array([m] * t.num_rows, pa.int8()))
            for m, t in ((1, many), (2, bad))
        ]
    )
    with pytest.raises(RowRefused) as found:
        written(both)
    assert found.value.row == many.num_rows


def of_versions(*numbers: object, kind: pa.DataType | None = None) -> pa.Table:
    """A row for each number of a version."""
    rows = table([ROWS[0] | {"offset": i} for i in range(len(numbers))], ["offset", "key", "value"])
    return rows.append_column("magic", pa.array(numbers, kind or pa.int8()))


@pytest.mark.parametrize(("bad", "kind"), [(7, pa.int8()), (1.5, pa.float64()), (None, pa.int8())])
def test_the_row_of_a_version_counts_all_rows(bad: object, kind: pa.DataType) -> None:
    """Of all tables of Arrow before it, and in the one that it is in."""
    before = of_versions(2, 1, 1, 2, kind=kind)
    with pytest.raises(RowRefused) as found:
        written(pa.concat_tables([before, before, of_versions(1, 2, bad, kind=kind)]))
    assert (found.value.row, found.value.column) == (2 * 4 + 2, "magic")


def test_versions_that_change_within_a_table() -> None:
    """Each row is in its version, once."""
    numbers = [2, 0, 0, 1, 2, 2, 1, 0]
    data = written(pa.concat_tables([of_versions(*numbers), of_versions(*reversed(numbers))]))
    found = decoded(data, ["magic", "offset"])
    assert found["magic"].to_pylist() == [*numbers, *reversed(numbers)]
    assert found["offset"].to_pylist() == [*range(8), *range(8)]


def test_arguments_take_the_place_of_columns() -> None:
    rows = of_versions(2, 1, 2).append_column("codec", pa.array([0, 1, 0], pa.int8()))
    found = decoded(written(rows, magic=1, codec="lz4"), ["magic", "codec", "offset"])
    assert found["magic"].to_pylist() == [1] * 3
    assert found["codec"].to_pylist() == [Compression.LZ4] * 3
    assert found["offset"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("value", [3, 100, -1])
def test_versions_that_do_not_exist(value: int) -> None:
    known = "is not a version of the format; known: 0, 1, 2"
    with pytest.raises(RowRefused, match=f"{value} {known} .row 7, column magic"):
        written(spread("magic", 2, value))
    with pytest.raises(ValueError, match=f"3 {known}"):
        encode(table(ROWS), magic=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"codec": "brotli"}, "'brotli' is not a codec; known: none, gzip"),
        ({"batch_bytes": 0}, "batch_bytes is 0: it must be in 1.."),
        ({"batch_bytes": 1 << 29}, "it must be in 1.."),
        ({"producer": 5}, "no column is called 'producer'"),
        ({"producer_id": 1 << 63}, "producer_id is 9223372036854775808: it must be in"),
        ({"producer_epoch": 40000}, "producer_epoch is 40000: it must be in"),
        ({"is_control": 2}, "is_control is 2: it must be in 0..1"),
        ({"producer_id": "x"}, "producer_id is 'x': a number is needed"),
        ({"key": b"k"}, "key cannot be a constant"),
        ({"position": 1}, "position cannot be given as a constant"),
        ({"delete_horizon": "never"}, "delete_horizon is 'never', which is not a time"),
    ],
)
def test_arguments_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        written(table(ROWS), **options)


def test_a_constant_has_to_have_a_place_as_well() -> None:
    with pytest.raises(RowRefused, match="5 would not be read back from message of version 1"):
        written(table(ROWS), magic=1, producer_id=5)
    when = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    batch = RECORD_BATCH.parse(written(table(ROWS), delete_horizon=when))
    assert batch.base_timestamp == 1_704_067_200_000


def test_columns_that_are_not_known() -> None:
    rows = table(ROWS)
    with pytest.raises(
        ValueError, match="the columns topic are not written: drop them; known: base_offset"
    ):
        written(rows.append_column("topic", pa.array(["t"] * len(ROWS))))
    with pytest.raises(
        ValueError, match="record_batch cannot be written without the columns offset"
    ):
        written(rows.drop_columns(["offset"]))
    with pytest.raises(
        ValueError, match="the table has two columns of one name: rename or drop one"
    ):
        written(rows.append_column("key", rows.column("key")))
    with pytest.raises(TypeError, match="a table or a stream of Arrow is needed, not list"):
        encode([1, 2])
    placed = rows.append_column("position", pa.array(range(len(ROWS)), pa.int64()))
    assert written(placed) == written(rows)


NULLS = {
    "offset": pa.array([1, None, 3], pa.int64()),
    "timestamp": pa.array([1, None, 3], pa.timestamp("ms", "UTC")),
    "headers": pa.array(
        [[], None, []], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    ),
}


@pytest.mark.parametrize("name", NULLS)
def test_null_where_there_is_none(name: str) -> None:
    rows = pa.table({"offset": pa.array([1, 2, 3], pa.int64())} | {name: NULLS[name]})
    with pytest.raises(RowRefused) as found:
        written(rows)
    assert (found.value.row, found.value.column) == (1, name)


def test_null_inside_a_list() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    good = {"key": "k", "value": None}
    for bad, name in (({"key": None, "value": b""}, "headers.key"), (None, "headers")):
        lists = pa.array([[good], [], [good, good, bad], [good]], kind)
        rows = pa.table({"offset": pa.array(range(4), pa.int64()), "headers": lists})
        for start in (0, 1, 2):
            with pytest.raises(RowRefused) as found:
                written(rows.slice(start))
            assert (found.value.row, found.value.column) == (2 - start, name)


def test_a_cast_that_would_lose_something() -> None:
    stamps = pa.array([1000, 2000, 2001, 3000], pa.timestamp("us", "UTC"))
    rows = pa.table({"offset": pa.array(range(4), pa.int64()), "timestamp": stamps})
    with pytest.raises(RowRefused, match="row 2, column timestamp"):
        written(rows)
    assert decoded(written(rows.slice(0, 2)), ["timestamp"]).column(0).cast(
        pa.int64()
    ).to_pylist() == [1, 2]
    text = pa.array([b"ok", b"\xff\xfe"], pa.binary_view())
    kind = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
    lists = pa.array([[{"key": b"a", "value": None}], [{"key": b"\xff", "value": None}]], kind)
    rows = pa.table({"offset": pa.array([1, 2], pa.int64()), "value": text, "headers": lists})
    with pytest.raises(RowRefused, match=r"row 1, column headers\.key"):
        written(rows)
    with pytest.raises(ValueError, match="the column key is int64, not binary"):
        written(pa.table({"offset": pa.array([1], pa.int64()), "key": pa.array([1], pa.int64())}))


def test_text_that_is_none_is_refused_wherever_it_lies() -> None:
    """Arrow's own text may be wrong too; the last bytes of a buffer are looked at one by one."""
    for bad in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"a" * 20 + b"\xe2\x82"):
        for after in (b"", b"good text that is long enough"):
            data = b"fine" + bad + after
            ends = [0, 4, 4 + len(bad), len(data)]
            offsets = pa.py_buffer(np.array(ends, np.int32).tobytes())
            keys = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(data)])
            structs = pa.StructArray.from_arrays([keys, pa.nulls(3, pa.binary())], ["key", "value"])
            lists = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), structs)
            rows = pa.table({"offset": pa.array([1, 2], pa.int64()), "headers": lists})
            with pytest.raises(RowRefused, match=r"row 1, column headers\.key"):
                written(rows)


@pytest.mark.parametrize("ends", [[0, 5, 3, 6], [0, 1 << 30, 2, 3], [0, -9, 2, 6]])
def test_broken_offsets_are_refused(ends: list[int]) -> None:
    offsets = pa.py_buffer(np.array(ends, np.int32).tobytes())
    values = pa.Array.from_buffers(pa.binary(), 3, [None, offsets, pa.py_buffer(b"abcdef")])
    rows = pa.RecordBatch.from_arrays(
        [pa.array([1, 2, 3], pa.int64()), values], ["offset", "value"]
    )
    with pytest.raises(ValueError, match="the record batch is broken"):
        written(rows)


LIKE = {
    "key": (
        pa.large_binary(),
        pa.binary_view(),
        pa.dictionary(pa.int32(), pa.binary()),
        pa.string_view(),
    ),
    "value": (pa.large_string(), pa.string(), pa.string_view(), pa.binary_view()),
    "timestamp": (pa.timestamp("ns", "UTC"), pa.timestamp("us"), pa.timestamp("ms"), pa.int64()),
    "offset": (pa.int32(), pa.uint64(), pa.int16(), pa.uint8()),
    "timestamp_type": (pa.int64(), pa.int32(), pa.uint8(), pa.int16()),
}


@pytest.mark.parametrize("which", range(4))
def test_types_that_hold_the_same(which: int) -> None:
    rows = [row | {"key": b"k", "value": b"v"} for row in SOME[:50]]
    whole = table(rows)
    arrays = []
    for name in DEFAULT:
        array = whole.column(name).combine_chunks()
        if name in LIKE:
            kind = LIKE[name][which]
            array = array.cast(pa.int64()) if kind == pa.int64() else array
            if pa.types.is_dictionary(kind):
                array = array.dictionary_encode()
            arrays.append(array.cast(kind))
        else:
            arrays.append(array)
    kinds = pa.struct([("value", pa.large_binary()), ("key", pa.string_view())])
    lists = pa.array([row["headers"] for row in rows], pa.large_list(kinds))
    arrays[DEFAULT.index("headers")] = lists
    like = pa.table(arrays, names=list(DEFAULT))
    assert written(like) == written(whole)
    assert written(like.slice(13, 20)) == written(whole.slice(13, 20))


def test_maps_are_lists_of_pairs() -> None:
    kind = pa.map_(pa.string(), pa.binary())
    maps = pa.array([[("a", b"1")], [], [("b", None), ("b", b"2")]], kind)
    rows = pa.table({"offset": pa.array([1, 2, 3], pa.int64()), "headers": maps})
    found = decoded(written(rows), ["headers"]).column(0).to_pylist()
    assert found[0] == [{"key": "a", "value": b"1"}]
    assert found[2] == [{"key": "b", "value": None}, {"key": "b", "value": b"2"}]


def test_slices_and_streams() -> None:
    whole = table(SOME)
    for start, size in ((0, 0), (1, 1), (3, 50), (150, 50)):
        part = whole.slice(start, size)
        copied = table(SOME[start : start + size])
        assert written(part) == written(copied)
        batches = part.to_batches()
        if batches:
            assert written(batches[0]) == written(copied)
            assert b"".join(encode(pa.RecordBatchReader.from_batches(part.schema, batches))) == (
                written(copied)
            )

    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return whole.__arrow_c_stream__(requested_schema)

    assert written(Stream()) == written(whole)


def test_only_so_much_is_read_ahead() -> None:
    """A stream that is endless is written as it comes."""
    taken = 0

    def endless() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        while True:
            taken += 1
            offsets = pa.array(range(taken * 1000, taken * 1000 + 1000), pa.int64())
            yield pa.record_batch({"offset": offsets, "value": pa.array([b"x" * 1000] * 1000)})

    schema = pa.schema({"offset": pa.int64(), "value": pa.binary()})
    pieces = encode(pa.RecordBatchReader.from_batches(schema, endless()))
    total = sum(len(next(pieces)) for _ in range(5))
    assert total > 2_000_000
    assert taken < 10


def test_a_record_that_is_too_large_to_compress() -> None:
    """What may be compressed together has a limit; it is made smaller here."""
    cases = {
        number: replace(case, codecs={1: Codec("gzip", None, 500)})
        for number, case in RECORDS_WRITER.kinds[2].cases.items()
    }
    kind = replace(RECORDS_WRITER.kinds[2], cases=cases)
    made = Encoder(
        replace(RECORDS_WRITER, kinds={2: kind}), 2, constants={"codec": 1}, batch_bytes=9
    )
    offsets = pa.array(range(3), pa.int64())
    rows = pa.record_batch({"offset": offsets, "value": pa.array([b"a", b"b", b"x" * 600])})
    with pytest.raises(RowRefused, match="more than the 500 that may be compressed") as found:
        list(made.encode([rows]))
    assert found.value.row == 2


def test_a_segment_is_there_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / f"{100:020}.log"
    size = write_segment(path, table(SOME), codec="zstd", batch_bytes=1000)
    assert size == path.stat().st_size
    assert decoded(path.read_bytes()).equals(table(SOME))
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="exists: pass overwrite=True"):
        write_segment(path, table(ROWS))
    assert path.read_bytes() == before
    assert write_segment(path, table(ROWS), overwrite=True) == path.stat().st_size
    bad = tmp_path / "bad.log"
    with pytest.raises(CodecError):
        write_segment(bad, spread("timestamp_type", 0, 7))
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("most", [1, 100, 1000, 1 << 20])
def test_a_large_table_is_written_in_parts(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is in one part, in order, and no part is larger than it may be, unless it is one row."""
    monkeypatch.setattr(encoding, "_SPLIT", most)
    rows = table([row | {"offset": i} for i, row in enumerate(PLAIN[:37])])
    (batch,) = rows.combine_chunks().to_batches()
    parts = list(encoding.split_batch(batch))
    assert pa.Table.from_batches(parts).equals(rows)
    assert all(part.num_rows == 1 or 0 < part.nbytes <= most for part in parts)
    assert (len(parts) == 1) == (batch.nbytes <= most)
    assert decoded(written(rows)).equals(rows)


UNKNOWN_TYPE = bytes(CONTROL_RECORD_KEY.build({"version": 0, "type": 77}))
COMMIT = bytes(CONTROL_RECORD_KEY.build({"version": 0, "type": int(ControlRecordType.COMMIT)}))
COMMIT_VALUE = bytes(
    CONTROL_RECORD_VALUE[ControlRecordType.COMMIT].build({"version": 0, "coordinator_epoch": 3})
)


def controls(*records: tuple[bytes | None, bytes | None]) -> pa.Table:
    """Rows of control records with these keys and values, after an ordinary row."""
    keys, values = zip((b"any", b"row"), *records, strict=True)
    marks = [False] + [True] * len(records)
    columns = {
        "offset": pa.array(range(len(keys)), pa.int64()),
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "is_control": pa.array(marks, pa.bool_()),
    }
    return pa.table(columns)


@pytest.mark.parametrize(
    ("key", "value", "column"),
    [
        (None, COMMIT_VALUE, "key"),
        (b"", COMMIT_VALUE, "key"),
        (b"\0\0\0", COMMIT_VALUE, "key"),
        (COMMIT, None, "value"),
        (COMMIT, b"\0", "value"),
    ],
)
def test_a_control_record_that_is_none(key: bytes | None, value: bytes | None, column: str) -> None:
    rows = controls((COMMIT, COMMIT_VALUE), (key, value))
    for size in (1, 9):
        with pytest.raises(RowRefused, match="control record") as found:
            written(pa.Table.from_batches(rows.to_batches(max_chunksize=size)))
        assert (found.value.row, found.value.column) == (2, column)
    rest = rows.drop_columns(["is_control"]).slice(2)
    with pytest.raises(RowRefused) as found:
        written(rest, is_control=True)
    assert (found.value.row, found.value.column) == (0, column)


def test_the_row_of_a_control_record_counts_rows_of_other_versions() -> None:
    """Of versions without control records too, and of several tables of Arrow in one version."""
    rows = controls((COMMIT, COMMIT_VALUE), (COMMIT, COMMIT_VALUE), (b"x", COMMIT_VALUE))
    rows = rows.set_column(3, "is_control", pa.array([False, False, True, True]))
    rows = rows.append_column("magic", pa.array([1, 1, 2, 2], pa.int8()))
    for size in (1, 9):
        with pytest.raises(RowRefused, match="control record") as found:
            written(pa.Table.from_batches(rows.to_batches(max_chunksize=size)))
        assert (found.value.row, found.value.column) == (3, "key")


def test_control_records_are_written() -> None:
    """Control records of types that the schemas do not know may have any value."""
    rows = controls((COMMIT, COMMIT_VALUE), (UNKNOWN_TYPE, b"anything"), (UNKNOWN_TYPE, None))
    found = decoded(written(rows), rows.schema.names)
    assert found.to_pylist() == rows.to_pylist()
    larger = rows.set_column(2, "value", rows.column("value").cast(pa.large_binary()))
    assert written(larger) == written(rows)


def test_a_constant_says_which_rows_are_control_records() -> None:
    """It replaces the column: an ordinary key is refused only if the row is written as a control record."""
    plain = pa.table({"offset": pa.array([0, 1], pa.int64()), "key": [b"a", b"b"]})
    for mark in (True, False):
        rows = plain.append_column("is_control", pa.array([mark, mark]))
        for none in (False, 0):
            found = decoded(written(rows, is_control=none), ["key", "is_control"])
            assert found.column("key").to_pylist() == [b"a", b"b"]
            assert found.column("is_control").to_pylist() == [False, False]
        for every in (True, 1):
            with pytest.raises(RowRefused, match="marked as a control record") as refused:
                written(rows, is_control=every)
            assert (refused.value.row, refused.value.column) == (0, "key")


def test_one_offset_for_several_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / f"{5:020}.log"
    with pytest.raises(RowRefused, match="each row has the offset 5") as refused:
        write_segment(path, pa.table({"value": [b"a", b"b"]}), offset=5)
    assert (refused.value.row, list(tmp_path.iterdir())) == (1, [])
    assert write_segment(path, pa.table({"value": [b"a"]}), offset=5) > 0


@given(st.lists(st.sampled_from(["1", "2", "x", "y", "z"]), min_size=1, max_size=9))
def test_the_value_in_an_error_is_that_of_its_row(texts: list[str]) -> None:
    bad = next((row for row, text in enumerate(texts) if not text.isdigit()), None)
    if bad is None:
        assert cast_plain(pa.array(texts), pa.int64(), "offset", 3).to_pylist() == [
            *map(int, texts)
        ]
        return
    with pytest.raises(RowRefused, match=f"'{texts[bad]}'") as refused:
        cast_plain(pa.array(texts), pa.int64(), "offset", 3)
    assert refused.value.row == bad + 3
